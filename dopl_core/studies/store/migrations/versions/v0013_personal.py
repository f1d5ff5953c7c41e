"""Schema 13: personal data stand outside the chain of events, so that they can be erased."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Bring a database of schema 12 to the tables of store/tables.py."""
    for name in ("salt", "sealed"):
        op.add_column("events", sa.Column(name, sa.Text))
    op.create_table(
        "unscrubbed",
        sa.Column("since", sa.BigInteger, primary_key=True, autoincrement=False),
    )
