"""The extended LP solved exactly arm by arm, because only the budget couples the arms.

At a given multiplier of the budget row the arms are independent (arms.py). The optimal gain of an
arm is convex and piecewise linear in the multiplier, and every optimal policy gives one of its
tangents. The optimal multiplier minimises the sum of these gains and multiplier * budget.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dopl_core.learning.planning.arms import FEW, Arms, Response, respond_within
from dopl_core.learning.planning.chains import Places, Policy, guess
from dopl_core.learning.planning.problem import Floats, PlanningError

LIMIT = 200  # multipliers tried; a dozen is usual
SAME = 1e-12  # differences of gain or use up to this are rounding
SAMPLE = 16  # one arm in 16 is sampled to find a first multiplier


@dataclass(frozen=True)
class Bracket:
    """Two multipliers with the optimum between them, and a policy that is optimal at each.

    At `low`, following `left`, the arms use more than the budget; at `high`, following `right`,
    they do not.
    """

    low: float
    high: float
    left: Policy
    right: Policy

    def narrowed(self, multiplier: float, policy: Policy, budget: float) -> Bracket:
        """The part that contains the optimum, if divided at the multiplier of the policy."""
        if policy.line[1].sum() > budget:
            return Bracket(multiplier, self.high, policy, self.right)
        return Bracket(self.low, multiplier, self.left, policy)


@dataclass(frozen=True)
class Ample:
    """A budget of which the arms use no more at any lower multiplier, and their response."""

    multiplier: float
    response: Response


@dataclass(frozen=True)
class Meeting:
    """Where the budget is met if the arms have only the two tangents of a bracket.

    policy: of every arm, the policy whose tangent is higher at the multiplier
    open: the arms whose tangents differ; they may have another tangent in between
    mixed: [1] the arm that changes its policy there; share: how much of it, to meet the budget
    """

    multiplier: float
    policy: Policy
    open: Places
    mixed: Places
    share: float


def solve(
    arms: Arms, budget: float, multiplier: float | None, bias: Floats, *, exactly: bool = False
) -> tuple[Floats, float, Response]:
    """The optimal occupancy [N, S, A], the multiplier, and the arms' response to it.

    The search starts at a guess of the multiplier, if there is one, and of the bias [S, N].
    exactly: the whole budget is used, at a negative multiplier if need be
    """
    n_arms = bias.shape[1]
    scale = float(np.abs(arms.pay).max())
    first, step = _begin(arms, budget, multiplier, bias, scale, exactly=exactly)
    found = bracket(arms, budget, first, step, bias, exactly=exactly)
    if isinstance(found, Ample):
        return _by_arm(found.response.policy.occupancy()), found.multiplier, found.response
    for _ in range(LIMIT):
        meeting = intersect(found, budget)
        multiplier, known = meeting.multiplier, meeting.policy
        # An arm whose two tangents are equal has no other in between: skip it.
        if n_arms > FEW:
            answer = respond_within(arms.take(meeting.open), multiplier, known.take(meeting.open))
            policy = known.replace(meeting.open, answer.policy)
        else:
            answer = respond_within(arms, multiplier, known)
            policy = answer.policy
        missing = (policy.gain(multiplier) - known.gain(multiplier)).sum()
        if missing <= SAME * scale * n_arms or not found.low < multiplier < found.high:
            break
        found = found.narrowed(multiplier, policy, budget)
    else:
        raise PlanningError(f"the multiplier did not settle between {found.low} and {found.high}")
    if n_arms > FEW:
        answer = respond_within(arms, multiplier, known)
    return _by_arm(mix(found, meeting)), multiplier, answer


def _begin(
    arms: Arms,
    budget: float,
    multiplier: float | None,
    bias: Floats,
    scale: float,
    *,
    exactly: bool,
) -> tuple[float, float]:
    """The first multiplier to try, and how far from it to try the next.

    scale: of the pay
    """
    n_arms = bias.shape[1]
    step = 0.001 * scale + SAME
    if multiplier is None and n_arms > SAMPLE * FEW:
        some = np.arange(0, n_arms, SAMPLE)
        part = budget * len(some) / n_arms
        _, multiplier, _ = solve(arms.take(some), part, None, bias[:, some], exactly=exactly)
    elif multiplier is None:
        multiplier = 0.0
        step = 0.1 * scale + SAME
    return multiplier, step + 0.05 * abs(multiplier)


def bracket(
    arms: Arms,
    budget: float,
    multiplier: float,
    step: float,
    bias: Floats,
    *,
    exactly: bool = False,
) -> Bracket | Ample:
    """Two multipliers with the optimum between them, or the response of arms that cannot use more.

    Goes from the multiplier in growing steps until the optimum is passed. bias: [S, N] a guess
    """
    most = budget + SAME * bias.shape[1]
    least, reach = 0.0, np.inf
    if exactly:
        least = -np.inf
        reach = bias.shape[1] if arms.capped is None else float(arms.capped.most.sum())
        reach -= SAME * bias.shape[1]
    left: Policy | None = None
    right: Policy | None = None
    policy = guess(bias)
    while left is None or right is None:
        answer = respond_within(arms, multiplier, policy)
        policy = answer.policy
        use = policy.line[1].sum()
        if use > most:
            left, low = policy, multiplier
            multiplier += step
        elif multiplier == least or use >= reach:  # the budget is slack
            return Ample(multiplier, answer)
        else:
            right, high = policy, multiplier
            multiplier = max(least, multiplier - step)
        step *= 4
    return Bracket(low, high, left, right)


def intersect(between: Bracket, budget: float) -> Meeting:
    """Where the budget is met, by the two known tangents of every arm.

    From the low multiplier upwards, arms change from the left policy to the right policy where
    their tangents cross. The last arm changes in part, so that the budget is met exactly.
    """
    left, right = between.left, between.right
    pay, use = left.line - right.line
    differ = np.flatnonzero(use > min(SAME, use.max() / 2))
    crossing = pay[differ] / use[differ]
    order = crossing.argsort()
    differ, crossing = differ[order], crossing[order]
    over = left.line[1].sum() - budget - use[differ].cumsum()
    last = min(int(np.count_nonzero(over > 0)), len(over) - 1)
    changed = np.zeros(use.size, dtype=bool)
    changed[differ[:last]] = True
    return Meeting(
        multiplier=min(max(float(crossing[last]), between.low), between.high),
        policy=Policy(
            np.where(changed, right.line, left.line), np.where(changed, right.parts, left.parts)
        ),
        open=differ,
        mixed=differ[last : last + 1],
        share=min(max(1.0 + float(over[last] / use[differ[last]]), 0.0), 1.0),
    )


def mix(between: Bracket, meeting: Meeting) -> Floats:
    """The occupancy [A, S, N] that meets the budget, one arm following left and right in part."""
    occupancy = meeting.policy.occupancy()
    one, share = meeting.mixed, meeting.share
    occupancy[..., one] = (1.0 - share) * between.left.take(one).occupancy()
    occupancy[..., one] += share * between.right.take(one).occupancy()
    return occupancy


def _by_arm(occupancy: Floats) -> Floats:
    """[N, S, A] of [A, S, N]."""
    return np.ascontiguousarray(occupancy.transpose(2, 1, 0))
