"""What can be simulated: one learner with one seed in one environment, and grids of them."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from dopl_core import environments
from dopl_core.experiments.baselines import History
from dopl_core.experiments.learners import LEARNERS
from dopl_core.learning.bandit import Bandit
from dopl_core.learning.dopl import Confidence
from dopl_core.learning.learner import Learner, Ties
from dopl_core.learning.pair_designs import DESIGNS
from dopl_core.learning.planning import ENGINES, Engine


@dataclass(frozen=True)
class Run:
    """One learner with one seed in one environment (a name, or the path of a TOML file).

    history_epochs, sitting: past epochs with B arms by lot helped, and answers of a first sitting
    answers: wanted in an epoch, 0 for the paper's B-1;  ordered: states go from worst to best
    """

    environment: str
    learner: str
    seed: int
    episodes: int
    horizon: int
    confidence: Confidence = "calibrated"
    engine: Engine = "lagrangian"
    design: str = "star"
    ties: Ties = "advantage"
    history: History = "all"
    restart: bool = False
    temperature: float = 1.0
    environment_seed: int = 0
    history_epochs: int = 0
    sitting: int = 0
    answers: int = 0
    ordered: bool = False

    def __post_init__(self) -> None:
        for what, allowed in _CHOICES.items():
            if (given := getattr(self, what)) not in allowed:
                raise ValueError(f'{what} "{given}" is not one of {", ".join(allowed)}')
        for what in ("episodes", "horizon"):
            if (given := getattr(self, what)) < 1:
                raise ValueError(f"{what} is {given}: at least 1 needed")
        for what in ("history_epochs", "sitting", "answers"):
            if (given := getattr(self, what)) < 0:
                raise ValueError(f"{what} is {given}: it cannot be negative")
        if not self.temperature > 0:
            raise ValueError(f"temperature is {self.temperature}: it must be positive")

    @property
    def key(self) -> tuple[str, str, str, str, str]:
        """What a row of results says of its run: environment, learner, confidence, engine, seed."""
        uses = LEARNERS[self.learner].uses
        confidence = self.confidence if "confidence" in uses else "none"
        engine = self.engine if "engine" in uses else "none"
        return Path(self.environment).stem, self.learner, confidence, engine, str(self.seed)

    def bandit(self) -> Bandit:
        """The bandit that is played."""
        return environments.load(self.environment, self.environment_seed)

    def make_learner(self, bandit: Bandit) -> Learner:
        """The learner, told nothing of the bandit but its size (the oracle knows everything)."""
        kind = LEARNERS[self.learner]
        settings = ("horizon", "seed", "design", "ties", *kind.uses)
        return kind.make(bandit, **{name: getattr(self, name) for name in settings})


_CHOICES: dict[str, tuple[str, ...]] = {
    "learner": tuple(LEARNERS),
    "confidence": get_args(Confidence),
    "engine": ENGINES,
    "design": tuple(DESIGNS),
    "ties": get_args(Ties),
    "history": get_args(History),
}


def grid(
    names: Iterable[str],
    learners: Iterable[str],
    seeds: Iterable[int],
    *,
    episodes: int | None = None,
    horizon: int | None = None,
    environment_seed: int = 0,
    **settings: Any,
) -> list[Run]:
    """Every learner with every seed in every environment, which gives episodes and horizon."""
    runs = []
    learners, seeds = list(learners), list(seeds)
    if not seeds:
        raise ValueError("there are no seeds: at least 1 needed")
    for name in names:
        bandit = environments.load(name, environment_seed)
        settings["episodes"] = bandit.episodes if episodes is None else episodes
        settings["horizon"] = bandit.horizon if horizon is None else horizon
        settings["environment_seed"] = environment_seed
        runs += [Run(name, learner, seed, **settings) for learner in learners for seed in seeds]
    return runs
