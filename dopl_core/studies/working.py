"""Is it working? What was done, what came of it, and how sure that is: functions on arrays.

Axes: w weeks that were reported, n arms, s states, d draws of what may be true. Somebody is better
off next week who is in a better state then, or still in the best.

Three ways to see what help does, none of which takes a wish for a fact:
- each arm with itself: the same arm in the same state, in weeks with help and in weeks without;
- by lot: those drawn against those not drawn in the same week, whom only chance tells apart;
- by all that is believed: the chances of all arms, as they may be after all moves so far.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, stdtrit

from dopl_core.learning.bandit import ACT, UNKNOWN, WAIT, FloatArray, IntArray
from dopl_core.studies.history import Move, moves_counted

LEVEL = 0.9  # of intervals
# Owners look every week, and a chance of error at each look adds up: a claim is made from week 8
# on, if it holds in 99 of 100 by the moves alone, and in 95 even for who thinks from the start that
# help may make no difference. Looked at for half a year, 1 in 20 is wrong (bench working).
CLAIM, DOUBTED, FIRST_WEEK = 0.99, 0.95, 8
WIDER = 1.1  # than drawn: arms move in ways of their own that no model has all of (bench working)
LEAST = 2.0  # pairs of weeks of which something can be said


class Seen(NamedTuple):
    """Weeks that were reported; all [w, n]: states (UNKNOWN included), and 1 where it is so."""

    states: IntArray
    helped: IntArray
    next_states: IntArray
    listed: IntArray
    by_lot: IntArray


class Estimate(NamedTuple):
    """An estimate with its interval; sure: the chance that it is really above 0."""

    mean: float
    low: float
    high: float
    sure: float

    @property
    def known(self) -> bool:
        """Whether anything can be said at all."""
        return bool(np.isfinite(self.mean))


NOTHING = Estimate(np.nan, np.nan, np.nan, 0.5)


def seen(moves: Sequence[Move], n_arms: int) -> Seen:
    """The weeks of `moves` that are reported; who was not there then has no known state."""
    states, helped, next_states = moves_counted(moves, n_arms)
    listed, by_lot = np.zeros_like(states), np.zeros_like(states)
    reported = [move for move in moves if move.next_states is not None]
    for week, move in enumerate(reported):
        listed[week, move.arms], by_lot[week, move.by_lot] = 1, 1
    return Seen(states, helped, next_states, listed, by_lot)


def better(states: IntArray, next_states: IntArray, n_states: int) -> FloatArray:
    """1 where an arm is better off afterwards, 0 where not, NaN where that is not known."""
    up = next_states >= np.minimum(states + 1, n_states - 1)
    known = (states != UNKNOWN) & (next_states != UNKNOWN)
    return np.where(known, up.astype(float), np.nan)


def better_half(n_states: int) -> NDArray[np.bool_]:
    """Which states [s] are above the middle."""
    return np.arange(n_states) > (n_states - 1) / 2


def course(weeks: Seen, n_states: int) -> IntArray:
    """How many were in each state when each week ended [w, 2, s]: not helped in it, helped."""
    W = len(weeks.states)
    counts = np.zeros((W, 2, n_states), dtype=np.int64)
    known = weeks.next_states != UNKNOWN
    week = np.nonzero(known)[0]
    np.add.at(counts, (week, weeks.helped[known], weeks.next_states[known]), 1)
    return counts


# --- each arm with itself


class Pairs(NamedTuple):
    """What the same arm in the same state had with help and without, by state; all [s].

    weight: how many pairs of weeks, one of each kind, the comparison is worth
    """

    with_help: FloatArray
    without: FloatArray
    gain: FloatArray
    low: FloatArray
    high: FloatArray
    weight: FloatArray


def with_themselves(weeks: Seen, n_states: int, level: float = LEVEL) -> Pairs:
    """Chances to be better off with help and without, arms compared with themselves.

    Mantel and Haenszel's difference over the arms, with Sato's variance, which holds for many arms
    with few weeks each; a quarter of a move is added to it, lest few moves that happen to agree
    seem to be sure, and its degrees of freedom are the pairs. Nothing is taken for granted about
    arms being alike, so only arms seen both ways in a state tell something of it.
    """
    y, N = better(weeks.states, weeks.next_states, n_states), weeks.states.shape[1]
    known = ~np.isnan(y)
    arms = np.broadcast_to(np.arange(N), y.shape)[known]
    moves = np.zeros((2, 2, N, n_states))  # [helped, better off]
    np.add.at(moves, (weeks.helped[known], y[known].astype(int), arms, weeks.states[known]), 1)
    (b0, a0), (b1, a1) = moves  # a: better off, b: not
    n0, n1 = a0 + b0, a1 + b1
    n = np.maximum(n0 + n1, 1)
    w = n0 * n1 / n
    total = w.sum(axis=0)
    of = np.maximum(total, 1e-9)
    with_help = (w * a1 / np.maximum(n1, 1)).sum(axis=0) / of
    without = (w * a0 / np.maximum(n0, 1)).sum(axis=0) / of
    gain = with_help - without
    both = w > 0
    P = np.where(both, (n1**2 * a0 - n0**2 * a1 + n1 * n0 * (n0 - n1) / 2) / n**2, 0).sum(axis=0)
    Q = np.where(both, (a1 * b0 + a0 * b1) / (2 * n), 0).sum(axis=0)
    sd = np.sqrt(np.maximum(gain * P + Q, 0) + 0.25) / of
    reach = stdtrit(np.maximum(total, 1), (1 + level) / 2) * sd
    empty = total < LEAST
    low, high = np.maximum(gain - reach, -1), np.minimum(gain + reach, 1)
    parts = (with_help, without, gain, low, high)
    said = np.where(empty, np.nan, parts)
    return Pairs(said[0], said[1], said[2], said[3], said[4], total)


# --- by lot


class Lots(NamedTuple):
    """Those drawn against those not drawn: how many weeks of each, and the effect of being drawn.

    with_help, without: better off, as a share of the drawn and of those like them
    """

    drawn: int
    others: int
    with_help: float
    without: float
    effect: Estimate


def by_lot(weeks: Seen, n_states: int, level: float = LEVEL) -> Lots:
    """What being drawn does: an unbiased estimate, whatever else is true of the arms.

    Week by week the drawn are compared with all who could have been drawn: not on the list for
    another reason, their state known then and a week later. Whether help reached them makes no
    difference to who is counted. What is usual in a state (of those not drawn) is taken off first:
    that makes the interval shorter and no bias, for a state is known before lots are drawn.
    """
    y = better(weeks.states, weeks.next_states, n_states)
    could = ((weeks.listed == 0) | (weeks.by_lot == 1)) & ~np.isnan(y)
    could &= (weeks.by_lot == 1).any(axis=1)[:, None]
    drawn, others = could & (weeks.by_lot == 1), could & (weeks.by_lot == 0)
    L, E = drawn.sum(axis=1), others.sum(axis=1)
    w = L * E / np.maximum(L + E, 1)
    if L[E > 0].sum() < 2 or w.sum() == 0:
        return Lots(int(L.sum()), int(E.sum()), np.nan, np.nan, NOTHING)
    usual = np.bincount(weeks.states[others], y[others], n_states) / np.maximum(
        np.bincount(weeks.states[others], minlength=n_states), 1
    )
    e = np.where(could, np.nan_to_num(y) - usual[weeks.states], 0.0)
    mean1 = (e * drawn).sum(axis=1) / np.maximum(L, 1)
    mean0 = (e * others).sum(axis=1) / np.maximum(E, 1)
    effect = float((w * (mean1 - mean0)).sum() / w.sum())
    of = L[E > 0].sum()
    v1 = (e[drawn] - e[drawn].mean()).var() * of / (of - 1)
    v0 = e[others].var()
    variance = (w**2 * (v1 / np.maximum(L, 1) + v0 / np.maximum(E, 1))).sum() / w.sum() ** 2
    sd = float(np.sqrt(max(variance, 0.25 / of**2)))
    reach = float(stdtrit(of - 1, (1 + level) / 2)) * sd
    share = float(np.average(np.nan_to_num(y)[drawn]))
    found = Estimate(effect, effect - reach, effect + reach, float(ndtr(effect / sd)))
    return Lots(int(L.sum()), int(E.sum()), share, share - effect, found)


# --- by all that is believed


def gains(transitions: FloatArray) -> FloatArray:
    """What help adds to the chance to be better off [d, n, s], for transitions [d, n, s, a, s']."""
    S = transitions.shape[2]
    up = np.arange(S) >= np.minimum(np.arange(S) + 1, S - 1)[:, None]  # [s, s']
    chance = np.einsum("dnsat,st->dnsa", transitions, up.astype(float))
    return np.asarray(chance[..., ACT] - chance[..., WAIT])


def effect(gains: FloatArray, visits: IntArray, level: float = LEVEL) -> Estimate:
    """What help does whatever the state: the mean over the states that were seen both ways.

    In a state, everybody counts as often as they were seen there, helped or not, lest those who
    were helped because it seemed to help them count for more: that seeming is what is tested.
    gains: [d, n, s];  visits: [n, s, a, s']
    """
    both = (visits.sum(axis=(0, 3)) > 0).all(axis=1)
    if not both.any():
        return NOTHING
    often = visits.sum(axis=(2, 3))[:, both]
    by_state = (gains[:, :, both] * often).sum(axis=1) / often.sum(axis=0)
    return summed_up(by_state.mean(axis=1), level)


def list_over_lots(gains: FloatArray, weeks: Seen) -> Estimate:
    """How much more help does where the list has sent it than where lots have: gains [d, n, s]."""
    known = weeks.states != UNKNOWN
    chosen = known & (weeks.listed == 1) & (weeks.by_lot == 0)
    drawn = known & (weeks.by_lot == 1)
    if not chosen.any() or not drawn.any():
        return NOTHING

    def mean(where: NDArray[np.bool_]) -> FloatArray:
        arms = np.nonzero(where)[1]
        return np.asarray(gains[:, arms, weeks.states[where]].mean(axis=1))

    return summed_up(mean(chosen) - mean(drawn))


def summed_up(draws: FloatArray, level: float = LEVEL, wider: float = WIDER) -> Estimate:
    """The mean of draws [d], their interval, and how sure it is that the truth is above 0.

    How sure is by the Gaussian of the same mean and spread: 99 of 100 could not be counted in some
    hundreds.
    wider: than what is drawn the interval is
    """
    mean, sd = float(draws.mean()), float(draws.std())
    ends = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    low, high = mean + wider * (ends - mean)
    return Estimate(mean, float(low), float(high), float(ndtr(mean / max(sd, 1e-12))))


def known_sign(effect: Estimate, doubted: Estimate, weeks: int) -> int:
    """What the page may say: help works (1), it does harm (-1), or that is not known (0).

    Every other good news waits for the first. doubted: the effect, for who doubts that there is one
    """
    if weeks < FIRST_WEEK or not effect.known:
        return 0
    works = effect.sure >= CLAIM and doubted.sure >= DOUBTED
    harms = effect.sure <= 1 - CLAIM and doubted.sure <= 1 - DOUBTED
    return int(works) - int(harms)
