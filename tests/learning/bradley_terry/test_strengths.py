"""Each step of the posterior of strengths, beside the same sum done the long way."""

import numpy as np
import pytest
from scipy.special import expit, log_expit

from dopl_core.learning import preferences
from dopl_core.learning.bradley_terry import parts, strengths
from dopl_core.learning.bradley_terry.spreads import (
    GRID,
    SPREADS,
    Prior,
    bands,
    log_prior,
    unordered,
)
from dopl_core.learning.bradley_terry.strengths import Answers
from dopl_core.learning.counts import Counts, Table

N, S = 4, 3
STATE = np.tile(np.eye(S), (N, 1))  # [M, S]: theta = STATE state + ARM arm + residual
ARM = np.kron(np.eye(N), np.ones((S, 1)))
RISE, BEND = np.array([-1.2, 0.1, 1.1]), 0.5
ROOT = np.array([[0.6, 0.0, 0.0], [0.3, 0.8, 0.0], [0.9, -0.2, 0.5]])
RESIDUALS = np.kron(np.eye(N), ROOT @ ROOT.T)  # prior covariance [M, M], in units of their spread


@pytest.fixture(scope="module")
def answers():
    """Curvature and pull of some answers."""
    rng = np.random.default_rng(0)
    weight = rng.random((N * S, N * S)) * (rng.random((N * S, N * S)) < 0.3)
    weight = weight + weight.T
    curvature = np.diag(weight.sum(axis=1)) - weight
    return curvature, curvature @ rng.normal(size=N * S)


def log_gaussian(curvature, pull, variance):
    """The log of the integral of exp(pull x - x curvature x / 2) over x ~ N(0, variance)."""
    system = np.eye(len(pull)) + variance @ curvature
    return (
        0.5 * pull @ np.linalg.solve(system, variance @ pull) - 0.5 * np.linalg.slogdet(system)[1]
    )


@pytest.mark.parametrize("r", range(len(SPREADS)))
def test_what_is_left_of_states_and_arms_is_what_residuals_do_not_explain(answers, r):
    curvature, pull = answers
    rest = parts.without_residuals(curvature, pull, (N, S), ROOT)
    blurred = np.linalg.inv(np.eye(N * S) + SPREADS[r] ** 2 * RESIDUALS @ curvature)
    left = curvature @ blurred
    assert rest.of_states[r] == pytest.approx(STATE.T @ left @ STATE)
    assert rest.of_arms[r] == pytest.approx(ARM.T @ left @ ARM)
    assert rest.of_both[r] == pytest.approx(ARM.T @ left @ STATE)
    assert rest.states[r] == pytest.approx(STATE.T @ blurred.T @ pull)
    assert rest.arms[r] == pytest.approx(ARM.T @ blurred.T @ pull)
    variance = SPREADS[r] ** 2 * RESIDUALS
    assert rest.log[r] == pytest.approx(log_gaussian(curvature, pull, variance))


@pytest.mark.parametrize(("r", "a"), [(0, 0), (0, 4), (3, 2), (5, 6)])
def test_the_evidence_of_arms_and_residuals_is_that_of_their_sum(answers, r, a):
    curvature, pull = answers
    arms = parts.given_states(parts.without_residuals(curvature, pull, (N, S), ROOT))
    variance = SPREADS[r] ** 2 * RESIDUALS + SPREADS[a] ** 2 * ARM @ ARM.T
    assert arms.log[r, a] == pytest.approx(log_gaussian(curvature, pull, variance))
    left = np.linalg.solve(np.eye(N * S) + curvature @ variance, curvature)
    assert arms.of_states[r, a] == pytest.approx(STATE.T @ left @ STATE)
    assert arms.states[r, a] == pytest.approx(
        STATE.T @ np.linalg.solve(np.eye(N * S) + curvature @ variance, pull)
    )


def integrated(curvature, pull):
    """The quadratic of some answers as an expansion, and its log evidence of all spreads."""
    known = parts.integrate(curvature, pull, (N, S), Prior(RISE, BEND, ROOT, small=True))
    nothing = np.zeros(N * S), curvature, pull, 0.0
    return strengths.Expansion(*nothing, *known, known[2].log, np.zeros((1, N * S)))


@pytest.mark.parametrize(("r", "a", "t"), [(0, 0, 1), (2, 0, 3), (1, 5, 2), (4, 4, 5)])
def test_with_one_choice_of_spreads_the_posterior_is_the_gaussian_one(answers, r, a, t):
    curvature, pull = answers
    one = integrated(curvature, pull)
    weight = np.zeros(one.log.shape)
    weight[r, a, t - 1] = 1.0
    mean, second = parts.moments(one.rest, one.arms, one.states, weight)

    prior = SPREADS[t] * STATE @ RISE
    variance = SPREADS[r] ** 2 * RESIDUALS + SPREADS[a] ** 2 * ARM @ ARM.T
    variance = variance + (BEND * SPREADS[t]) ** 2 * STATE @ STATE.T
    expected = np.linalg.solve(np.eye(N * S) + variance @ curvature, variance)
    assert second - np.outer(mean, mean) == pytest.approx(expected, abs=1e-9)
    assert mean == pytest.approx(prior + expected @ (pull - curvature @ prior), abs=1e-9)
    evidence = log_gaussian(curvature, pull - curvature @ prior, variance)
    evidence += pull @ prior - 0.5 * prior @ curvature @ prior
    assert one.log[r, a, t - 1] == pytest.approx(evidence)


def test_spreads_are_averaged_by_their_evidence(answers):
    one = integrated(*answers)
    rng = np.random.default_rng(1)
    weight = rng.random(one.log.shape)
    weight /= weight.sum()
    mean, second = parts.moments(one.rest, one.arms, one.states, weight)
    first, product = np.zeros(N * S), np.zeros((N * S, N * S))
    for place in np.ndindex(weight.shape):
        alone = np.zeros_like(weight)
        alone[place] = 1.0
        m, V = parts.moments(one.rest, one.arms, one.states, alone)
        first += weight[place] * m
        product += weight[place] * V
    assert mean == pytest.approx(first)
    assert second == pytest.approx(product, abs=1e-9)
    known = one.rest, one.arms, one.states
    assert parts.means_of(*known, np.array([weight, weight]))[1] == pytest.approx(mean)


def sure(rng, items, count, spread):
    """Answers about items whose strengths have a spread, as counts; one state."""
    theta = spread * rng.normal(size=items)
    i = rng.integers(items, size=count)
    j = (i + rng.integers(1, items, size=count)) % items
    won = rng.random(count) < expit(theta[i] - theta[j])
    counts = Counts(items)
    counts.add(np.where(won, i, j), np.where(won, j, i))
    return counts


def laplace(counts, spread):
    """Mean and log evidence of strengths with one known spread, by Newton's method."""
    theta, answers = np.zeros(counts.size), Answers(counts, None)
    for _ in range(50):
        curvature, gradient = strengths.curvature_and_gradient(answers, theta)
        precision = curvature + np.eye(counts.size) / spread**2
        step = np.linalg.solve(precision, gradient - theta / spread**2)
        theta = theta + strengths.safe_share(step, answers) * step
    evidence = strengths.log_likelihood(answers, theta) - 0.5 * theta @ theta / spread**2
    return theta, evidence - 0.5 * np.linalg.slogdet(spread**2 * precision)[1]


@pytest.mark.parametrize("spread", [0.3, 1.0, 4.0])
@pytest.mark.parametrize(("items", "count"), [(18, 140), (100, 800)])
def test_strengths_are_the_average_of_one_expansion_for_each_spread(spread, items, count):
    counts = sure(np.random.default_rng(2), items, count, spread)
    cells = np.sqrt((GRID[:2, :, :, 0] ** 2).sum(axis=0)).round(9)
    prior = np.exp(log_prior(GRID[:, :, :, 0], (items, 1), small=False))
    totals = np.unique(cells)
    means, log = zip(*(laplace(counts, total) for total in totals), strict=True)
    log = np.array(log) + [np.log(prior[cells == total].sum()) for total in totals]
    weight = np.exp(log - log.max())
    expected = weight @ np.array(means) / weight.sum()
    mean, covariance = strengths.settled(
        Answers(counts, None), np.zeros(items), (items, 1), unordered(1)
    )
    sd = np.sqrt(covariance.diagonal()).mean()
    mean, expected = mean - mean.mean(), expected - expected.mean()
    assert np.sqrt(np.mean((mean - expected) ** 2)) < 0.2 * sd
    assert np.std(mean) == pytest.approx(np.std(expected), rel=0.05)


def test_a_band_of_spreads_is_a_factor_of_the_square_root_of_2():
    total = np.hypot(GRID[0], GRID[1])
    for band in np.unique(bands())[1:-1]:
        assert np.ptp(np.log2(total[bands() == band])) <= 0.5


def test_with_sureness_the_likelihood_is_that_of_each_persons_answers():
    rng = np.random.default_rng(5)
    M, sureness, theta = 6, np.array([0.4, 1.0, 2.5]), rng.normal(size=6)
    counts = Counts(M)
    winner = rng.integers(M, size=80)
    loser = (winner + rng.integers(1, M, size=80)) % M
    counts.add(winner, loser, rng.choice([0.5, 1.0], size=80), rng.integers(3, size=80))
    table = counts.table()

    def log_likelihood(theta):
        total = 0.0
        for i, j, who, times in zip(*table, strict=True):
            total -= times * np.log1p(np.exp(-sureness[who] * (theta[i] - theta[j])))
        return total

    weight, gradient = strengths.likelihood_of_people(table, theta, sureness)
    step, e = 1e-4, np.eye(M)
    slope = [(log_likelihood(theta + step * d) - log_likelihood(theta - step * d)) for d in e]
    assert gradient == pytest.approx(np.array(slope) / (2 * step), abs=1e-6)
    bends = [
        strengths.likelihood_of_people(table, theta + step * d, sureness)[1]
        - strengths.likelihood_of_people(table, theta - step * d, sureness)[1]
        for d in e
    ]
    curvature = np.diag(weight.sum(axis=1)) - weight
    assert curvature == pytest.approx(-np.array(bends) / (2 * step), abs=1e-6)


def test_people_who_are_all_as_sure_as_usual_change_nothing():
    rng = np.random.default_rng(6)
    theta = rng.normal(size=6)
    counts = Counts(6)
    winner = rng.integers(6, size=80)
    counts.add(winner, (winner + 1) % 6, 1.0, rng.integers(3, size=80))
    usual = strengths.likelihood(counts.wins(), theta)
    for one, other in zip(
        strengths.likelihood_of_people(counts.table(), theta, np.ones(3)), usual, strict=True
    ):
        assert one == pytest.approx(other, abs=1e-12)
    believed = [
        preferences.calibrated(counts, 2, 0, sureness=sureness).mean
        for sureness in (None, np.ones(3), np.full(3, 2.0))
    ]
    assert believed[0] == pytest.approx(believed[1], abs=1e-9)
    assert np.ptp(believed[2]) < np.ptp(believed[0])


def answered(table, sureness):
    counts = Counts(6)
    counts.add(table.winner, table.loser, table.times, table.who)
    return Answers(counts, sureness)


def test_a_safe_share_of_any_step_makes_the_fit_better():
    """For one choice of spreads, from anywhere; the whole step often makes it worse."""
    rng, M, worse = np.random.default_rng(7), 6, 0
    for _ in range(200):
        winner = rng.integers(M, size=40)
        table = Table(
            winner, (winner + rng.integers(1, M, size=40)) % M, np.arange(40) % 3, np.ones(40)
        )
        k, theta, variance = np.exp(rng.normal(size=3)), 5 * rng.normal(size=M), 64.0

        def value(theta, table=table, k=k, variance=variance):
            odds = k[table.who] * (theta[table.winner] - theta[table.loser])
            return log_expit(odds).sum() - theta @ theta / variance / 2

        weight, gradient = strengths.likelihood_of_people(table, theta, k)
        precision = np.diag(weight.sum(axis=1)) - weight + np.eye(M) / variance
        step = np.linalg.solve(precision, gradient - theta / variance)
        share = strengths.safe_share(step, answered(table, k))
        assert value(theta + share * step) > value(theta)
        worse += value(theta + step) < value(theta)
    assert worse > 20


def test_short_steps_stay_whole():
    table = Table(np.array([0]), np.array([1]), np.array([0]), np.array([1.0]))
    for step, k, share in ((0.0, 1, 1), (1.5, 1, 1), (3.0, 0.5, 1), (3.0, 1, 0.5), (1.5, 2, 0.5)):
        found = strengths.safe_share(np.array([step, 0.0]), answered(table, np.array([k])))
        assert found == pytest.approx(share)
    assert strengths.safe_share(np.array([1e6, 0.0]), answered(table, None)) < 2e-5


@pytest.mark.parametrize("arms", [20, 150])  # for the exact method, and for that of many
@pytest.mark.parametrize("sureness", [None, np.array([1.0, 0.2, 4.0])])
def test_strengths_are_the_same_wherever_they_start(arms, sureness):
    rng, M = np.random.default_rng(8), 3 * arms
    truth, counts = np.tile([0.0, 3.0, 6.0], arms), Counts(M)
    winner = rng.integers(M, size=8 * M)
    loser = (winner + rng.integers(1, M, size=8 * M)) % M
    wins = rng.random(8 * M) < expit(truth[winner] - truth[loser])
    who = rng.integers(3, size=8 * M)
    counts.add(np.where(wins, winner, loser), np.where(wins, loser, winner), 1.0, who)
    settings = {"ordered": True, "sureness": sureness}
    cold = preferences.calibrated(counts, 3, None, **settings)
    assert np.abs(cold.mean).max() < 10
    for far in (2, 10, 10_000):
        warm = cold.warm | {"theta": far * rng.normal(size=M)}
        found = preferences.calibrated(counts, 3, None, warm, **settings)
        assert np.abs(found.mean - cold.mean).max() < 2 * strengths.SETTLED
