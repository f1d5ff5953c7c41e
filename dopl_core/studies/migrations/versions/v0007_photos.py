"""Version 7: photos of arms, for their cards."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.create_table(
        "photos",
        sa.Column(
            "study",
            sa.Text,
            sa.ForeignKey("studies.id", ondelete="CASCADE"),
            primary_key=True,
            nullable=False,
        ),
        sa.Column("arm", sa.Text, primary_key=True),
        sa.Column("content", sa.LargeBinary, nullable=False),
    )
