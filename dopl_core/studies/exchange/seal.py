"""Seals: the last event of a study's log in one line, to write down, publish or sign.

The line has a digest of all events up to there. Whoever can write to a database can change its log
and compute all digests anew, but not those of a line that others have. Nor can they sign a line:
that needs the owner's key, of which the database has only the hash.
"""

import hmac
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
    """The number, the digest and the time (milliseconds) of an event of a study.

    signature: HMAC-SHA256 of the line with the owner's key, or nothing
    """

    study: str
    seq: int
    digest: str
    at: int
    signature: str = ""

    def __str__(self) -> str:
        words = (_WORD, self.study, self.seq, self.digest, iso(self.at), self.signature)
        return " ".join(map(str, words)).rstrip()


def read_seal(text: str) -> Seal:
    """The seal that `dopl seal` printed; line breaks and blanks around it do not matter."""
    try:
        word, study, seq, digest, at, *signed = text.split()
        seal = Seal(study, int(seq), digest.lower(), milliseconds(at), *signed)
        if word != _WORD or seal.seq < 1:
            raise ValueError
    except (TypeError, ValueError):
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


def sign_seal(seal: Seal, key: str) -> Seal:
    """The seal with a signature that only somebody with this key can make."""
    return seal._replace(signature=_signature(seal, key))


def check_signature(text: str, key: str) -> None:
    """Refuse a seal that was not signed with this key."""
    seal = read_seal(text)
    if not hmac.compare_digest(seal.signature.encode(), _signature(seal, key).encode()):
        raise StudyError("the seal is not signed with this key")


def _signature(seal: Seal, key: str) -> str:
    line = str(seal._replace(signature=""))
    return hmac.new(key.encode(), line.encode(), "sha256").hexdigest()


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
