"""Forecast of the coming weeks: the list, worst first, help at random and no help, simulated.

All are simulated with the same posterior draws (learning/moves) and the same random numbers, so
that no optimistic value is compared with a mean one.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtri

from dopl_core.learning.bandit import ACT, WAIT, FloatArray, IntArray
from dopl_core.learning.planning import plan
from dopl_core.learning.planning.problem import Pays
from dopl_core.studies.analysis.effect_of_help import LEVEL, Estimate, summarise

WEEKS_AHEAD = 26
# Prior probability that help has no effect in a state: the sceptical prior. It avoids the winner's
# curse, because the list holds the arms for which the effect was estimated highest.
NO_EFFECT_PRIOR = 0.12
WIDENING = 1.1  # of intervals; these three were calibrated with bench working
CONFIDENCE = 3.0  # of draws, in log-odds: how much too sure they are of who belongs on the list


class Forecast(NamedTuple):
    """People in the better half, on average of the coming weeks, by whom help goes to.

    worst_first: the worst states first, ties broken at random
    over_random, over_worst_first: by_list minus at_random, and minus worst_first
    """

    by_list: Estimate
    worst_first: Estimate
    at_random: Estimate
    no_help: Estimate
    over_random: Estimate
    over_worst_first: Estimate


def under_both_priors(draws: FloatArray, sceptical: FloatArray) -> FloatArray:
    """Draws [d, ...] for a forecast: every other one of each kind, both [d, ...].

    Without doubt, the list is expected to do too well: it holds the arms for which the effect was
    estimated highest. Under the sceptical prior alone, intervals are too short where help does a
    little everywhere (bench working).
    """
    return np.concatenate([draws[::2], sceptical[1::2]])


def policies(priority: FloatArray) -> list[FloatArray | None]:
    """The policies of a Forecast in its order, as simulate_weeks takes them; priority: [n, s]."""
    N, S = priority.shape
    return [priority, np.tile(-np.arange(S), (N, 1)), np.zeros((N, S)), None]


def simulate_weeks(
    transitions: FloatArray,
    pay: FloatArray,
    policies: Sequence[FloatArray | None],
    states: IntArray,
    budget: int,
    rng: np.random.Generator,
    weeks: int = WEEKS_AHEAD,
    times: int = 1,
) -> FloatArray:
    """Mean weekly pay of all arms together [d, p], one column for each policy.

    transitions: [d, n, s, a, s'];  pay: [d, n, s] or [n, s];  states: [n] at the start
    policies: priorities [n, s], whole numbers, ties broken at random; None for no help
    times: simulations for each draw, which are averaged
    """
    drawn, N, S = transitions.shape[:3]
    D = drawn * times
    # Flat arrays with offsets are much faster than indexing with three arrays for each move.
    up_to = np.moveaxis(transitions.cumsum(axis=4)[..., :-1], 4, 0).reshape(S - 1, -1)
    pay = np.broadcast_to(pay, (drawn, *pay.shape[-2:])).ravel()
    arm = np.arange(N) * S
    place = np.repeat(np.arange(drawn), times)[:, None] * N * S + arm  # [D, n]
    now = np.broadcast_to(states, (len(policies), D, N)).copy()
    total = np.zeros((D, len(policies)))
    for _ in range(weeks):
        lots, luck = rng.random((2, D, N))
        for way, priority in enumerate(policies):
            here = now[way]
            helped = np.full((D, N), WAIT)
            if priority is not None:
                urgent = lots + priority.ravel()[arm + here]
                chosen = np.argpartition(urgent, N - budget, axis=1)[:, N - budget :]
                np.put_along_axis(helped, chosen, ACT, axis=1)
            row = 2 * (place + here) + helped
            here[:] = sum((luck >= below[row]).astype(np.int64) for below in up_to)
            total[:, way] += pay[place + here].sum(axis=1)
    return np.asarray(total.reshape(drawn, times, -1).mean(axis=1) / weeks)


def summarise_weeks(pay: FloatArray) -> Forecast:
    """The forecast from the pay [d, 4] that simulate_weeks returns."""
    by_list, worst_first, at_random, no_help = pay.T
    parts = (by_list, worst_first, at_random, no_help, by_list - at_random, by_list - worst_first)
    return Forecast(*(summarise(part, widening=WIDENING) for part in parts))


def best_lists(
    transitions: FloatArray,
    strengths: FloatArray,
    states: IntArray,
    budget: int,
    pays: Pays = "all",
    may: NDArray[np.bool_] | None = None,
) -> NDArray[np.bool_]:
    """The arms [d, n] that the optimal plan would list now if each draw were true.

    transitions: [d, n, s, a, s'];  strengths: [d, n, s];  states: [n]
    may: [n] who may be on the list now; None for all
    """
    found = np.zeros(strengths.shape[:2], dtype=bool)
    start, arm = None, np.arange(len(states))
    for listed, P, Q in zip(found, transitions, strengths, strict=True):
        made = plan(Q, P, P, budget, engine="lagrangian", pays=pays, start=start)
        start = made.start
        gain = made.advantage[arm, states]
        gain = gain if may is None else np.where(may, gain, -np.inf)
        listed[np.argsort(-gain, kind="stable")[:budget]] = True
    return found


def belonging_probability(best: NDArray[np.bool_]) -> FloatArray:
    """The probability [n] to belong on the list, from best_lists [d, n].

    An arm belongs if it would be listed were everyone's response to help known. The log-odds are
    divided by CONFIDENCE: draws agree about arms that were rarely seen without help by what is
    known of others, more than arms are alike (bench working).
    """
    share = (best.sum(axis=0) + 0.5) / (len(best) + 1)
    return np.asarray(expit(logit(share) / CONFIDENCE))


def expected_count(probabilities: FloatArray) -> Estimate:
    """How many of independent events with these probabilities [n] happen."""
    p = probabilities
    mean, sd = float(p.sum()), float(np.sqrt((p * (1 - p)).sum()))
    reach = float(ndtri((1 + LEVEL) / 2)) * sd
    return Estimate(mean, max(mean - reach, 0.0), min(mean + reach, len(p)), 1.0)


def mean_shift_factor(covariance: FloatArray, pairs: IntArray, strengths: FloatArray) -> FloatArray:
    """How answers to pairs [k, 2] of arm-states may move the posterior mean: a factor F [m, k].

    The new mean is the present mean plus F z for standard normal z: F F' is the reduction of the
    covariance [m, m] by the answers. strengths: [m] the present mean
    """
    left, right = pairs.T
    towards = covariance[:, left] - covariance[:, right]  # [m, k]
    between = towards[left] - towards[right]
    gap = strengths[left] - strengths[right]
    noise = 2 + 2 * np.cosh(gap)  # 1 / (p (1 - p)) of a duel
    known, basis = np.linalg.eigh(between + np.diag(noise))
    return np.asarray(towards @ (basis / np.sqrt(known)))
