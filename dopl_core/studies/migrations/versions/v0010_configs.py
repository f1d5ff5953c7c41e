"""Version 10: configurations, which may be large, out of the row that every click writes.

And how far somebody is who makes a plan.
"""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    study = sa.ForeignKey("studies.id", ondelete="CASCADE")
    op.create_table(
        "configs",
        sa.Column("study", sa.Text, study, primary_key=True, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
    )
    op.execute("INSERT INTO configs (study, content) SELECT id, config FROM studies")
    op.drop_column("studies", "config")
    op.add_column("studies", sa.Column("planner_step", sa.Text))
