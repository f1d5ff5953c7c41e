"""What can be simulated: one learner with one seed in one environment, and grids of them."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from dopl_core.experiments import worlds
from dopl_core.experiments.baselines import Memory
from dopl_core.experiments.learners import FLOW, Kind, find
from dopl_core.learning.bandit import Bandit
from dopl_core.learning.dopl import Confidence
from dopl_core.learning.learner import Learner, Ties
from dopl_core.learning.pairs.pair_designs import DesignName
from dopl_core.learning.planning import Engine
from dopl_core.validation import check
from dopl_core.world import SimulatedWorld

OBJECTS = ("own", "world")  # fields of a Run that are not plain data


@dataclass(frozen=True)
class Run:
    """One learner with one seed in one environment (a name, a drawn world, or a TOML file).

    learner: a name, or package.module:Class
    history_epochs: past epochs in which B arms, chosen at random, were helped
    sitting: answers of the first sitting;  answers: wanted in an epoch, 0 for the paper's B-1
    ordered: states go from worst to best
    columns: tell the learner the environment's columns, if it can use them
    own, world: the kind of a learner, and a subclass of SimulatedWorld, that were given as objects;
        they are not written to files
    """

    environment: str
    learner: str
    seed: int
    episodes: Annotated[int, Meta(ge=1)]
    horizon: Annotated[int, Meta(ge=1)]
    confidence: Confidence = "calibrated"
    engine: Engine = "lagrangian"
    design: DesignName = "star"
    ties: Ties = "advantage"
    memory: Memory = "all"
    restart: bool = False
    temperature: Annotated[float, Meta(gt=0)] = 1.0
    environment_seed: int = 0
    history_epochs: Annotated[int, Meta(ge=0)] = 0
    sitting: Annotated[int, Meta(ge=0)] = 0
    answers: Annotated[int, Meta(ge=0)] = 0
    ordered: bool = False
    columns: bool = True
    own: Any = None
    world: Any = None

    def __post_init__(self) -> None:
        check(self)
        _ = self.kind

    @property
    def kind(self) -> Kind:
        """The kind of its learner."""
        found: Kind = find(self.learner) if self.own is None else self.own
        return found

    def plain(self) -> dict[str, Any]:
        """The settings as plain data."""
        names = (one.name for one in fields(self) if one.name not in OBJECTS)
        return {name: getattr(self, name) for name in names}

    @property
    def key(self) -> tuple[str, str, str, str, str]:
        """What identifies a run in its results: environment, learner, confidence, engine, seed."""
        uses = self.kind.uses
        confidence = self.confidence if "confidence" in uses else "none"
        engine = self.engine if "engine" in uses else "none"
        return Path(self.environment).stem, self.learner, confidence, engine, str(self.seed)

    def bandit(self) -> Bandit:
        """The bandit of the environment."""
        return worlds.load(self.environment, self.environment_seed)

    def make_world(self, bandit: Bandit) -> SimulatedWorld:
        """The world that the learner plays in."""
        more: dict[str, Any] = {"restart": self.restart, "temperature": self.temperature}
        if self.world is None:
            place = self.environment, self.environment_seed
            return worlds.world_of(*place, bandit, self.seed, **more)
        made: SimulatedWorld = self.world(bandit, self.seed, **more)
        return made

    def make_learner(self, bandit: Bandit) -> Learner:
        """The learner; learners.Kind says what it is told of the bandit."""
        kind = self.kind
        return kind.make(bandit, **{name: getattr(self, name) for name in (*FLOW, *kind.uses)})


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
    """Every learner with every seed in every environment.

    episodes, horizon: the environment's own if None
    """
    runs = []
    learners, seeds = list(learners), list(seeds)
    if not seeds:
        raise ValueError("there are no seeds: at least 1 is needed")
    for name in names:
        bandit = worlds.load(name, environment_seed)
        settings["episodes"] = bandit.episodes if episodes is None else episodes
        settings["horizon"] = bandit.horizon if horizon is None else horizon
        settings["environment_seed"] = environment_seed
        runs += [Run(name, learner, seed, **settings) for learner in learners for seed in seeds]
    return runs
