import numpy as np
import pytest
from scipy.optimize import minimize

from dopl_core.experiments.baselines import (
    MiddleFirst,
    MleLp,
    Oracle,
    Pooled,
    Random,
    RewardFit,
    WorstFirst,
    mle,
)
from dopl_core.experiments.simulator import play
from dopl_core.experiments.whittle import MleQwic, MleWibql
from dopl_core.learning.bandit import Bandit
from dopl_core.learning.dopl import Dopl
from dopl_core.learning.learner import Learner
from dopl_core.learning.planning import plan
from dopl_core.world import SimulatedWorld

HELPFUL = np.array([[[0.9, 0.1], [0.1, 0.9]]] * 2)  # [S, A, S']: acting leads to the good state
USELESS = np.array([[[0.5, 0.5], [0.5, 0.5]]] * 2)


@pytest.fixture
def bandit() -> Bandit:
    """Two arms that acting helps among five, and a budget of two: the best is to help those two."""
    transitions = np.array([USELESS, HELPFUL, USELESS, USELESS, HELPFUL])
    return Bandit(transitions=transitions, rewards=np.array([[0.0, 1.0]] * 5), budget=2)


def helped(learner: Learner, bandit: Bandit, episodes: int) -> float:
    """The share of the last quarter's activations that went to the two arms that it helps."""
    world = SimulatedWorld(bandit, 0)
    for episode, _ in enumerate(play(learner, world, episodes)):
        if episode + 1 == 3 * episodes // 4:
            before = learner.visits.copy()
    late = (learner.visits - before)[:, :, 1].sum(axis=(1, 2))
    return float(late[[1, 4]].sum() / late.sum())


# MLE_LP explores in its first episode only, so that must be long; the others never quite stop.
@pytest.mark.parametrize(
    ("kind", "episodes", "horizon", "least"),
    [(MleLp, 8, 500, 0.95), (MleWibql, 100, 50, 0.85), (MleQwic, 100, 50, 0.85)],
)
@pytest.mark.parametrize("memory", ["all", "episode"])
def test_mle_learners_find_the_arms_that_help_changes(
    bandit: Bandit, kind: type[Learner], episodes: int, horizon: int, least: float, memory: str
) -> None:
    learner = kind(5, 2, 2, horizon=horizon, memory=memory)
    assert helped(learner, bandit, episodes) > least


def test_dopl_finds_the_arms_that_help_changes(bandit: Bandit) -> None:
    learner = Dopl(5, 2, 2, horizon=50, confidence="calibrated")
    assert helped(learner, bandit, 40) > 0.95


def test_the_oracle_always_helps_them(bandit: Bandit) -> None:
    assert helped(Oracle(bandit, horizon=50), bandit, 4) == 1.0


def test_random_helps_all_arms_equally_often(bandit: Bandit) -> None:
    learner = Random(5, 2, 2, horizon=50)
    assert abs(helped(learner, bandit, 80) - 0.4) < 0.05


def test_worst_first_helps_the_worst_states_and_breaks_ties_at_random() -> None:
    learner = WorstFirst(5, 3, 3, horizon=50)
    learner.replan()
    states = np.array([2, 0, 1, 1, 1])
    chosen = np.array([learner.activate(states, epoch) for epoch in range(50)])
    assert (chosen == 1).any(axis=1).all()
    assert not (chosen == 0).any()
    assert all((chosen == arm).any() for arm in (2, 3, 4))


@pytest.mark.parametrize(
    ("states", "order"), [(3, [1, 0, 2]), (4, [1, 2, 0, 3]), (5, [2, 1, 3, 0, 4])]
)
def test_middle_first_helps_the_nearest_to_the_middle_and_of_two_the_worse(
    states: int, order: list[int]
) -> None:
    learner = MiddleFirst(6, states, 2, horizon=50)
    learner.replan()
    assert learner.priority[0].argsort()[::-1].tolist() == order
    assert (learner.priority == learner.priority[0]).all()
    alike = np.array([learner.activate(np.zeros(6, dtype=int), epoch) for epoch in range(50)])
    assert len(np.unique(alike)) == 6  # ties are broken at random


def one_way(state: int, helped: int, then: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same move of three people."""
    return np.full(3, state), np.full(3, helped), np.full(3, then)


def test_pooled_moves_start_from_staying_and_help_that_does_nothing() -> None:
    learner = Pooled(3, 4, 1, horizon=1)
    learner.replan()
    assert learner.rows[1, 0] == pytest.approx([1 / 8, 5 / 8, 1 / 8, 1 / 8])
    assert np.allclose(learner.rows[:, 0], learner.rows[:, 1])
    assert (learner.priority == 0).all()  # all tied: the first list is random


def test_pooled_moves_are_counted_over_all_people_with_ten_moves_of_prior() -> None:
    learner = Pooled(3, 2, 1, horizon=1)
    for _ in range(10):
        learner.count_moves(*one_way(0, 0, 0))
        learner.count_moves(*one_way(0, 1, 1))
    learner.replan()
    stays = (30 + 7.5) / 40
    assert learner.rows[0, 0] == pytest.approx([stays, 1 - stays])
    assert learner.rows[0, 1, 0] == pytest.approx(10 * stays / 40)  # the prior is without help
    assert np.allclose(learner.rows[1, 0], learner.rows[1, 1])
    assert learner.priority[0, 0] > learner.priority[0, 1]
    assert (learner.priority == learner.priority[0]).all()


def test_pooled_plans_as_the_lp_of_all_people_with_the_same_rows() -> None:
    learner = Pooled(12, 3, 5, horizon=1)
    rng = np.random.default_rng(2)
    for _ in range(30):
        states, helped, then = rng.integers([[3], [2], [3]], size=(3, 12))
        learner.count_moves(states, helped, np.maximum(then, helped))
    learner.replan()
    P, values = np.tile(learner.rows, (12, 1, 1, 1)), np.tile([0, 0.5, 1], (12, 1))
    best = plan(values, P, P, 5, engine="cbc")
    assert learner.plan is not None
    assert learner.plan.advantage == pytest.approx(best.advantage, abs=1e-6)
    found = learner.estimates().transitions
    assert found is not None
    assert np.array_equal(found, P)


def test_pooled_moves_ignore_answers() -> None:
    learners = [Pooled(3, 2, 1, horizon=1) for _ in range(2)]
    learners[1].count_duels([[0, 0, 1, 1], [1, 0, 2, 1]], [1, 1])
    for learner in learners:
        learner.count_moves(*one_way(0, 1, 1))
        learner.replan()
    assert np.array_equal(*(learner.priority for learner in learners))


def duels(rewards: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Wins [M, M] of `count` random duels between arm-states with these rewards."""
    rng = np.random.default_rng(seed)
    M = rewards.size
    i = rng.integers(M, size=count)
    j = (i + rng.integers(1, M, size=count)) % M
    r = rewards.ravel()
    left = rng.random(count) < 1 / (1 + np.exp(r[j] - r[i]))
    wins = np.zeros((M, M))
    np.add.at(wins, (np.where(left, i, j), np.where(left, j, i)), 1)
    return wins


@pytest.mark.parametrize("count", [15, 200, 50_000])
def test_the_fit_is_as_likely_as_a_general_solver_finds(count: int) -> None:
    wins = duels(np.random.default_rng(1).random((6, 3)), count, seed=2)

    def loss(r: np.ndarray) -> float:
        return float(np.vdot(wins, np.log1p(np.exp(r - r[:, None]))))

    start = np.full((6, 3), 0.5)
    solver = minimize(loss, start.ravel(), bounds=[(0, 1)] * 18, options={"maxfun": 50_000})
    fit = mle(wins, start)
    assert ((fit >= 0) & (fit <= 1)).all()
    assert loss(fit.ravel()) <= solver.fun + 1e-6 * count


def test_the_fit_finds_the_rewards_behind_the_answers() -> None:
    rewards = np.random.default_rng(3).random((5, 3))
    rewards.flat[[0, 7]] = 0, 1  # with both ends reached, the bounds fix the shift
    fit = mle(duels(rewards, 400_000, seed=4), np.full((5, 3), 0.5))
    assert np.abs(fit - rewards).max() < 0.04


def test_an_arm_state_never_compared_keeps_its_reward() -> None:
    wins = np.zeros((6, 6))
    wins[0, 1] = wins[1, 0] = 5
    start = np.array([[0.2, 0.3], [0.4, 0.5], [0.6, 0.7]])
    fit = mle(wins, start)
    assert np.array_equal(fit[1:], start[1:])
    assert fit[0, 0] == pytest.approx(fit[0, 1], abs=1e-5)
    assert np.array_equal(mle(np.zeros((6, 6)), start), start)


def test_memory_says_which_duels_are_fitted() -> None:
    first, second = np.zeros((4, 4)), np.zeros((4, 4))
    first[0, 2], second[2, 0] = 9, 4
    everything, episode = RewardFit(2, 2, "all"), RewardFit(2, 2, "episode")
    for fit in (everything, episode):
        fit.update(first)
        assert fit.rewards[0, 0] > fit.rewards[1, 0]
        fit.update(first + second)
    assert everything.rewards[0, 0] > everything.rewards[1, 0]
    assert episode.rewards[0, 0] < episode.rewards[1, 0]


def test_an_unknown_memory_is_refused() -> None:
    with pytest.raises(ValueError, match="memory"):
        MleLp(5, 2, 2, horizon=5, memory="none")
