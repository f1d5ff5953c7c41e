"""Learn whom to help next from answers to "which of these two?": the interface for researchers.

Dopl                the learner of the paper
Learner             the interface that every learner has
SimulatedWorld      arms that move as a known bandit says, and an oracle that answers duels
load_environment    the bandit of a named environment or of your own TOML file
plan                the extended LP: the optimal use of a budget among arms
simulate            play learners in simulated worlds: a table with one row for each episode
strengths           Bradley-Terry strengths and their standard deviations from answers alone
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

# One thread for linear algebra, set before NumPy is imported: the matrices are small, and results
# are equal to the bit on any number of cores. Other processors and other versions of NumPy round
# differently (learning/reproducibility.py).
for _library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

if TYPE_CHECKING:
    from dopl_core.environments import load as load_environment
    from dopl_core.experiments.sweep import simulate
    from dopl_core.learning.dopl import Dopl
    from dopl_core.learning.from_answers import strengths
    from dopl_core.learning.learner import Learner
    from dopl_core.learning.planning import plan
    from dopl_core.world import SimulatedWorld

__all__ = [
    "Dopl",
    "Learner",
    "SimulatedWorld",
    "load_environment",
    "plan",
    "simulate",
    "strengths",
]

_PLACES = {
    "Dopl": ("learning.dopl", "Dopl"),
    "Learner": ("learning.learner", "Learner"),
    "SimulatedWorld": ("world", "SimulatedWorld"),
    "load_environment": ("environments", "load"),
    "plan": ("learning.planning", "plan"),
    "simulate": ("experiments.sweep", "simulate"),
    "strengths": ("learning.from_answers", "strengths"),
}


def __getattr__(name: str) -> Any:
    """Import a name when it is first used, so that importing the package stays cheap."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, own_name = _PLACES[name]
    return getattr(import_module(f"{__name__}.{module}"), own_name)
