"""Seals: the last event of a study's log in one line, to write down, publish or sign.

The line has a digest of all events up to there. Whoever can write to a database can change its log
and compute all digests anew, but not those of a line that others have.
"""

from typing import NamedTuple

import sqlalchemy as sa

from dopl_core.studies.exchange.bundle_csv import iso, milliseconds
from dopl_core.studies.model.errors import LogError, StudyError
from dopl_core.studies.model.study_log import StudyLog
from dopl_core.studies.store import inserts, tables
from dopl_core.studies.store.database import Store
from dopl_core.studies.store.log_reader import check_chain
from dopl_core.studies.store.study_reader import StudyReader, read_study

_WORD = "dopl-seal"


class Seal(NamedTuple):
    """The number, the digest and the time (milliseconds) of an event of a study."""

    study: str
    seq: int
    digest: str
    at: int

    def __str__(self) -> str:
        return f"{_WORD} {self.study} {self.seq} {self.digest} {iso(self.at)}"


def read_seal(text: str) -> Seal:
    """The seal that `dopl seal` printed; line breaks and blanks around it do not matter."""
    try:
        word, study, seq, digest, at = text.split()
        seal = Seal(study, int(seq), digest.lower(), milliseconds(at))
        if word != _WORD or seal.seq < 1:
            raise ValueError
    except ValueError:
        raise StudyError(
            f'"{text.strip()[:80]}" is not a seal: the whole line that `dopl seal STUDY` printed '
            "is needed"
        ) from None
    return seal


def seal_study(store: Store, study: str) -> Seal:
    """The seal of a study as it is now; its log is checked first."""
    with read_study(store, study) as reader:
        check_chain(reader)
        e = tables.events.c
        last = sa.select(e.at).where(e.study == study, e.seq == reader.row.seq)
        at = reader.connection.execute(last).scalar_one()
        return Seal(study, reader.row.seq, reader.row.chain or "", at)


def check_study(reader: StudyReader, seal: Seal) -> None:
    """Refuse a study whose log, which is checked, does not contain a seal."""
    e = tables.events.c
    query = sa.select(e.chain, e.at).where(e.study == reader.id, e.seq == seal.seq)
    row = reader.connection.execute(query).one_or_none()
    _compare(seal, reader.id, None if row is None else (row.chain, row.at))


def check_log(log: StudyLog, seal: Seal) -> None:
    """The same for the log of a bundle."""
    found: tuple[str, int] | None = None
    before: str | None = None
    for seq, event in enumerate(log.events[: seal.seq], start=1):
        before = inserts.chain(before, vars(event) | {"seq": seq})
        found = (before, event.at) if seq == seal.seq else None
    _compare(seal, log.study, found)


def _compare(seal: Seal, study: str, found: tuple[str | None, int] | None) -> None:
    if seal.study != study:
        raise LogError(f'the seal is of study "{seal.study[:80]}", not of "{study}"')
    if found is None:
        raise LogError(f"the log ends before event {seal.seq}, which was sealed")
    if found != (seal.digest, seal.at):
        raise LogError(
            f"event {seal.seq}, or one before it, was changed since it was sealed on {iso(seal.at)}"
        )
