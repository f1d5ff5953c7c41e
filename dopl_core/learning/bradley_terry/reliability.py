"""How reliable answers are: scale separation, split halves, and how well annotators fit.

The measures of comparative judgement on plain arrays. Items are numbered from 0; `winners` [D] and
`losers` [D] have one item of each duel. Strengths are those of Bradley and Terry by maximum
likelihood. The score of each item is drawn in, so that nobody is infinitely good.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components
from scipy.special import expit

from dopl_core.learning.bandit import FloatArray, IntArray

ENOUGH = 0.8  # the reliability that the field calls enough
DRAWN_IN = 0.3  # of a win: how far scores are drawn in from all or nothing
SPLITS = 100  # random halves of the annotators, of which the median counts
RESAMPLES = 60  # of a bootstrap interval
MOST_ITEMS = 600  # with more there is no bootstrap: each resample solves systems of this size

_SPLITS_OF_RESAMPLE = 4
_REACH = 1.96  # standard deviations on each side of a 95 % interval
_TINY = 1e-300
_MOST_LOST = 0.25  # of the resamples of an interval may have no fit
_FAR = 30.0  # strengths further apart than this have no end: their fit does not exist
_AT_ONCE = 1 << 22  # numbers in one batch of matrices


class Measure(NamedTuple):
    """A measure and its 95 % bootstrap interval; NaN where it cannot be told."""

    value: float
    low: float = np.nan
    high: float = np.nan


def scale_separation(winners: ArrayLike, losers: ArrayLike, n_items: int) -> float:
    """Scale separation reliability (SSR) of answers: the share of the variance that is not error.

    Of n duels with `score` wins an item has the score eps + (n - 2 eps) / n * score. Standard
    errors come from the diagonal of the Fisher information. Items without duels are left out. 0
    where all strengths are equal; NaN where duels are so few that no strengths give these scores.
    """
    duels = _duels(np.asarray(winners, dtype=int), np.asarray(losers, dtype=int), n_items)
    if not len(duels.one):
        raise ValueError("reliability needs duels between at least two items")
    return float(_separation(*_fit(duels))[0])


def fit(winners: IntArray, losers: IntArray, n_items: int) -> tuple[FloatArray, FloatArray]:
    """Strengths and the squares of their standard errors, both [n_items]; NaN without duels."""
    strengths, variances = _fit(_duels(winners, losers, n_items))
    return strengths[0], variances[0]


def separation_interval(
    winners: IntArray, losers: IntArray, n_items: int, rng: np.random.Generator
) -> Measure:
    """SSR with its interval: the spread of log(1 - SSR) over resampled answers.

    The level of the resamples is not used: they have the errors of the answers twice, so that
    their SSR is too high. With many items, the spread is that over items.
    """
    first, second, n = _renumbered(winners, losers)
    strengths, variances = _fit(_duels(first, second, n))
    value = float(_separation(strengths, variances)[0])
    if np.isnan(value):
        return Measure(value)
    if n > MOST_ITEMS:
        return _within(value, _spread_over_items(strengths[0], variances[0]))
    count = RESAMPLES if n <= MOST_ITEMS // 2 else RESAMPLES // 3
    drawn = rng.multinomial(len(first), np.full(len(first), 1 / len(first)), count)
    found = [
        _separation(*_fit(_duels(first, second, n, some), strengths[0]))
        for some in _batches(drawn, n)
    ]
    unknown = np.log1p(-np.concatenate(found))
    if np.isnan(unknown).mean() > _MOST_LOST:
        return Measure(value)
    return _within(value, float(np.nanstd(unknown)))


def split_halves(
    winners: IntArray,
    losers: IntArray,
    annotators: IntArray,
    rng: np.random.Generator,
    resamples: int = 0,
) -> Measure:
    """The median correlation of strengths from random halves of the annotators.

    annotators: [D] numbers from 0. Items that one half has not compared are left out of a
    correlation. NaN with fewer than two annotators. The interval needs some resamples, in which
    the annotators of each half are drawn anew, and four annotators.
    """
    person = np.unique(annotators, return_inverse=True)[1]
    people = int(person.max(initial=-1)) + 1
    first, second, n = _renumbered(winners, losers)
    if people < 2:
        return Measure(np.nan)
    in_first = rng.permuted(np.tile(np.arange(people) % 2, (SPLITS, 1)), axis=1)
    value = _middle(_correlations(first, second, n, in_first[:, person], 1 - in_first[:, person]))
    if not resamples or people < 4 or n > MOST_ITEMS // 2 or np.isnan(value):
        return Measure(value)
    some = np.tile(in_first[:_SPLITS_OF_RESAMPLE], (resamples, 1))
    drawn = [_drawn(half, rng)[:, person] for half in (some, 1 - some)]
    every = _correlations(first, second, n, *drawn).reshape(resamples, -1)
    middles = np.arctanh(np.clip([_middle(row) for row in every], -0.999, 0.999))
    reach, z = _REACH * float(np.nanstd(middles)), np.arctanh(np.clip(value, -0.999, 0.999))
    return Measure(value, float(np.tanh(z - reach)), float(np.tanh(z + reach)))


def infit(
    winners: IntArray, losers: IntArray, annotators: IntArray, rng: np.random.Generator
) -> list[Measure]:
    """How well each annotator's answers fit the strengths of all: infit mean squares.

    1 is as much noise as the model expects; well above 1, an annotator disagrees with the others.
    annotators: [D] numbers from 0; one measure for each, NaN without answers. The intervals
    resample an annotator's own answers.
    """
    first, second, n = _renumbered(winners, losers)
    strengths = np.nan_to_num(_fit(_duels(first, second, n))[0][0])
    p = expit(strengths[first] - strengths[second])  # of the answer that was given
    square, expected = (1 - p) ** 2, p * (1 - p)
    found = []
    for number in range(int(np.max(annotators, initial=-1)) + 1):
        own = np.flatnonzero(annotators == number)
        if not len(own):
            found.append(Measure(np.nan))
            continue
        drawn = rng.choice(own, (200, len(own)))
        again = square[drawn].sum(axis=1) / np.maximum(expected[drawn].sum(axis=1), _TINY)
        low, high = np.quantile(again, [0.025, 0.975])
        value = square[own].sum() / max(expected[own].sum(), _TINY)
        found.append(Measure(float(value), float(low), float(high)))
    return found


def often_compared(winners: IntArray, losers: IntArray, least: int) -> NDArray[np.bool_]:
    """Which duels [D] are between items that have at least `least` duels with each other."""
    kept = np.ones(len(winners), dtype=bool)
    while True:
        items, n = np.unique(np.concatenate([winners[kept], losers[kept]]), return_counts=True)
        rare = items[n < least]
        if not len(rare):
            return kept
        kept &= ~(np.isin(winners, rare) | np.isin(losers, rare))


def spearman_brown(reliability: float, times: float) -> float:
    """The reliability when each item has `times` as many answers."""
    if not 0 < reliability < 1:
        return reliability
    return times * reliability / (1 + (times - 1) * reliability)


def _separation(strengths: FloatArray, variances: FloatArray) -> FloatArray:
    """SSR [r] of strengths with the mean 0 and the squares of their standard errors, [r, n]."""
    count = (~np.isnan(strengths)).sum(axis=1)
    spread = np.nansum(strengths**2, axis=1) / np.maximum(count - 1, 1)  # their mean is 0
    error = np.nansum(variances, axis=1) / np.maximum(count, 1)
    share = 1 - np.divide(error, spread, out=np.ones_like(error), where=spread > 1e-12)
    return np.where(count > 1, share, np.nan)


def _within(value: float, spread: float) -> Measure:
    """An SSR with its interval; spread: the standard deviation of log(1 - SSR)"""
    unsure, reach = np.log1p(-value), _REACH * spread
    return Measure(value, float(-np.expm1(unsure + reach)), float(-np.expm1(unsure - reach)))


def _spread_over_items(strengths: FloatArray, variances: FloatArray) -> float:
    """The standard deviation of log(1 - SSR) over items drawn anew, by the delta method.

    1 - SSR is the mean of `variances` over that of strengths^2, both [n].
    """
    square = strengths**2
    parts = variances / variances.mean() - square / max(square.mean(), _TINY)
    return float(parts.std() / np.sqrt(len(parts)))


def _correlations(
    winners: IntArray, losers: IntArray, n_items: int, one: IntArray, other: IntArray
) -> FloatArray:
    """Correlations [r] of strengths by two sets of answers, which count one and other [r, D]."""
    start = _fit(_duels(winners, losers, n_items))[0][0]
    found = []
    for parts in zip(_batches(one, n_items), _batches(other, n_items), strict=True):
        x, y = (_fit(_duels(winners, losers, n_items, part), start)[0] for part in parts)
        x, y = (_centred(z, np.isnan(x + y)) for z in (x, y))
        below = np.sqrt((x**2).sum(axis=1) * (y**2).sum(axis=1))
        top = (x * y).sum(axis=1)
        found.append(np.divide(top, below, out=np.full(len(top), np.nan), where=below > 1e-12))
    return np.concatenate(found)


def _centred(values: FloatArray, missing: NDArray[np.bool_]) -> FloatArray:
    """values [r, n] less the mean of each row, and 0 where they are missing."""
    there = np.where(missing, 0, values)
    mean = there.sum(axis=1) / np.maximum((~missing).sum(axis=1), 1)
    return np.where(missing, 0, there - mean[:, None])


def _middle(values: FloatArray) -> float:
    """The median of those that are known; NaN without any."""
    known = values[~np.isnan(values)]
    return float(np.median(known)) if len(known) else np.nan


def _drawn(half: IntArray, rng: np.random.Generator) -> IntArray:
    """How often each annotator [r, people] is drawn if a half [r, people] of them is drawn anew."""
    size = half.sum(axis=1)
    return rng.multinomial(size, half / size[:, None])


class _Duels(NamedTuple):
    """How often pairs of items were compared, in r sets of answers about the same n items.

    one, other: [E] items of each pair, one < other;  won, lost: [r, E] by one against other
    incidence: [n, 2 E] 1 where an item is the one or the other of a pair
    """

    one: IntArray
    other: IntArray
    won: FloatArray
    lost: FloatArray
    incidence: csr_array

    def sums(self, of_one: FloatArray, of_other: FloatArray) -> FloatArray:
        """For each item, [r, n], the sum over its pairs of numbers [r, E] of either side."""
        return np.asarray((self.incidence @ np.concatenate([of_one, of_other], axis=1).T).T)

    def rows(self, at: IntArray | NDArray[np.bool_]) -> "_Duels":
        """Some of the sets of answers."""
        return self._replace(won=self.won[at], lost=self.lost[at])


def _duels(
    winners: IntArray, losers: IntArray, n_items: int, times: IntArray | None = None
) -> _Duels:
    """The duels of one set of answers; of r sets for times [r, D] that each answer counts."""
    cell = np.minimum(winners, losers) * n_items + np.maximum(winners, losers)
    pairs, at = np.unique(cell, return_inverse=True)
    rows = np.ones((1, len(winners))) if times is None else times
    first = winners < losers
    won, lost = (
        np.array([np.bincount(at, row * some, len(pairs)) for row in rows], dtype=float)
        for some in (first, ~first)
    )
    ends = np.concatenate([pairs // n_items, pairs % n_items])
    column = np.arange(len(ends))
    incidence = csr_array((np.ones(len(ends)), (ends, column)), shape=(n_items, len(ends)))
    one, other = np.split(ends, 2)
    return _Duels(one, other, won, lost, incidence)


def _fit(duels: _Duels, start: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
    """Strengths and the squares of their standard errors, both [r, n]; from a start [n], if given.

    NaN for items without duels, and for all items of an r whose fit does not exist. The strengths
    of each r have the mean 0.
    """
    n = duels.sums(duels.won + duels.lost, duels.won + duels.lost)
    there = n > 0
    wins = duels.sums(duels.won, duels.lost)
    score = np.where(there, DRAWN_IN + (1 - 2 * DRAWN_IN / np.maximum(n, 1)) * wins, 0)
    part = _parts(duels)
    theta = np.zeros_like(n)
    if start is not None:  # less the level of each part, which these answers do not tell
        theta += np.nan_to_num(start)
        theta -= (np.bincount(part.ravel(), theta.ravel()) / np.bincount(part.ravel()))[part]
    found, going = np.zeros(len(n), dtype=bool), np.arange(len(n))
    for _ in range(40):
        step = _newton_step(duels.rows(going), theta[going], score[going], part[going])
        theta[going] += step * np.minimum(1, 1.5 / np.maximum(np.ptp(step, axis=1), 1e-12))[:, None]
        size, reach = np.abs(step).max(axis=1), np.ptp(theta[going], axis=1)
        found[going] = (size < 1e-3) & (reach < _FAR)
        going = going[(size >= 1e-7) & (reach < _FAR)]
        if not len(going):
            break
    total = duels.sums(*[_information(duels, theta)] * 2)
    level = np.where(there, theta, 0).sum(axis=1) / np.maximum(there.sum(axis=1), 1)
    there &= found[:, None]
    strengths = np.where(there, theta - level[:, None], np.nan)
    return strengths, np.where(there, 1 / np.maximum(total, _TINY), np.nan)


def _newton_step(duels: _Duels, theta: FloatArray, score: FloatArray, part: IntArray) -> FloatArray:
    """The step [r, n] towards strengths that give the scores [r, n]."""
    r, n = theta.shape
    C = duels.won + duels.lost
    F = expit(theta[:, duels.one] - theta[:, duels.other])
    weight = C * F * (1 - F)
    total = duels.sums(weight, weight)
    gradient = score - duels.sums(C * F, C * (1 - F))
    # Scores that are drawn in do not quite sum to the duels of a part: what is left over would
    # move only its level, which no duel tells.
    alone = total <= 0
    over = np.bincount(part.ravel(), gradient.ravel()) / np.maximum(
        np.bincount(part.ravel(), (total + alone).ravel()), _TINY
    )
    gradient -= over[part] * total
    curvature = np.zeros((r, n, n))
    curvature[:, duels.one, duels.other] = -weight
    curvature[:, duels.other, duels.one] = -weight
    curvature[:, np.arange(n), np.arange(n)] = total * (1 + 1e-9) + alone
    return np.asarray(np.linalg.solve(curvature, gradient[:, :, None])[:, :, 0])


def _information(duels: _Duels, theta: FloatArray) -> FloatArray:
    """The Fisher information [r, E] of each pair at strengths [r, n]."""
    F = expit(theta[:, duels.one] - theta[:, duels.other])
    return np.asarray((duels.won + duels.lost) * F * (1 - F))


def _parts(duels: _Duels) -> IntArray:
    """The number [r, n] of the part of items that duels connect, in each of r sets."""
    n, (at, pair) = duels.incidence.shape[0], np.nonzero(duels.won + duels.lost)
    size = len(duels.won) * n
    ends = at * n + duels.one[pair], at * n + duels.other[pair]
    graph = coo_array((np.ones(len(at)), ends), shape=(size, size))
    return np.asarray(connected_components(graph, directed=False)[1]).reshape(-1, n)


def _batches(times: IntArray, n_items: int) -> list[IntArray]:
    """Rows of times [r, D] in parts whose matrices are small enough."""
    return np.array_split(times, -(-len(times) * n_items**2 // _AT_ONCE) or 1)


def _renumbered(winners: ArrayLike, losers: ArrayLike) -> tuple[IntArray, IntArray, int]:
    """Winners and losers with the numbers of only those items that have duels, and how many."""
    items, codes = np.unique(np.stack([winners, losers]), return_inverse=True)
    first, second = codes.reshape(2, -1)
    return first, second, len(items)
