"""Version 1: studies, their log, their queue and who may open them.

Frozen: the tables as they were then, whatever schema.py says now.
"""

from alembic import op
from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    text,
)

revision = "0001"
down_revision = None

metadata = MetaData()


def _of_study(primary: bool = False) -> Column[str]:
    link = ForeignKey("studies.id", ondelete="CASCADE")
    return Column("study", Text, link, primary_key=primary, nullable=False)


_Id = BigInteger().with_variant(Integer, "sqlite")

Table(
    "studies",
    metadata,
    Column("id", Text, primary_key=True),
    Column("title", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("config", Text, nullable=False),
    Column("config_digest", Text, nullable=False),
    Column("made_at", BigInteger, nullable=False),
    Column("seq", Integer, nullable=False),
    Column("heard", Integer, nullable=False),
    Column("episode", Integer, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("asked", Integer, nullable=False),
    Column("given", Integer, nullable=False),
    Column("planner", Text),
    Column("planner_until", BigInteger),
    CheckConstraint("status IN ('running', 'paused', 'closed')", name="studies_status"),
    CheckConstraint("given <= asked", name="studies_given"),
)

Table(
    "annotators",
    metadata,
    _of_study(primary=True),
    Column("name", Text, primary_key=True),
    Column("joined_at", BigInteger, nullable=False),
    Column("practised", Boolean, nullable=False),
    Column("answers", Integer, nullable=False),
    Column("repeats", Integer, nullable=False),
    Column("last", _Id),
)

Table(
    "events",
    metadata,
    _of_study(primary=True),
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("at", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("annotator", Text),
    Column("impression", _Id),
    Column("duel", _Id),
    Column("outcome", Text),
    Column("body", Text),
)

Table(
    "plans",
    metadata,
    _of_study(primary=True),
    Column("plan", Integer, primary_key=True, autoincrement=False),
    Column("made_at", BigInteger, nullable=False),
    Column("engine", Text, nullable=False),
    Column("value", Float(53), nullable=False),
    Column("random_value", Float(53), nullable=False),
    Column("multiplier", Float(53), nullable=False),
    Column("changed", Float(53), nullable=False),
    Column("answers", Integer, nullable=False),
    Column("seconds", Float(53), nullable=False),
    Column("digest", Text, nullable=False),
    Column("arrays", LargeBinary),
)

Table(
    "epochs",
    metadata,
    _of_study(primary=True),
    Column("episode", Integer, primary_key=True, autoincrement=False),
    Column("epoch", Integer, primary_key=True, autoincrement=False),
    Column("states", LargeBinary, nullable=False),
    Column("arms", LargeBinary, nullable=False),
    Column("next_states", LargeBinary),
    Column("source", Text),
)

duels = Table(
    "duels",
    metadata,
    Column("id", _Id, primary_key=True, autoincrement=True),
    _of_study(),
    Column("episode", Integer, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("number", Integer, nullable=False),
    Column("purpose", Text, nullable=False),
    Column("left_arm", Integer, nullable=False),
    Column("left_state", Integer, nullable=False),
    Column("right_arm", Integer, nullable=False),
    Column("right_state", Integer, nullable=False),
    Column("ratings", Integer, nullable=False),
    Column("given", Integer, nullable=False),
    Column("held", Integer, nullable=False),
    UniqueConstraint("study", "episode", "epoch", "number", "purpose", name="duels_place"),
    CheckConstraint("purpose IN ('policy', 'repeat', 'gold', 'practice')", name="duels_purpose"),
    CheckConstraint("given BETWEEN 0 AND ratings", name="duels_given"),
    CheckConstraint("held >= 0", name="duels_held"),
    CheckConstraint("left_arm <> right_arm", name="duels_arms"),
)
FREE = text("given + held < ratings")
Index(
    "duels_free",
    duels.c.study,
    duels.c.episode,
    duels.c.id,
    sqlite_where=FREE,
    postgresql_where=FREE,
)

impressions = Table(
    "impressions",
    metadata,
    Column("id", _Id, primary_key=True, autoincrement=True),
    _of_study(),
    Column("duel", _Id, ForeignKey("duels.id", ondelete="CASCADE"), nullable=False),
    Column("annotator", Text, nullable=False),
    Column("session", Integer, nullable=False),
    Column("shown_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("outcome", Text),
    Column("answered_at", BigInteger),
    Column("response_ms", Integer),
    CheckConstraint(
        "outcome IN ('left', 'right', 'tie', 'skip', 'expired', 'undone')",
        name="impressions_outcome",
    ),
)
_LIVE = text("outcome IS NULL OR outcome <> 'undone'")
_OPEN = text("outcome IS NULL")
Index(
    "impressions_once",
    impressions.c.duel,
    impressions.c.annotator,
    unique=True,
    sqlite_where=_LIVE,
    postgresql_where=_LIVE,
)
Index(
    "impressions_open",
    impressions.c.study,
    impressions.c.expires_at,
    sqlite_where=_OPEN,
    postgresql_where=_OPEN,
)
Index("impressions_annotator", impressions.c.study, impressions.c.annotator, impressions.c.id)

Table(
    "invites",
    metadata,
    Column("token_hash", Text, primary_key=True),
    _of_study(),
    Column("annotator", Text, nullable=False),
    Column("made_at", BigInteger, nullable=False),
    Column("revoked_at", BigInteger),
)

Table(
    "keys",
    metadata,
    Column("name", Text, primary_key=True),
    Column("key_hash", Text, nullable=False),
    Column("made_at", BigInteger, nullable=False),
)


def upgrade() -> None:
    metadata.create_all(op.get_bind())
