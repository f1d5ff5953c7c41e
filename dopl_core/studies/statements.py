"""The statements behind every click, made once: building one costs more than running it."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy import bindparam as given
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from dopl_core.studies import schema
from dopl_core.studies.vocabulary import ANSWERS, CREDIT, LEARNT

_s, _a, _d, _i = schema.studies.c, schema.annotators.c, schema.duels.c, schema.impressions.c
_e = schema.events.c
CHANGING = (
    *("title", "status", "seq", "heard", "episode", "epoch", "asked", "given"),
    *("changes", "in_force", "chain", "planner", "planner_until", "planner_step"),
)


class _Now(FunctionElement[int]):
    """The time by the clock of PostgreSQL; SQLite has only that of the process."""

    inherit_cache = True
    name = "now"
    type = sa.BigInteger()


@compiles(_Now, "postgresql")
def _now_there(*_: Any, **__: Any) -> str:
    return "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)"


@compiles(_Now, "sqlite")
def _now_here(*_: Any, **__: Any) -> str:
    return "NULL"


_study = sa.select(*_s, _Now().label("now"))
STUDY = _study.where(_s.id == given("study"))
LOCKED_STUDY = STUDY.with_for_update()
LOCKED_STUDY_OF = (
    _study.join_from(schema.studies, schema.impressions, _i.study == _s.id)
    .where(_i.id == given("impression"))
    .with_for_update(of=schema.studies)
)
UPDATE_STUDY = (
    sa.update(schema.studies)
    .where(_s.id == given("at_study"))
    .values({name: given(name) for name in CHANGING})
)
EVENT = sa.insert(schema.events)

# In an update a parameter may not be called as a column is: at_study, at_impression.
_this_person = sa.and_(_a.study == given("at_study"), _a.name == given("annotator"))
PERSON = sa.select(schema.annotators).where(_this_person)
NEW_PERSON = sa.insert(schema.annotators)
ANSWERED = (
    sa.update(schema.annotators)
    .where(_this_person)
    .values(answers=_a.answers + given("more"), last=given("impression"))
)
PRACTISED = sa.update(schema.annotators).where(_this_person).values(practised=True)
OTHERS = (
    sa.select(_a.name)
    .where(_a.study == given("study"), _a.name != given("annotator"), _a.answers > 0)
    .limit(1)
)  # who have answered
REPEATED = sa.update(schema.annotators).where(_this_person).values(repeats=_a.repeats + 1)

_sides = (_d.left_arm, _d.left_state, _d.right_arm, _d.right_state)
_place = (_d.episode, _d.epoch, _d.number, _d.purpose)
_with_duel = sa.select(
    *(c for c in _i if c.name != "study"), *_place, *_sides, _d.ratings, _d.given, _d.held
).join_from(schema.impressions, schema.duels, _i.duel == _d.id)
_of_person = sa.and_(_i.study == given("study"), _i.annotator == given("annotator"))

IMPRESSION = _with_duel.where(_i.id == given("impression"))
OPEN = _with_duel.where(_of_person, _i.outcome.is_(None)).order_by(_i.id.desc()).limit(1)
# By the log's own order: a clock may go back.
BEFORE = (
    sa.select(_i.id)
    .join_from(schema.events, schema.impressions, _e.impression == _i.id)
    .where(_e.study == given("study"), _e.annotator == given("annotator"))
    .where(_e.kind == "answered", _i.outcome.in_(ANSWERS))
    .order_by(_e.seq.desc())
    .limit(1)
)
LAST = _with_duel.where(_of_person, _i.outcome.in_(ANSWERS)).order_by(_i.id.desc())
_held = (
    sa.select(_i.id, _i.duel, _i.annotator, _d.purpose)
    .join_from(schema.impressions, schema.duels, _i.duel == _d.id)
    .where(_i.outcome.is_(None))
)
_late = _held.where(_i.study == given("study"), _i.expires_at < given("now"))
# More than a lease is left only if the clock was put back.
_early = _held.where(
    _i.study == given("study"), _i.expires_at > sa.cast(given("latest"), sa.BigInteger)
)
OVERDUE = sa.union_all(_late, _early)
HELD_BY_OTHERS = _held.where(_i.duel == given("duel"), _i.id != given("impression"))
OPEN_IN_EPISODE = _held.where(
    _d.study == given("study"), _d.episode == given("episode"), _d.purpose.in_(LEARNT)
)
SHOW = sa.insert(schema.impressions).returning(_i.id)
SHOW_AGAIN = (
    sa.update(schema.impressions)
    .where(_i.id == given("at_impression"))
    .values(shown_at=given("shown_at"), expires_at=given("expires_at"), outcome=None)
)
CLOSE = (
    sa.update(schema.impressions)
    .where(_i.id == given("at_impression"))
    .values(outcome=given("outcome"))
)
ANSWER = (
    sa.update(schema.impressions)
    .where(_i.id == given("at_impression"))
    .values(
        outcome=given("outcome"),
        answered_at=given("answered_at"),
        response_ms=given("response_ms"),
        trip_ms=given("trip_ms"),
        narrow=given("narrow"),
    )
)
CHANGE = (
    sa.update(schema.impressions)
    .where(_i.id == given("at_impression"))
    .values(outcome=given("outcome"), answered_at=given("answered_at"))
)
SKIP_OPEN_PRACTICE = (
    sa.update(schema.impressions)
    .where(_i.annotator == given("at_annotator"), _i.outcome.is_(None))
    .where(
        _i.duel.in_(sa.select(_d.id).where(_d.study == given("at_study"), _d.purpose == "practice"))
    )
    .values(outcome="skip", answered_at=given("now"))
)

# The first duel that this person has not answered, with their own impression if its lease ran out.
_own = sa.and_(
    _i.duel == _d.id,
    _i.annotator == given("annotator"),
    sa.or_(_i.outcome.is_(None), _i.outcome != "undone"),
)
_unseen = (
    sa.select(_d.id.label("duel"), *_place, *_sides, _i.id.label("impression"))
    .join_from(schema.duels, schema.impressions, _own, isouter=True)
    .where(_d.study == given("study"), _d.episode == given("episode"))
    .where(sa.or_(_i.id.is_(None), _i.outcome == "expired"))
    .order_by(_d.id)
    .limit(1)
)
QUEUED = _unseen.where(schema.FREE)
PRACTICE = _unseen.where(_d.purpose == "practice")
COUNT = (
    sa.update(schema.duels)
    .where(_d.id == given("duel"))
    .values(
        given=_d.given + given("more_given"),
        held=_d.held + given("more_held"),
        free=_d.free - given("more_given") - given("more_held"),
    )
)

_mine = (
    sa.select(*_place[:3], *_sides)
    .join_from(schema.impressions, schema.duels, _i.duel == _d.id)
    .where(_of_person, _d.purpose.in_(LEARNT), _i.outcome.in_(CREDIT))
    .order_by(_i.id)
)
TO_REPEAT = _mine.offset(given("skip_first")).limit(1)
DUEL_AT = sa.select(_d.id.label("duel"), *_place, *_sides, sa.null().label("impression")).where(
    _d.study == given("study"),
    _d.episode == given("episode"),
    _d.epoch == given("epoch"),
    _d.number == given("number"),
    _d.purpose == given("purpose"),
)
NEW_DUEL = sa.insert(schema.duels).returning(_d.id)

# The plainest duels of a round: their states lie furthest apart. Each is gold to a person once.
_gap = sa.func.abs(_d.left_state - _d.right_state)
_gold = schema.duels.alias("gold")
_was_gold = (
    sa.select(_i.id)
    .join_from(schema.impressions, _gold, _i.duel == _gold.c.id)
    .where(_of_person, _gold.c.purpose == "gold")
)
GOLDS = sa.select(sa.func.count()).select_from(_was_gold.subquery())
GOLD = (
    sa.select(*_place[:3], *_sides)
    .where(
        _d.study == given("study"),
        _d.episode == given("episode"),
        _d.purpose.in_(LEARNT),
        _gap >= given("gap"),
        ~_was_gold.where(
            *(_gold.c[c.name] == c for c in (_d.study, _d.episode, _d.epoch, _d.number))
        )
        .correlate(schema.duels)
        .exists(),
    )
    .order_by(_gap.desc(), _d.id)
    .limit(1)
)
