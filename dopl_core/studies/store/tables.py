"""The tables of a store: the log, what it has led to, and what is open now.

`events` is only ever added to, and the learner is its fold; `plans` and `epochs` have what events
point to (an epoch's row is completed when its moves are known; only the last plan keeps its arrays,
and the one before it where a report may be undone). `duels`, `impressions` and the counters of
`studies` are the queue: they change in the same transaction as the event that changes them. Times
are milliseconds since 1970, UTC.
New databases get these tables; migrations bring older ones to them, and a test compares the two.
"""

from typing import Any

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
    TextClause,
    UniqueConstraint,
    text,
)

from dopl_core.studies.model.actors import ROLES
from dopl_core.studies.model.outcomes import OUTCOMES, PURPOSES, STATUSES

# Schemas that can be opened, oldest first; the last is that of this file.
VERSIONS = ("0010", "0011", "0012", "0013", "0014")

metadata = MetaData()


def _one_of(table: str, column: str, words: tuple[str, ...]) -> CheckConstraint:
    listed = ", ".join(f"'{word}'" for word in words)
    return CheckConstraint(f"{column} IN ({listed})", name=f"{table}_{column}")


def _of_study(primary: bool = False) -> Column[str]:
    link = ForeignKey("studies.id", ondelete="CASCADE")
    return Column("study", Text, link, primary_key=primary, nullable=False)


def _index_where(name: str, rows: TextClause, *columns: Column[Any], unique: bool = False) -> None:
    """An index of some rows only."""
    Index(name, *columns, unique=unique, sqlite_where=rows, postgresql_where=rows)


# SQLite numbers rows itself only where the key is exactly INTEGER.
_Id = BigInteger().with_variant(Integer, "sqlite")

studies = Table(
    "studies",
    metadata,
    Column("id", Text, primary_key=True),
    Column("title", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("config_digest", Text, nullable=False),  # by which store.configs knows it
    Column("made_at", BigInteger, nullable=False),
    Column("seq", Integer, nullable=False),  # events so far
    Column("heard", Integer, nullable=False),  # the last event that the learner counts
    Column("episode", Integer, nullable=False),  # that of the last plan
    Column("epoch", Integer, nullable=False),  # epochs of this episode whose moves are known
    Column("asked", Integer, nullable=False),  # ratings that this round asks for
    Column("given", Integer, nullable=False),  # and has
    # Events that change the configuration: there are, and those that the last plan was made with.
    Column("changes", Integer, nullable=False, server_default="0"),
    Column("in_force", Integer, nullable=False, server_default="0"),
    # The chain of the last of them: by these, and not by their number, store.configs knows it.
    Column("changes_chain", Text, nullable=False, server_default=""),
    Column("in_force_chain", Text, nullable=False, server_default=""),
    Column("chain", Text),  # of the last event
    Column("planner", Text),  # who is planning, and until when that is believed
    Column("planner_until", BigInteger),
    Column("planner_step", Text),  # and how far that is
    _one_of("studies", "status", STATUSES),
    CheckConstraint("given <= asked", name="studies_given"),
)

# What a study was made as: JSON, with all its arms; never changes. Not in the study's own row, for
# that is written with every click, and SQLite writes rows whole.
configs = Table(
    "configs",
    metadata,
    _of_study(primary=True),
    Column("content", Text, nullable=False),
)

annotators = Table(
    "annotators",
    metadata,
    _of_study(primary=True),
    Column("name", Text, primary_key=True),
    Column("joined_at", BigInteger, nullable=False),
    Column("practised", Boolean, nullable=False),
    Column("answers", Integer, nullable=False),  # to duels that count
    Column("repeats", Integer, nullable=False),  # shown
    Column("last", _Id),  # the impression answered last, which can be undone
    # Of participants only: the link they came by, the id that their panel gave them, their code.
    Column("link", Text),
    Column("participant", Text),
    Column("code", Text),
    Column("consented", Text),  # the version of the consent text that they agreed to last
)

events = Table(
    "events",
    metadata,
    _of_study(primary=True),
    Column("seq", Integer, primary_key=True, autoincrement=False),  # 1, 2, ... without a gap
    Column("at", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("annotator", Text),
    Column("impression", _Id),
    Column("duel", _Id),
    Column("outcome", Text),
    Column("body", Text),  # JSON
    Column("chain", Text),  # a digest of this and of all events before; none before version 4
    # What the chain covers in place of annotator and body is their digest with this random salt;
    # where they were erased, the salt is gone and `sealed` has that digest. See inserts.chain.
    Column("salt", Text),
    Column("sealed", Text),
)

plans = Table(
    "plans",
    metadata,
    _of_study(primary=True),
    Column("plan", Integer, primary_key=True, autoincrement=False),  # = episode
    Column("made_at", BigInteger, nullable=False),
    Column("engine", Text, nullable=False),
    Column("value", Float(53), nullable=False),
    Column("random_value", Float(53), nullable=False),
    Column("multiplier", Float(53), nullable=False),
    Column("changed", Float(53), nullable=False),
    Column("answers", Integer, nullable=False),
    Column("seconds", Float(53), nullable=False),
    Column("digest", Text, nullable=False),
    Column("arrays", LargeBinary),  # npz; only those of the last plans, the others can be remade
)

epochs = Table(
    "epochs",
    metadata,
    _of_study(primary=True),
    Column("episode", Integer, primary_key=True, autoincrement=False),
    Column("epoch", Integer, primary_key=True, autoincrement=False),
    Column("states", LargeBinary, nullable=False),  # [N] one byte each, 255 where unknown
    Column("arms", LargeBinary, nullable=False),  # [B] the list, four bytes each
    Column("next_states", LargeBinary),  # [N]; empty until they are reported
    Column("helped", LargeBinary),  # those really helped, four bytes each; empty: the list
    Column("source", Text),  # simulated, owner
    # What the owner has reported of the arms since the roster: JSON, arm id -> column -> text.
    Column("columns", Text),
    Column("digest", Text),  # of these columns, by which store.reports knows them
    Column("by_lot", LargeBinary),  # of the list, those drawn by lot, four bytes each
)

# Counts of answers up to an event, so that opening a study need not read all of them. Only believed
# when the log up to there is still the one it was made from.
snapshots = Table(
    "snapshots",
    metadata,
    _of_study(primary=True),
    Column("seq", Integer, nullable=False),
    Column("log", Text, nullable=False),  # a checksum of the answers up to seq
    Column("digest", Text, nullable=False),  # of the arrays
    Column("arrays", LargeBinary, nullable=False),  # npz
)

duels = Table(
    "duels",
    metadata,
    Column("id", _Id, primary_key=True, autoincrement=True),
    _of_study(),
    Column("episode", Integer, nullable=False),  # 0 for practice
    Column("epoch", Integer, nullable=False),
    Column("number", Integer, nullable=False),
    Column("purpose", Text, nullable=False),
    Column("left_arm", Integer, nullable=False),
    Column("left_state", Integer, nullable=False),
    Column("right_arm", Integer, nullable=False),
    Column("right_state", Integer, nullable=False),
    Column("ratings", Integer, nullable=False),  # asked for; 0 where everybody is asked
    Column("given", Integer, nullable=False),
    Column("held", Integer, nullable=False),  # leases that run
    Column("free", Integer, nullable=False, server_default="0"),  # ratings - given - held
    UniqueConstraint("study", "episode", "epoch", "number", "purpose", name="duels_place"),
    _one_of("duels", "purpose", PURPOSES),
    CheckConstraint("given BETWEEN 0 AND ratings", name="duels_given"),
    CheckConstraint("held >= 0", name="duels_held"),
    CheckConstraint("left_arm <> right_arm", name="duels_arms"),
)
FREE = text("free > 0")
_index_where("duels_free", FREE, duels.c.study, duels.c.episode, duels.c.id)

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
    Column("outcome", Text),  # empty while it is open
    Column("answered_at", BigInteger),
    Column("response_ms", Integer),  # from when the cards were painted to the click
    Column("trip_ms", Integer),  # from the click before until they were painted
    Column("narrow", Integer),  # 1 where the left card stood above the right one, as on phones
    Column("participant", Text),  # the id that their panel gave them
    _one_of("impressions", "outcome", OUTCOMES),
)
_LIVE = text("outcome IS NULL OR outcome <> 'undone'")
_OPEN = text("outcome IS NULL")
# Never the same duel twice to one person.
_index_where("impressions_once", _LIVE, impressions.c.duel, impressions.c.annotator, unique=True)
_index_where("impressions_open", _OPEN, impressions.c.study, impressions.c.expires_at)
_mine = (impressions.c.study, impressions.c.annotator, impressions.c.id)
_index_where("impressions_mine", _OPEN, *_mine)
Index("impressions_annotator", *_mine)

invites = Table(
    "invites",
    metadata,
    Column("token_hash", Text, primary_key=True),
    _of_study(),
    Column("annotator", Text, nullable=False),  # or who may read the list
    Column("made_at", BigInteger, nullable=False),
    Column("revoked_at", BigInteger),
    Column("opens", Text, nullable=False, server_default="duels"),  # or the list, to read
)

# The browser that first used a participant's id; nobody else may use it. Bundles do not have them.
seats = Table(
    "seats",
    metadata,
    _of_study(primary=True),
    Column("link", Text, primary_key=True),
    Column("participant", Text, primary_key=True),
    Column("browser_hash", Text, nullable=False),
    Column("taken_at", BigInteger, nullable=False),
)

keys = Table(
    "keys",
    metadata,
    Column("name", Text, primary_key=True),  # owner
    Column("key_hash", Text, nullable=False),
    Column("made_at", BigInteger, nullable=False),
)

# What browsers keep in place of the owner's key, or after they signed in.
sessions = Table(
    "sessions",
    metadata,
    Column("token_hash", Text, primary_key=True),
    Column("key_hash", Text, nullable=False),  # of the owner's key when it began; "": no key
    Column("host", Text, nullable=False, server_default=""),  # and port, as the browser names it
    Column("until", BigInteger, nullable=False),
    Column("who", Text, nullable=False, server_default=""),  # signed in; "": by the owner's key
    Column("claims", Text, nullable=False, server_default="{}"),  # JSON, by which roles are found
)

# Which claims of people who sign in give which role; bundles do not have them.
members = Table(
    "members",
    metadata,
    Column("study", Text, primary_key=True),  # "": all studies
    Column("claim", Text, primary_key=True),  # such as email or groups
    Column("value", Text, primary_key=True),
    Column("role", Text, nullable=False),
    Column("added_at", BigInteger, nullable=False),
    _one_of("members", "role", ROLES),
)

# Who looked at what, and who changed or was refused what: never the data themselves. Rows outlive
# the study that they are about, so there is no foreign key.
audit = Table(
    "audit",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("at", BigInteger, nullable=False),
    Column("study", Text, nullable=False),  # "": no study, or all
    Column("who", Text, nullable=False),
    Column("act", Text, nullable=False),
    Column("about", Text, nullable=False, server_default=""),
    Column("refused", Boolean, nullable=False),
)
Index("audit_at", audit.c.at)

# What cards show of arms beside the roster's columns; bundles do not have them.
photos = Table(
    "photos",
    metadata,
    _of_study(primary=True),
    Column("arm", Text, primary_key=True),  # the owner's id
    Column("content", LargeBinary, nullable=False),  # JPEG
)

# Reports that are being written, as JSON; bundles do not have them.
drafts = Table(
    "drafts",
    metadata,
    _of_study(primary=True),
    Column("week", Integer, nullable=False),
    Column("content", Text, nullable=False),
)

# Which column of the owner's files is which, as JSON; bundles do not have it.
mappings = Table(
    "mappings",
    metadata,
    _of_study(primary=True),
    Column("kind", Text, primary_key=True),
    Column("content", Text, nullable=False),
)

# Erasures after which free pages of the database may still hold what was erased; see scrub.py.
unscrubbed = Table(
    "unscrubbed",
    metadata,
    Column("since", BigInteger, primary_key=True, autoincrement=False),
)
