"""The optimal policy of each arm on its own, if every action has a given price."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from dopl_core.learning.planning import highs
from dopl_core.learning.planning.chains import (
    Mask,
    Places,
    Policy,
    Prices,
    evaluate,
    guess,
    price_of,
)
from dopl_core.learning.planning.problem import Floats, Problem

FEW = 64  # arms; below, the cost of a call does not depend on the number of arms
BLOCK = 2048  # arms; above, arrays exceed the processor's cache
LIMIT = 50  # policy iterations
TOLERANCE = 1e-12  # of the pay: the least improvement that counts
ROUNDING = 1e-15  # of the pay: the error of one epoch


@dataclass(frozen=True)
class Arms:
    """The arms of a problem, as the last axis: pay, room: [A, S, N]; low, width: [A, S, S, N].

    capped: what the caps of the arms say, None if there are none
    """

    pay: Floats
    low: Floats
    width: Floats
    room: Floats
    capped: Capped | None = None

    def take(self, chosen: Places) -> Arms:
        return Arms(
            self.pay.take(chosen, axis=-1),
            self.low.take(chosen, axis=-1),
            self.width.take(chosen, axis=-1),
            self.room.take(chosen, axis=-1),
            None if self.capped is None else self.capped.take(chosen),
        )


@dataclass(frozen=True)
class Capped:
    """The least price of each arm [N], and its response there, which is helped as often as allowed.

    At lower prices a capped arm would be helped more, so it stays as it is here.
    price: -inf for arms without a cap;  most: [N] the caps
    """

    price: Floats
    most: Floats
    response: Response

    def take(self, chosen: Places) -> Capped:
        return Capped(self.price[chosen], self.most[chosen], self.response.take(chosen))


@dataclass(frozen=True)
class Response:
    """A policy that is optimal at a multiplier, with its bias and advantage [S, N] there."""

    policy: Policy
    bias: Floats
    advantage: Floats

    def take(self, chosen: Places) -> Response:
        return Response(self.policy.take(chosen), self.bias[:, chosen], self.advantage[:, chosen])

    def replace(self, chosen: Places, other: Response) -> Response:
        """The same, with another response for the chosen arms."""
        bias, advantage = self.bias.copy(), self.advantage.copy()
        bias[:, chosen] = other.bias
        advantage[:, chosen] = other.advantage
        return Response(self.policy.replace(chosen, other.policy), bias, advantage)


def of(problem: Problem) -> Arms:
    """The arms of a problem."""
    return Arms(
        np.ascontiguousarray(problem.pay.transpose(2, 1, 0)),
        np.ascontiguousarray(problem.low.transpose(2, 1, 3, 0)),
        np.ascontiguousarray(problem.width.transpose(2, 1, 3, 0)),
        np.ascontiguousarray(problem.room.transpose(2, 1, 0)),
    )


def optimistic(arms: Arms, bias: Floats) -> Floats:
    """The rows [A, S, S, N] in the boxes that lead to the highest expected bias [S, N].

    States are filled in order of bias; one order of an arm's states serves all its rows.
    """
    no_less = bias[:, None] >= bias
    ahead = np.where(_upper(len(bias)), no_less, ~no_less.swapaxes(0, 1)).astype(np.float64)
    fill = np.einsum("asin,ijn->asjn", arms.width, ahead)
    np.subtract(arms.room[:, :, None], fill, out=fill)
    np.maximum(fill, 0.0, out=fill)
    np.minimum(fill, arms.width, out=fill)
    fill += arms.low
    return fill


def respond(arms: Arms, multiplier: Prices, policy: Policy) -> Response:
    """Improve the policy of every arm until it is optimal at the multiplier, or its own price."""
    n_arms = policy.line.shape[1]
    if n_arms > BLOCK:
        return _respond_in_blocks(arms, multiplier, policy)
    pay = net_pay(arms, multiplier)
    scale: Prices = max(pay.max(), -pay.min())
    if isinstance(multiplier, np.ndarray):
        scale = np.abs(pay).max(axis=(0, 1))
    chain: Floats | None = None
    iteration = 0
    while True:
        iteration += 1
        bias = policy.bias(multiplier)
        rows, worth = look_ahead(arms, pay, policy, bias)
        gap = np.maximum(worth[0], worth[1])
        gap -= bias
        gap -= policy.gain(multiplier)
        better = improvable(gap, policy, rows, scale)
        if chain is None and policy.stay.min() < 1.0:
            # At another multiplier another closed class may be the best.
            better |= policy.stay.min(axis=0) < 1.0
        unsettled = np.count_nonzero(better)
        if unsettled == 0:
            return Response(policy, bias, worth[1] - worth[0])
        stuck = iteration == LIMIT
        if stuck or (n_arms > FEW and 2 * unsettled < n_arms):
            answer = Response(policy, bias, worth[1] - worth[0])
            rest = np.flatnonzero(better.any(axis=0))
            some, price = arms.take(rest), price_of(multiplier, rest)
            return answer.replace(
                rest, by_lp(some, price) if stuck else respond(some, price, policy.take(rest))
            )
        # States without a better action keep theirs, or ties could make the iteration cycle.
        act = np.where(better, worth[1] > worth[0], policy.act > 0)
        new = np.where(act[:, None], rows[1], rows[0])
        chain = new if chain is None else np.where(better[:, None], new, chain)
        earned = np.where(act, arms.pay[1], arms.pay[0])
        policy = evaluate(chain, earned, act, bias.argmax(axis=0), multiplier)


def respond_within(arms: Arms, multiplier: float, policy: Policy) -> Response:
    """`respond`, but no arm is helped more often than its cap allows."""
    if arms.capped is None:
        return respond(arms, multiplier, policy)
    answer = arms.capped.response
    free = np.flatnonzero(arms.capped.price < multiplier)
    if not free.size:
        return answer
    return answer.replace(free, respond(arms.take(free), multiplier, policy.take(free)))


def _respond_in_blocks(arms: Arms, multiplier: Prices, policy: Policy) -> Response:
    """`respond`, BLOCK arms at a time."""
    n_arms = policy.line.shape[1]
    blocks = [np.arange(i, min(i + BLOCK, n_arms)) for i in range(0, n_arms, BLOCK)]
    parts = [
        respond(arms.take(block), price_of(multiplier, block), policy.take(block))
        for block in blocks
    ]
    return Response(
        Policy(
            np.concatenate([part.policy.line for part in parts], axis=-1),
            np.concatenate([part.policy.parts for part in parts], axis=-1),
        ),
        np.concatenate([part.bias for part in parts], axis=-1),
        np.concatenate([part.advantage for part in parts], axis=-1),
    )


def net_pay(arms: Arms, multiplier: Prices) -> Floats:
    """[A, S, N] pay less the cost of the action."""
    pay = arms.pay.copy()
    pay[1] -= multiplier
    return pay


def look_ahead(arms: Arms, pay: Floats, policy: Policy, bias: Floats) -> tuple[Floats, Floats]:
    """The optimistic rows [A, S, S, N], and the value of each action with them [A, S, N].

    pay: [A, S, N] less the cost of the action; bias: [S, N] of the policy that is followed later
    """
    rows = optimistic(arms, bias)
    worth = np.einsum("asjn,jn->asn", rows, bias)
    worth *= policy.stay
    worth += pay
    return rows, worth


def improvable(gap: Floats, policy: Policy, rows: Floats, scale: Prices) -> Mask:
    """[S, N]: whether a state has a better action or better rows than those of the policy.

    gap: [S, N] value of the best action less that of the policy's action
    rows: [A, S, S, N] that the gap was computed with; scale: of the pay
    """
    better = gap > scale * TOLERANCE
    if better.any():
        # A bias is a sum over the epochs until the root is reached; each adds a rounding error.
        epochs = np.einsum("asjn,jn->asn", rows, policy.time)
        epochs = policy.time + np.maximum(epochs[0], epochs[1])
        better = gap > scale * (TOLERANCE + ROUNDING * epochs)
    return better


def by_lp(arms: Arms, multiplier: Prices) -> Response:
    """`respond` by linear programming.

    Policy iteration cycles if an arm has two closed classes that are almost equally good and do not
    lead to each other.
    """
    n_arms = arms.pay.shape[2]
    pay = net_pay(arms, multiplier)
    problem = Problem(
        pay.transpose(2, 1, 0),
        arms.low.transpose(3, 1, 0, 2),
        arms.width.transpose(3, 1, 0, 2),
        arms.room.transpose(2, 1, 0),
        budget=n_arms,
    )
    occupancy, _, _, bias = highs.solve(problem)
    visits = occupancy.sum(axis=2)
    policy = guess(bias)
    policy.line[0] = (occupancy.transpose(2, 1, 0) * arms.pay).sum(axis=(0, 1))
    policy.line[1] = occupancy[..., 1].sum(axis=1)
    policy.visits[:] = visits.T
    share = np.divide(occupancy[..., 1], visits, out=np.zeros(visits.shape), where=visits > 0)
    policy.act[:] = share.T
    worth = np.einsum("asjn,jn->asn", optimistic(arms, bias), bias) + pay
    return Response(policy, bias, worth[1] - worth[0])


@cache
def _upper(n_states: int) -> Mask:
    """[S, S, 1]: whether the first state has the lower number."""
    return np.tri(n_states, k=-1, dtype=bool).T[:, :, None]
