"""What a study is: its arms, its question and its rules, fixed when it is made."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dopl_core import environments
from dopl_core.environments import Rule, all_of, brief, one_of, seconds, switch, text, whole
from dopl_core.learning.bandit import Bandit, Pays, State, check_budget
from dopl_core.learning.counts import MOST_CODES
from dopl_core.learning.dopl import Confidence, Dopl
from dopl_core.learning.pair_designs import DESIGNS
from dopl_core.learning.planning import ENGINES, Engine
from dopl_core.learning.streams import EDITION
from dopl_core.studies.store import StudyError
from dopl_core.world import SimulatedWorld

World = Literal["simulated", "observed"]

MOST_STATES = 255  # numbered from 0, a byte each, and the last byte for unknown
MOST_COLUMNS = 1_000  # of an arm
REPEAT_EVERY = 10  # answers, in a new study of real people
# What a learner holds grows with these products, whatever each factor may be.
_MOST_LOTS = 10_000_000  # epochs of a plan times arms: one number each
_MOST_COUNTS = 150_000_000  # squared arm-states, where a method looks at all pairs: 8 bytes each
_MOST_ENTRIES = 20_000_000  # arms times squared states: who moved where
_MOST_LOOKS = 10**10  # duels to choose times squared arms, the same
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
    weigh_people: everybody's answers weigh as sure as they are (learning/annotators.py)
    by_lot: of the B places, those drawn by lot among all who are not on the list, to see what help
        does
    environment: the TOML text of the simulated bandit, "" in observed worlds
    engine: "auto" chooses by size, and is replaced by the choice
    horizon: epochs an episode (a plan);  episodes: how many there are, 0 until the owner closes
    ratings: answers asked for each duel, each of another person
    lease_seconds: how long a duel that was shown waits for its answer before it goes to others
    repeat_every: after so many answers a person is asked one of their own again, sides swapped, if
        others answer too; 0 for never
    gold_every: after so many answers a person is asked about a pair that is plain by the order of
        the states (asking.plain_gap), to see whether they look; 0 for never
    hide_state, hide_description, show_id: what a card shows of an arm beside its name and columns;
        without the state its description, which tells it, is not shown either
    why: what the answers are for, in the owner's words, shown when somebody comes
    quota: answers asked of each person at most, 0 for no limit
    completion_code: shown to those who are through, for paid panels; then each participant id in a
        link is a person of their own
    tell_results: annotators are told what their answers have changed
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
    by_lot: int = 0
    weigh_people: bool = True
    gold_every: int = 0
    hide_state: bool = False
    hide_description: bool = False
    show_id: bool = False
    why: str = ""
    quota: int = 0
    completion_code: str = ""
    tell_results: bool = False

    def __post_init__(self) -> None:
        try:
            for what, rule in RULES.items():
                rule(what, getattr(self, what))
        except ValueError as error:
            raise StudyError(str(error)) from None
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
    def shared_names(self) -> frozenset[str]:
        """Names that several arms have: an id is needed to tell them apart."""
        names = Counter(arm.label.strip().casefold() for arm in self.arms)
        return frozenset(name for name, count in names.items() if count > 1)

    @cached_property
    def _arm_numbers(self) -> dict[str, int]:
        return {arm.id: number for number, arm in enumerate(self.arms)}

    @cached_property
    def _state_numbers(self) -> dict[str, int]:
        return {state.label: number for number, state in enumerate(self.states)}


def _number(numbers: dict[str, int], name: str, what: str) -> int:
    if name not in numbers:
        known = ", ".join(list(numbers)[:8]) + (", ..." if len(numbers) > 8 else "")
        raise StudyError(f'{what} "{name[:80]}" is not one of {known[:800]}')
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

    Where the roster has more to judge by than states, cards do not show them.
    rules: any field of StudyConfig; title and budget are needed
    """
    own: dict[str, Any] = {"question": "Which of these two is doing better?", "noun": "arm"}
    own |= {"ordered": True, "horizon": 1, "repeat_every": REPEAT_EVERY}
    own |= {"hide_state": any(arm.columns for arm in arms)}
    ordered = tuple(State(s) if isinstance(s, str) else s for s in states)
    for needed in ("title", "budget"):
        if needed not in rules:
            raise StudyError(f"{needed} is missing")
    return StudyConfig(
        **(own | rules | {"world": "observed", "arms": tuple(arms), "states": ordered})
    )


def bandit_of(config: StudyConfig) -> Bandit:
    """The bandit that moves a simulated world."""
    data = environments.read_toml(config.environment)
    if environments.size(data) != (config.n_arms, config.n_states):
        raise StudyError("the arms and states are not those of the environment")
    bandit = environments.parse(data, config.environment_seed)
    return replace(bandit, budget=config.budget, pays=config.pays)


def world_of(config: StudyConfig) -> SimulatedWorld:
    """The simulated world, before its first episode."""
    return SimulatedWorld(bandit_of(config), config.seed, edition=config.edition)


def learner_of(config: StudyConfig) -> Dopl:
    """The learner, before its first plan."""
    assert config.engine != "auto"  # noqa: S101
    check_size(config)
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
        ordered=config.ordered,
    )
    adapt(learner, config)
    return learner


def adapt(learner: Dopl, config: StudyConfig) -> None:
    """Let the learner know who is here, and what the study wants by now."""
    learner.adapt(config.present, config.budget)
    learner.answers, learner.by_lot = config.answers, config.by_lot
    learner.weigh_people = config.weigh_people
    # Kinds of arms that the owner names; in a simulated world the learner is to find them.
    observed = config.world == "observed"
    learner.groups = tuple(arm.group for arm in config.arms) if observed else None


# --- what each field may be


def check_columns(what: str, value: Any) -> None:
    """An arm's columns: names and text."""
    if not isinstance(value, dict) or len(value) > MOST_COLUMNS:
        raise StudyError(f"{what} is {brief(value)}: at most {MOST_COLUMNS} columns can be kept")
    for name, cell in value.items():
        _COLUMN("a column's name", name)
        _CELL(f'column "{name[:80]}"', cell)


_ANY, _COLUMN, _CELL = text(1 << 28), text(1_000), text(2_000_000)  # a photo may be in a cell
_ARM: dict[str, Rule] = {
    "id": text(1_000),
    "label": text(10_000),
    "group": text(1_000),
    "state": text(1_000),
    "columns": check_columns,
    "present": switch,
}
_STATE: dict[str, Rule] = {"label": text(1_000), "description": text(10_000)}

RULES: dict[str, Rule] = {
    "title": text(1_000, least=1),
    "question": text(2_000, least=1),
    "noun": text(200, least=1),
    "world": one_of(*get_args(World)),
    "arms": all_of(Arm, _ARM, environments.MOST_ARMS),
    "states": all_of(State, _STATE, MOST_STATES),
    "budget": whole(0, environments.MOST_ARMS),  # how many there must be, _check_people knows
    "instructions": text(100_000),
    "environment": text(2 << 20),
    "environment_name": text(1_000),
    "environment_seed": whole(0, 2**32 - 1),
    "horizon": whole(1, 100_000),
    "episodes": whole(0, 10**9),
    "confidence": one_of(*get_args(Confidence)),
    "design": one_of(*DESIGNS),
    "engine": one_of(*ENGINES, "auto"),
    "pays": one_of(*get_args(Pays)),
    "ratings": whole(1, 1_000),
    "lease_seconds": seconds(10**7),
    "ties_allowed": switch,
    "practice": switch,
    "repeat_every": whole(0, 10**6),
    "seed": whole(0, 2**63 - 1),
    "edition": whole(1, EDITION),
    "ordered": switch,
    "sitting": whole(0, 10_000),
    "answers": whole(0, 10_000),
    "epoch_word": text(200, least=1),
    "photos_from_web": switch,
    "by_lot": whole(0, environments.MOST_ARMS),  # fewer than the budget, _check_people sees to it
    "weigh_people": switch,
    "gold_every": whole(0, 10**6),
    "hide_state": switch,
    "hide_description": switch,
    "show_id": switch,
    "why": text(2_000),
    "quota": whole(0, 10**6),
    "completion_code": text(200),
    "tell_results": switch,
}


def check_size(config: StudyConfig) -> None:
    """Refuse, before anything is allocated, what no learner could hold."""
    N, S = config.n_arms, config.n_states
    all_pairs = config.edition == 1 or config.confidence == "paper"
    most = math.isqrt(_MOST_COUNTS) if all_pairs else MOST_CODES
    if most < N * S or 2 * N * S**2 > _MOST_ENTRIES:
        raise StudyError(f"{N} arms with {S} states are more than can be learnt about here")
    if all_pairs and (config.sitting + config.answers) * N**2 > _MOST_LOOKS:
        raise StudyError(
            f"sitting is {config.sitting} and answers {config.answers}: too many to choose among "
            f"the pairs of {N} arms"
        )


def _check(config: StudyConfig) -> None:
    """Refuse, before anything is written, what could not be played."""
    _check_names("arm id", [arm.id for arm in config.arms])
    _check_names("state", [state.label for state in config.states])
    if config.n_states < 2:
        raise StudyError(f"{config.n_states} states given: from 2 to {MOST_STATES} needed")
    if config.horizon * config.n_arms > _MOST_LOTS:
        raise StudyError(
            f"horizon is {config.horizon}: with {config.n_arms} arms at most "
            f"{_MOST_LOTS // config.n_arms}"
        )
    _check_people(config)
    if (config.world == "simulated") != bool(config.environment):
        raise StudyError("a simulated world needs an environment, an observed one has none")
    if config.world == "simulated":
        bandit_of(config)


def _check_people(config: StudyConfig) -> None:
    present = int(config.present.sum())
    if present < 2:
        raise StudyError(
            f"{present} of the {len(config.arms)} arms are present: two at least are needed, for "
            "there must be something to compare"
        )
    try:
        check_budget(config.budget, present)
    except ValueError as error:
        raise StudyError(str(error)) from None
    if config.by_lot >= config.budget:
        raise StudyError(
            f"by_lot is {config.by_lot}: fewer needed than the budget, which is {config.budget}"
        )
    labels = {state.label for state in config.states} | {""}
    for arm in config.arms if config.world == "observed" else ():
        if arm.state not in labels:
            known = ", ".join(state.label for state in config.states)
            raise StudyError(f'arm "{arm.id}": state "{arm.state}" is not one of {known}')


def check_text(what: str, value: str) -> None:
    """Refuse what neither the databases nor CSV can keep: a zero byte, half a character."""
    try:
        _ANY(what, value)
    except ValueError as error:
        raise StudyError(str(error)) from None


def check_name(annotator: str) -> str:
    """The name of an annotator as it is kept, or why it cannot be."""
    name = annotator.strip()
    if not name:
        raise StudyError("the annotator has no name")
    if len(name) > _LONGEST_NAME:
        raise StudyError(f"the annotator's name is longer than {_LONGEST_NAME} characters")
    check_text("the annotator's name", name)
    return name


def check_participant(given: str) -> str | None:
    """A panel's id of a person as it is kept, None where there is none."""
    if len(given) > _LONGEST_NAME:
        raise StudyError(f"the participant's id is longer than {_LONGEST_NAME} characters")
    check_text("the participant's id", given)
    return given.strip() or None


def _check_names(what: str, names: list[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if not name.strip():
            raise StudyError(f"an {what} is empty")
        if name in seen:
            raise StudyError(f'{what} "{name}" is given twice')
        seen.add(name)
