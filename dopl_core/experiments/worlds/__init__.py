"""Worlds that nobody here tuned a learner to, each drawn anew from a seed.

clinics     columns and seasons, seasons in which help does nothing, wrong reports, three groups
chains      help that lifts by one state, with many shapes of its effect
keeping     help that keeps active people active
trials      people who move as those in a trial did, from a folder of the user's

data/guides/researcher.md says what each world is.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

from dopl_core import environments
from dopl_core.experiments.worlds.chains import CHAINS
from dopl_core.experiments.worlds.clinics import CLINICS, SEASON, WEEKS, covariates
from dopl_core.experiments.worlds.drawn import (
    Drawn,
    RememberingWorld,
    ReportedWorld,
    WeeklyReportedWorld,
    WeeklyWorld,
)
from dopl_core.experiments.worlds.keeping import keeping_kinds
from dopl_core.experiments.worlds.trials import PREFIX, trial
from dopl_core.learning.bandit import Bandit
from dopl_core.world import SimulatedWorld

__all__ = [
    "SEASON",
    "WEEKS",
    "WORLDS",
    "covariates",
    "draw",
    "is_drawn",
    "load",
    "rising",
    "world_of",
]

WORLDS: dict[str, Callable[[int], Drawn]] = {
    **CLINICS,
    **CHAINS,
    "keeping_kinds": keeping_kinds("keeping_kinds", 20, 8),
    "keeping_kinds_100": keeping_kinds("keeping_kinds_100", 100, 40),
}


def is_drawn(name: str) -> bool:
    """Whether a name is one of WORLDS or a world made of a trial."""
    return name in WORLDS or name.startswith(PREFIX)


def load(name: str, seed: int) -> Bandit:
    """The bandit of a drawn world, of a named environment or of a TOML file."""
    return draw(name, seed).bandit if is_drawn(name) else environments.load(name, seed)


def rising(bandit: Bandit) -> Bandit:
    """A bandit with its states from worst to best, if its file lists them from best to worst."""
    mean = bandit.rewards.mean(axis=0)
    if mean[0] <= mean[-1]:
        return bandit
    moves, values = bandit.transitions[:, ::-1, :, ::-1], bandit.rewards[:, ::-1]
    return replace(bandit, transitions=moves, rewards=values, states=bandit.states[::-1])


def draw(name: str, seed: int) -> Drawn:
    """A drawn world, from a seed."""
    return _drawn(name, seed) if name in WORLDS else trial(name, seed)


@lru_cache(maxsize=64)
def _drawn(name: str, seed: int) -> Drawn:
    return WORLDS[name](seed)


def world_of(
    name: str, environment_seed: int, bandit: Bandit, seed: int, **more: Any
) -> SimulatedWorld:
    """The world that a learner plays in."""
    drawn = draw(name, environment_seed) if is_drawn(name) else Drawn(bandit)
    weekly: dict[str, Any] = {"weeks": drawn.weeks, "repeats": drawn.repeats}
    reported: dict[str, Any] = {"late": drawn.late, "misread": drawn.misread}
    if drawn.hidden is not None:
        return RememberingWorld(bandit, seed, hidden=drawn.hidden, **more)
    if drawn.weeks is not None and any(reported.values()):
        return WeeklyReportedWorld(bandit, seed, **weekly, **reported, **more)
    if drawn.weeks is not None:
        return WeeklyWorld(bandit, seed, **weekly, **more)
    if any(reported.values()):
        return ReportedWorld(bandit, seed, **reported, **more)
    return SimulatedWorld(bandit, seed, **more)
