"""After which answers the owner asks for a reason."""

import hashlib
from statistics import median

from dopl_core.studies.store import queries
from dopl_core.studies.store.queries import ImpressionRow
from dopl_core.studies.store.transaction import StudyTransaction

SLOW = 2.0  # times a person's usual response time
_FEWEST = 5  # answers by which a usual time is known


def is_asked(
    tx: StudyTransaction, shown: ImpressionRow, outcome: str, response_ms: int | None
) -> bool:
    """Whether to ask for the reason of this answer; "cannot tell" needs none."""
    if outcome == "skip":
        return False
    return _is_drawn(tx, shown) or (
        tx.config.reason_unsure and (outcome == "tie" or _is_slow(tx, shown, response_ms))
    )


def _is_drawn(tx: StudyTransaction, shown: ImpressionRow) -> bool:
    """One in n, by a hash of the seed, the duel and the person: nobody can count up to it."""
    if not tx.config.reason_every:
        return False
    drawn = (tx.config.seed, shown.episode, shown.epoch, shown.number, shown.annotator)
    digest = hashlib.sha256(repr(drawn).encode()).digest()
    return int.from_bytes(digest[:8], "big") % tx.config.reason_every == 0


def _is_slow(tx: StudyTransaction, shown: ImpressionRow, response_ms: int | None) -> bool:
    """Whether the answer took much longer than this person's last ones."""
    if response_ms is None:
        return False
    who = {"study": tx.id, "annotator": shown.annotator}
    before = tx.run(queries.LAST_TIMES, impression=shown.id, **who).scalars().all()
    return len(before) >= _FEWEST and response_ms > SLOW * median(before)
