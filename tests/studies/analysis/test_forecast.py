"""The forecast of the coming weeks, on data with a known answer."""

import numpy as np
import pytest

from dopl_core.learning.moves import model
from dopl_core.studies.analysis import effect_of_help, forecast


def test_a_forecast_takes_half_of_its_draws_from_each_prior():
    usual, sceptical = np.zeros((5, 2)), np.ones((5, 2))
    assert forecast.under_both_priors(usual, sceptical)[:, 0].tolist() == [0, 0, 0, 1, 1]


def two_kinds(help_first: float, help_second: float) -> np.ndarray:
    """Four arms that fall to state 0 unless help raises them: two with each chance."""
    P = np.zeros((1, 4, 2, 2, 2))
    P[..., 0, :] = [1.0, 0.0]
    for arms, chance in ((slice(0, 2), help_first), (slice(2, 4), help_second)):
        P[:, arms, :, 1] = [1 - chance, chance]
    return P


def test_the_forecast_compares_the_list_with_help_at_random_and_worst_first():
    P, half = two_kinds(1.0, 0.0), np.tile([0.0, 1.0], (4, 1))
    priority = np.array([[1.0, 1.0], [1.0, 1.0], [0.0, 0.0], [0.0, 0.0]])
    states, rng = np.zeros(4, dtype=int), np.random.default_rng(0)
    ways = forecast.policies(priority)
    pay = forecast.simulate_weeks(P, half, ways, states, 2, rng, times=200)[0]
    assert pay.tolist() == pytest.approx([2.0, 14 / 19, 1.0, 0.0], abs=0.03)
    found = forecast.summarise_weeks(np.tile(pay, (5, 1)))
    assert found.over_random.mean == pytest.approx(1.0, abs=0.03)
    assert found.over_worst_first.mean == pytest.approx(24 / 19, abs=0.03)


def test_the_list_gains_nothing_if_help_has_no_effect():
    P, half = two_kinds(0.0, 0.0), np.tile([0.0, 1.0], (4, 1))
    rng = np.random.default_rng(0)
    ways = forecast.policies(np.eye(4)[:, :2])
    pay = forecast.simulate_weeks(P, half, ways, np.zeros(4, dtype=int), 2, rng)
    assert pay.tolist() == [[0.0, 0.0, 0.0, 0.0]]


def lucky_list(seed: int, idle: float) -> float:
    """The forecast gain of a list of the arms with the highest estimates, if help has no effect."""
    rng, N = np.random.default_rng(seed), 10
    visits = rng.multinomial(6, [0.6, 0.4], (N, 2, 2))
    estimated = effect_of_help.gains(model.draw(visits, None, 50, rng)).mean(axis=0)
    drawn, half = model.draw(visits, None, 100, rng, idle), np.tile([0.0, 1.0], (N, 1))
    states = np.zeros(N, dtype=int)
    ways = forecast.policies(100 * estimated)
    pay = forecast.simulate_weeks(drawn, half, ways, states, 3, rng, times=5)
    return forecast.summarise_weeks(pay).over_random.mean


def test_the_sceptical_prior_reduces_the_winners_curse():
    gained = [
        [lucky_list(seed, idle) for idle in (forecast.NO_EFFECT_PRIOR, 0.0)] for seed in range(12)
    ]
    sceptical, plain = np.mean(gained, axis=0)
    assert sceptical < plain < 0.25


def test_agreement_of_all_draws_is_not_certainty():
    found = np.zeros((99, 4), dtype=bool)
    found[:, 0], found[:49, 1], found[:89, 2] = True, True, True
    probability = forecast.belonging_probability(found)
    assert probability.tolist() == pytest.approx([0.854, 0.498, 0.672, 0.146], abs=0.002)
    assert forecast.expected_count(probability).mean == pytest.approx(2.170, abs=0.005)


def test_the_interval_of_an_expected_count_stays_within_its_bounds():
    found = forecast.expected_count(np.full(100, 0.5))
    assert found[:3] == pytest.approx((50, 41.8, 58.2), abs=0.1)
    few = forecast.expected_count(np.array([0.9, 0.9]))
    assert few.high == 2
    assert forecast.expected_count(np.array([0.1])).low == 0


def test_best_lists_are_optimal_for_each_draw():
    P = np.concatenate([two_kinds(0.9, 0.1), two_kinds(0.9, 0.1), two_kinds(0.1, 0.9)])
    strengths = np.tile([0.0, 1.0], (3, 4, 1))
    found = forecast.best_lists(P, strengths, np.zeros(4, dtype=int), 2)
    assert found.tolist() == [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1]]
    may = np.array([True, True, True, False])
    found = forecast.best_lists(P, strengths, np.zeros(4, dtype=int), 2, may=may)
    assert found.tolist() == [[1, 1, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0]]


def test_the_mean_shift_has_the_variance_that_answers_remove():
    V, pairs = np.diag([4.0, 1.0, 1.0]), np.array([[0, 1]])
    F = forecast.mean_shift_factor(V, pairs, np.zeros(3))
    x = np.array([1.0, -1.0, 0.0])
    removed = np.outer(V @ x, V @ x) / (4 + x @ V @ x)  # a duel of equals has information 1/4
    assert np.allclose(F @ F.T, removed)
