"""The pairs of a first round, chosen anew where limits change before anybody has answered."""

import sqlalchemy as sa

from dopl_core.learning.reproducibility import MATHS, fingerprint
from dopl_core.studies.model.annotator_limits import Limit
from dopl_core.studies.model.event_bodies import FirstRoundDrawn
from dopl_core.studies.model.study_config import StudyConfig
from dopl_core.studies.operate.planning import ask, withdraw
from dopl_core.studies.replay.episode import first_round_duels
from dopl_core.studies.store import tables
from dopl_core.studies.store.transaction import StudyTransaction

_i, _d = tables.impressions.c, tables.duels.c


def draw_anew(tx: StudyTransaction, before: StudyConfig) -> None:
    """Choose the pairs of the first round anew, if limits changed which pairs may be asked.

    Nothing changes after the first answer, nor where people have joined: the pairs of a first
    round are about the people of the beginning. A pair that somebody is shown just now stays.
    before: the configuration before the change
    """
    config = tx.next_config
    if tx.row.episode or _limits(config) == _limits(before) or _has_answers(tx):
        return
    if any(kind == "arms_joined" for kind, _ in tx.changes):
        return
    withdraw(tx, _d.held == 0)
    asked = sa.select(sa.func.coalesce(sa.func.max(_d.number), -1))
    asked = asked.where(_d.study == tx.id, _d.purpose == "sitting")
    first = tx.connection.execute(asked).scalar_one() + 1
    body = FirstRoundDrawn(first_duel=first, maths=MATHS, arithmetic=fingerprint())
    tx.append("first_round_drawn", body)
    tx.row.asked += ask(tx, (0, 0), first_round_duels(config), "sitting", first)


def _limits(config: StudyConfig) -> dict[str, Limit] | None:
    """What the choice of pairs respects; None if any pair may be asked."""
    return (config.limits or None) if config.limited_pairs else None


def _has_answers(tx: StudyTransaction) -> bool:
    """Whether anybody has answered a pair of the first round, even if it was taken back."""
    given = (
        sa.select(_i.id)
        .join_from(tables.impressions, tables.duels, _i.duel == _d.id)
        .where(_i.study == tx.id, _d.purpose == "sitting", _i.answered_at.is_not(None))
    )
    return tx.connection.execute(given.limit(1)).first() is not None
