"""Floors that raise the worst-off group as far as the budget allows."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dopl_core.learning.planning import arms as each_arm
from dopl_core.learning.planning import limits
from dopl_core.learning.planning.arms import respond_within
from dopl_core.learning.planning.chains import guess
from dopl_core.learning.planning.problem import Floats, Pays, limits_of, pose

PRICES = 24  # on each side of 0
HALVINGS = 50


def even_floors(
    reward: ArrayLike,
    low: ArrayLike,
    high: ArrayLike,
    budget: float,
    groups: ArrayLike,
    *,
    pays: Pays = "all",
    caps: ArrayLike | None = None,
) -> Floats:
    """The least use [G] of each group that makes the lowest mean pay of a group highest.

    The pay of a group is concave in its use. It is computed at several prices of an action and
    taken as linear in between, which is a pay that the group can reach.
    """
    problem = pose(reward, low, high, budget, pays)
    n_arms, n_states, _ = problem.pay.shape
    n_groups = int(np.max(groups)) + 1
    limit = limits_of(n_arms, budget, groups, np.zeros(n_groups), caps)
    assert limit is not None  # noqa: S101
    zeros = np.zeros((n_states, n_arms))
    arms = limits.capped(each_arm.of(problem), limit.caps, zeros)
    scale = float(np.abs(problem.pay).max()) + 1e-12
    steps = scale * np.geomspace(1e-3, 10, PRICES)
    policy = guess(zeros)
    use: list[Floats] = []
    pay: list[Floats] = []
    for price in [*steps[::-1], 0.0, *-steps]:
        policy = respond_within(arms, price, policy).policy
        pay.append(np.bincount(limit.group, policy.line[0], n_groups).astype(np.float64))
        use.append(np.bincount(limit.group, policy.line[1], n_groups).astype(np.float64))
    size = np.maximum(np.bincount(limit.group, minlength=n_groups), 1)
    return _least_use(np.stack(use, axis=1), np.stack(pay, axis=1) / size[:, None], budget)


def _least_use(use: Floats, pay: Floats, budget: float) -> Floats:
    """The use [G] with which all groups reach the highest pay that all can reach.

    use, pay: [G, P] points of each group's mean pay, in order of use; pay rises up to its best
    """

    def needed(goal: float) -> Floats:
        found = []
        for x, y in zip(use, pay, strict=True):
            best = int(y.argmax()) + 1
            rising, order = np.maximum.accumulate(y[:best]), x[:best]
            found.append(0.0 if goal <= y[0] else np.interp(goal, rising, order))
        return np.array(found)

    low, high = float(pay[:, 0].min()), float(pay.max(axis=1).min())
    if needed(high).sum() <= budget:
        return needed(high)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if needed(middle).sum() <= budget else (low, middle)
    return needed(low)
