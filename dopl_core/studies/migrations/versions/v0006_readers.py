"""Version 6: links by which colleagues read a study's list, beside those that open duels."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.add_column("invites", sa.Column("opens", sa.Text, nullable=False, server_default="duels"))
