"""What following a fixed policy means for each arm: its gain, its bias, the states it visits.

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

RARE = 1e-4  # biases measured from a state visited less lose digits
FAR = 1e10  # more epochs than this between two states is never
LEAK = 1e-7


@dataclass(frozen=True)
class Policy:
    """A policy of each arm, described for all multipliers at once.

    line: [2, N] average pay and average number of actions: the gain at a multiplier is their
    difference, and a tangent of the arm's optimal gain.
    parts: [6, S, N] bias of the pay and of the actions, measured from a root state; mean time to
    the root; share of visits; whether the policy acts (0 or 1); and 1 less the leak.
    """

    line: Floats
    parts: Floats

    def gain(self, multiplier: float) -> Floats:
        """[N]"""
        return self.line[0] - multiplier * self.line[1]

    def bias(self, multiplier: float) -> Floats:
        """[S, N]"""
        return self.parts[0] - multiplier * self.parts[1]

    def occupancy(self) -> Floats:
        """[A, S, N]"""
        visits, act = self.parts[3], self.parts[4]
        return np.stack([visits * (1.0 - act), visits * act])

    def take(self, chosen: Places) -> Policy:
        return Policy(self.line.take(chosen, axis=1), self.parts.take(chosen, axis=2))

    def replace(self, chosen: Places, other: Policy) -> Policy:
        """The same with other policies for the chosen arms."""
        line, parts = self.line.copy(), self.parts.copy()
        line[:, chosen] = other.line
        parts[:, :, chosen] = other.parts
        return Policy(line, parts)


def guess(bias: Floats) -> Policy:
    """A policy of which nothing is known but the bias [S, N]: any other is better."""
    parts = np.zeros((6, *bias.shape))
    parts[0] = bias
    parts[5] = 1.0
    line = np.zeros((2, bias.shape[1]))
    line[0] = -np.inf
    return Policy(line, parts)


def evaluate(chain: Floats, pay: Floats, act: Mask, top: Places, multiplier: float) -> Policy:
    """The policy with transitions chain [S, S, N] and pay [S, N] that acts in act [S, N].

    top: [N] is the state of each arm that all others are expected to lead to.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        policy = _evaluate(chain, pay, act, top)
    at_top = policy.parts[3, top, np.arange(len(top))]
    if at_top.min() > RARE and policy.parts[2].max() < FAR:  # neither if NaN
        return policy
    odd = np.flatnonzero(~((at_top > RARE) & (policy.parts[2].max(axis=0) < FAR)))
    other = _evaluate_odd(chain[..., odd], pay[:, odd], act[:, odd], multiplier)
    return policy.replace(odd, other)


def _evaluate(chain: Floats, pay: Floats, act: Mask, root: Places) -> Policy:
    """The policy of chains whose states all lead to the root [N].

    States are eliminated one after the other without subtractions (Grassmann, Taksar and
    Heyman), which keeps every digit of the visits however rarely a chain moves between its
    states. The root remains to the end.
    """
    n_states, n_arms = act.shape
    order = _swaps(n_states).take(root, axis=1)  # the root changes places with state 0
    place = order * n_arms
    place += np.arange(n_arms)
    # Until the chain is back among the states that remain: pay, actions, time, transitions.
    table = np.empty((n_states, n_states + 3, n_arms))
    table[:, 0] = pay.take(place)
    table[:, 1] = act.take(place)
    table[:, 2] = 1.0
    table[:, 3:] = chain.take((order * (n_states * n_arms))[:, None] + place)
    leave = np.empty((n_states, n_arms))
    for k in range(n_states - 1, 0, -1):
        row = table[k, : k + 3]
        np.add.reduce(row[3:], axis=0, out=leave[k])
        enter = table[:k, k + 3]
        enter /= leave[k]
        table[:k, : k + 3] += enter[:, None] * row
    line = table[0, :3] / table[0, 2]
    line[2] = 0.0
    parts = np.empty((n_states, 4, n_arms))
    sums, visits = parts[:, :3], parts[:, 3]
    np.multiply(line, table[:, 2:3], out=sums)
    np.subtract(table[:, :3], sums, out=sums)
    sums[0] = 0.0
    visits[0] = 1.0
    for k in range(1, n_states):
        if k > 1:
            sums[k] += np.einsum("jn,jbn->bn", table[k, 4 : k + 3], sums[1:k])
        sums[k] /= leave[k]
        np.einsum("jn,jn->n", table[:k, k + 3], visits[:k], out=visits[k])
    visits /= np.add.reduce(visits, axis=0)
    place += order * (3 * n_arms)
    ordered = np.empty((6, n_states, n_arms))
    ordered[:4] = parts.take(place + (np.arange(4) * n_arms)[:, None, None])
    ordered[4] = act
    ordered[5] = 1.0
    return Policy(line[:2], ordered)


def _evaluate_odd(chain: Floats, pay: Floats, act: Mask, multiplier: float) -> Policy:
    """The policy of chains that may have several closed classes.

    The class of highest gain is the one that counts, as it is in the LP. States that do not lead
    to it leak: they go there with probability LEAK, so that their bias is very low, but finite.
    """
    n_states, _, n_arms = chain.shape
    chain = np.where(chain < 1 / FAR, 0.0, chain)
    leads = (chain > 0) | np.eye(n_states, dtype=bool)[:, :, None]
    for _ in range(n_states.bit_length()):
        leads = np.logical_or.reduce(leads[:, :, None] & leads, axis=1)
    recurrent = np.logical_and.reduce(~leads | leads.swapaxes(0, 1), axis=1)

    def rooted(root: Places, arm: Places) -> Policy:
        keep = np.where(leads[:, root, arm], 1.0, 1.0 - LEAK)
        leaky = chain[..., arm] * keep[:, None]
        leaky[:, root, np.arange(len(arm))] += 1.0 - keep
        policy = _evaluate(leaky, pay[:, arm], act[:, arm], root)
        policy.parts[5] = keep
        return policy

    best = guess(np.zeros(pay.shape))
    for state in range(n_states):
        arm = np.flatnonzero(recurrent[state])
        policy = rooted(np.full(len(arm), state), arm)
        higher = np.flatnonzero(policy.gain(multiplier) > best.take(arm).gain(multiplier))
        best = best.replace(arm[higher], policy.take(higher))
    return rooted(best.parts[3].argmax(axis=0), np.arange(n_arms))


@cache
def _swaps(n_states: int) -> Places:
    """[S, S]: column j lists the states with 0 and j in each other's place."""
    swaps = np.repeat(np.arange(n_states)[:, None], n_states, axis=1)
    np.fill_diagonal(swaps, 0)
    swaps[0] = np.arange(n_states)
    return swaps
