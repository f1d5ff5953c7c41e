"""Floors of groups and caps of arms in the lagrangian engine: exact, and linear in N.

An action of arm n has the price max(p, r), where p is the price of its group and r that of its cap.
A group's price is the multiplier of the budget, or less if it would be helped less than its floor:
then it is the price at which the group on its own is helped exactly as much as its floor. An arm is
helped as often as its cap allows at the price r, and no more below. So each price is the solution
of a problem of its own, and only the multiplier couples the groups.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dopl_core.learning.planning import lagrangian
from dopl_core.learning.planning.arms import Arms, Capped, Response, respond, respond_within
from dopl_core.learning.planning.chains import Mask, Places, Policy, guess
from dopl_core.learning.planning.lagrangian import SAME
from dopl_core.learning.planning.problem import SAME_USE, Floats, Limits, PlanningError

LIMIT = 200  # prices tried for an arm; a dozen is usual


def solve(
    arms: Arms, budget: float, limits: Limits, multiplier: float | None, bias: Floats
) -> tuple[Floats, float, Floats, Response]:
    """The optimal occupancy [N, S, A], the multiplier, the prices [N], and the response to them.

    A floor raises the use of its group, so the multiplier of the others rises, and further groups
    may fall below their floors, but none rises above it: each round adds groups, until none is
    below.
    """
    arms = capped(arms, limits.caps, bias)
    n_arms = bias.shape[1]
    occupancy = np.zeros((n_arms, arms.pay.shape[1], 2))
    floored = np.zeros(limits.floors.size, dtype=bool)
    parts: list[tuple[Places, float, Response]] = []
    while True:
        rest = np.flatnonzero(~floored[limits.group])
        left = max(0.0, budget - limits.floors[floored].sum())
        if not rest.size:
            multiplier = 0.0
            break
        some, guessed = arms.take(rest), bias[:, rest]
        occupancy[rest], multiplier, answer = lagrangian.solve(some, left, multiplier, guessed)
        below = _below(occupancy, limits) & ~floored
        if not below.any():
            parts.append((rest, multiplier, answer))
            break
        floored |= below
    for number in np.flatnonzero(floored):
        group = np.flatnonzero(limits.group == number)
        some, floor = arms.take(group), limits.floors[number]
        occupancy[group], price, answer = lagrangian.solve(
            some, floor, multiplier, bias[:, group], exactly=True
        )
        if rest.size and price > multiplier:  # the floor is met at a range of prices
            price, answer = multiplier, respond_within(some, multiplier, answer.policy)
        parts.append((group, price, answer))
    multiplier = max(0.0, *(price for _, price, _ in parts))
    return occupancy, multiplier, *_together(arms, parts)


def are_kept(occupancy: Floats, limits: Limits) -> bool:
    """Whether an occupancy [N, S, A] keeps all floors and caps."""
    use = occupancy[..., 1].sum(axis=1)
    over = use > limits.caps + 1e-7
    return not (over.any() or _below(occupancy, limits, 1e-7).any())


def _below(occupancy: Floats, limits: Limits, short: float = SAME_USE) -> Mask:
    """[G]: whether a group is helped less than its floor, by more than `short`."""
    use = occupancy[..., 1].sum(axis=1)
    helped = np.bincount(limits.group, weights=use, minlength=limits.floors.size)
    return helped < limits.floors - short


def _together(arms: Arms, parts: list[tuple[Places, float, Response]]) -> tuple[Floats, Response]:
    """The prices [N] and the response of all arms, from those of disjoint parts."""
    n_states, n_arms = arms.pay.shape[1:]
    price = np.empty(n_arms)
    zeros = np.zeros((n_states, n_arms))
    whole = Response(guess(zeros), zeros, zeros)
    for place, asked, answer in parts:
        price[place] = asked
        whole = whole.replace(place, answer)
    return price if arms.capped is None else np.maximum(price, arms.capped.price), whole


def capped(arms: Arms, most: Floats, bias: Floats) -> Arms:
    """The arms with their caps [N]; bias: [S, N] a guess."""
    place = np.flatnonzero(most < 1)
    if not place.size:
        return arms
    some = arms.take(place)
    found = _bracket_each(some, most[place], guess(bias[:, place]))
    price = np.full(most.size, -np.inf)
    price[place], left, right = _settle_each(some, most[place], found)
    answer = respond(some, price[place], left)
    mixed = replace(answer, policy=_mix(left, right, most[place], answer.bias))
    zeros = np.zeros(bias.shape)
    whole = Response(guess(zeros), zeros, zeros).replace(place, mixed)
    return replace(arms, capped=Capped(price, most, whole))


@dataclass(frozen=True)
class Ends:
    """Two prices of each arm [N], and policies that are optimal there.

    At `low`, following `left`, an arm is helped more often than its cap allows; at `high`,
    following `right`, it is not.
    """

    low: Floats
    high: Floats
    left: Policy
    right: Policy


def _bracket_each(arms: Arms, most: Floats, policy: Policy) -> Ends:
    """Two prices of each arm with that of its cap between them, found in growing steps from 0."""
    scale = float(np.abs(arms.pay).max())
    step = 0.1 * scale + SAME
    ends = Ends(np.full(most.size, -np.inf), np.full(most.size, np.inf), policy, policy)
    open_ = np.arange(most.size)
    price = np.zeros(most.size)
    for _ in range(LIMIT):
        answer = respond(arms.take(open_), price[open_], policy.take(open_))
        policy = policy.replace(open_, answer.policy)
        ends = _narrowed(ends, open_, price[open_], answer.policy, most)
        open_ = np.flatnonzero(np.isinf(ends.low) | np.isinf(ends.high))
        if not open_.size:
            return ends
        price = np.where(np.isinf(ends.high), ends.low + step, ends.high - step)
        step *= 4
    raise PlanningError("no price keeps an arm at its cap")


def _narrowed(ends: Ends, place: Places, price: Floats, policy: Policy, most: Floats) -> Ends:
    """The ends with the price and the policy of the arms `place` as one of them."""
    over = policy.line[1] > most[place] + SAME
    low, high = ends.low.copy(), ends.high.copy()
    low[place[over]], high[place[~over]] = price[over], price[~over]
    left = ends.left.replace(place[over], policy.take(np.flatnonzero(over)))
    right = ends.right.replace(place[~over], policy.take(np.flatnonzero(~over)))
    return Ends(low, high, left, right)


def _settle_each(arms: Arms, most: Floats, ends: Ends) -> tuple[Floats, Policy, Policy]:
    """The price of each arm at which two policies are optimal, one over its cap and one not."""
    scale = float(np.abs(arms.pay).max())
    open_ = np.arange(most.size)
    price = np.empty(most.size)
    for _ in range(LIMIT):
        left, right = ends.left.take(open_), ends.right.take(open_)
        pay, use = left.line - right.line
        meet = np.clip(pay / use, ends.low[open_], ends.high[open_])
        price[open_] = meet
        answer = respond(arms.take(open_), meet, left)
        known = np.maximum(left.gain(meet), right.gain(meet))
        found = answer.policy.gain(meet) - known > SAME * (scale + np.abs(meet))
        found &= (ends.low[open_] < meet) & (meet < ends.high[open_])
        more = np.flatnonzero(found)
        ends = _narrowed(ends, open_[more], meet[more], answer.policy.take(more), most)
        open_ = open_[more]
        if not open_.size:
            return price, ends.left, ends.right
    raise PlanningError("the prices of the caps did not settle")


def _mix(left: Policy, right: Policy, most: Floats, bias: Floats) -> Policy:
    """The mixture of two policies of each arm that is helped as often as its cap [N] allows.

    bias: [S, N] at the price of the cap
    """
    share = np.clip((left.line[1] - most) / (left.line[1] - right.line[1]), 0.0, 1.0)
    policy = guess(bias)
    policy.line[:] = (1.0 - share) * left.line + share * right.line
    wait, act = (1.0 - share) * left.occupancy() + share * right.occupancy()
    policy.visits[:] = wait + act
    policy.act[:] = np.divide(act, wait + act, out=np.zeros(act.shape), where=wait + act > 0)
    return policy
