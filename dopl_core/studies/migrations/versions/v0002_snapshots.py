"""Version 2: snapshots, and what owners report of their arms beside the states."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    study = sa.ForeignKey("studies.id", ondelete="CASCADE")
    op.create_table(
        "snapshots",
        sa.Column("study", sa.Text, study, primary_key=True, nullable=False),
        sa.Column("seq", sa.Integer, nullable=False),
        sa.Column("log", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("arrays", sa.LargeBinary, nullable=False),
    )
    op.add_column("epochs", sa.Column("columns", sa.Text))
