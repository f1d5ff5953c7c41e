"""What a study is: its arms, its question and its rules, fixed when it is made."""

import hashlib
import json
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dopl_core import environments
from dopl_core.learning.bandit import Bandit, Pays, State, check_budget
from dopl_core.learning.dopl import Confidence, Dopl
from dopl_core.learning.pair_designs import DESIGNS
from dopl_core.learning.planning import ENGINES, Engine
from dopl_core.learning.streams import EDITION
from dopl_core.studies.store import StudyError
from dopl_core.world import SimulatedWorld

World = Literal["simulated", "observed"]

MOST_STATES = 255  # numbered from 0, a byte each, and the last byte for unknown
_WHOLE = {  # whole numbers, and what they lie between
    "horizon": (1, 100_000),
    "ratings": (1, 1_000),
    "episodes": (0, 10**9),
    "repeat_every": (0, 10**6),
    "sitting": (0, 100_000),
    "answers": (0, 100_000),
    "environment_seed": (0, 2**32 - 1),
}
_LONGEST_NAME = 200  # PostgreSQL indexes no texts of some thousand characters
_CBC_SIZE = 5_000  # arms times squared states up to which CBC plans in a second (measured)


@dataclass(frozen=True)
class Arm:
    """One of the things that can be helped, as its owner knows it.

    id: the owner's own, unique;  state: the label of its state when it joined (observed worlds),
        "" where that is not known
    columns: the owner's other columns, as they are written; cards.read makes evidence of them
    """

    id: str
    label: str
    group: str = "all"
    state: str = ""
    columns: dict[str, str] = field(default_factory=dict)
    present: bool = True


@dataclass(frozen=True)
class StudyConfig:
    """A study's rules; make one with `from_environment` or `from_roster`.

    arms: all there ever were, in the order in which they came; an arm's number is its place here
    states: in order, from worst to best (practice duels rely on it)
    ordered: the learner is told that they are;  epoch_word: what the owner calls an epoch
    sitting: duels of a first sitting, before the first plan
    answers: wanted in an epoch; where that is less than B-1, B-1
    environment: the TOML text of the simulated bandit, "" in observed worlds
    engine: "auto" chooses by size, and is replaced by the choice
    horizon: epochs an episode (a plan);  episodes: how many there are, 0 until the owner closes
    ratings: answers asked for each duel, each of another person
    lease_seconds: how long a duel that was shown waits for its answer before it goes to others
    repeat_every: after so many answers a person is asked one of their own again, 0 for never
    edition: of the random streams and the maths, those of the day on which the study was made
    """

    title: str
    question: str
    noun: str
    world: World
    arms: tuple[Arm, ...]
    states: tuple[State, ...]
    budget: int
    instructions: str = ""
    environment: str = ""
    environment_name: str = ""
    environment_seed: int = 0
    horizon: int = 5
    episodes: int = 0
    confidence: Confidence = "calibrated"
    design: str = "star"
    engine: Engine | Literal["auto"] = "auto"
    pays: Pays = "all"
    ratings: int = 1
    lease_seconds: float = 120.0
    ties_allowed: bool = False
    practice: bool = True
    repeat_every: int = 0
    seed: int = 0
    edition: int = EDITION
    ordered: bool = False
    sitting: int = 0
    answers: int = 0
    epoch_word: str = "week"
    photos_from_web: bool = False

    def __post_init__(self) -> None:
        if self.engine == "auto":
            object.__setattr__(self, "engine", engine_for(len(self.arms), len(self.states)))
        _check(self)

    @property
    def n_arms(self) -> int:
        return len(self.arms)

    @property
    def n_states(self) -> int:
        return len(self.states)

    @cached_property
    def present(self) -> NDArray[np.bool_]:
        """Who is there now [N]."""
        return np.array([arm.present for arm in self.arms], dtype=bool)

    @property
    def outcomes(self) -> tuple[str, ...]:
        """What may be answered."""
        return ("left", "right", "tie", "skip") if self.ties_allowed else ("left", "right", "skip")

    def arm_number(self, arm: str) -> int:
        """The number of the arm with the owner's id."""
        return _number(self._arm_numbers, arm, "arm id")

    def state_number(self, label: str) -> int:
        """The number of the state with this label."""
        return _number(self._state_numbers, label, "state")

    @cached_property
    def _arm_numbers(self) -> dict[str, int]:
        return {arm.id: number for number, arm in enumerate(self.arms)}

    @cached_property
    def _state_numbers(self) -> dict[str, int]:
        return {state.label: number for number, state in enumerate(self.states)}


def _number(numbers: dict[str, int], name: str, what: str) -> int:
    if name not in numbers:
        known = ", ".join(list(numbers)[:8]) + (", ..." if len(numbers) > 8 else "")
        raise StudyError(f'{what} "{name}" is not one of {known}')
    return numbers[name]


def engine_for(n_arms: int, n_states: int) -> Engine:
    """CBC, the reference, as long as a plan with it takes about a second; then the exact dual."""
    return "cbc" if n_arms * n_states**2 <= _CBC_SIZE else "lagrangian"


def from_environment(name_or_path: str | Path, **rules: Any) -> StudyConfig:
    """A study of a simulated world: one of `environments.names()`, or the path of a TOML file.

    rules: any field of StudyConfig, in place of the environment's own title, question, budget ...
    """
    seed = int(rules.get("environment_seed", 0))
    bandit = environments.load(name_or_path, seed)
    path = Path(name_or_path)
    path = path if path.suffix == ".toml" else environments.FOLDER / f"{name_or_path}.toml"
    arms = tuple(
        Arm(str(n + 1), label, group)
        for n, (label, group) in enumerate(zip(bandit.arms, bandit.groups, strict=True))
    )
    own: dict[str, Any] = {
        "title": bandit.title,
        "question": bandit.question,
        "noun": bandit.noun,
        "budget": bandit.budget,
        "pays": bandit.pays,
        "environment_name": bandit.name,
    }
    fixed: dict[str, Any] = {
        "world": "simulated",
        "arms": arms,
        "states": bandit.states,
        "environment": path.read_text(encoding="utf-8"),
    }
    return StudyConfig(**(own | rules | fixed))


def from_roster(arms: Sequence[Arm], states: Sequence[State | str], **rules: Any) -> StudyConfig:
    """A study of an observed world: the owner's arms (see roster.read) and their states in order.

    rules: any field of StudyConfig; title and budget are needed
    """
    own: dict[str, Any] = {"question": "Which of these two is doing better?", "noun": "arm"}
    own |= {"ordered": True, "horizon": 1}
    ordered = tuple(State(s) if isinstance(s, str) else s for s in states)
    for needed in ("title", "budget"):
        if needed not in rules:
            raise StudyError(f"{needed} is missing")
    return StudyConfig(
        **(own | rules | {"world": "observed", "arms": tuple(arms), "states": ordered})
    )


def bandit_of(config: StudyConfig) -> Bandit:
    """The bandit that moves a simulated world."""
    bandit = environments.parse(tomllib.loads(config.environment), config.environment_seed)
    return replace(bandit, budget=config.budget, pays=config.pays)


def world_of(config: StudyConfig) -> SimulatedWorld:
    """The simulated world, before its first episode."""
    return SimulatedWorld(bandit_of(config), config.seed, edition=config.edition)


def learner_of(config: StudyConfig) -> Dopl:
    """The learner, before its first plan."""
    assert config.engine != "auto"  # noqa: S101
    learner = Dopl(
        config.n_arms,
        config.n_states,
        config.budget,
        horizon=config.horizon,
        seed=config.seed,
        design=config.design,
        confidence=config.confidence,
        engine=config.engine,
        pays=config.pays,
        edition=config.edition,
        answers=config.answers,
        ordered=config.ordered,
        groups=groups_of(config),
    )
    if not config.present.all():
        learner.adapt(config.present, config.budget)
    return learner


def groups_of(config: StudyConfig) -> tuple[str, ...] | None:
    """Kinds of arms that the owner names [N]; in a simulated world the learner is to find them."""
    return tuple(arm.group for arm in config.arms) if config.world == "observed" else None


def to_json(config: StudyConfig) -> str:
    """The configuration as JSON, the same text each time."""
    return json.dumps(asdict(config), ensure_ascii=False, sort_keys=True, indent=1)


def from_json(content: str) -> StudyConfig:
    """The configuration that `to_json` wrote; fields added since take their defaults.

    The first edition had no number.
    """
    data = json.loads(content)
    known = {f.name for f in fields(StudyConfig)}
    if not isinstance(data, dict) or (unknown := sorted(data.keys() - known)):
        raise StudyError(f'config: "{unknown[0]}" is not known' if data else "config is empty")
    data.setdefault("edition", 1)
    data["arms"] = tuple(Arm(**arm) for arm in data["arms"])
    data["states"] = tuple(State(**state) for state in data["states"])
    return StudyConfig(**data)


def digest_of(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()


def _check(config: StudyConfig) -> None:
    """Refuse, before anything is written, what could not be played."""
    for what in ("title", "question", "noun", "epoch_word"):
        if not str(getattr(config, what)).strip():
            raise StudyError(f"{what} is empty")
    for name, value in asdict(config).items():
        for text in _texts(value):
            check_text(name, text)
    _check_choice("world", config.world, get_args(World))
    _check_choice("confidence", config.confidence, get_args(Confidence))
    _check_choice("design", config.design, tuple(DESIGNS))
    _check_choice("engine", config.engine, ENGINES)
    _check_choice("pays", config.pays, get_args(Pays))
    for what, (least, most) in _WHOLE.items():
        value = getattr(config, what)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise StudyError(f"{what} is {value!r}: a whole number from {least} to {most} needed")
    if config.edition not in range(1, EDITION + 1):
        raise StudyError(f"edition is {config.edition!r}: this program knows 1 to {EDITION}")
    if not 0 <= config.seed < 2**63:
        raise StudyError(f"seed is {config.seed}: a whole number from 0 needed")
    if not config.lease_seconds > 0:
        raise StudyError(f"lease_seconds is {config.lease_seconds}: it must be above 0")
    _check_names("arm id", [arm.id for arm in config.arms])
    _check_names("state", [state.label for state in config.states])
    if not 2 <= config.n_states <= MOST_STATES:
        raise StudyError(f"{config.n_states} states given: from 2 to {MOST_STATES} needed")
    _check_people(config)
    if (config.world == "simulated") != bool(config.environment):
        raise StudyError("a simulated world needs an environment, an observed one has none")
    if config.world == "simulated":
        bandit = bandit_of(config)
        if (bandit.n_arms, bandit.n_states) != (config.n_arms, config.n_states):
            raise StudyError("the arms and states are not those of the environment")


def _check_people(config: StudyConfig) -> None:
    present = int(config.present.sum())
    if present < 2:
        raise StudyError(
            f"{present} of the {len(config.arms)} arms are present: two at least are needed, for "
            "there must be something to compare"
        )
    check_budget(config.budget, present)
    labels = {state.label for state in config.states} | {""}
    for arm in config.arms if config.world == "observed" else ():
        if arm.state not in labels:
            known = ", ".join(state.label for state in config.states)
            raise StudyError(f'arm "{arm.id}": state "{arm.state}" is not one of {known}')


def check_text(what: str, text: str) -> None:
    """Refuse what neither the databases nor CSV can keep: a zero byte, half a character."""
    if "\0" in text or (not text.isascii() and text != text.encode(errors="ignore").decode()):
        raise StudyError(f"{what} has a character that cannot be kept")


def check_name(annotator: str) -> str:
    """The name of an annotator as it is kept, or why it cannot be."""
    name = annotator.strip()
    if not name:
        raise StudyError("the annotator has no name")
    if len(name) > _LONGEST_NAME:
        raise StudyError(f"the annotator's name is longer than {_LONGEST_NAME} characters")
    check_text("the annotator's name", name)
    return name


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _texts([*value.keys(), *value.values()])
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)


def _check_choice(what: str, given: str, allowed: tuple[str, ...]) -> None:
    if given not in allowed:
        raise StudyError(f'{what} is "{given}": it must be one of {", ".join(allowed)}')


def _check_names(what: str, names: list[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if not name.strip():
            raise StudyError(f"an {what} is empty")
        if name in seen:
            raise StudyError(f'{what} "{name}" is given twice')
        seen.add(name)
