"""Schema 10, the oldest that can be opened. New databases get the tables of store/tables.py."""

revision = "0010"
down_revision = None


def upgrade() -> None:
    """Nothing to do: migrations start here."""
