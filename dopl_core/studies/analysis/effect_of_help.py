"""The effect of help: estimates and intervals from reported weeks, as functions on arrays.

Axes: w reported weeks, n arms, s states, a actions, d posterior draws. An arm is better off after a
week if it is in a better state than before, or still in the best one.

Four estimates:
- effect_within compares each arm with itself in the same state, allowing for each week: neither
  differences between arms nor seasons pass for an effect of help;
- effect_by_state uses posterior draws of the transition probabilities of one state, over all moves;
- effect_by_lot compares arms drawn by lot, to be helped or to wait, with the others that they were
  drawn from in the same week (randomised);
- overall_effect uses posterior draws of all transition probabilities.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from dopl_core.learning.bandit import ACT, UNKNOWN, WAIT, FloatArray, IntArray, better_states
from dopl_core.learning.places.reported_weeks import ReportedWeeks, better_off
from dopl_core.studies.operate.known_effects import KnownEffect, known_effects

LEVEL = 0.9  # of intervals
# Owners look every week, so errors accumulate over repeated looks. A claim needs 8 weeks, an effect
# within people and weeks of CLAIM_ERRORS standard errors, and a posterior of at least 90 % under a
# sceptical prior. Early weeks need more: the boundary of O'Brien and Fleming (1979) for half a year
# of weekly looks, which a random walk crosses in 4.5 %. Wrong claims: bench working.
CLAIM_ERRORS, SCEPTICAL_PROBABILITY, FIRST_CLAIM_WEEK, LOOKS = 1.9, 0.90, 8, 26
WIDENING = 1.1  # of intervals: no model covers all differences between arms (bench working)
MIN_PAIRS = 2.0  # pairs of weeks that a comparison within people needs
MIN_MOVES = 5  # with help, and without, that an estimate for a state needs: fewer are mostly prior


class Estimate(NamedTuple):
    """A mean, its 90 % interval, and the posterior probability that the quantity is above 0."""

    mean: float
    low: float
    high: float
    probability: float

    @property
    def known(self) -> bool:
        """Whether there were data to estimate from."""
        return bool(np.isfinite(self.mean))


UNKNOWN_ESTIMATE = Estimate(np.nan, np.nan, np.nan, 0.5)


def better_half(n_states: int) -> NDArray[np.bool_]:
    """Which states [s] are in the better half."""
    return np.arange(n_states) > (n_states - 1) / 2


def state_counts(weeks: ReportedWeeks, n_states: int) -> IntArray:
    """How many arms were in each state at the end of each week [w, 2, s]; axis 1: helped or not."""
    W = len(weeks.states)
    counts = np.zeros((W, 2, n_states), dtype=np.int64)
    known = weeks.next_states != UNKNOWN
    week = np.nonzero(known)[0]
    np.add.at(counts, (week, weeks.helped[known], weeks.next_states[known]), 1)
    return counts


# --- within people and weeks


class EffectWithin(NamedTuple):
    """The effect of help within people and weeks: over all states, and in each state."""

    overall: Estimate
    by_state: list[Estimate]


def effect_within(weeks: ReportedWeeks, n_states: int) -> EffectWithin:
    """Least-squares effect of help, with an effect of each arm and of each week in every state.

    Arms may differ in any way, and so may weeks. Only arms seen in a state with help and without
    count, in weeks when others in that state were treated otherwise.
    """
    slopes = slopes_within(weeks, n_states)
    return EffectWithin(_estimate(mean_of_states(slopes)), [_estimate(slope) for slope in slopes])


class Slope(NamedTuple):
    """An effect with its standard error and degrees of freedom; NaN if there are no data."""

    effect: float
    sd: float
    freedom: float


NO_SLOPE = Slope(np.nan, np.nan, np.nan)


def slopes_within(weeks: ReportedWeeks, n_states: int) -> list[Slope]:
    """The effect of help within people and weeks in each state."""
    y = better_off(weeks.states, weeks.next_states, n_states)
    both = np.stack([weeks.helped.astype(float), np.nan_to_num(y)])
    slopes = []
    for state in range(n_states):
        seen = (weeks.states == state) & ~np.isnan(y)
        (h, f), rank = without_means(both, seen)
        sums = (h * h).sum(), (h * f).sum(), (f * f).sum()
        slopes.append(_least_squares(*sums, seen.sum() - rank))
    return slopes


def mean_of_states(slopes: Sequence[Slope]) -> Slope:
    """The mean effect over states, each weighted by its inverse standard error.

    In standard errors it is the sum of those of the states (Stouffer's method). So a state in which
    nearly everybody is helped counts as much as one with many comparisons: weights by inverse
    variance would leave out where help does most. Degrees of freedom by Satterthwaite.
    """
    known = np.array([slope for slope in slopes if np.isfinite(slope.effect)])
    if not len(known):
        return NO_SLOPE
    effect, sd, freedom = known.T
    total, K = (1 / sd).sum(), len(known)
    return Slope((effect / sd).sum() / total, np.sqrt(K) / total, K**2 / (1 / freedom).sum())


def without_means(x: FloatArray, seen: NDArray[np.bool_]) -> tuple[FloatArray, int]:
    """x [k, w, n] where seen [w, n], less the means of arms and of weeks; and how many these are.

    The effects of weeks solve the normal equations after those of arms are eliminated.
    """
    m = seen.astype(float)
    of_arm = np.maximum(m.sum(axis=0), 1)

    def less_arms(x: FloatArray) -> FloatArray:
        return np.asarray(m * (x - (m * x).sum(axis=-2, keepdims=True) / of_arm))

    x = less_arms(x)
    A = np.diag(m.sum(axis=1)) - (m / of_arm) @ m.T
    week = x.sum(axis=-1) @ np.linalg.pinv(A, hermitian=True)
    rank = int(seen.any(axis=0).sum() + np.linalg.matrix_rank(A, hermitian=True))
    return x - less_arms(week[..., None]), rank


def _least_squares(pairs: float, product: float, square: float, freedom: float) -> Slope:
    """The slope of y on h from the sums of h h, h y and y y, and the degrees of freedom.

    A quarter of a move is added to the variance, so that a few moves that happen to agree do not
    look certain.
    """
    if pairs < MIN_PAIRS or freedom < 2:
        return NO_SLOPE
    effect = product / pairs
    variance = max(square - effect * product, 0.0) / (freedom - 1)
    return Slope(effect, float(np.sqrt(variance * pairs + 0.25)) / pairs, freedom - 1)


def _estimate(slope: Slope, level: float = LEVEL) -> Estimate:
    """The interval of a difference of two shares, and the probability that it is above 0."""
    effect, sd, freedom = (float(x) for x in slope)
    if not np.isfinite(effect):
        return UNKNOWN_ESTIMATE
    reach = float(stdtrit(freedom, (1 + level) / 2)) * sd
    low, high = max(effect - reach, -1.0), min(effect + reach, 1.0)
    return Estimate(effect, low, high, float(stdtr(freedom, effect / sd)))


# --- by lot


class EffectByLot(NamedTuple):
    """The effect of help by the places drawn by lot, and how many arms were drawn.

    waiting: of `drawn`, those who were drawn to wait
    """

    drawn: int
    effect: Estimate
    waiting: int = 0


def effect_by_lot(weeks: ReportedWeeks, n_states: int, level: float = LEVEL) -> EffectByLot:
    """The effect of help by the places drawn by lot: a randomised comparison, unbiased by design.

    In each week, arms drawn for a place are compared with the other arms off the list, and arms
    drawn to wait with the other arms on it, if their states before and after are known, and within
    their group where places are shared out. Arms count as drawn whether help reached them or not
    (intention to treat). The mean of each state, over arms not drawn, is subtracted first, on and
    off the list. This shortens the interval without bias, because states precede the draw.
    """
    y = better_off(weeks.states, weeks.next_states, n_states)
    known = ~np.isnan(y) if weeks.barred is None else ~np.isnan(y) & ~weeks.barred
    by_lot, listed = weeks.by_lot == 1, weeks.listed == 1
    group = np.zeros(y.shape[1], dtype=np.int64) if weeks.groups is None else weeks.groups
    pool = np.arange(len(y))[:, None] * (group.max(initial=0) + 1) + group
    sums = np.zeros(4)
    for place, sign in ((listed, 1.0), (~listed, -1.0)):  # drawn for a place, and drawn to wait
        drawn, others = by_lot & place & known, ~by_lot & ~place & known
        sums += _lottery(y, weeks.states, pool, drawn, others, n_states) * [sign, 1, 1, 1]
    count, waiting = int((by_lot & known).sum()), int((by_lot & ~listed & known).sum())
    product, weight, variance, of = sums
    if of < 2 or not weight:
        return EffectByLot(count, UNKNOWN_ESTIMATE, waiting)
    effect, sd = product / weight, float(np.sqrt(max(variance / weight**2, 0.25 / of**2)))
    reach = float(stdtrit(of - 1, (1 + level) / 2)) * sd
    found = Estimate(effect, effect - reach, effect + reach, float(ndtr(effect / sd)))
    return EffectByLot(count, found, waiting)


def _lottery(
    y: FloatArray,
    states: IntArray,
    pool: IntArray,
    drawn: NDArray[np.bool_],
    others: NDArray[np.bool_],
    n_states: int,
) -> FloatArray:
    """Arms drawn against others of their pool: sums [4] over pools, which lotteries can add.

    The weighted differences, their weights, the variance of the first, and how many were drawn.

    y: [w, n] outcomes;  pool: [w, n];  drawn, others: [w, n] who was drawn and who was not
    """
    size = int(pool.max(initial=0)) + 1
    L, E = (np.bincount(pool[some], minlength=size) for some in (drawn, others))
    some = (L > 0) & (E > 0)
    drawn, others = drawn & some[pool], others & some[pool]
    of = int(drawn.sum())
    if not of:
        return np.zeros(4)
    often = np.bincount(states[others], minlength=n_states)
    usual = np.bincount(states[others], y[others], n_states) / np.maximum(often, 1)
    e1, e0 = y[drawn] - usual[states[drawn]], y[others] - usual[states[others]]
    L, E = L[some], E[some]
    mean1 = np.bincount(pool[drawn], e1, size)[some] / L
    mean0 = np.bincount(pool[others], e0, size)[some] / E
    w = L * E / (L + E)
    v1 = e1.var() * of / (of - 1) if of > 1 else 0.25
    variance = (w**2 * (v1 / L + e0.var() / E)).sum()
    return np.array([(w * (mean1 - mean0)).sum(), w.sum(), variance, of])


# --- by posterior draws


def gains(transitions: FloatArray) -> FloatArray:
    """Probability to be better off with help minus without [d, n, s].

    transitions: [d, n, s, a, s']
    """
    up = better_states(transitions.shape[2]).astype(float)
    chance = np.einsum("dnsat,st->dnsa", transitions, up)
    return np.asarray(chance[..., ACT] - chance[..., WAIT])


def overall_effect(gains: FloatArray, visits: IntArray, level: float = LEVEL) -> Estimate:
    """The effect of help averaged over the states that were seen with and without help.

    Within a state, an arm's weight is its number of visits, helped or not. Weighting by help alone
    would favour arms that were helped because help seemed to work for them.

    gains: [d, n, s];  visits: [n, s, a, s']
    """
    both = seen_both_ways(visits)
    if not both.any():
        return UNKNOWN_ESTIMATE
    return summarise(_state_gains(gains, visits)[:, both].mean(axis=1), level)


class EffectInState(NamedTuple):
    """What was observed in a state, and the estimated effect of help in it.

    estimate: unknown unless MIN_MOVES were seen from the state with help, and as many without
    """

    known: KnownEffect
    estimate: Estimate


def effect_by_state(
    gains: FloatArray, visits: IntArray, level: float = LEVEL
) -> list[EffectInState]:
    """The effect of help in each state, estimated from all moves; weights as in overall_effect.

    The raw shares compare different people: those helped may have been worse off to begin with. The
    draws allow for that in part: they are of each arm's own transition probabilities.

    gains: [d, n, s];  visits: [n, s, a, s']
    """
    drawn, enough = _state_gains(gains, visits), seen_both_ways(visits, MIN_MOVES)
    return [
        EffectInState(known, summarise(drawn[:, s], level) if enough[s] else UNKNOWN_ESTIMATE)
        for s, known in enumerate(known_effects(visits))
    ]


def seen_both_ways(visits: IntArray, least: int = 1) -> NDArray[np.bool_]:
    """Which states [s] were seen at least so often with help, and as often without."""
    return np.asarray((visits.sum(axis=(0, 3)) >= least).all(axis=1))


def _state_gains(gains: FloatArray, visits: IntArray) -> FloatArray:
    """The mean gain in each state [d, s], each arm weighted by its number of visits."""
    weight = visits.sum(axis=(2, 3))
    return np.asarray((gains * weight).sum(axis=1) / np.maximum(weight.sum(axis=0), 1))


def targeting_gain(gains: FloatArray, weeks: ReportedWeeks) -> Estimate:
    """Mean effect of help in places chosen by the list minus places by lot; gains: [d, n, s]."""
    known = weeks.states != UNKNOWN
    chosen = known & (weeks.listed == 1) & (weeks.by_lot == 0)
    drawn = known & (weeks.listed == 1) & (weeks.by_lot == 1)
    if not chosen.any() or not drawn.any():
        return UNKNOWN_ESTIMATE

    def mean(where: NDArray[np.bool_]) -> FloatArray:
        arms = np.nonzero(where)[1]
        return np.asarray(gains[:, arms, weeks.states[where]].mean(axis=1))

    return summarise(mean(chosen) - mean(drawn))


def summarise(draws: FloatArray, level: float = LEVEL, widening: float = WIDENING) -> Estimate:
    """Mean, interval and posterior probability of being above 0 of draws [d].

    The probability is that of a normal distribution with the same mean and spread: a few hundred
    draws are too few to count 99 %.

    widening: factor by which the interval is wider than that of the draws
    """
    mean, sd = float(draws.mean()), float(draws.std())
    ends = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    low, high = mean + widening * (ends - mean)
    return Estimate(mean, float(low), float(high), float(ndtr(mean / max(sd, 1e-12))))


def normal_estimate(mean: float, error: float) -> Estimate:
    """The estimate whose posterior is normal with this mean and standard error."""
    reach = float(ndtri((1 + LEVEL) / 2)) * error
    above = float(ndtr(mean / max(error, 1e-12)))
    return Estimate(float(mean), float(mean - reach), float(mean + reach), above)


def proven_sign(effect: Estimate, sceptical: Estimate, weeks: int) -> int:
    """What may be claimed: help works (1), help does harm (-1), or nothing yet (0).

    No other gain is claimed before this one.

    effect: within people and weeks;  sceptical: by posterior draws under a sceptical prior
    """
    if weeks < FIRST_CLAIM_WEEK or not effect.known:
        return 0
    p, q, needed = effect.probability, sceptical.probability, claim_probability(weeks)
    works = p >= needed and q >= SCEPTICAL_PROBABILITY
    harms = p <= 1 - needed and q <= 1 - SCEPTICAL_PROBABILITY
    return int(works) - int(harms)


def claim_probability(weeks: int) -> float:
    """The probability within people and weeks that a claim needs after `weeks` reports."""
    return float(ndtr(CLAIM_ERRORS * np.sqrt(LOOKS / min(weeks, LOOKS))))
