"""What a study is: its arms, its states and its settings, checked before anything is written."""

import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from dopl_core import environments
from dopl_core.learning.bandit import Bandit, Pays, State
from dopl_core.learning.columns import Columns
from dopl_core.learning.columns import read as read_columns
from dopl_core.learning.counts import MOST_CODES
from dopl_core.learning.planning import Engine
from dopl_core.studies.model.annotator_limits import Limit, read_limits
from dopl_core.studies.model.errors import StudyError
from dopl_core.studies.model.outcomes import ANSWERS
from dopl_core.studies.model.setting_about import World
from dopl_core.studies.model.setting_rows import SETTINGS
from dopl_core.studies.model.settings import Settings
from dopl_core.studies.model.translations import read_translations
from dopl_core.validation import check, check_value, text, values, whole
from dopl_core.wording import LANGUAGE, _

MOST_STATES = 255  # numbered from 0, one byte each; the last byte stands for unknown
MOST_COLUMNS = 1_000  # of an arm
MOST_GROUPS = 12  # that places are shared out among
_MOST_TAGS, _LONGEST_TAG = 8, 60  # reasons to choose from, and the characters of each
# What a learner holds grows with these products, whatever each factor may be.
_MOST_LOTS = 10_000_000  # epochs of a plan times arms: one number each
_MOST_COUNTS = 150_000_000  # squared arm-states, where a method looks at all pairs: 8 bytes each
_MOST_ENTRIES = 20_000_000  # arms times squared states: transitions
_MOST_LOOKS = 10**10  # duels to choose times squared arms, where a method looks at all pairs
_CBC_SIZE = 5_000  # arms times squared states up to which CBC plans in a second (measured)

Cells = Annotated[
    dict[Annotated[str, text(1_000)], Annotated[str, text(2_000_000)]],  # a cell may hold a photo
    Meta(max_length=MOST_COLUMNS),
]


@dataclass(frozen=True)
class Arm:
    """One of the people or things that can be helped, as the owner knows them.

    id: the owner's own, unique;  state: the label of its state when it joined (observed worlds),
        "" where that is unknown
    columns: the owner's other columns, as written; collect/cards.py reads evidence from them
    """

    id: Annotated[str, text(1_000)]
    label: Annotated[str, text(10_000)]
    group: Annotated[str, text(1_000)] = "all"
    state: Annotated[str, text(1_000)] = ""
    columns: Cells = field(default_factory=dict)
    present: bool = True

    def __post_init__(self) -> None:
        check(self, StudyError)


class _State(Struct):
    label: Annotated[str, text(1_000)]
    description: Annotated[str, text(10_000)]


@dataclass(frozen=True, kw_only=True)
class StudyConfig(Settings):
    """A study's arms, states and settings; make one with `from_environment` or `from_roster`.

    arms: all there ever were, in the order in which they joined; an arm's number is its place here
    states: in order, from worst to best (practice duels rely on it)
    ordered: the learner is told that they are in order
    environment: the TOML text of the simulated bandit, "" in observed worlds
    engine: "auto" chooses by size, and is replaced by the choice
    """

    world: World
    arms: Annotated[tuple[Arm, ...], Meta(max_length=environments.MOST_ARMS)]
    states: Annotated[tuple[State, ...], Meta(max_length=MOST_STATES)]
    environment: Annotated[str, text(2 << 20)] = ""
    environment_name: Annotated[str, text(1_000)] = ""
    environment_seed: Annotated[int, whole(0, 2**32 - 1)] = 0
    engine: Literal[Engine, "auto"] = "auto"
    pays: Pays = "all"
    ordered: bool = False

    def __post_init__(self) -> None:
        check(self, StudyError)
        for number, state in enumerate(self.states, start=1):
            check_value(f"states: number {number}", values(state), _State, StudyError)
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
        """Which arms are present now [N]."""
        return np.array([arm.present for arm in self.arms], dtype=bool)

    @cached_property
    def columns(self) -> Columns | None:
        """The roster's columns that the learner may use; None in simulated worlds."""
        if self.world != "observed":
            return None
        names = dict.fromkeys(name for arm in self.arms for name in arm.columns)
        used = [name for name in names if name not in _names(self.unused_columns)]
        return read_columns(used, [[arm.columns.get(n, "") for n in used] for arm in self.arms])

    @cached_property
    def hidden(self) -> frozenset[str]:
        """The columns that cards do not show."""
        return _names(self.hidden_columns)

    @cached_property
    def columns_on_list(self) -> tuple[str, ...]:
        """The columns that lists show, in order."""
        return _in_order(self.list_columns)

    @cached_property
    def tags(self) -> tuple[str, ...]:
        """The reasons for answers that annotators can choose from, in order."""
        return _in_order(self.reason_tags)

    @cached_property
    def outcomes(self) -> tuple[str, ...]:
        """The answers that are allowed."""
        return tuple(answer for answer in ANSWERS if answer != "tie" or self.ties_allowed)

    @cached_property
    def consent_version(self) -> str:
        """The version of the consent text: the first digits of its digest, "" without a text."""
        text = self.consent.strip()
        return hashlib.sha256(text.encode()).hexdigest()[:12] if text else ""

    @cached_property
    def limits(self) -> dict[str, Limit]:
        """Annotator, or name of a panel's link -> whom they judge; nobody else is limited."""
        return read_limits(self.annotator_limits)

    @cached_property
    def translated(self) -> dict[str, dict[str, str]]:
        """The owner's texts in other languages: code -> text -> its translation."""
        texts = {name: getattr(self, name) for name, one in SETTINGS.items() if one.kind is str}
        return read_translations(self.translations, texts)

    def own_words(self, text: str) -> str:
        """A text of the owner's in the language in use, as far as it is translated."""
        own = self.translated.get(LANGUAGE.get(), {})
        return own[text] if text in own else _(text) if text else ""

    def arm_number(self, arm: str) -> int:
        """The number of the arm with the owner's id."""
        return _number(self._arm_numbers, arm, "arm id")

    def state_number(self, label: str) -> int:
        """The number of the state with this label."""
        return _number(self._state_numbers, label, "state")

    @cached_property
    def shared_names(self) -> frozenset[str]:
        """Names that several arms have, in lower case: an id is needed to tell them apart."""
        names = Counter(arm.label.strip().casefold() for arm in self.arms)
        return frozenset(name for name, count in names.items() if count > 1)

    @cached_property
    def _arm_numbers(self) -> dict[str, int]:
        return {arm.id: number for number, arm in enumerate(self.arms)}

    @cached_property
    def _state_numbers(self) -> dict[str, int]:
        return {state.label: number for number, state in enumerate(self.states)}


def _in_order(text: str) -> tuple[str, ...]:
    """The different names in a text, separated by commas, in order."""
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def _names(text: str) -> frozenset[str]:
    """The names in a text, separated by commas."""
    return frozenset(_in_order(text))


def _number(numbers: dict[str, int], name: str, what: str) -> int:
    if name not in numbers:
        known = ", ".join(list(numbers)[:8]) + (", ..." if len(numbers) > 8 else "")
        raise StudyError(f'{what} "{name[:80]}" is not one of {known[:800]}')
    return numbers[name]


def engine_for(n_arms: int, n_states: int) -> Engine:
    """CBC, the reference, while a plan takes about a second; above that the exact dual."""
    return "cbc" if n_arms * n_states**2 <= _CBC_SIZE else "lagrangian"


def from_environment(name_or_path: str | Path, **rules: Any) -> StudyConfig:
    """A study of a simulated world: one of `environments.names()`, or the path of a TOML file.

    rules: any field of StudyConfig; they replace the environment's title, question, budget ...
    """
    seed = int(rules.get("environment_seed", 0))
    bandit = environments.load(name_or_path, seed)
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
        "environment": environments.path_of(name_or_path).read_text(encoding="utf-8"),
    }
    return StudyConfig(**(own | rules | fixed))


def from_roster(arms: Sequence[Arm], states: Sequence[State | str], **rules: Any) -> StudyConfig:
    """A study of an observed world: the owner's arms (see read_roster) and states in order.

    Cards hide the states if the roster has other columns to judge by.
    rules: any field of StudyConfig; title and budget are required
    """
    own: dict[str, Any] = {
        "ordered": True,
        "horizon": 1,
        "repeat_every": SETTINGS["repeat_every"].offered,
        "hide_state": any(arm.columns for arm in arms),
    }
    ordered = tuple(State(s) if isinstance(s, str) else s for s in states)
    for name, setting in SETTINGS.items():
        if setting.is_required and name not in rules:
            raise StudyError(f"{name} is missing")
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


def check_size(config: StudyConfig) -> None:
    """Refuse a study that is too large for the learner, before anything is allocated."""
    N, S = config.n_arms, config.n_states
    all_pairs = config.confidence == "paper"
    most = math.isqrt(_MOST_COUNTS) if all_pairs else MOST_CODES
    if most < N * S or 2 * N * S**2 > _MOST_ENTRIES:
        raise StudyError(f"{N} arms with {S} states exceed the limit of the learner")
    if all_pairs and (config.sitting + config.answers) * N**2 > _MOST_LOOKS:
        raise StudyError(
            f"sitting is {config.sitting} and answers is {config.answers}: too many for {N} arms, "
            "choose fewer"
        )


def _check(config: StudyConfig) -> None:
    """Refuse a study that could not be run, before anything is written."""
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
    _check_fairness(config)
    config.translated  # noqa: B018 refuses what cannot be read
    if config.limits and config.world == "simulated":
        raise StudyError("annotator_limits: a simulated world has no people to keep from anybody")
    if len(config.tags) > _MOST_TAGS or any(len(tag) > _LONGEST_TAG for tag in config.tags):
        raise StudyError(
            f"reason_tags: at most {_MOST_TAGS} reasons of at most {_LONGEST_TAG} characters each, "
            "separated by commas"
        )
    if (config.world == "simulated") != bool(config.environment):
        raise StudyError("environment: a simulated world needs one, an observed world has none")
    if config.world == "simulated":
        bandit_of(config)


def fair_groups(config: StudyConfig) -> list[str]:
    """The group of each arm in the column that places are shared out by."""
    column = config.fair_column
    if any(column in arm.columns for arm in config.arms) or column != "group":
        return [arm.columns.get(column, "") for arm in config.arms]
    return [arm.group for arm in config.arms]


def fair_shares(config: StudyConfig) -> dict[str, float]:
    """The least share of the places of each group, from "North 30, South 20" in percent."""
    found: dict[str, float] = {}
    for part in filter(None, (part.strip() for part in config.fair_shares.split(","))):
        name, _blank, percent = part.rstrip("% ").rpartition(" ")
        try:
            found[name.strip(" =:")] = float(percent) / 100
        except ValueError:
            raise StudyError(
                f'fair_shares: "{part[:80]}" has no percentage; write for example "North 30, '
                'South 20"'
            ) from None
    return found


def _check_fairness(config: StudyConfig) -> None:
    """Refuse floors that no list can give."""
    if not config.fair_column:
        return
    column, columns = config.fair_column, {name for arm in config.arms for name in arm.columns}
    if column not in columns | {"group"}:
        names = ", ".join(["group", *sorted(columns)])
        raise StudyError(
            f'fair_column: the roster has no column "{column[:80]}", only {names[:800]}'
        )
    groups = set(fair_groups(config))
    if not 2 <= len(groups) <= MOST_GROUPS:
        raise StudyError(
            f'fair_column: "{config.fair_column[:80]}" has {len(groups)} different values in the '
            f"roster; from 2 to {MOST_GROUPS} needed"
        )
    if config.fair_rule != "shares":
        return
    shares = fair_shares(config)
    if unknown := sorted(shares.keys() - groups):
        known = ", ".join(sorted(groups))
        raise StudyError(f'fair_shares: "{unknown[0][:80]}" is not one of {known[:800]}')
    if not shares or min(shares.values()) < 0 or not 0 < sum(shares.values()) <= 1 + 1e-9:
        raise StudyError("fair_shares: the percentages must be from 0 and sum to at most 100")


def _check_people(config: StudyConfig) -> None:
    present = int(config.present.sum())
    if present < 2:
        raise StudyError(
            f"{present} of the {len(config.arms)} people are present: at least two are needed for "
            "a comparison"
        )
    if config.world == "simulated" and config.budget == 1:
        raise StudyError("budget is 1: a simulated world compares those helped, so 2 are needed")
    if not 1 <= config.budget <= present:
        raise StudyError(
            f"budget is {config.budget}: it must be from 1 to the number of people, {present}"
        )
    for name, places in (("by_lot", config.by_lot), ("find_out", config.find_out)):
        if places is not None and places >= config.budget:
            raise StudyError(
                f"{name} is {places}: it must be less than the budget, which is {config.budget}"
            )
    labels = {state.label for state in config.states} | {""}
    for arm in config.arms if config.world == "observed" else ():
        if arm.state not in labels:
            known = ", ".join(state.label for state in config.states)
            raise StudyError(f'arm "{arm.id}": state "{arm.state}" is not one of {known}')


def _check_names(what: str, names: list[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if not name.strip():
            raise StudyError(f"an {what} is empty")
        if name in seen:
            raise StudyError(f'{what} "{name}" is given twice')
        seen.add(name)
