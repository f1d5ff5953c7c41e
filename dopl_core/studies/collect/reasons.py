"""Reasons: why annotators answered as they did, where the owner asked."""

from collections.abc import Sequence

import sqlalchemy as sa

from dopl_core.studies.collect.flags import read_comment
from dopl_core.studies.collect.my_answers import impression_of
from dopl_core.studies.model.errors import StudyError
from dopl_core.studies.model.event_bodies import Reasoned
from dopl_core.studies.store import tables
from dopl_core.studies.store.database import Store
from dopl_core.studies.store.transaction import StudyTransaction, write_study
from dopl_core.wording import _

_e = tables.events.c


def give_reason(
    store: Store, impression: int, annotator: str, tags: Sequence[str] = (), text: str = ""
) -> None:
    """Say why this answer; the last reason counts, until the answer is taken back.

    tags: some of the owner's, see StudyConfig.tags;  text: a line
    """
    text = read_comment(text)
    if not tags and not text:
        raise StudyError(_("Please choose a reason, or write one."))
    with write_study(store, impression=impression) as tx:
        shown = impression_of(tx, impression, annotator)
        if unknown := [tag for tag in tags if tag not in tx.config.tags]:
            known = ", ".join(tx.config.tags) or "none: the study has no reasons to choose from"
            raise StudyError(f'reason "{unknown[0][:80]}" is not one of {known}')
        if not _was_asked(tx, impression):
            raise StudyError(f"no reason was asked for the answer to impression {impression}")
        chosen = [tag for tag in tx.config.tags if tag in tags]
        about = {"annotator": annotator, "impression": impression, "duel": shown.duel}
        tx.append("reasoned", Reasoned(chosen, text), **about)


def _was_asked(tx: StudyTransaction, impression: int) -> bool:
    """Whether a reason was asked for an answer that has not been taken back since."""
    last = (
        sa.select(_e.kind)
        .where(_e.study == tx.id, _e.impression == impression)
        .where(_e.kind.in_(("reason_asked", "undone")))
        .order_by(_e.seq.desc())
    )
    return tx.connection.execute(last.limit(1)).scalar() == "reason_asked"
