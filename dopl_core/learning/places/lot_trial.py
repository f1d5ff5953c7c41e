"""The effect of help from places drawn by lot, without a model: permutation tests, planned looks.

Each week has two lotteries (lots.py): among the listed, who waits; among the others who
could be listed, who gets a place. Where places are shared out, each group has its own two. In a
lottery everybody is as likely to be drawn, so the draw alone says how outcomes would differ if help
did nothing.

Outcome: better off (reported_weeks.better_off), less the mean of all in the same lottery and state,
drawn or not. The statistic is the sum over people drawn for a place, less people drawn to wait. If
help adds tau to all outcomes, it is outcome - tau * help. Both are linear in the draw, so one set
of redraws serves all tau. The draw decides who counts as helped (intention to treat): owners change
the list after it. People with an unknown state before or after leave their lottery. The first is
known before the draw. The second is harmless only if help does not decide whose state is reported.

Budgets couple people: each person drawn takes the place of another. A redraw repeats a whole week,
all its lotteries with their sizes, and the weeks independently, with their lists as they were. For
given lists the tests are exact. Later lists depend on earlier draws, because the learner sees who
was helped. The sums are then a martingale with known variances, and tests are valid to first order;
`dopl bench trial` measures false claims.

Looks: the error spent by each week is that of Lan and DeMets (1983), after O'Brien and Fleming. The
boundaries come from the joint law of the statistics of all looks so far.

For power: `lottery_sums` of simulated weeks, then `look_results`; their `claim` is what the study
would say. Or, by a normal approximation: `standard_error`, and `boundaries` of random walks.
Axes: w weeks, n arms, r redraws (row 0: the draw as it was), 2 lotteries (OTHERS, LISTED), l looks.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from dopl_core.learning.bandit import FloatArray, IntArray
from dopl_core.learning.places.reported_weeks import ReportedWeeks, better_off

OTHERS, LISTED = 0, 1  # axis of lotteries: who gets a place, who waits
REDRAWS = 9_999
_FEW = 20  # people whom a lottery draws one by one
_DIGITS = 9  # statistics are rounded: equal sums in another order must compare as equal


class LotterySums(NamedTuple):
    """Sums over those drawn, less those drawn to wait, of centred outcomes and of centred help.

    outcome, help: [1 + r, 2, w]
    variance: [2, w] of `outcome` over all draws, if help does nothing
    drawn, known: [2, w] how many were drawn, and of these how many have a known outcome
    """

    outcome: FloatArray
    help: FloatArray
    variance: FloatArray
    drawn: IntArray
    known: IntArray


class Interval(Struct, frozen=True):
    """A difference of two shares, and its interval; None if there are too few draws."""

    effect: float | None
    low: float = -1.0
    high: float = 1.0


class Look(Struct, frozen=True):
    """The analysis at one look.

    spent: the error spent by this look;  nominal: the level of this look's own test and intervals
    p: of the test that help changes no outcome;  claim: 1 or -1 if p is at most `nominal`, else 0
    effect: of help, by all lotteries;  others, listed: by the one among the others, the listed
    list_gain: how much more help does among the listed than among the others
    drawn, drawn_known: people drawn for a place, and of these with a known outcome
    waiting, waiting_known: people drawn to wait, likewise
    """

    week: int
    spent: float
    nominal: float
    p: float
    claim: int
    effect: Interval
    others: Interval
    listed: Interval
    list_gain: Interval
    drawn: int
    drawn_known: int
    waiting: int
    waiting_known: int


def analyse(
    weeks: ReportedWeeks,
    n_states: int,
    looks: Sequence[int],
    *,
    level: float = 0.05,
    seed: Sequence[int] = (0,),
    redraws: int = REDRAWS,
) -> list[Look]:
    """The analysis at each look that the reported weeks have reached.

    looks: weeks from 1, the last is the end;  level: error of all looks together, two-sided
    """
    sums = lottery_sums(weeks, n_states, seed=seed, redraws=redraws)
    return look_results(sums, looks, level)


# --- lotteries and their redraws


def lottery_sums(
    weeks: ReportedWeeks, n_states: int, *, seed: Sequence[int] = (0,), redraws: int = REDRAWS
) -> LotterySums:
    """The sums of all lotteries, as drawn and redrawn.

    The redraws of a week depend on `seed`, the week and its data, so boundaries of earlier looks
    stay as they are when weeks are added.
    """
    W = len(weeks.states)
    y = better_off(weeks.states, weeks.next_states, n_states)
    shape = (1 + redraws, 2, W)
    sums = LotterySums(np.zeros(shape), np.zeros(shape), np.zeros((2, W)), *_drawn(weeks, y))
    for week in range(W):
        rng = np.random.default_rng([*seed, week])
        for kind, pool in _lotteries(weeks, ~np.isnan(y[week]), week):
            sign = 1.0 if kind == OTHERS else -1.0
            drawn = weeks.by_lot[week, pool] == 1
            k, n, state = int(drawn.sum()), len(pool), weeks.states[week, pool]
            if not 0 < k < n:
                continue
            both = np.stack([y[week, pool], sign * drawn])
            both = sign * _centred(both, state, n_states)  # [2, pool]
            sums.outcome[0, kind, week] += both[0, drawn].sum()
            sums.help[0, kind, week] += both[1, drawn].sum()
            again = _redrawn_sums(both, k, redraws, rng)
            sums.outcome[1:, kind, week] += again[0]
            sums.help[1:, kind, week] += again[1]
            # Of a sum of k draws from n values with mean 0, without replacement.
            sums.variance[kind, week] += k * (n - k) / (n * (n - 1)) * (both[0] ** 2).sum()
    return sums


def _lotteries(
    weeks: ReportedWeeks, known: NDArray[np.bool_], week: int
) -> Iterator[tuple[int, IntArray]]:
    """The lotteries of a week: OTHERS or LISTED, and the arms in it with a known outcome.

    known: [n]
    """
    by_lot, listed = weeks.by_lot[week] == 1, weeks.listed[week] == 1
    could = known if weeks.barred is None else known & (~weeks.barred[week] | listed | by_lot)
    before = listed ^ by_lot  # the list before places were drawn by lot
    N = len(known)
    groups = np.zeros(N, dtype=np.int64) if weeks.groups is None else weeks.groups
    codes = groups if groups.ndim == 1 else groups[week]
    for group in np.unique(codes):
        for kind, pool in ((OTHERS, ~before), (LISTED, before)):
            yield kind, np.flatnonzero(could & pool & (codes == group))


def _drawn(weeks: ReportedWeeks, y: FloatArray) -> tuple[IntArray, IntArray]:
    """How many were drawn in each lottery and week [2, w], and of these with a known outcome."""
    by_lot, listed = weeks.by_lot == 1, weeks.listed == 1
    both = np.stack([by_lot & listed, by_lot & ~listed])
    return both.sum(axis=-1), (both & ~np.isnan(y)).sum(axis=-1)


def _centred(x: FloatArray, state: IntArray, n_states: int) -> FloatArray:
    """x [k, m] less the means of each state; state: [m]"""
    inside = (state[:, None] == np.arange(n_states)).astype(float)  # [m, s]
    mean = x @ inside / np.maximum(inside.sum(axis=0), 1)
    return np.asarray(x - mean[:, state])


def _redrawn_sums(x: FloatArray, k: int, redraws: int, rng: np.random.Generator) -> FloatArray:
    """The sums [2, r] of x [2, n] over k of n drawn at random; the rows of x sum to 0.

    The smaller part is drawn; the other one has the opposite sum. A few people are drawn by Floyd's
    algorithm. For many it is quicker to draw how many of each kind there are: people in the same
    state with the same outcome, drawn or not, are alike.
    """
    n = x.shape[1]
    size = min(k, n - k)
    sign = 1.0 if size == k else -1.0
    if size > _FEW:
        kinds, counts = np.unique(x, axis=1, return_counts=True)
        drawn = rng.multivariate_hypergeometric(counts, size, redraws, method="marginals")
        return np.asarray(sign * kinds @ drawn.T)
    chosen = np.empty((redraws, size), dtype=np.int64)
    for i, top in enumerate(range(n - size, n)):
        pick = rng.integers(0, top + 1, size=redraws)
        taken = (chosen[:, :i] == pick[:, None]).any(axis=1)
        chosen[:, i] = np.where(taken, top, pick)
    return np.asarray(sign * x[:, chosen].sum(axis=2))


# --- looks


def spent(looks: Sequence[int], level: float = 0.05) -> FloatArray:
    """The error spent by each look [l], of O'Brien and Fleming's kind; the last spends `level`.

    4 - 4 Phi(z / sqrt(t)) with Phi(z) = 1 - level / 4 and t the share of the weeks: half of the
    level on either side (Lan and DeMets 1983).
    """
    share = np.asarray(looks, dtype=float) / looks[-1]
    return np.asarray(4 * ndtr(ndtri(level / 4) / np.sqrt(share)))


def boundaries(statistics: FloatArray, error: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The boundary of each look [l], which |statistic| must exceed, and its nominal level [l].

    Of all rows, at most a share error[j] crosses a boundary at one of the looks up to j.

    statistics: [1 + r, l], row 0 as observed, the others as redrawn;  error: [l] spent by each look
    """
    size = np.abs(np.round(statistics, _DIGITS))
    inside = np.ones(len(size), dtype=bool)
    bounds = np.zeros(size.shape[1])
    for look, allowed in enumerate(error):
        may = int(np.floor(allowed * len(size) + 1e-9)) - int((~inside).sum())
        bounds[look] = np.sort(size[inside, look])[::-1][may]
        inside &= size[:, look] <= bounds[look]
    return bounds, (size > bounds).mean(axis=0)


def standard_error(sums: LotterySums) -> FloatArray:
    """The standard error of the effect by all lotteries after each week [w], if help does nothing.

    effect / standard_error is about standard normal then. NaN before anything can be compared.
    """
    weight = sums.help[0].sum(axis=0).cumsum()
    sd = np.sqrt(sums.variance.sum(axis=0).cumsum())
    return np.divide(sd, weight, out=np.full(len(sd), np.nan), where=weight > 0)


def look_results(sums: LotterySums, looks: Sequence[int], level: float = 0.05) -> list[Look]:
    """The results of all looks that were reached; looks: weeks from 1, the last is the end."""
    reached = [week for week in looks if week <= sums.outcome.shape[2]]
    if not reached:
        return []
    error = spent(looks, level)[: len(reached)]
    at = np.array(reached) - 1
    outcome, help = (x.cumsum(axis=2)[:, :, at] for x in (sums.outcome, sums.help))
    statistics = np.round(outcome.sum(axis=1), _DIGITS)  # [1 + r, l]
    bounds, nominal = boundaries(statistics, error)
    found = []
    for j, week in enumerate(reached):
        size, level_here = np.abs(statistics[:, j]), float(nominal[j])
        y, h = outcome[:, :, j], help[:, :, j]
        drawn, known = (x[:, :week].sum(axis=1).tolist() for x in (sums.drawn, sums.known))
        look = Look(
            week=week,
            spent=float(error[j]),
            nominal=level_here,
            p=float((size >= size[0]).mean()),
            claim=int(np.sign(statistics[0, j])) if size[0] > bounds[j] else 0,
            effect=shift_interval(y.sum(axis=1), h.sum(axis=1), level_here),
            others=shift_interval(y[:, OTHERS], h[:, OTHERS], level_here),
            listed=shift_interval(y[:, LISTED], h[:, LISTED], level_here),
            list_gain=gain_interval(y, h, level_here),
            drawn=drawn[0],
            drawn_known=known[0],
            waiting=drawn[1],
            waiting_known=known[1],
        )
        found.append(look)
    return found


# --- intervals


def shift_interval(outcome: FloatArray, help: FloatArray, level: float) -> Interval:
    """All shifts tau that a test of |outcome - tau help| at `level` accepts: closed form.

    A redraw is at least as large as what was drawn between two values of tau, which enclose the
    estimate: where outcome_r - tau help_r equals +-(outcome_0 - tau help_0). Redraws with as much
    help as drawn count for all tau, which can only widen the interval.

    outcome, help: [1 + r] sums, row 0 as drawn
    """
    y, h = outcome[0], help[0]
    if not np.round(h, _DIGITS) > 0:
        return Interval(None)
    inside = np.abs(help) < h - 10.0**-_DIGITS
    less, more = np.where(inside, h - help, 1.0), np.where(inside, h + help, 1.0)
    ends = np.stack([(y - outcome) / less, (y + outcome) / more])
    low = np.sort(np.where(inside, ends.min(axis=0), -np.inf))
    high = np.sort(np.where(inside, ends.max(axis=0), np.inf))[::-1]
    rejected = round(level * len(outcome))  # redraws that a rejection may have at most
    low, high = low[rejected], high[rejected]
    return Interval(float(y / h), float(max(low, -1.0)), float(min(high, 1.0)))


def gain_interval(outcome: FloatArray, help: FloatArray, level: float) -> Interval:
    """The effect among the listed less that among the others, with both effects constant.

    The errors of both estimates are redrawn, each with the effect of its own lottery.

    outcome, help: [1 + r, 2] sums, row 0 as drawn
    """
    y, h = outcome[0], help[0]
    if not (np.round(h, _DIGITS) > 0).all():
        return Interval(None, -2.0, 2.0)
    effect = y / h
    error = (outcome - effect * help) / h
    gain = float(effect[LISTED] - effect[OTHERS])
    size = np.sort(np.abs(error[:, LISTED] - error[:, OTHERS]))[::-1]
    reach = float(size[round(level * len(size))])
    return Interval(gain, max(gain - reach, -2.0), min(gain + reach, 2.0))
