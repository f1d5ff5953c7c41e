"""Reliability of answers: known answers on small cases, and values that were published."""

import numpy as np
import pytest
from scipy.special import expit

from dopl_core.learning.bradley_terry import reliability


def answered(seed, n_items=12, answers=400, spread=2.0, annotators=6, random=0):
    """Winners, losers and annotators of whom the first `random` click at random."""
    rng = np.random.default_rng(seed)
    truth, one = rng.normal(0, spread, n_items), rng.integers(n_items, size=answers)
    other = (one + rng.integers(1, n_items, size=answers)) % n_items
    who = rng.integers(annotators, size=answers)
    chance = np.where(who < random, 0.5, expit(truth[one] - truth[other]))
    won = rng.random(answers) < chance
    return np.where(won, one, other), np.where(won, other, one), who


def test_parts_that_no_duel_connects_do_not_run_away():
    winners, losers = np.array([0, 1, 2, 2, 3, 4]), np.array([1, 0, 0, 3, 4, 3])
    apart = np.concatenate([winners, winners + 5]), np.concatenate([losers, losers + 5])
    one, both = reliability.fit(winners, losers, 5)[0], reliability.fit(*apart, 10)[0]
    np.testing.assert_allclose(both, [*one, *one], atol=1e-6)


def test_where_no_strengths_give_the_scores_nothing_is_said():
    # Three items won their only duel over one that lost all: their scores, drawn in, are too low.
    core = np.array([0, 1, 2]), np.array([1, 2, 0])
    winners = np.concatenate([*[core[0]] * 5, [3, 4, 5], [0, 1, 2]])
    losers = np.concatenate([*[core[1]] * 5, [6, 6, 6], [6, 6, 6]])
    assert np.isnan(reliability.scale_separation(winners, losers, 7))
    kept = reliability.often_compared(winners, losers, 3)
    np.testing.assert_array_equal(kept, [*[True] * 15, False, False, False, *[True] * 3])
    assert not np.isnan(reliability.scale_separation(winners[kept], losers[kept], 7))


def test_items_without_duels_have_no_strength():
    strengths, variances = reliability.fit(np.array([0, 2]), np.array([2, 0]), 4)
    np.testing.assert_array_equal(np.isnan(strengths), [False, True, False, True])
    np.testing.assert_array_equal(np.isnan(variances), [False, True, False, True])


@pytest.mark.parametrize(("answers", "short"), [(100, 0.1), (1600, 0.02)])
def test_separation_does_not_overstate_the_squared_correlation_with_the_truth(answers, short):
    found, known = [], []
    for seed in range(20):
        truth = np.random.default_rng(seed).normal(0, 2, 12)  # as `answered` draws it
        winners, losers, _ = answered(seed, answers=answers)
        found.append(reliability.scale_separation(winners, losers, 12))
        known.append(np.corrcoef(reliability.fit(winners, losers, 12)[0], truth)[0, 1] ** 2)
    assert -short < np.mean(found) - np.mean(known) < 0.01


def test_the_interval_holds_the_value_and_shrinks_with_answers():
    widths = []
    for answers in (100, 1600):
        winners, losers, _ = answered(0, answers=answers)
        found = reliability.separation_interval(winners, losers, 12, np.random.default_rng(0))
        assert found.low < found.value < found.high < 1
        widths.append(found.high - found.low)
    assert widths[1] < widths[0] / 3


def test_halves_agree_where_answers_are_many_and_not_where_they_are_random():
    winners, losers, who = answered(0, answers=3000)
    rng = np.random.default_rng(0)
    found = reliability.split_halves(winners, losers, who, rng, resamples=20)
    assert 0.95 < found.low < found.value < found.high <= 1
    winners, losers, who = answered(0, answers=3000, random=6)
    found = reliability.split_halves(winners, losers, who, rng, resamples=20)
    assert found.low < 0.3


def test_halves_need_two_annotators():
    winners, losers, who = answered(0, annotators=1)
    assert np.isnan(reliability.split_halves(winners, losers, who, np.random.default_rng(0)).value)


def test_whoever_clicks_at_random_does_not_fit_and_the_others_do():
    winners, losers, who = answered(1, answers=1500, random=1)
    misfit, *others = reliability.infit(winners, losers, who, np.random.default_rng(0))
    assert misfit.low > 1.2
    assert all(one.high < misfit.low for one in others)
    # Somebody without answers has no figure.
    found = reliability.infit(winners, losers, who + 1, np.random.default_rng(0))
    assert np.isnan(found[0].value)


def test_twice_the_answers_bring_what_spearman_and_brown_say():
    assert reliability.spearman_brown(0.5, 2) == pytest.approx(2 / 3)
    assert reliability.spearman_brown(0.8, 1) == pytest.approx(0.8)
    assert reliability.spearman_brown(-0.2, 2) == -0.2  # nothing to build on


def test_the_interval_of_many_items_is_about_that_of_a_bootstrap(monkeypatch):
    rng = np.random.default_rng(0)
    winners, losers, _ = answered(0, n_items=100, answers=1500)
    few = reliability.separation_interval(winners, losers, 100, rng)
    monkeypatch.setattr(reliability, "MOST_ITEMS", 99)
    many = reliability.separation_interval(winners, losers, 100, rng)
    assert many.low < many.value < many.high
    assert many.value == few.value
    assert 0.7 < (few.high - few.low) / (many.high - many.low) < 1.5
    assert reliability.separation_interval(winners, losers, 100, rng) == many  # nothing is drawn
    around = np.arange(120), (np.arange(120) + 1) % 120  # nobody is better than anybody
    assert reliability.separation_interval(*around, 120, rng).value == 0
