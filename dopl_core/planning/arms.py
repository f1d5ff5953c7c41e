"""How each arm is best run on its own, when every action costs the same multiplier.

Arrays here have the arms last, [..., N], so that one NumPy call works on all arms at full speed.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from dopl_core.planning.problem import Floats, PlanningError, Problem

LEAK = 1e-9
TOLERANCE = 1e-12
LIMIT = 100


@dataclass(frozen=True)
class Arms:
    """The arms of a problem: pay, room: [A, S, N]; low, width: [A, S, S, N]; leak: [N]."""

    pay: Floats
    low: Floats
    width: Floats
    room: Floats
    leak: Floats

    def take(self, chosen: NDArray[np.intp]) -> Arms:
        return Arms(*(getattr(self, field.name)[..., chosen] for field in fields(self)))


@dataclass(frozen=True)
class Response:
    """An optimal policy of every arm.

    gain: [N] average pay less cost of the actions; earn, use: [N] average pay and actions;
    bias: [S, N], 0 at each arm's best state; visits: [S, N] stationary distribution;
    act: [S, N] whether the policy acts; advantage: [S, N] of acting over waiting.
    """

    gain: Floats
    earn: Floats
    use: Floats
    bias: Floats
    visits: Floats
    act: NDArray[np.bool_]
    advantage: Floats


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


def rows(arms: Arms, bias: Floats) -> Floats:
    """The rows [A, S, S, N] of the boxes with the highest expected bias [S, N].

    States are filled in order of bias; one order of an arm's states serves all its rows.
    """
    n_states = len(bias)
    no_less = bias[:, None] >= bias
    upper = np.tri(n_states, k=-1, dtype=bool).T[:, :, None]
    ahead = np.where(upper, no_less, ~no_less.swapaxes(0, 1)).astype(np.float64)
    fill = np.einsum("asin,ijn->asjn", arms.width, ahead)
    np.subtract(arms.room[:, :, None], fill, out=fill)
    np.maximum(fill, 0.0, out=fill)
    np.minimum(fill, arms.width, out=fill)
    fill += arms.low
    return fill


def evaluate(
    chain: Floats, earned: Floats, leak: Floats, top: NDArray[np.intp]
) -> tuple[Floats, Floats, Floats]:
    """Gain [N], bias [S, N] and stationary distribution [S, N] of chains [S, S, N].

    States are eliminated one after the other without subtractions (Grassmann, Taksar and
    Heyman), which keeps every digit however rarely the chain moves between its states. State
    top [N], which all others reach, remains to the end; its bias is 0.
    """
    n_states, _, n_arms = chain.shape
    arm = np.arange(n_arms)
    order = np.repeat(np.arange(n_states)[:, None], n_arms, axis=1)
    order[top, arm] = 0
    order[0] = top
    place = order * n_arms + arm
    # Columns: pay and time until the chain is back among the states that remain, transitions.
    table = np.empty((n_states, n_states + 2, n_arms))
    table[:, 0] = earned.ravel()[place]
    table[:, 1] = 1.0
    table[:, 2:] = chain.ravel()[(order * (n_states * n_arms))[:, None] + place]
    table[:, 2] += leak
    leave = [arm] * n_states
    for k in range(n_states - 1, 0, -1):
        row = table[k, : k + 2]
        leave[k] = row[2:].sum(axis=0)
        enter = table[:k, k + 2]
        enter /= leave[k]
        table[:k, : k + 2] += enter[:, None] * row
    gain = table[0, 0] / table[0, 1]
    bias = np.zeros((n_states, n_arms))
    visits = np.ones((n_states, n_arms))
    for k in range(1, n_states):
        ahead = table[k, 0] - gain * table[k, 1]
        if k > 1:
            ahead += (table[k, 3 : k + 2] * bias[1:k]).sum(axis=0)
        bias[k] = ahead / leave[k]
        visits[k] = (table[:k, k + 2] * visits[:k]).sum(axis=0)
    visits /= visits.sum(axis=0)
    return gain, bias.ravel()[place], visits.ravel()[place]


def respond(arms: Arms, multiplier: float, bias: Floats) -> Response:
    """Optimistic policy iteration of all arms at once, from a guess of the bias [S, N]."""
    net = arms.pay.copy()
    net[1] -= multiplier
    slack = TOLERANCE * np.abs(net).max()
    bias = bias - bias.max(axis=0)
    goal = np.full_like(bias, -np.inf)
    for _ in range(LIMIT):
        box = rows(arms, bias)
        worth = np.einsum("asjn,jn->asn", box, bias)
        worth += net
        gap = np.maximum(worth[0], worth[1])
        gap -= goal
        if not (gap > slack - TOLERANCE * bias).any():
            return Response(
                gain=gain,
                earn=gain + multiplier * use,
                use=use,
                bias=bias,
                visits=visits,
                act=act,
                advantage=worth[1] - worth[0],
            )
        act = worth[1] > worth[0]
        chain = np.where(act[:, None], box[1], box[0])
        top = bias.argmax(axis=0)
        gain, bias, visits = evaluate(chain, np.where(act, net[1], net[0]), arms.leak, top)
        bias -= bias.max(axis=0)
        goal = gain + bias
        use = (visits * act).sum(axis=0)
    raise PlanningError("policy iteration did not settle")
