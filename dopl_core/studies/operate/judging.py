"""Who judges whom: the owner's limits, comparisons that nobody may judge, groups out of touch."""

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field

import sqlalchemy as sa

from dopl_core.studies.collect.due import open_duels, unjudged, who_comes
from dopl_core.studies.collect.limits import (
    Permission,
    limit_of,
    permission,
    reported_now,
)
from dopl_core.studies.model import past_answers
from dopl_core.studies.model.annotator_limits import NEVER, Limit, write_limits
from dopl_core.studies.model.event_kinds import body_of
from dopl_core.studies.model.judged_people import group_of
from dopl_core.studies.model.names import check_person, looks_like
from dopl_core.studies.model.outcomes import CREDIT, LEARNT
from dopl_core.studies.operate.roster_changes import write_settings
from dopl_core.studies.replay.learner_from_log import excluded
from dopl_core.studies.store import tables
from dopl_core.studies.store.database import Store
from dopl_core.studies.store.study_reader import StudyReader, read_study
from dopl_core.studies.store.transaction import write_study

_MOST_VALUES = 50  # of a column by which people can be chosen on a page
_SOME_ANSWERS = 10  # from which groups that no answer connects are told, if somebody may judge both

_i, _d = tables.impressions.c, tables.duels.c


@dataclass(frozen=True)
class Judge:
    """An annotator, or a panel's link, and whom they judge.

    limit: None if they judge everybody;  people: how many of those who are present
    comes: they have a valid link or have answered
    lacking: open comparisons that they may judge and nobody who comes may; 0 if they come
    """

    name: str
    limit: Limit | None
    people: int
    comes: bool
    lacking: int = 0


@dataclass(frozen=True)
class Apart:
    """Parts of the groups of a column that no answer connects.

    parts: the groups in each
    able: who may judge people of several parts, if that connects all
    uninvited: who may judge people of several parts, but does not come
    """

    column: str
    parts: tuple[tuple[str, ...], ...]
    able: tuple[str, ...]
    uninvited: tuple[str, ...] = ()


@dataclass(frozen=True)
class Judging:
    """Who judges whom in a study now.

    judges: those who come, then those who are only named in the limits
    people: how many are present;  columns: those by which people can be chosen -> their values
    open_duels: comparisons of the round that ask for answers
    unjudged: those that nobody who comes may judge;  unnamed: those that nobody else may, either
    apart: only where the owner limits somebody by a column
    limited_pairs: from the next list on, only pairs that a limited annotator may judge are asked
    """

    judges: tuple[Judge, ...]
    people: int
    columns: Mapping[str, tuple[str, ...]]
    open_duels: int = 0
    unjudged: int = 0
    unnamed: int = 0
    apart: tuple[Apart, ...] = field(default=())
    limited_pairs: bool = False


def limit_annotator(
    store: Store,
    study: str,
    annotator: str,
    only: Mapping[str, Iterable[str]],
    never: Iterable[str] = (),
) -> None:
    """Say whose cards an annotator, or a panel's link, is shown; it holds at once.

    only: column -> values;  never: ids. Without both they see everybody again
    """
    name = check_person(annotator)
    limit = Limit({column: frozenset(values) for column, values in only.items()}, frozenset(never))
    with write_study(store, study) as tx:
        before = tx.next_config.limits
        limits = {k: v for k, v in before.items() if looks_like(k) != looks_like(name)}
        write_settings(tx, {"annotator_limits": write_limits(limits | {name: limit})})


def limit_pairs(store: Store, study: str, limited: bool) -> None:
    """Ask only pairs that a limited annotator may judge, or any; from the next list on.

    The pairs of a first round are chosen anew as long as nobody has answered.
    """
    with write_study(store, study) as tx:
        write_settings(tx, {"limited_pairs": limited})


def judging(store: Store, study: str) -> Judging:
    """Who judges whom, and what the limits leave without answers."""
    with read_study(store, study) as reader:
        config = reader.next_config
        here = [number for number, arm in enumerate(config.arms) if arm.present]
        comes = who_comes(reader)
        known = {looks_like(name) for name in comes}
        named = [name for name in config.limits if looks_like(name) not in known]
        seen = comes | {name: permission(reader, name) for name in named}
        lacking = unjudged(reader, comes) if config.limits else []
        judges = tuple(
            Judge(
                name,
                limit_of(config, name),
                len(here) if limited is None else sum(map(limited.shows, here)),
                name in comes,
                0 if limited is None or name in comes else sum(map(limited.judges, lacking)),
            )
            for name, limited in seen.items()
        )
        found = Judging(judges, len(here), _columns(reader))
        if not config.limits:
            return found
        counts = len(open_duels(reader)), len(lacking), len(unjudged(reader, seen))
        apart = _apart(reader, here, seen, comes)
    return Judging(judges, found.people, found.columns, *counts, apart, config.limited_pairs)


def _columns(reader: StudyReader) -> dict[str, tuple[str, ...]]:
    """The columns with several, and not too many, values; `group` too."""
    reported = reported_now(reader)
    arms = reader.next_config.arms
    names = [name for arm in arms for name in (*arm.columns, *reported.get(arm.id, ()))]
    found = {}
    for name in dict.fromkeys([*names, "group"]):
        values = {group_of(arm, name, reported) for arm in arms if arm.present}
        if 2 <= len(values) <= _MOST_VALUES and name != NEVER:
            found[name] = tuple(sorted(values))
    return found


# --- groups that no answer connects


def _apart(
    reader: StudyReader,
    here: list[int],
    judges: Mapping[str, Permission | None],
    comes: Container[str],
) -> tuple[Apart, ...]:
    """For each column by which somebody is limited, the groups that no answer connects.

    judges: everybody whom the owner named;  comes: those of them who come
    """
    config, reported = reader.next_config, reported_now(reader)
    pairs = _answered_pairs(reader)
    found = []
    for column in dict.fromkeys(c for limit in config.limits.values() for c in limit.only):
        group = [group_of(arm, column, reported) for arm in config.arms]
        groups = sorted({group[n] for n in here})
        parts = _parts(groups, ((group[a], group[b]) for a, b in pairs))
        part_of = {one: number for number, part in enumerate(parts) for one in part}
        seen = {
            name: sorted({group[n] for n in here if limited is None or limited.shows(n)})
            for name, limited in judges.items()
        }
        wide = [name for name, some in seen.items() if len({part_of[one] for one in some}) > 1]
        able = [name for name in wide if name in comes]
        within_reach = [(one[0], other) for name in able for one in [seen[name]] for other in one]
        possible = _parts(groups, [*((p[0], g) for p in parts for g in p), *within_reach])
        if len(parts) > 1 and (len(possible) > 1 or pairs.total() >= _SOME_ANSWERS):
            uninvited = tuple(name for name in wide if name not in comes)
            found.append(Apart(column, parts, tuple(able) if len(possible) == 1 else (), uninvited))
    return tuple(found)


def _answered_pairs(reader: StudyReader) -> Counter[tuple[int, int]]:
    """How often each pair of arms was compared, by answers that count; past ones too."""
    out = excluded(reader.connection, reader.id)
    query = (
        sa.select(_d.left_arm, _d.right_arm, sa.func.count())
        .join_from(tables.impressions, tables.duels, _i.duel == _d.id)
        .where(_i.study == reader.id, _i.outcome.in_(CREDIT), _d.purpose.in_(LEARNT))
        .where(_i.annotator.not_in(out))
        .group_by(_d.left_arm, _d.right_arm)
    )
    rows = reader.connection.execute(query)
    pairs = Counter({(left, right): count for left, right, count in rows})
    number = reader.next_config.arm_number
    for _, event in reader.standing("answers_added"):
        for who, winner, loser, _when in past_answers.rows_in(body_of(event).answers):
            if who not in out:
                pairs[number(winner), number(loser)] += 1
    return pairs


def _parts(groups: Iterable[str], pairs: Iterable[tuple[str, str]]) -> tuple[tuple[str, ...], ...]:
    """The connected parts of groups; pairs of groups that are not asked about are left out."""
    part = {group: frozenset([group]) for group in groups}
    for one, other in pairs:
        if one in part and other in part and part[one] != part[other]:
            both = part[one] | part[other]
            part |= dict.fromkeys(both, both)
    return tuple(sorted(tuple(sorted(some)) for some in set(part.values())))
