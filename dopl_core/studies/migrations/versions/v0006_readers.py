"""Version 6: links by which colleagues read a study's list."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.create_table(
        "readers",
        sa.Column("token_hash", sa.Text, primary_key=True),
        sa.Column(
            "study", sa.Text, sa.ForeignKey("studies.id", ondelete="CASCADE"), nullable=False
        ),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("made_at", sa.BigInteger, nullable=False),
        sa.Column("revoked_at", sa.BigInteger),
    )
