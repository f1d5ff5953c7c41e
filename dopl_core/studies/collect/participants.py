"""Participants of panels: how they join, what earns their completion code, what a link may hold.

A participant is a link and the id that a panel gave them; see names.participant_name.
"""

import math
import secrets
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from dopl_core.studies.model.event_bodies import Joined
from dopl_core.studies.model.names import check_person
from dopl_core.studies.model.outcomes import LEARNT
from dopl_core.studies.model.study_config import StudyConfig
from dopl_core.studies.store import inserts, queries, tables
from dopl_core.studies.store.database import Store
from dopl_core.studies.store.study_reader import StudyReader, read_study
from dopl_core.studies.store.transaction import StudyTransaction

if TYPE_CHECKING:
    import pandas as pd

_ONE_SKIP_IN = 5  # answers of a quota

# The shares of the wanted answers that participants of one link may hold as open duels: those who
# have not answered yet, and all. The more are held without an answer, the shorter is the lease.
_HELD_AT_FIRST, _HELD = 0.25, 0.75
_HALVES_LEASE = 5  # duels held without an answer
_SHORTEST_LEASE = 20.0  # seconds
_LETTERS = "23456789ABCDEFGHJKMNPQRSTVWXYZ"  # none looks like another


def skips_counted(quota: int) -> int:
    """How many skips count for a participant's quota: 20 % of it, rounded up."""
    return math.ceil(quota / _ONE_SKIP_IN)


def join(tx: StudyTransaction, name: str, link: str, participant: str) -> None:
    """Add an annotator: a participant of a link, or a person where there is no id."""
    joined = None
    if participant:
        code = "".join(secrets.choice(_LETTERS) for _ in range(8))
        joined = Joined(link, participant, code)
    else:
        name = check_person(name)
    own = {} if joined is None else {key: getattr(joined, key) for key in joined.__struct_fields__}
    practised = not tx.config.practice
    tx.run(queries.NEW_PERSON, **inserts.annotator(tx.id, name, tx.now, practised=practised, **own))
    tx.append("joined", joined, annotator=name)


def earned(tx: StudyTransaction, row: Any) -> tuple[int, str]:
    """A participant's answers that count for the quota, and the code if these are all of it."""
    skips = tx.run(queries.SKIPS, study=tx.id, annotator=row.name).scalar_one()
    return _earned(tx.config, row.answers, skips, row.code)


def _earned(config: StudyConfig, answers: int, skips: int, own_code: str) -> tuple[int, str]:
    quota, code = config.quota, config.completion_code
    own = answers - (max(0, skips - skips_counted(quota)) if quota else 0)
    if not 0 < quota <= own:
        return own, ""
    return own, f"{code}-{own_code}" if code and config.own_codes else code


def lease_seconds(tx: StudyTransaction, link: str, *, has_answered: bool) -> float | None:
    """How long a participant may hold a duel; None where their link holds enough of them."""
    row = tx.run(queries.HELD_BY_LINK, study=tx.id, link=link).one()
    held, unanswered = row.held, row.unanswered
    wanted, lease = tx.row.asked - tx.row.given, tx.config.lease_seconds
    if has_answered:
        return lease if held < max(1, _HELD * wanted) else None
    if unanswered >= max(1, _HELD_AT_FIRST * wanted):
        return None
    return min(lease, max(_SHORTEST_LEASE, lease / (1 + unanswered / _HALVES_LEASE)))


def participants(store: Store, study: str) -> "pd.DataFrame":
    """One row a participant: link, id, answers, skips, answers that count, and the code if earned.

    The owner compares the codes with those that the panel sends back.
    """
    import pandas as pd

    with read_study(store, study) as reader:
        rows = _participants(reader)
    columns = ["link", "participant", "answers", "skips", "counted", "code"]
    return pd.DataFrame(rows, columns=columns)


def _participants(reader: StudyReader) -> list[tuple[Any, ...]]:
    a, i, d = tables.annotators.c, tables.impressions.c, tables.duels.c
    skipped = (
        sa.select(i.annotator, sa.func.count().label("skips"))
        .join_from(tables.impressions, tables.duels, i.duel == d.id)
        .where(i.study == reader.id, i.outcome == "skip", d.purpose.in_(LEARNT))
        .group_by(i.annotator)
    )
    all_skips = {row.annotator: row.skips for row in reader.connection.execute(skipped)}
    query = sa.select(tables.annotators).where(a.study == reader.id, a.link.is_not(None))
    rows = []
    for row in reader.connection.execute(query.order_by(a.joined_at, a.name)):
        skips = all_skips.get(row.name, 0)
        counted, code = _earned(reader.config, row.answers, skips, row.code)
        rows.append((row.link, row.participant, row.answers, skips, counted, code))
    return rows
