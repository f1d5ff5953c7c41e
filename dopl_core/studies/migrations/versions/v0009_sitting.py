"""Version 9: what a sitting leaves beside answers: the way there and back, phones, panels' ids."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.add_column("impressions", sa.Column("trip_ms", sa.Integer))
    op.add_column("impressions", sa.Column("narrow", sa.Integer))
    op.add_column("impressions", sa.Column("participant", sa.Text))
