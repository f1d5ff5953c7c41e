"""Strengths of many: each step beside the same done densely, all of it beside the exact method."""

import numpy as np
import pytest

from dopl_core.learning import preferences
from dopl_core.learning.bradley_terry import large_strengths as large
from dopl_core.learning.bradley_terry import large_systems as systems
from dopl_core.learning.bradley_terry import spreads, strengths
from dopl_core.learning.counts import Counts

N, S = 12, 3
ROOT = spreads.order(S).root


def answers(rng, truth, count, people=1, sureness=(1.0,)):
    """Counts of duels between random arms in random states, of strengths [N, S]."""
    n_arms, n_states = truth.shape
    first = rng.integers(n_arms, size=count)
    second = (first + rng.integers(1, n_arms, size=count)) % n_arms
    i = first * n_states + rng.integers(n_states, size=count)
    j = second * n_states + rng.integers(n_states, size=count)
    who = rng.integers(people, size=count)
    k = np.asarray(sureness)[who]
    won = rng.random(count) < 1 / (1 + np.exp(k * (truth.flat[j] - truth.flat[i])))
    counts = Counts(truth.size)
    counts.add(np.where(won, i, j), np.where(won, j, i), 1.0, who)
    return counts


def drawn(rng, n_arms, n_states, state=0.8, arm=0.7, residual=0.3):
    parts = rng.normal(size=n_states), rng.normal(size=(n_arms, 1))
    return state * parts[0] + arm * parts[1] + residual * rng.normal(size=(n_arms, n_states))


@pytest.fixture(scope="module")
def case():
    """A system, the same as a dense matrix, and what it was made of."""
    rng = np.random.default_rng(0)
    counts = answers(rng, drawn(rng, N, S), 150, people=2, sureness=(0.5, 2.0))
    theta, sureness = rng.normal(size=N * S), np.array([0.5, 2.0])
    compared = systems.graph(counts.table(), N * S)
    weight, gradient = systems.likelihood(counts.table(), compared, theta, sureness)
    dense, expected = strengths.likelihood_of_people(counts.table(), theta, sureness)
    assert gradient == pytest.approx(expected)
    system = systems.make_system(compared, weight, (N, S), np.array([0.3, 0.7]), ROOT)
    K = 0.09 * np.kron(np.eye(N), ROOT @ ROOT.T) + 0.49 * np.kron(np.eye(N), np.ones((S, S)))
    precision = np.linalg.inv(K) + np.diag(dense.sum(axis=1)) - dense
    return system, precision, compared, weight


def test_the_system_is_the_priors_precision_and_the_laplacian_of_the_duels(case):
    system, precision, _, _ = case
    assert systems.multiply(system, np.eye(N * S)) == pytest.approx(precision)


def test_an_arm_alone_is_solved_exactly(case):
    system, precision, _, _ = case
    blocks = precision * np.kron(np.eye(N), np.ones((S, S)))
    assert systems.alone(system, np.eye(N * S)) == pytest.approx(np.linalg.inv(blocks))


def test_conjugate_gradients_find_the_solution(case, monkeypatch):
    system, precision, _, _ = case
    monkeypatch.setattr(systems, "_CLOSE", 1e-10)
    b = np.random.default_rng(1).normal(size=(N * S, 11))
    b[:, 3] = 0
    found = systems.solve(system, b, np.zeros_like(b))
    assert found == pytest.approx(np.linalg.solve(precision, b), abs=1e-8)


def test_perturbed_solutions_vary_as_what_is_known(case, monkeypatch):
    system, precision, compared, weight = case
    b = systems.perturbed(system, compared, weight, np.random.default_rng(2), 4000)
    found = systems.solve(system, b, np.zeros_like(b))
    expected = np.linalg.inv(precision)
    assert found @ found.T / 4000 == pytest.approx(expected, abs=0.05)
    monkeypatch.setattr(large, "DRAWS", 800)
    variance = large.variances(system, compared, weight, np.random.default_rng(3))
    assert variance == pytest.approx(expected.diagonal(), rel=0.05)


def test_without_answers_it_is_the_prior_of_the_exact_method():
    order = spreads.order(S)
    known = large.before_answers((N, S), order)
    mean, covariance = strengths.before_answers((N, S), order)
    assert known.theta == pytest.approx(mean)
    assert known.variance == pytest.approx(covariance.diagonal())
    assert known.covariance(np.eye(N * S)) == pytest.approx(covariance, abs=1e-6)


@pytest.mark.parametrize(
    ("shape", "parts", "each", "ordered", "within"),
    [
        ((134, 3), (0.8, 0.7, 0.3), 10, False, 0.25),
        ((134, 3), (0.8, 0.7, 0.3), 2, True, 0.25),
        ((134, 3), (0.8, 0.0, 0.0), 10, False, 0.25),
        ((201, 2), (2.0, 1.0, 1.0), 30, False, 0.25),
        ((134, 3), (2.0, 2.0, 2.0), 30, True, 0.25),  # annotators who hardly ever err
        ((134, 3), (4.0, 4.0, 4.0), 5, False, 0.25),
        ((134, 3), (2.0, 2.0, 2.0), 10, False, 0.45),  # a grid is coarse where spreads are large
    ],
)
def test_around_its_least_size_it_agrees_with_the_exact_method(
    shape, parts, each, ordered, within, monkeypatch
):
    rng = np.random.default_rng(4)
    counts = answers(rng, drawn(rng, *shape, *parts), each * shape[0])
    reference = preferences.most_compared(counts)
    assert counts.size > preferences.MOST_EXACT
    many = preferences.calibrated(counts, shape[1], reference, ordered=ordered)
    monkeypatch.setattr(preferences, "MOST_EXACT", counts.size)
    exact = preferences.calibrated(counts, shape[1], reference, ordered=ordered)
    others = np.arange(counts.size) != reference
    sd = exact.sd.ravel()[others]
    gap = (many.mean - exact.mean).ravel()[others] / sd
    assert np.sqrt(np.mean(gap**2)) < within
    assert np.mean(many.sd.ravel()[others] / sd) == pytest.approx(1, abs=0.2)
    assert np.mean(many.overestimate - many.mean) == pytest.approx(
        np.mean(exact.overestimate - exact.mean), rel=0.2
    )
    assert many.sd.flat[reference] == many.mean.flat[reference] == 0


def test_90_percent_intervals_of_many_cover_their_share():
    rng = np.random.default_rng(5)
    for each, temperature in ((5, 1.0), (20, 0.4), (20, 1.0)):
        inside = []
        for _ in range(6):
            truth = drawn(rng, 300, S, 0.3, 0.3, 0.1) / temperature
            counts = answers(rng, truth, each * 300)
            belief = preferences.calibrated(counts, S, None)
            asked = counts.compared().reshape(300, S) / counts.compared().sum()
            gap = belief.mean - truth + (asked * truth).sum()
            inside.append((np.abs(gap) < 1.645 * belief.sd).mean())
        assert 0.82 < np.mean(inside) < 0.97


def test_who_is_how_sure_counts_for_many_too():
    rng = np.random.default_rng(6)
    truth = drawn(rng, 300, 2)
    sureness = np.array([0.3, 3.0])
    counts = answers(rng, truth, 6000, 2, sureness)
    errors = [
        np.std(preferences.calibrated(counts, 2, None, sureness=k).mean - truth)
        for k in (sureness, sureness[::-1])
    ]
    assert errors[0] < 0.7 * errors[1]


def test_the_same_answers_give_the_same_bits_and_a_warm_start_the_same_strengths():
    rng = np.random.default_rng(7)
    counts = answers(rng, drawn(rng, 250, 2), 2500)
    first, again = (preferences.calibrated(counts, 2, 0) for _ in range(2))
    assert first.mean.tobytes() == again.mean.tobytes()
    assert first.sd.tobytes() == again.sd.tobytes()
    warm = preferences.calibrated(counts, 2, 0, first.warm)
    assert warm.warm["spreads"] == pytest.approx(first.warm["spreads"], rel=0.05)
    assert np.abs(warm.mean - first.mean).max() < 0.1
