"""How each arm is best run on its own, when every action costs the same multiplier.

Arrays here have the arms last, [..., N], so that one NumPy call works on all arms at full speed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from dopl_core.planning.problem import Floats, PlanningError, Problem

Places = NDArray[np.intp]

LEAK = 1e-9
TOLERANCE = 1e-12
LIMIT = 100
BLOCK = 1024
FEW = 64


@dataclass(frozen=True)
class Arms:
    """The arms of a problem: pay, room: [A, S, N]; low, width: [A, S, S, N]; leak: [N]."""

    pay: Floats
    low: Floats
    width: Floats
    room: Floats
    leak: Floats

    def take(self, chosen: Places) -> Arms:
        return Arms(
            self.pay.take(chosen, axis=-1),
            self.low.take(chosen, axis=-1),
            self.width.take(chosen, axis=-1),
            self.room.take(chosen, axis=-1),
            self.leak.take(chosen),
        )


@dataclass(frozen=True)
class Policy:
    """What following one policy means for each arm, whatever the multiplier.

    line: [2, N] average pay and average number of actions, so that the gain at a multiplier
    is pay - multiplier * actions; parts: [4, S, N] the bias of the pay, the bias of the
    actions, the stationary distribution, and 1 where the policy acts.
    """

    line: Floats
    parts: Floats

    def take(self, chosen: Places) -> Policy:
        return Policy(self.line.take(chosen, axis=-1), self.parts.take(chosen, axis=-1))

    def put(self, chosen: Places, other: Policy) -> None:
        """Replace the policies of the chosen arms, in place."""
        self.line[:, chosen] = other.line
        self.parts[:, :, chosen] = other.parts

    def gain(self, multiplier: float) -> Floats:
        """[N]"""
        return self.line[0] - multiplier * self.line[1]

    def occupancy(self) -> Floats:
        """[A, S, N]"""
        act = self.parts[2] * self.parts[3]
        return np.stack([self.parts[2] - act, act])


def of(problem: Problem) -> Arms:
    """Lay the arms out for solving them one by one.

    Where a box rules a transition out, a policy may leave its arm with several closed classes
    and no unique gain. Such an arm leaks: with probability LEAK it goes to the state of highest
    bias. Then that state is within reach of all others under every policy that is tried, and
    the best closed class is the one that counts, as it is in the LP.
    """
    low = np.ascontiguousarray(problem.low.transpose(2, 1, 3, 0))
    width = np.ascontiguousarray(problem.width.transpose(2, 1, 3, 0))
    room = np.ascontiguousarray(problem.room.transpose(2, 1, 0))
    pay = np.ascontiguousarray(problem.pay.transpose(2, 1, 0))
    leak = np.where((low + width).min(axis=(0, 1, 2)) > LEAK, 0.0, LEAK)
    if leak.any():
        keep = 1.0 - leak
        low, width, room = low * keep, width * keep, room * keep
    return Arms(pay, low, width, room, leak)


@cache
def _upper(n_states: int) -> NDArray[np.bool_]:
    """[S, S, 1]: whether the first state has the lower number."""
    return np.tri(n_states, k=-1, dtype=bool).T[:, :, None]


@cache
def _swaps(n_states: int) -> NDArray[np.intp]:
    """[S, S]: column j is the order of states in which 0 and j have changed places."""
    swaps = np.repeat(np.arange(n_states)[:, None], n_states, axis=1)
    np.fill_diagonal(swaps, 0)
    swaps[0] = np.arange(n_states)
    return swaps


def rows(arms: Arms, bias: Floats) -> Floats:
    """The rows [A, S, S, N] of the boxes with the highest expected bias [S, N].

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


def evaluate(arms: Arms, box: Floats, act: NDArray[np.bool_], top: Places) -> Policy:
    """The policy that acts where act [S, N] says and moves by the rows of box [A, S, S, N].

    States are eliminated one after the other without subtractions (Grassmann, Taksar and
    Heyman), which keeps every digit however rarely a chain moves between its states. State
    top [N], which all others reach, remains to the end; its bias is 0.
    """
    n_states, n_arms = act.shape
    order = _swaps(n_states).take(top, axis=1)
    place = order * n_arms
    place += np.arange(n_arms)
    # Until the chain is back among the states that remain: pay, actions, time, transitions.
    table = np.empty((n_states, n_states + 3, n_arms))
    table[:, 0] = np.where(act, arms.pay[1], arms.pay[0]).take(place)
    table[:, 1] = act.take(place)
    table[:, 2] = 1.0
    chain = np.where(act[:, None], box[1], box[0])
    table[:, 3:] = chain.take((order * (n_states * n_arms))[:, None] + place)
    table[:, 3] += arms.leak
    leave = np.empty((n_states, n_arms))
    for k in range(n_states - 1, 0, -1):
        row = table[k, : k + 3]
        np.add.reduce(row[3:], axis=0, out=leave[k])
        enter = table[:k, k + 3]
        enter /= leave[k]
        table[:k, : k + 3] += enter[:, None] * row
    line = table[0, :2] / table[0, 2]
    parts = np.empty((n_states, 3, n_arms))
    bias, visits = parts[:, :2], parts[:, 2]
    np.multiply(line, table[:, 2:3], out=bias)
    np.subtract(table[:, :2], bias, out=bias)
    bias[0] = 0.0
    visits[0] = 1.0
    for k in range(1, n_states):
        if k > 1:
            bias[k] += np.einsum("jn,jbn->bn", table[k, 4 : k + 3], bias[1:k])
        bias[k] /= leave[k]
        np.einsum("jn,jn->n", table[:k, k + 3], visits[:k], out=visits[k])
    visits /= np.add.reduce(visits, axis=0)
    place += order * (2 * n_arms)
    ordered = np.empty((4, n_states, n_arms))
    ordered[:3] = parts.take(place + (np.arange(3) * n_arms)[:, None, None])
    ordered[3] = act
    return Policy(line, ordered)


def guess(bias: Floats) -> Policy:
    """A policy of which nothing is known but the bias [S, N], to begin with."""
    parts = np.zeros((4, *bias.shape))
    parts[0] = bias
    line = np.zeros((2, bias.shape[1]))
    line[0] = -np.inf
    return Policy(line, parts)


@dataclass(frozen=True)
class Response:
    """An optimal policy of each arm at a multiplier, with its bias and advantage [S, N]."""

    policy: Policy
    bias: Floats
    advantage: Floats


def respond(arms: Arms, multiplier: float, policy: Policy) -> Response:
    """Improve the policies of all arms at once until they are optimal at the multiplier."""
    n_arms = policy.line.shape[1]
    if n_arms > BLOCK:  # what fits into the processor's cache is several times faster
        blocks = [np.arange(i, min(i + BLOCK, n_arms)) for i in range(0, n_arms, BLOCK)]
        answers = [respond(arms.take(i), multiplier, policy.take(i)) for i in blocks]
        return Response(
            Policy(
                np.concatenate([a.policy.line for a in answers], axis=-1),
                np.concatenate([a.policy.parts for a in answers], axis=-1),
            ),
            np.concatenate([a.bias for a in answers], axis=-1),
            np.concatenate([a.advantage for a in answers], axis=-1),
        )
    net = arms.pay.copy()
    net[1] -= multiplier
    slack = TOLERANCE * max(net.max(), -net.min())
    for _ in range(LIMIT):
        bias = policy.parts[0] - multiplier * policy.parts[1]
        top = bias.argmax(axis=0)
        bias -= np.maximum.reduce(bias, axis=0)
        box = rows(arms, bias)
        worth = np.einsum("asjn,jn->asn", box, bias)
        worth += net
        gap = np.maximum(worth[0], worth[1])
        gap -= bias
        gap -= policy.gain(multiplier)
        better = gap > slack - TOLERANCE * bias
        unsettled = np.count_nonzero(better)
        if unsettled == 0:
            return Response(policy, bias, worth[1] - worth[0])
        if n_arms > FEW and unsettled * 2 < n_arms:
            answer = Response(policy, bias, worth[1] - worth[0])
            rest = np.flatnonzero(better.any(axis=0))
            again = respond(arms.take(rest), multiplier, policy.take(rest))
            policy.put(rest, again.policy)
            answer.bias[:, rest] = again.bias
            answer.advantage[:, rest] = again.advantage
            return answer
        policy = evaluate(arms, box, worth[1] > worth[0], top)
    raise PlanningError("policy iteration did not settle")
