"""Programmes where help keeps active people active, as reminders of a drinking app did.

Three states: left, sometimes, active. In the trial (Drink Less, osf.io/w3szp), a message brought
0.01 to 0.02 of those who had left to the best state, 0.07 to 0.19 of those between, and kept 0.26
to 0.34 of those who were there.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from dopl_core.experiments.worlds.drawn import Drawn
from dopl_core.learning.bandit import Bandit, FloatArray

KINDS = 3
WEEKS = 50


def keeping_kinds(name: str, n_arms: int, budget: int) -> Callable[[int], Drawn]:
    """People in three kinds; those of a kind move alike. Nobody is told the kinds."""

    def drawn(seed: int) -> Drawn:
        rng = np.random.default_rng([seed, *name.encode()])
        rows = np.array([kind_rows(rng) for _ in range(KINDS)])
        kinds = rng.permutation(np.arange(n_arms) % KINDS)
        settings: dict[str, Any] = {"name": name, "episodes": WEEKS, "horizon": 1}
        settings["groups"] = tuple(f"kind {kind + 1}" for kind in kinds)
        values = np.tile([0.0, 0.5, 1.0], (n_arms, 1))
        return Drawn(Bandit(rows[kinds], values, budget, **settings))

    return drawn


def kind_rows(rng: np.random.Generator) -> FloatArray:
    """The rows [S, A, S'] of a kind.

    Help raises the chance of the best state and lowers the others in proportion, so that whoever
    it keeps active would have drifted down; at least a twentieth still do.
    """
    stays, drifts = rng.uniform(0.9, 0.97), rng.uniform(0.3, 0.5)
    down, up = rng.uniform(0.2, 0.4), rng.uniform(0.05, 0.15)
    wait = np.array(
        [
            [stays, 0.8 * (1 - stays), 0.2 * (1 - stays)],
            [down, 1 - down - up, up],
            [0.2 * drifts, 0.8 * drifts, 1 - drifts],
        ]
    )
    gain = np.array([rng.uniform(0.01, 0.02), rng.uniform(0.07, 0.19), rng.uniform(0.26, 0.34)])
    rest = 1 - wait[:, 2]
    gain = np.minimum(gain, 0.95 * rest)
    act = wait * (1 - gain / rest)[:, None]
    act[:, 2] = wait[:, 2] + gain
    return np.stack([wait, act], axis=1)
