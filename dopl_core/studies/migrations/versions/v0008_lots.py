"""Version 8: places of a list that are drawn by lot."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.add_column("epochs", sa.Column("by_lot", sa.LargeBinary))
