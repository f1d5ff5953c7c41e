"""The protocol of a study's trial, as it was fixed in its log."""

from dataclasses import dataclass

from dopl_core.studies.model.event_kinds import body_of
from dopl_core.studies.model.protocol import Protocol
from dopl_core.studies.store.database import Store
from dopl_core.studies.store.study_reader import read_study


@dataclass(frozen=True)
class FixedProtocol:
    """When a protocol was fixed (milliseconds since 1970, UTC), the protocol, and its digest."""

    at: int
    protocol: Protocol
    digest: str


def read_protocol(store: Store, study: str) -> FixedProtocol | None:
    """The protocol of a study; None if the study was made without one."""
    with read_study(store, study) as reader:
        for _seq, event in reader.standing("protocol_fixed"):
            body = body_of(event)
            return FixedProtocol(event.at, body.protocol, body.digest)
    return None


def trial_rules(store: Store, study: str) -> str:
    """What must stay as it is until a study's trial ends; empty without a trial, or after it."""
    fixed = read_protocol(store, study)
    with read_study(store, study) as reader:
        if fixed is None or reader.week > fixed.protocol.weeks:
            return ""
        word, trial = reader.config.epoch_word, fixed.protocol
    return (
        f"The trial ends after {word} {trial.weeks}. Until then, keep {trial.budget} places, "
        f"{trial.by_lot} of them chosen at random. Anything else is a deviation from the protocol."
    )
