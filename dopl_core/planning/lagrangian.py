"""The extended LP solved exactly arm by arm: only the budget couples the arms.

For a multiplier of the budget row every arm is solved on its own (arms.py). Its optimal gain is
convex and piecewise linear in the multiplier, and each policy gives one of its tangents.
"""

from __future__ import annotations

import numpy as np

from dopl_core.planning.arms import FEW, Arms, Policy, Response, guess, respond
from dopl_core.planning.problem import Floats, PlanningError

LIMIT = 200
SAME = 1e-12


def solve(
    arms: Arms, budget: float, multiplier: float, bias: Floats
) -> tuple[Floats, float, Response]:
    """The optimal occupancy [N, S, A], the multiplier, and the arms' response to it.

    The search starts at a guess of the multiplier and of the bias [S, N].
    """
    n_arms = bias.shape[1]
    step = 0.05 * multiplier + 0.001 * np.abs(arms.pay).max() + SAME
    left: Policy | None = None
    right: Policy | None = None
    policy = guess(bias)
    while left is None or right is None:
        answer = respond(arms, multiplier, policy)
        policy = answer.policy
        if policy.line[1].sum() > budget:
            left, low = policy, multiplier
            multiplier += step
        elif multiplier == 0.0:  # the budget is slack
            return policy.occupancy().transpose(2, 1, 0), 0.0, answer
        else:
            right, high = policy, multiplier
            multiplier = max(0.0, multiplier - step)
        step *= 4

    for _ in range(LIMIT):
        pay, use = left.line - right.line
        differ = np.flatnonzero(use > SAME)
        crossing = pay[differ] / use[differ]
        order = crossing.argsort()
        over = left.line[1].sum() - budget - use[differ[order]].cumsum()
        k = min(int(np.count_nonzero(over > 0)), len(order) - 1)
        multiplier = min(max(float(crossing[order[k]]), low), high)
        early = np.ones(n_arms, dtype=bool)
        early[differ[order[:k]]] = False
        mixed = Policy(
            np.where(early, left.line, right.line), np.where(early, left.parts, right.parts)
        )
        answer = respond(arms, multiplier, mixed)
        policy = answer.policy
        if (policy.gain(multiplier) - mixed.gain(multiplier)).sum() <= SAME * n_arms:
            break
        if policy.line[1].sum() > budget:
            low, left = multiplier, policy
        else:
            high, right = multiplier, policy
    else:
        raise PlanningError("the multiplier did not settle")
    occupancy = mixed.occupancy()
    last = differ[order[k]]
    share = min(1.0, max(0.0, 1.0 + over[k] / use[last]))
    occupancy[..., last] *= 1 - share
    occupancy[..., last] += share * right.take(differ[order[k:k+1]]).occupancy()[..., 0]
    return occupancy.transpose(2, 1, 0), multiplier, answer
