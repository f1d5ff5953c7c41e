"""The protocol of a trial: what a study promises before its first list, and its digest."""

import hashlib
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct, structs

from dopl_core import environments
from dopl_core.studies.model.config_json import read_json
from dopl_core.studies.model.errors import StudyError
from dopl_core.studies.model.study_config import StudyConfig
from dopl_core.validation import convert, text, whole

MOST_WEEKS, MOST_LOOKS = 520, 50
OUTCOMES = {"better_off": "in a better state at the next report, or still in the best state"}


class Protocol(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A trial as it is fixed in the log.

    question: what the trial asks
    people: how many there are when the study begins
    budget: places on each list;  by_lot: of these, drawn by lot
    weeks: reported weeks until the last analysis
    looks: reported weeks after which the data are analysed, in order; the last one is `weeks`
    effect: the share better off with help less the share without, as expected
    power: the probability that the trial shows this effect, as computed when the protocol was
        made; None if unknown
    level: two-sided, over all looks together
    outcome: the primary outcome, one of OUTCOMES
    analysis: the version of the analysis, see learning/places/lot_trial.py

    Fields that later versions add need defaults, which may never change: digests leave them out.
    """

    question: Annotated[str, text(2_000, blank=False)]
    people: Annotated[int, whole(2, environments.MOST_ARMS)]
    budget: Annotated[int, whole(1, environments.MOST_ARMS)]
    by_lot: Annotated[int, whole(1, environments.MOST_ARMS)]
    weeks: Annotated[int, whole(1, MOST_WEEKS)]
    looks: Annotated[tuple[Annotated[int, whole(1, MOST_WEEKS)], ...], Meta(max_length=MOST_LOOKS)]
    effect: Annotated[float, Meta(gt=0, le=1)]
    power: Annotated[float, Meta(ge=0, le=1)] | None = None
    level: Annotated[float, Meta(gt=0, lt=1)] = 0.05
    outcome: Literal["better_off"] = "better_off"
    analysis: Annotated[int, whole(1, 1_000)] = 1

    def __post_init__(self) -> None:
        check_size(self.people, self.budget, self.by_lot)
        if any(one >= two for one, two in pairwise(self.looks)):
            raise StudyError("looks are weeks in rising order, each once")
        if self.looks[-1:] != (self.weeks,):
            raise StudyError(f"looks: the last one must be the last week, {self.weeks}")


def check_size(people: int, budget: int, by_lot: int) -> None:
    """Refuse a trial without anybody to compare with."""
    if not 2 <= budget < people:
        raise StudyError(
            f"budget is {budget} for {people} people: a trial needs at least 2 places, and fewer "
            "than there are people"
        )
    most = min(budget - 1, people - budget)
    if not 1 <= by_lot <= most:
        raise StudyError(f"by_lot is {by_lot}: a whole number from 1 to {most} needed")


def make_protocol(**said: object) -> Protocol:
    """A protocol of these fields, checked."""
    return convert(said, Protocol, "", StudyError)


def digest(protocol: Protocol) -> str:
    """SHA-256 of the protocol as canonical JSON, in hexadecimal."""
    return hashlib.sha256(to_json(protocol)).hexdigest()


def to_json(protocol: Protocol) -> bytes:
    """The same bytes for equal protocols: keys in order, no spaces, no defaults."""
    known = {f.name: f.default for f in structs.fields(Protocol)}
    # Not by omit_defaults, which compares by identity.
    said = {k: v for k, v in structs.asdict(protocol).items() if v != known[k]}
    return msgspec.json.encode(said, order="sorted")


def read_protocol_file(path: Path) -> Protocol:
    """The protocol in a JSON file, as `dopl power --protocol` writes it."""
    content, name = path.read_bytes(), path.name
    try:
        found = read_json(content.decode())
    except (StudyError, UnicodeDecodeError) as error:
        raise StudyError(f"{name}: {error}") from None
    if not isinstance(found, dict):
        raise StudyError(f"{name}: a table of keys needed")
    return convert(found, Protocol, name, StudyError)


def check_fits(protocol: Protocol, config: StudyConfig) -> None:
    """Refuse a protocol that is of another study."""
    if config.world != "observed":
        raise StudyError("a protocol is for a study of real people, not of a simulated world")
    study = {"people": config.n_arms, "budget": config.budget, "by_lot": config.by_lot}
    for name, value in study.items():
        if getattr(protocol, name) != value:
            raise StudyError(
                f"the protocol has {name} {getattr(protocol, name)}, the study {value}: compute "
                "the power again, or change the study"
            )
