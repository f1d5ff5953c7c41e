"""The extended LP solved exactly arm by arm: only the budget couples the arms.

For a multiplier of the budget row every arm is solved on its own (arms.py). Its optimal gain is
convex and piecewise linear in the multiplier, and each solution gives one of its tangents.
"""

from __future__ import annotations

from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from dopl_core.planning.arms import Arms, Response, respond
from dopl_core.planning.problem import Floats, PlanningError

LIMIT = 200
SAME = 1e-12


def solve(
    arms: Arms, budget: float, multiplier: float, bias: Floats
) -> tuple[Floats, float, Floats]:
    """The optimal occupancy [N, S, A], the multiplier, and the bias [S, N] close to it.

    The search starts at a guess of the multiplier and of the bias.
    """
    n_arms = bias.shape[1]
    step = 0.1 * np.abs(arms.pay).max() + SAME
    left = right = None
    while left is None or right is None:
        answer = respond(arms, multiplier, bias)
        bias = answer.bias
        if answer.use.sum() > budget:
            left, low = answer, multiplier
            multiplier += step
        elif multiplier == 0.0:  # the budget is slack
            return occupancy(answer, answer, np.ones(n_arms)), 0.0, bias
        else:
            right, high = answer, multiplier
            multiplier = max(0.0, multiplier - step)
        step *= 4

    for _ in range(LIMIT):
        drop = left.use - right.use
        differ = np.flatnonzero(drop > SAME)
        crossing = (left.earn[differ] - right.earn[differ]) / drop[differ]
        order = crossing.argsort()
        over = left.use.sum() - budget - drop[differ[order]].cumsum()
        k = min(int(np.count_nonzero(over > 0)), len(order) - 1)
        multiplier = float(crossing[order[k]])
        if not low < multiplier < high:
            break
        answer = respond(arms.take(differ), multiplier, left.bias[:, differ])
        known = np.maximum(
            left.earn[differ] - multiplier * left.use[differ],
            right.earn[differ] - multiplier * right.use[differ],
        )
        if (answer.gain - known).sum() <= SAME * n_arms:
            break
        if left.use.sum() - left.use[differ].sum() + answer.use.sum() > budget:
            low = multiplier
            merge(left, answer, differ)
        else:
            high = multiplier
            merge(right, answer, differ)
    else:
        raise PlanningError("the multiplier did not settle")
    share = np.ones(n_arms)
    share[differ[order[:k]]] = 0.0
    last = differ[order[k]]
    share[last] = min(1.0, max(0.0, -over[k] / drop[last]))
    return occupancy(left, right, share), min(max(multiplier, low), high), left.bias


def merge(old: Response, new: Response, chosen: NDArray[np.intp]) -> None:
    for field in fields(old):
        getattr(old, field.name)[..., chosen] = getattr(new, field.name)


def occupancy(left: Response, right: Response, share: Floats) -> Floats:
    """[N, S, A] when each arm follows left for its share [N] of the epochs and right else."""
    a, b = left.visits * share, right.visits * (1.0 - share)
    act = a * left.act + b * right.act
    return np.stack([a + b - act, act], axis=0).transpose(2, 1, 0)
