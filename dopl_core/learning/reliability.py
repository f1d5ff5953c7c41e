"""How reliable answers are: scale separation, split halves, and how well annotators fit.

The measures of comparative judgement on plain arrays. Items are numbered from 0; `winners` [D] and
`losers` [D] have one item of each duel. Strengths are those of Bradley and Terry by maximum
likelihood. The score of each item is drawn in, so that nobody is infinitely good.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import expit

from dopl_core.learning.bandit import FloatArray, IntArray

ENOUGH = 0.8  # the reliability that the field calls enough
DRAWN_IN = 0.3  # of a win: how far scores are drawn in from all or nothing
SPLITS = 100  # random halves of the annotators, of which the median counts
RESAMPLES = 60  # of a bootstrap interval
MOST_ITEMS = 600  # with more there is no interval: each resample solves systems of this size

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
    wins = _wins(np.asarray(winners, dtype=int), np.asarray(losers, dtype=int), n_items)
    if (wins + wins.T).any(axis=1).sum() < 2:
        raise ValueError("reliability needs duels between at least two items")
    return float(_separation(wins[None])[0])


def fit(winners: IntArray, losers: IntArray, n_items: int) -> tuple[FloatArray, FloatArray]:
    """Strengths and the squares of their standard errors, both [n_items]; NaN without duels."""
    strengths, variances = _fit(_wins(winners, losers, n_items)[None])
    return strengths[0], variances[0]


def separation_interval(
    winners: IntArray, losers: IntArray, n_items: int, rng: np.random.Generator
) -> Measure:
    """SSR with its interval: the spread of log(1 - SSR) over resampled answers.

    The level of the resamples is not used: they have the errors of the answers twice, so that
    their SSR is too high.
    """
    value = scale_separation(winners, losers, n_items)
    first, second, n = _renumbered(winners, losers)
    if n > MOST_ITEMS or np.isnan(value):
        return Measure(value)
    count = RESAMPLES if n <= MOST_ITEMS // 2 else RESAMPLES // 3
    drawn = rng.multinomial(len(first), np.full(len(first), 1 / len(first)), count)
    found = [_separation(_wins(first, second, n, some)) for some in _batches(drawn, n)]
    unknown = np.log1p(-np.concatenate(found))
    if np.isnan(unknown).mean() > _MOST_LOST:
        return Measure(value)
    reach = _REACH * float(np.nanstd(unknown))
    unsure = np.log1p(-value)
    return Measure(value, float(-np.expm1(unsure + reach)), float(-np.expm1(unsure - reach)))


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
    strengths = np.nan_to_num(_fit(_wins(first, second, n)[None])[0][0])
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


def with_more(reliability: float, answers: int, more: int) -> float:
    """The reliability that `more` answers would bring: the formula of Spearman and Brown."""
    if not 0 < reliability < 1 or not answers:
        return reliability
    times = (answers + more) / answers
    return times * reliability / (1 + (times - 1) * reliability)


def _separation(wins: FloatArray) -> FloatArray:
    """SSR [r] of wins [r, n, n]."""
    strengths, variances = _fit(wins)
    count = (~np.isnan(strengths)).sum(axis=1)
    spread = np.nansum(strengths**2, axis=1) / np.maximum(count - 1, 1)  # their mean is 0
    error = np.nansum(variances, axis=1) / np.maximum(count, 1)
    share = 1 - np.divide(error, spread, out=np.ones_like(error), where=spread > 1e-12)
    return np.where(count > 1, share, np.nan)


def _correlations(
    winners: IntArray, losers: IntArray, n_items: int, one: IntArray, other: IntArray
) -> FloatArray:
    """Correlations [r] of strengths by two sets of answers, which count one and other [r, D]."""
    found = []
    for parts in zip(_batches(one, n_items), _batches(other, n_items), strict=True):
        x, y = (_fit(_wins(winners, losers, n_items, part))[0] for part in parts)
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


def _fit(wins: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Strengths and the squares of their standard errors, both [r, n], of wins [r, n, n].

    NaN for items without duels, and for all items of an r whose fit does not exist. The strengths
    of each r have the mean 0.
    """
    C = wins + np.swapaxes(wins, 1, 2)
    n = C.sum(axis=2)
    there = n > 0
    score = np.where(there, DRAWN_IN + (1 - 2 * DRAWN_IN / np.maximum(n, 1)) * wins.sum(axis=2), 0)
    part = _parts(C)
    theta = np.zeros_like(n)
    for _ in range(40):
        F = expit(theta[:, :, None] - theta[:, None, :])
        weight = C * F * (1 - F)
        total = weight.sum(axis=2)
        gradient = score - (C * F).sum(axis=2)
        # Scores that are drawn in do not quite sum to the duels of a part: what is left over would
        # move only its level, which no duel tells.
        over = np.bincount(part, gradient.ravel()) / np.bincount(
            part, total.ravel() + ~there.ravel()
        )
        gradient -= over[part].reshape(n.shape) * total
        curvature = -weight
        curvature[:, *np.diag_indices(n.shape[1])] += total * (1 + 1e-9) + ~there
        step = np.linalg.solve(curvature, gradient[:, :, None])[:, :, 0]
        theta += step * np.minimum(1, 1.5 / np.maximum(np.ptp(step, axis=1), 1e-12))[:, None]
        if np.abs(step).max() < 1e-7:
            break
    F = expit(theta[:, :, None] - theta[:, None, :])
    total = (C * F * (1 - F)).sum(axis=2)
    level = np.where(there, theta, 0).sum(axis=1) / there.sum(axis=1)
    found = (np.abs(step).max(axis=1) < 1e-3) & (np.ptp(theta, axis=1) < _FAR)
    there &= found[:, None]
    strengths = np.where(there, theta - level[:, None], np.nan)
    return strengths, np.where(there, 1 / np.maximum(total, _TINY), np.nan)


def _parts(C: FloatArray) -> IntArray:
    """For duels C [r, n, n], the number [r * n] of the part of items that duels connect."""
    r, n, _ = C.shape
    at, one, other = np.nonzero(C)
    graph = coo_array((np.ones(len(at)), (at * n + one, at * n + other)), shape=(r * n, r * n))
    return np.asarray(connected_components(graph, directed=False)[1])


def _wins(
    winners: IntArray, losers: IntArray, n_items: int, times: IntArray | None = None
) -> FloatArray:
    """Wins [n, n] of rows over columns; [r, n, n] for times [r, D] that each answer counts."""
    cell = winners * n_items + losers
    if times is None:
        return np.bincount(cell, minlength=n_items**2).astype(float).reshape(n_items, n_items)
    counted = [np.bincount(cell, some, n_items**2) for some in times]
    return np.array(counted, dtype=float).reshape(-1, n_items, n_items)


def _batches(times: IntArray, n_items: int) -> list[IntArray]:
    """Rows of times [r, D] in parts whose matrices are small enough."""
    return np.array_split(times, -(-len(times) * n_items**2 // _AT_ONCE) or 1)


def _renumbered(winners: ArrayLike, losers: ArrayLike) -> tuple[IntArray, IntArray, int]:
    """Winners and losers with the numbers of only those items that have duels, and how many."""
    items, codes = np.unique(np.stack([winners, losers]), return_inverse=True)
    first, second = codes.reshape(2, -1)
    return first, second, len(items)
