"""Algorithm 3 of the paper, as the errata read it."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import root

from dopl_core.learning import preferences
from dopl_core.learning.counts import Counts, counted
from dopl_core.learning.moves.dynamics import hoeffding
from dopl_core.learning.preferences import F_HIGH, F_LOW, infer, scale_separation
from dopl_core.world import bradley_terry

in_domain = st.floats(F_LOW, F_HIGH)


@given(*[st.floats(0, 1)] * 3)
def test_lemma_4_is_exact_for_exact_inputs(hub, one, other):
    F = bradley_terry(np.array([hub - one, hub - other, one - other]))
    assert infer(F[0], F[1]) == pytest.approx(F[2], abs=1e-12)


@given(*[in_domain] * 4)
def test_lemma_4s_bound_holds_in_its_domain(x1, y1, x2, y2):
    gap = abs(infer(x1, y1) - infer(x2, y2))
    assert gap <= preferences.LIPSCHITZ * (abs(x1 - x2) + abs(y1 - y2)) + 1e-12


def test_the_lipschitz_constant_is_1_2716_at_the_corner():
    grid = np.linspace(F_LOW, F_HIGH, 400)
    x, y = np.meshgrid(grid, grid)
    slope = (x - x**2) / (x + y - 2 * x * y) ** 2
    # The errata's 1.2716 is 1.27154 rounded up: (1 + e)^2 / 4e, so that L = 1.3 is safe.
    assert slope.max() == pytest.approx((1 + np.e) ** 2 / (4 * np.e))
    assert slope.max() == pytest.approx(1.2716, abs=1e-4)
    assert slope[0, 0] == pytest.approx(slope.max())


def played(rng, strengths, duels):
    """wins [M, M] of random duels between arm-states of these strengths."""
    M = len(strengths)
    wins = np.zeros((M, M))
    for i, j in rng.integers(M, size=(duels, 2)):
        if i != j:
            won = rng.random() < bradley_terry(strengths[i] - strengths[j])
            wins[(i, j) if won else (j, i)] += 1
    return wins


def test_without_answers_everything_could_be_best():
    belief = preferences.paper(np.zeros((6, 6)), 2, None, 0, 1e-5)
    assert (belief.overestimate == 1).all()
    assert preferences.most_compared(counted(np.zeros((6, 6)))) is None


def test_overestimates_stay_in_bounds_and_the_reference_is_zero():
    rng = np.random.default_rng(1)
    wins = played(rng, rng.random(12), 300)
    reference = preferences.most_compared(counted(wins))
    belief = preferences.paper(wins, 3, reference, 100, 1e-5)
    assert belief.overestimate.shape == (4, 3)
    assert np.abs(belief.overestimate).max() <= 1
    assert belief.overestimate.flat[reference] == 0
    assert (belief.overestimate >= belief.mean).all()


def test_with_many_answers_the_overestimate_is_the_truth_from_above():
    rng = np.random.default_rng(2)
    strengths = rng.random(4)
    F = bradley_terry(strengths[:, None] - strengths)
    wins = rng.binomial(1_000_000, F).astype(float)
    wins = np.triu(wins, 1) + np.tril((1_000_000 - wins.T), -1)
    belief = preferences.paper(wins, 2, 0, 1_000_000, 1e-5)
    truth = (strengths - strengths[0]).reshape(2, 2)
    assert (belief.overestimate.flat[1:] >= truth.flat[1:]).all()
    assert belief.overestimate == pytest.approx(truth, abs=0.03)


def test_an_arm_state_never_met_by_the_reference_is_inferred_through_its_best_hub():
    wins = np.zeros((4, 4))
    wins[1, 0], wins[0, 1] = 6000, 4000  # hub 1 against the reference 0
    wins[1, 2], wins[2, 1] = 4900, 5100  # hub 1 against 2
    wins[3, 0], wins[0, 3] = 6, 4  # a poorer hub
    wins[3, 2], wins[2, 3] = 5, 5
    belief = preferences.paper(wins, 2, 0, 100, 1e-5)
    expected = infer(np.array(0.49), np.array(0.6))
    assert belief.mean[1, 0] == pytest.approx(np.log(expected / (1 - expected)))
    width = 1.3 * 2 * hoeffding(np.array([10000]), 2, 2, 100, 1e-5)[0]
    over = min(expected + width, F_HIGH)
    assert belief.overestimate[1, 0] == pytest.approx(np.log(over / (1 - over)))


def test_the_direct_estimate_is_kept_where_it_is_narrower():
    wins = np.zeros((4, 4))
    wins[2, 0], wins[0, 2] = 5500, 4500
    wins[1, 0] = wins[0, 1] = wins[1, 2] = wins[2, 1] = 50
    belief = preferences.paper(wins, 2, 0, 100, 1e-5)
    assert belief.mean[1, 0] == pytest.approx(np.log(0.55 / 0.45))


def test_a_tie_counts_half():
    wins = np.zeros((4, 4))
    wins[0, 2] = wins[2, 0] = 0.5
    F, C = preferences.empirical(wins)
    assert F[0, 2] == 0.5
    assert C[0, 2] == 1


def drawn_in(winners, losers, n_items):
    """Scale separation reliability the long way: scipy finds the strengths."""
    C, score = np.zeros((n_items, n_items)), np.zeros(n_items)
    for i, j in zip(winners, losers, strict=True):
        C[i, j] += 1
        C[j, i] += 1
        score[i] += 1
    n = C.sum(axis=1)
    score = 0.3 + (n - 0.6) / n * score

    def short(theta):
        F = 1 / (1 + np.exp(theta - theta[:, None]))
        level = ((C * F).sum(axis=1) - score) / (C * F * (1 - F)).sum(axis=1)
        return np.append(level[1:] - level[0], theta.sum())

    theta = root(short, np.zeros(n_items), tol=1e-12).x
    F = 1 / (1 + np.exp(theta - theta[:, None]))
    return 1 - np.mean(1 / (C * F * (1 - F)).sum(axis=1)) / np.var(theta, ddof=1)


@pytest.mark.parametrize("seed", range(5))
def test_scale_separation_is_what_its_definition_gives(seed):
    rng = np.random.default_rng(seed)
    theta, i = rng.normal(size=8), rng.integers(8, size=60)
    j = (i + rng.integers(1, 8, size=60)) % 8
    won = rng.random(60) < bradley_terry(theta[i] - theta[j])
    winners, losers = np.where(won, i, j), np.where(won, j, i)
    expected = drawn_in(winners, losers, 8)
    assert scale_separation(winners, losers, 8) == pytest.approx(expected, abs=1e-6)
    # An item that nobody compared changes nothing; the same answers ten times are more reliable.
    assert scale_separation(winners, losers, 9) == pytest.approx(expected, abs=1e-6)
    assert scale_separation(np.tile(winners, 10), np.tile(losers, 10), 8) > expected


def test_scale_separation_of_equal_items_is_0_and_needs_two_of_them():
    assert scale_separation([0, 1], [1, 0], 2) == 0
    with pytest.raises(ValueError, match="at least two items"):
        scale_separation([], [], 3)


@pytest.mark.parametrize(("times", "reversed_"), [(1, False), (12, True)])
def test_a_handful_of_answers_does_not_reverse_the_order_of_states_and_many_do(times, reversed_):
    counts, arms = Counts(40), np.arange(8)
    counts.add(arms * 4 + 1, (arms + 1) * 4 + 2, float(times))  # state 1 is preferred to state 2
    mean = preferences.calibrated(counts, 4, None, ordered=True).mean.mean(axis=0)
    assert (mean[1] > mean[2]) == reversed_
    assert mean[0] < min(mean[1:])
    assert mean[3] > max(mean[:3])


def three_answers():
    counts = Counts(6)
    counts.add(np.array([0, 1, 2, 5]), np.array([3, 4, 5, 0]), 3.0)
    return preferences.calibrated(counts, 2, None)


def test_drawn_strengths_have_the_mean_and_the_covariance_of_the_belief():
    belief = three_answers()
    drawn = preferences.draw(belief, 20_000, np.random.default_rng(2)).reshape(20_000, -1)
    assert np.abs(drawn.mean(axis=0) - belief.mean.ravel()).max() < 0.03
    assert np.abs(np.cov(drawn.T) - belief.covariance).max() < 0.05


def test_without_a_covariance_strengths_are_drawn_independently():
    belief = replace(three_answers(), covariance=None)
    drawn = preferences.draw(belief, 20_000, np.random.default_rng(2))
    assert drawn.shape == (20_000, 3, 2)
    assert drawn.mean(axis=0) == pytest.approx(belief.mean, abs=0.03)
    covariance = np.cov(drawn.reshape(20_000, -1).T)
    assert covariance == pytest.approx(np.diag(belief.sd.ravel() ** 2), abs=0.03)
