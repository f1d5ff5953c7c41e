"""The extended LP solved exactly arm by arm, because nothing but the budget couples the arms.

At a given multiplier of the budget row every arm is on its own (arms.py). Its optimal gain is
convex and piecewise linear in the multiplier, and every optimal policy gives one of its tangents.
The optimal multiplier is the lowest point of the sum of these gains and multiplier * budget.
"""

from __future__ import annotations

import numpy as np

from dopl_core.learning.planning.arms import FEW, Arms, Response, respond
from dopl_core.learning.planning.chains import Policy, guess
from dopl_core.learning.planning.problem import Floats, PlanningError

LIMIT = 200  # multipliers tried; a dozen is usual
SAME = 1e-12  # differences of gain or use that are rounding
SAMPLE = 16  # one arm in so many, to find where to begin


def solve(
    arms: Arms, budget: float, multiplier: float | None, bias: Floats
) -> tuple[Floats, float, Response]:
    """The optimal occupancy [N, S, A], the multiplier, and the arms' response to it.

    The search starts at a guess of the multiplier, if there is one, and of the bias [S, N].
    """
    n_arms = bias.shape[1]
    scale = float(np.abs(arms.pay).max())
    step = 0.001 * scale + SAME
    if multiplier is None and n_arms > SAMPLE * FEW:
        some = np.arange(0, n_arms, SAMPLE)
        _, multiplier, _ = solve(arms.take(some), budget * len(some) / n_arms, None, bias[:, some])
    elif multiplier is None:
        multiplier = 0.0
        step = 0.1 * scale + SAME
    step += 0.05 * multiplier

    # Find two multipliers with the optimum between them: at low, too much of the budget is used.
    left: Policy | None = None
    right: Policy | None = None
    policy = guess(bias)
    while left is None or right is None:
        answer = respond(arms, multiplier, policy)
        policy = answer.policy
        if policy.line[1].sum() > budget + SAME * n_arms:
            left, low = policy, multiplier
            multiplier += step
        elif multiplier == 0.0:  # the budget is slack
            return _by_arm(policy.occupancy()), 0.0, answer
        else:
            right, high = policy, multiplier
            multiplier = max(0.0, multiplier - step)
        step *= 4

    for _ in range(LIMIT):
        # Two tangents of every arm are known. Going up from low, arms change over from the left
        # one to the right one where the two cross, until the budget is met.
        pay, use = left.line - right.line
        differ = np.flatnonzero(use > min(SAME, use.max() / 2))
        crossing = pay[differ] / use[differ]
        order = crossing.argsort()
        differ, crossing = differ[order], crossing[order]
        over = left.line[1].sum() - budget - use[differ].cumsum()
        last = min(int(np.count_nonzero(over > 0)), len(over) - 1)
        multiplier = min(max(float(crossing[last]), low), high)
        changed = np.zeros(n_arms, dtype=bool)
        changed[differ[:last]] = True
        known = Policy(
            np.where(changed, right.line, left.line), np.where(changed, right.parts, left.parts)
        )
        # An arm whose two tangents are one has no other in between, and need not be asked again.
        if n_arms > FEW:
            answer = respond(arms.take(differ), multiplier, known.take(differ))
            policy = known.replace(differ, answer.policy)
        else:
            answer = respond(arms, multiplier, known)
            policy = answer.policy
        missing = (policy.gain(multiplier) - known.gain(multiplier)).sum()
        if missing <= SAME * scale * n_arms or not low < multiplier < high:
            break
        if policy.line[1].sum() > budget:
            low, left = multiplier, policy
        else:
            high, right = multiplier, policy
    else:
        raise PlanningError(f"the multiplier did not settle between {low} and {high}")

    # The arm that changes over last does so in part, and the budget is met exactly.
    occupancy = known.occupancy()
    one = differ[last : last + 1]
    share = min(max(1.0 + float(over[last] / use[one[0]]), 0.0), 1.0)
    occupancy[..., one] = (1.0 - share) * left.take(one).occupancy()
    occupancy[..., one] += share * right.take(one).occupancy()
    if n_arms > FEW:
        answer = respond(arms, multiplier, known)
    return _by_arm(occupancy), multiplier, answer


def _by_arm(occupancy: Floats) -> Floats:
    """[N, S, A] of [A, S, N]."""
    return np.ascontiguousarray(occupancy.transpose(2, 1, 0))
