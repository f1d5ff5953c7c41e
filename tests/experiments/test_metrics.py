import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from dopl_core import environments
from dopl_core.experiments import metrics
from dopl_core.experiments.baselines import MleLp, Oracle, Random
from dopl_core.experiments.simulator import play_episode
from dopl_core.experiments.whittle import MleQwic, MleWibql
from dopl_core.learning.counts import counted
from dopl_core.learning.dopl import Dopl
from dopl_core.learning.preferences import win_chances
from dopl_core.world import SimulatedWorld


@given(st.integers(0, 10_000), st.integers(2, 40), st.integers(1, 6))
def test_kendall_is_tau_b_ties_included(seed: int, size: int, levels: int) -> None:
    x, y = np.random.default_rng(seed).integers(levels, size=(2, size)).astype(float)
    assert metrics.kendall(x, y) == pytest.approx(kendalltau(x, y).statistic, nan_ok=True)


def test_both_algorithms_of_kendalls_tau_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = np.random.default_rng(0).integers(5, size=(2, 60)).astype(float)
    few = metrics.kendall(x, y)
    monkeypatch.setattr(metrics, "_ALL_PAIRS", 10)
    assert metrics.kendall(x, y) == pytest.approx(few)


def test_the_sign_is_the_authors_one_is_the_same_order_minus_one_the_opposite() -> None:
    order = np.array([0.0, 0.2, 0.7, 1.0])
    assert metrics.kendall(order, order) == 1.0
    assert metrics.kendall(order, -order) == -1.0


def test_preferences_are_example_1_of_the_paper() -> None:
    F = win_chances(np.array([[0.0, 0.85, 0.70, 1.15]]))
    assert F[0] == pytest.approx([0.5, 0.30, 0.33, 0.24], abs=0.005)
    assert np.allclose(F + F.T, 1)


@pytest.fixture(scope="module")
def cpap() -> metrics.Truth:
    return metrics.truth(environments.load("cpap"))


def test_the_oracle_orders_as_the_truth_and_estimates_nothing(cpap: metrics.Truth) -> None:
    learner = Oracle(cpap.bandit, horizon=5)
    learner.replan()
    errors = metrics.errors(learner, cpap)
    assert errors.index_error == 1.0
    assert np.isnan(errors[1:]).all()


def test_random_help_has_no_order(cpap: metrics.Truth) -> None:
    learner = Random(20, 3, 8, horizon=5)
    learner.replan()
    assert np.isnan(metrics.errors(learner, cpap)).all()


@pytest.mark.parametrize("confidence", ["paper", "calibrated"])
def test_with_all_the_data_dopl_has_no_errors(cpap: metrics.Truth, confidence: str) -> None:
    """Counts as the truth would give them in the limit; only overestimates stay above it."""
    bandit = cpap.bandit
    learner = Dopl(20, 3, 8, horizon=5, confidence=confidence, ties="paper")
    learner.visits[:] = np.rint(1e9 * bandit.transitions)
    learner.counts = counted(
        1e9 * win_chances(bandit.rewards) * (1 - np.kron(np.eye(20), np.ones((3, 3))))
    )
    learner.replan()
    errors = metrics.errors(learner, cpap)
    assert errors.p_error < 1e-6
    assert errors.r_error < 0.01
    # Two states of one arm never meet: the paper's count of them stays at one half.
    assert errors.f_error < (0.05 if confidence == "paper" else 0.001)


def test_before_any_answer_there_is_no_reference_and_no_reward_error(cpap: metrics.Truth) -> None:
    learner = Dopl(20, 3, 8, horizon=5, confidence="paper")
    learner.replan()
    errors = metrics.errors(learner, cpap)
    assert np.isnan(errors.r_error)
    assert errors.p_error == pytest.approx(np.sqrt(np.mean((1 / 3 - cpap.bandit.transitions) ** 2)))


@pytest.mark.parametrize("kind", [MleLp, MleWibql, MleQwic])
def test_errors_of_mle_learners_fall_as_they_play(cpap: metrics.Truth, kind: type) -> None:
    learner, world = kind(20, 3, 8, horizon=400), SimulatedWorld(cpap.bandit, 0)
    measured = []
    for _ in range(6):
        learner.replan()
        measured.append(metrics.errors(learner, cpap))
        play_episode(learner, world)
    assert measured[-1].f_error < 0.8 * measured[0].f_error
    assert measured[-1].r_error < 0.8 * measured[0].r_error
    assert np.isnan(measured[-1].p_error) == (kind is not MleLp)
    if kind is not MleLp:
        assert measured[-1].index_error > 0.2


def test_measuring_before_the_first_plan_is_refused(cpap: metrics.Truth) -> None:
    with pytest.raises(ValueError, match="replan"):
        metrics.errors(Random(20, 3, 8, horizon=5), cpap)
