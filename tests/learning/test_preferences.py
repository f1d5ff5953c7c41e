"""Algorithm 3 of the paper, as the errata read it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dopl_core.learning import preferences
from dopl_core.learning.counts import counted
from dopl_core.learning.dynamics import hoeffding
from dopl_core.learning.preferences import F_HIGH, F_LOW, infer
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
