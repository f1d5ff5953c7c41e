"""Version 3: the two lookups behind every click find their row at once, however long the log is.

SQLite takes a partial index only where the query repeats its condition, and not if that is a sum:
so the ratings of a duel that nobody has given or holds are a column of their own.
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

_FREE = sa.text("free > 0")
_OPEN = sa.text("outcome IS NULL")


def upgrade() -> None:
    op.add_column("duels", sa.Column("free", sa.Integer, nullable=False, server_default="0"))
    op.execute("UPDATE duels SET free = ratings - given - held")
    op.drop_index("duels_free", "duels")
    op.create_index(
        "duels_free",
        "duels",
        ["study", "episode", "id"],
        sqlite_where=_FREE,
        postgresql_where=_FREE,
    )
    op.create_index(
        "impressions_mine",
        "impressions",
        ["study", "annotator", "id"],
        sqlite_where=_OPEN,
        postgresql_where=_OPEN,
    )
