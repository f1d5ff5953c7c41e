"""Schema 14: which version of the consent text each annotator has agreed to."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """Bring a database of schema 13 to the tables of store/tables.py."""
    op.add_column("annotators", sa.Column("consented", sa.Text))
