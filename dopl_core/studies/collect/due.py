"""Who is asked for how many answers now: the missing answers of a round, shared fairly."""

from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from dopl_core.studies.collect.limits import Permission, permission
from dopl_core.studies.collect.views import WaitReason
from dopl_core.studies.model.names import ERASED_ANNOTATOR
from dopl_core.studies.model.outcomes import ANSWERS, LEARNT
from dopl_core.studies.store import tables
from dopl_core.studies.store.database import Store
from dopl_core.studies.store.queries import OPEN_DUELS, DuelRow
from dopl_core.studies.store.study_reader import StudyReader, read_study

DUE_COLUMNS = ("link", "given", "asked")

_a, _i, _d, _v = (
    table.c for table in (tables.annotators, tables.impressions, tables.duels, tables.invites)
)


@dataclass(frozen=True)
class Due:
    """A colleague with a valid link: their answers of this round, and how many more are asked."""

    link: str
    given: int
    asked: int


def due(store: Store, study: str) -> list[Due]:
    """One row for each colleague with a valid link, in the order of their links.

    The missing answers of the round go one by one to the person with the fewest, up to the quota.
    Where the owner limits who judges whom, they go to people who may give them.
    Nobody is asked while the study is paused, closed, or waits for a plan or a report. Links of
    panels are left out: their participants have no names.
    """
    with read_study(store, study) as reader:
        row, quota = reader.row, reader.config.quota
        people = _people(reader)
        round_, in_all = _answers(reader)
        missing = [people] * (row.asked - row.given)
        if reader.next_config.limits:
            missing = [names for names in _who_may(reader, people) if names]
    asked = dict.fromkeys(people, 0)
    for names in missing if row.status == "running" else ():
        free = [n for n in names if not quota or in_all.get(n, 0) + asked[n] < quota]
        if free:
            asked[min(free, key=lambda n: round_.get(n, 0) + asked[n])] += 1
    return [Due(name, round_.get(name, 0), asked[name]) for name in people]


def due_rows(found: list[Due]) -> list[tuple[str, int, int]]:
    """The rows of those who are asked, with DUE_COLUMNS."""
    return [(one.link, one.given, one.asked) for one in found if one.asked]


def open_duels(reader: StudyReader) -> list[tuple[DuelRow, int]]:
    """The duels of the round that ask for answers, and how many are missing."""
    where = {"study": reader.id, "episode": reader.row.episode}
    rows = reader.connection.execute(OPEN_DUELS, where)
    return [(DuelRow(*duel), missing) for *duel, missing in rows]


def who_answered(reader: StudyReader) -> set[tuple[int, str]]:
    """Each duel of the round, and who has answered it."""
    query = (
        sa.select(_i.duel, _i.annotator)
        .join_from(tables.impressions, tables.duels, _i.duel == _d.id)
        .where(_i.study == reader.id, _i.outcome.in_(ANSWERS))
        .where(_d.episode == reader.row.episode)
    )
    return set(map(tuple, reader.connection.execute(query)))


def who_comes(reader: StudyReader) -> dict[str, Permission | None]:
    """Names of valid links, and of people who have answered and whose link was not revoked.

    With what each may see; None if they are not limited.
    """
    run = reader.connection.execute
    links = sa.select(_v.annotator, _v.revoked_at).where(_v.study == reader.id, _v.opens == "duels")
    all_links = run(links.order_by(_v.made_at, _v.annotator)).all()
    valid = [one.annotator for one in all_links if one.revoked_at is None]
    revoked = {one.annotator for one in all_links} - set(valid)
    came = sa.select(_a.name).where(_a.study == reader.id, _a.link.is_(None), _a.answers > 0)
    others = run(came.order_by(_a.joined_at, _a.name)).scalars()
    more = [n for n in others if n not in revoked and not n.startswith(ERASED_ANNOTATOR)]
    return {name: permission(reader, name) for name in dict.fromkeys([*valid, *more])}


def unjudged(reader: StudyReader, judges: Mapping[str, Permission | None]) -> list[DuelRow]:
    """The duels of the round that ask for answers, and that none of these people may judge."""
    answered = who_answered(reader)
    return [
        duel
        for duel, _ in open_duels(reader)
        if not any(
            (limited is None or limited.judges(duel)) and (duel.duel, name) not in answered
            for name, limited in judges.items()
        )
    ]


def why_wait(reader: StudyReader) -> WaitReason:
    """Why a limited annotator waits while the round asks for answers; see views.Waiting."""
    return "unjudged" if unjudged(reader, who_comes(reader)) else "limits"


def _who_may(reader: StudyReader, people: list[str]) -> list[list[str]]:
    """For each missing answer, the people who may give it; those that fewest may give come first.

    Nobody gives two answers to one duel: a duel of which two are missing is asked of one person
    in each half of its people.
    """
    limited = {name: permission(reader, name) for name in people}
    answered = who_answered(reader)
    found: list[list[str]] = []
    for duel, missing in open_duels(reader):
        may = [
            name
            for name, seen in limited.items()
            if (seen is None or seen.judges(duel)) and (duel.duel, name) not in answered
        ]
        found += [may[n::missing] for n in range(missing)]
    return sorted(found, key=len)


def _people(reader: StudyReader) -> list[str]:
    """The names of valid links for answers, without those of panels."""
    panels = sa.select(_a.link).where(_a.study == reader.id, _a.link.is_not(None))
    links = sa.select(_v.annotator).where(
        _v.study == reader.id, _v.opens == "duels", _v.revoked_at.is_(None)
    )
    query = links.where(_v.annotator.not_in(panels)).order_by(_v.made_at, _v.annotator)
    return list(reader.connection.execute(query).scalars())


def _answers(reader: StudyReader) -> tuple[dict[str, int], dict[str, int]]:
    """The answers of each annotator that count: of this round, and in all."""
    given = (
        sa.select(_i.annotator, sa.func.count())
        .join_from(tables.impressions, tables.duels, _i.duel == _d.id)
        .where(_i.study == reader.id, _i.outcome.in_(ANSWERS), _d.purpose.in_(LEARNT))
        .where(_d.episode == reader.row.episode)
        .group_by(_i.annotator)
    )
    in_all = sa.select(_a.name, _a.answers).where(_a.study == reader.id)
    run = reader.connection.execute
    return dict(map(tuple, run(given))), dict(map(tuple, run(in_all)))
