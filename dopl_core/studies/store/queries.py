"""The SQL of every click, built once: building a statement costs more than running it."""

from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import bindparam
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from dopl_core.studies.model.outcomes import ANSWERS, CREDIT, LEARNT
from dopl_core.studies.store import tables

_s, _a, _d, _i = tables.studies.c, tables.annotators.c, tables.duels.c, tables.impressions.c
_e = tables.events.c
# The columns of a study's row that change.
CHANGING = tuple(c.name for c in _s if c.name not in ("id", "config_digest", "made_at"))


class _Now(FunctionElement[int]):
    """The time by the clock of PostgreSQL; SQLite has only that of the process."""

    inherit_cache = True
    name, type = "now", sa.BigInteger()
    sql = "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)"


class _Table(FunctionElement[int]):
    """The number of the table of studies in PostgreSQL; SQLite has none."""

    inherit_cache = True
    name, type = "table", sa.BigInteger()
    sql = "CAST(studies.tableoid AS BIGINT)"


@compiles(_Now)
@compiles(_Table)
def _in_sql(element: _Now | _Table, compiler: SQLCompiler, **_: Any) -> str:
    return element.sql if compiler.dialect.name == "postgresql" else "NULL"


_study = sa.select(*_s, _Now().label("now"), _Table().label("table"))
STUDY = _study.where(_s.id == bindparam("study"))
LOCKED_STUDY = STUDY.with_for_update()
LOCKED_STUDY_OF = (
    _study.join_from(tables.studies, tables.impressions, _i.study == _s.id)
    .where(_i.id == bindparam("impression"))
    .with_for_update(of=tables.studies)
)
UPDATE_STUDY = (
    sa.update(tables.studies)
    .where(_s.id == bindparam("at_study"))
    .values({name: bindparam(name) for name in CHANGING})
)
EVENT = sa.insert(tables.events)
CHAIN = sa.select(_e.chain).where(_e.study == bindparam("study"), _e.seq == bindparam("seq"))

# In an update a parameter may not be called as a column is: at_study, at_impression.
_this_person = sa.and_(_a.study == bindparam("at_study"), _a.name == bindparam("annotator"))
PERSON = sa.select(tables.annotators).where(_this_person)
NEW_PERSON = sa.insert(tables.annotators)
ANSWERED = (
    sa.update(tables.annotators)
    .where(_this_person)
    .values(answers=_a.answers + bindparam("more"), last=bindparam("impression"))
)
ANSWERED_BY = ANSWERED.returning(_a.consented)
CONSENTED = sa.update(tables.annotators).where(_this_person).values(consented=bindparam("version"))
PRACTISED = sa.update(tables.annotators).where(_this_person).values(practised=True)
OTHERS = (
    sa.select(_a.name)
    .where(_a.study == bindparam("study"), _a.name != bindparam("annotator"), _a.answers > 0)
    .limit(1)
)  # who have answered
REPEATED = sa.update(tables.annotators).where(_this_person).values(repeats=_a.repeats + 1)

_sides = (_d.left_arm, _d.left_state, _d.right_arm, _d.right_state)
_place = (_d.episode, _d.epoch, _d.number, _d.purpose)
_with_duel = sa.select(
    *(c for c in _i if c.name != "study"), *_place, *_sides, _d.ratings, _d.given, _d.held
).join_from(tables.impressions, tables.duels, _i.duel == _d.id)
_of_person = sa.and_(_i.study == bindparam("study"), _i.annotator == bindparam("annotator"))

IMPRESSION = _with_duel.where(_i.id == bindparam("impression"))
OPEN = _with_duel.where(_of_person, _i.outcome.is_(None)).order_by(_i.id.desc()).limit(1)
# By the log's own order: a clock may go back.
BEFORE = (
    sa.select(_i.id)
    .join_from(tables.events, tables.impressions, _e.impression == _i.id)
    .where(_e.study == bindparam("study"), _e.annotator == bindparam("annotator"))
    .where(_e.kind == "answered", _i.outcome.in_(ANSWERS))
    .order_by(_e.seq.desc())
    .limit(1)
)
LAST = _with_duel.where(_of_person, _i.outcome.in_(ANSWERS)).order_by(_i.id.desc())
LAST_TIMES = (
    sa.select(_i.response_ms)
    .where(_of_person, _i.id != bindparam("impression"), _i.response_ms.is_not(None))
    .order_by(_i.id.desc())
    .limit(31)
)
_held = (
    sa.select(_i.id, _i.duel, _i.annotator, _d.purpose)
    .join_from(tables.impressions, tables.duels, _i.duel == _d.id)
    .where(_i.outcome.is_(None))
)
_late = _held.where(_i.study == bindparam("study"), _i.expires_at < bindparam("now"))
# More than a lease is left only if the clock was put back.
_early = _held.where(
    _i.study == bindparam("study"), _i.expires_at > sa.cast(bindparam("latest"), sa.BigInteger)
)
OVERDUE = sa.union_all(_late, _early)
# Duels that participants of a link hold, and of these, those of participants without an answer.
HELD_BY_LINK = (
    sa.select(
        sa.func.count().label("held"),
        sa.func.count().filter(_a.answers == 0).label("unanswered"),
    )
    .select_from(tables.impressions)
    .join(tables.annotators, sa.and_(_a.study == _i.study, _a.name == _i.annotator))
    .join(tables.duels, _d.id == _i.duel)
    .where(_i.study == bindparam("study"), _i.outcome.is_(None))
    .where(_a.link == bindparam("link"), _d.purpose.in_(LEARNT))
)
SKIPS = (
    sa.select(sa.func.count())
    .select_from(tables.impressions)
    .join(tables.duels, _d.id == _i.duel)
    .where(_of_person, _i.outcome == "skip", _d.purpose.in_(LEARNT))
)
HELD = _held.where(_i.id == bindparam("impression"))
HELD_BY_OTHERS = _held.where(_i.duel == bindparam("duel"), _i.id != bindparam("impression"))
SHOW = sa.insert(tables.impressions).returning(_i.id)
SHOW_AGAIN = (
    sa.update(tables.impressions)
    .where(_i.id == bindparam("at_impression"))
    .values(shown_at=bindparam("shown_at"), expires_at=bindparam("expires_at"), outcome=None)
)
CLOSE = (
    sa.update(tables.impressions)
    .where(_i.id == bindparam("at_impression"))
    .values(outcome=bindparam("outcome"))
)
ANSWER = (
    sa.update(tables.impressions)
    .where(_i.id == bindparam("at_impression"))
    .values(
        outcome=bindparam("outcome"),
        answered_at=bindparam("answered_at"),
        response_ms=bindparam("response_ms"),
        trip_ms=bindparam("trip_ms"),
        narrow=bindparam("narrow"),
    )
)
CHANGE = (
    sa.update(tables.impressions)
    .where(_i.id == bindparam("at_impression"))
    .values(outcome=bindparam("outcome"), answered_at=bindparam("answered_at"))
)
SKIP_OPEN_PRACTICE = (
    sa.update(tables.impressions)
    .where(_i.annotator == bindparam("at_annotator"), _i.outcome.is_(None))
    .where(
        _i.duel.in_(
            sa.select(_d.id).where(_d.study == bindparam("at_study"), _d.purpose == "practice")
        )
    )
    .values(outcome="skip", answered_at=bindparam("now"))
)

# The first duel that this person has not answered, with their own impression if its lease ran out.
_own = sa.and_(
    _i.duel == _d.id,
    _i.annotator == bindparam("annotator"),
    sa.or_(_i.outcome.is_(None), _i.outcome != "undone"),
)
_unseen = (
    sa.select(_d.id.label("duel"), *_place, *_sides, _i.id.label("impression"))
    .join_from(tables.duels, tables.impressions, _own, isouter=True)
    .where(_d.study == bindparam("study"), _d.episode == bindparam("episode"))
    .where(sa.or_(_i.id.is_(None), _i.outcome == "expired"))
    .order_by(_d.id)
    .limit(1)
)
QUEUED = _unseen.where(tables.FREE)
OPEN_DUELS = (
    sa.select(_d.id, *_place, *_sides, sa.null(), _d.ratings - _d.given)
    .where(_d.study == bindparam("study"), _d.episode == bindparam("episode"))
    .where(_d.purpose.in_(LEARNT), _d.given < _d.ratings)
    .order_by(_d.id)
)
PRACTICE = _unseen.where(_d.purpose == "practice")
COUNT = (
    sa.update(tables.duels)
    .where(_d.id == bindparam("duel"))
    .values(
        given=_d.given + bindparam("more_given"),
        held=_d.held + bindparam("more_held"),
        free=_d.free - bindparam("more_given") - bindparam("more_held"),
    )
)

_mine = (
    sa.select(_d.id, *_place, *_sides, sa.null())
    .join_from(tables.impressions, tables.duels, _i.duel == _d.id)
    .where(_of_person, _d.purpose.in_(LEARNT), _i.outcome.in_(CREDIT))
    .order_by(_i.id)
)
TO_REPEAT = _mine.offset(bindparam("skip_first")).limit(1)
SHOWN_TO = sa.select(_i.id).where(
    _i.duel == bindparam("duel"), _i.annotator == bindparam("annotator")
)
DUEL_AT = sa.select(_d.id.label("duel"), *_place, *_sides, sa.null().label("impression")).where(
    _d.study == bindparam("study"),
    _d.episode == bindparam("episode"),
    _d.epoch == bindparam("epoch"),
    _d.number == bindparam("number"),
    _d.purpose == bindparam("purpose"),
)
NEW_DUEL = sa.insert(tables.duels).returning(_d.id)

# The plainest duels of a round: their states lie furthest apart. Each is gold to a person once.
_gap = sa.func.abs(_d.left_state - _d.right_state)
_gold = tables.duels.alias("gold")
_was_gold = (
    sa.select(_i.id)
    .join_from(tables.impressions, _gold, _i.duel == _gold.c.id)
    .where(_of_person, _gold.c.purpose == "gold")
)
GOLDS = sa.select(sa.func.count()).select_from(_was_gold.subquery())
GOLD = (
    sa.select(_d.id, *_place, *_sides, sa.null())
    .where(
        _d.study == bindparam("study"),
        _d.episode == bindparam("episode"),
        _d.purpose.in_(LEARNT),
        _gap >= bindparam("gap"),
        ~_was_gold.where(
            *(_gold.c[c.name] == c for c in (_d.study, _d.episode, _d.epoch, _d.number))
        )
        .correlate(tables.duels)
        .exists(),
    )
    .order_by(_gap.desc(), _d.id)
    .limit(1)
)
# All duels that a query finds, for people who may not judge every pair.
ALL_OF = {query: query.limit(None) for query in (QUEUED, PRACTICE, GOLD)}


class DuelRow(NamedTuple):
    """A duel to show; impression: the person's own expired one, to be shown again."""

    duel: int
    episode: int
    epoch: int
    number: int
    purpose: str
    left_arm: int
    left_state: int
    right_arm: int
    right_state: int
    impression: int | None = None


class ImpressionRow(NamedTuple):
    """An impression and its duel, as IMPRESSION, OPEN and LAST select them."""

    id: int
    duel: int
    annotator: str
    session: int
    shown_at: int
    expires_at: int
    outcome: str | None
    answered_at: int | None
    response_ms: int | None
    trip_ms: int | None
    narrow: int | None
    participant: str | None
    episode: int
    epoch: int
    number: int
    purpose: str
    left_arm: int
    left_state: int
    right_arm: int
    right_state: int
    ratings: int
    given: int
    held: int
