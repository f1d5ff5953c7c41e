"""The value of a fixed policy for each arm: its gain, its bias, the states it visits.

Arrays here and in arms.py have the arms last, [..., N], so that one call works on all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from dopl_core.learning.planning.problem import Floats

Places = NDArray[np.intp]
Mask = NDArray[np.bool_]
Prices = float | Floats  # the cost of an action: one for all arms, or [N]

RARE = 1e-4  # a bias relative to a state visited less often loses digits
FAR = 1e10  # epochs between two states that count as never
LEAK = 1e-7  # added probability of moving to the best closed class, if nothing leads there


@dataclass(frozen=True)
class Policy:
    """A policy of each arm, for all multipliers at once.

    line: [2, N] average pay and average number of actions: the gain at a multiplier is their
    difference, and a tangent of the arm's optimal gain.
    parts: [6, S, N] bias of the pay and of the actions, relative to a root state, and the four
    properties below.
    """

    line: Floats
    parts: Floats

    @property
    def time(self) -> Floats:
        """[S, N] mean number of epochs to the root."""
        return self.parts[2]

    @property
    def visits(self) -> Floats:
        """[S, N] share of epochs in each state."""
        return self.parts[3]

    @property
    def act(self) -> Floats:
        """[S, N] whether the policy acts, 0 or 1; in between if a linear program found it."""
        return self.parts[4]

    @property
    def stay(self) -> Floats:
        """[S, N] 1 in states that lead to the root; 1 - LEAK where only the leak leads there."""
        return self.parts[5]

    def gain(self, multiplier: Prices) -> Floats:
        """[N]"""
        return self.line[0] - multiplier * self.line[1]

    def bias(self, multiplier: Prices) -> Floats:
        """[S, N]"""
        return self.parts[0] - multiplier * self.parts[1]

    def occupancy(self) -> Floats:
        """[A, S, N]"""
        return np.array([self.visits * (1.0 - self.act), self.visits * self.act])

    def take(self, chosen: Places) -> Policy:
        return Policy(self.line.take(chosen, axis=1), self.parts.take(chosen, axis=2))

    def replace(self, chosen: Places, other: Policy) -> Policy:
        """The same, with other policies for the chosen arms."""
        line, parts = self.line.copy(), self.parts.copy()
        line[:, chosen] = other.line
        parts[:, :, chosen] = other.parts
        return Policy(line, parts)


def guess(bias: Floats) -> Policy:
    """A policy of which only the bias [S, N] is known; any other policy is better."""
    parts = np.zeros((6, *bias.shape))
    parts[0] = bias
    parts[5] = 1.0
    line = np.zeros((2, bias.shape[1]))
    line[0] = -np.inf
    return Policy(line, parts)


def price_of(multiplier: Prices, chosen: Places) -> Prices:
    """The prices of the chosen arms."""
    return multiplier[chosen] if isinstance(multiplier, np.ndarray) else multiplier


def evaluate(chain: Floats, pay: Floats, act: Mask, top: Places, multiplier: Prices) -> Policy:
    """The policy with transitions chain [S, S, N] and pay [S, N] that acts in act [S, N].

    top: [N] is the state of each arm that all others are expected to lead to.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        policy = _evaluate(chain, pay, act, top)
    at_top = policy.visits[top, np.arange(len(top))]
    if at_top.min() > RARE and policy.time.max() < FAR:  # neither if NaN
        return policy
    odd = np.flatnonzero(~((at_top > RARE) & (policy.time.max(axis=0) < FAR)))
    other = _evaluate_odd(chain[..., odd], pay[:, odd], act[:, odd], price_of(multiplier, odd))
    return policy.replace(odd, other)


def _evaluate(chain: Floats, pay: Floats, act: Mask, root: Places) -> Policy:
    """The policy of chains [S, S, N] whose states all lead to the root [N].

    States are eliminated one after the other without subtractions (Grassmann, Taksar and
    Heyman), which keeps every digit of the visits even if a chain rarely moves between its
    states. The root remains to the end.
    """
    n_states, n_arms = act.shape
    order = _swaps(n_states).take(root, axis=1)  # the root is swapped with state 0
    place = order * n_arms
    place += np.arange(n_arms)
    table = np.empty((n_states, n_states + 3, n_arms))
    table[:, 0] = pay.take(place)
    table[:, 1] = act.take(place)
    table[:, 2] = 1.0
    table[:, 3:] = chain.take((order * (n_states * n_arms))[:, None] + place)
    leave = eliminate(table)
    line = table[0, :3] / table[0, 2]
    line[2] = 0.0
    solved = substitute(table, leave, line)
    place += order * (3 * n_arms)
    parts = np.empty((6, n_states, n_arms))
    parts[:4] = solved.take(place + (np.arange(4) * n_arms)[:, None, None])
    parts[4] = act
    parts[5] = 1.0
    return Policy(line[:2], parts)


def eliminate(table: Floats) -> Floats:
    """Eliminate the states of chains one by one, the last first, in place; state 0 remains.

    table: [S, 3 + S, N] for each state k the pay, the actions, the epochs and the transitions until
    the chain is back among the states that remain; in the end these are the states up to k. At
    [j, 3 + k] for j < k it then has how often k is visited after j, before a state below k is.

    Returns [S, N] the probability to leave state k for a lower one before the chain is back at k;
    the numbers of state 0, which remains, have no meaning.
    """
    n_states, _, n_arms = table.shape
    leave = np.empty((n_states, n_arms))
    for k in range(n_states - 1, 0, -1):
        row = table[k, : k + 3]
        np.add.reduce(row[3:], axis=0, out=leave[k])
        enter = table[:k, k + 3]
        enter /= leave[k]
        table[:k, : k + 3] += enter[:, None] * row
    return leave


def substitute(table: Floats, leave: Floats, line: Floats) -> Floats:
    """[S, 4, N] bias of pay, actions and epochs, and share of visits, of an eliminated table.

    leave: [S, N] as `eliminate` returns it
    line: [3, N] subtracted in every epoch: average pay, average actions, and 0, so that the third
    bias is the mean time to state 0
    """
    n_states, _, n_arms = table.shape
    solved = np.empty((n_states, 4, n_arms))
    bias, visits = solved[:, :3], solved[:, 3]
    np.multiply(line, table[:, 2:3], out=bias)
    np.subtract(table[:, :3], bias, out=bias)
    bias[0] = 0.0
    visits[0] = 1.0
    for k in range(1, n_states):
        if k > 1:
            bias[k] += np.einsum("jn,jbn->bn", table[k, 4 : k + 3], bias[1:k])
        bias[k] /= leave[k]
        np.einsum("jn,jn->n", table[:k, k + 3], visits[:k], out=visits[k])
    visits /= np.add.reduce(visits, axis=0)
    return solved


def _evaluate_odd(chain: Floats, pay: Floats, act: Mask, multiplier: Prices) -> Policy:
    """The policy of chains that may have several closed classes.

    The class of highest gain counts, as in the LP. States that do not lead to it leak: they move
    there with probability LEAK, so that their bias is very low, but finite.
    """
    n_states, _, n_arms = chain.shape
    chain = np.where(chain < 1 / FAR, 0.0, chain)
    leads = leads_to(chain)
    recurrent = np.logical_and.reduce(~leads | leads.swapaxes(0, 1), axis=1)

    def rooted(root: Places, arm: Places) -> Policy:
        stay = np.where(leads[:, root, arm], 1.0, 1.0 - LEAK)
        leaky = chain[..., arm] * stay[:, None]
        leaky[:, root, np.arange(len(arm))] += 1.0 - stay
        policy = _evaluate(leaky, pay[:, arm], act[:, arm], root)
        policy.stay[:] = stay
        return policy

    best = guess(np.zeros(pay.shape))
    for state in range(n_states):
        arm = np.flatnonzero(recurrent[state])
        policy = rooted(np.full(len(arm), state), arm)
        price = price_of(multiplier, arm)
        higher = np.flatnonzero(policy.gain(price) > best.take(arm).gain(price))
        best = best.replace(arm[higher], policy.take(higher))
    return rooted(best.visits.argmax(axis=0), np.arange(n_arms))


def leads_to(chain: Floats) -> Mask:
    """[S, S, N]: whether the first state leads to the second, in any number of epochs."""
    n_states = len(chain)
    leads = (chain > 0) | np.eye(n_states, dtype=bool)[:, :, None]
    for _ in range(n_states.bit_length()):
        leads = np.logical_or.reduce(leads[:, :, None] & leads, axis=1)
    return leads


@cache
def _swaps(n_states: int) -> Places:
    """[S, S]: column j lists the states with 0 and j swapped."""
    swaps = np.repeat(np.arange(n_states)[:, None], n_states, axis=1)
    np.fill_diagonal(swaps, 0)
    swaps[0] = np.arange(n_states)
    return swaps
