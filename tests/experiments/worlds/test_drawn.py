"""How drawn worlds move and report: by weeks, late, misread, and by past help."""

import numpy as np
import pytest

from dopl_core import simulate
from dopl_core.experiments import metrics
from dopl_core.experiments.runs import Run
from dopl_core.experiments.sweep import advance
from dopl_core.experiments.worlds import WEEKS, draw, world_of
from dopl_core.experiments.worlds.drawn import RememberingWorld, remembering
from dopl_core.learning.bandit import UNKNOWN, Bandit, actions


def test_a_late_report_is_the_week_before_with_the_help_of_its_week() -> None:
    bandit = draw("late_reports", 0).bandit
    world = world_of("late_reports", 0, bandit, seed=1)
    world.begin(1, 4)
    true, helped, told = [world.states], [], []
    for arms in (np.arange(8), np.arange(4, 12), np.arange(12, 20)):
        told.append((world.reported, *world.report(arms)))
        true.append(world.states)
        helped.append(actions(arms, 20))
    for reported, week in zip([reported for reported, *_ in told], (0, 0, 1), strict=True):
        assert np.array_equal(reported, true[week])
    assert (told[0][3] == UNKNOWN).all()  # no report has come yet, so no move is counted
    for week in (1, 2):
        expected = (true[week - 1], helped[week - 1], true[week])
        assert np.array_equal(told[week][1:], expected)


def test_one_report_in_ten_is_misread_as_another_state_and_stays_so() -> None:
    bandit = draw("misread_reports", 0).bandit
    world = world_of("misread_reports", 0, bandit, seed=1)
    world.begin(1, 400)
    assert np.array_equal(world.reported, world.states)
    wrong = []
    for _ in range(400):
        before = world.reported
        states, _, then = world.report(np.arange(8))
        assert np.array_equal(states, before)
        assert np.array_equal(then, world.reported)
        wrong.append(then != world.states)
    assert np.mean(wrong) == pytest.approx(0.1, abs=0.01)  # 8,000 reports


@pytest.mark.parametrize(
    ("name", "learner"),
    [
        *((f"{how}_reports", one) for how in ("late", "misread") for one in ("dopl", "uc_whittle")),
        *((f"{how}_reports", "mle_qwic") for how in ("late", "misread")),
        *((name, "pooled") for name in ("chain_wave", "chain_late", "chain_wearing")),
    ],
)
def test_a_run_continues_as_if_it_had_not_stopped(name: str, learner: str) -> None:
    run = Run(name, learner, 0, episodes=5, horizon=2, confidence="paper")
    truth = metrics.truth(run.bandit())
    whole, _ = advance(run, truth, {}, 600)
    parts, saved = [], {}
    for _ in range(5):
        rows, saved = advance(run, truth, saved, 0)  # an episode at a time
        parts += rows
    assert [row[:-1] for row in parts] == [row[:-1] for row in whole]  # but for the seconds


def test_wrong_reports_cost_a_policy_that_relies_on_states() -> None:
    """The same random numbers in all three worlds: 200 weeks of CPAP."""
    rewards = {
        name: simulate("worst_first", name, episodes=10, horizon=20, seeds=2).reward.mean()
        for name in ("cpap", "misread_reports", "late_reports")
    }
    assert rewards["late_reports"] < rewards["misread_reports"] < rewards["cpap"]


def test_a_weekly_world_moves_by_its_week_and_after_the_last_by_the_last() -> None:
    bandit, weeks, *_ = draw("liang", 3)
    assert weeks is not None
    world = world_of("liang", 3, bandit, seed=0)
    states, helped = np.zeros(100, dtype=np.int64), np.ones(100, dtype=np.int64)
    for episode, week in ((0, 0), (1, 2), (5, 18), (30, WEEKS - 1)):
        world.begin(episode, 4)
        assert np.array_equal(world.next_chances(states, helped, 2), weeks[week][:, 0, 1])


@pytest.mark.parametrize(("week", "expected"), [(0, 0), (12, 12), (13, 0), (30, 4)])
def test_weeks_that_repeat_go_on_after_the_last(week: int, expected: int) -> None:
    bandit, weeks, *_ = draw("chain_wave", 3)
    assert weeks is not None
    world = world_of("chain_wave", 3, bandit, seed=0)
    states = np.zeros(bandit.n_arms, dtype=np.int64)
    world.begin(week + 1, 1)
    assert np.array_equal(world.next_chances(states, states, 0), weeks[expected][:, 0, 0])


def test_the_past_of_weeks_that_repeat_ends_in_the_week_before_the_first() -> None:
    bandit, weeks, *_ = draw("chain_wave", 3)
    assert weeks is not None
    world = world_of("chain_wave", 3, bandit, seed=0)
    world.begin(0, 20)
    states = np.zeros(bandit.n_arms, dtype=np.int64)
    for epoch, week in ((19, 12), (7, 0), (0, 6)):
        assert np.array_equal(world.next_chances(states, states, epoch), weeks[week][:, 0, 0])


def two_weeks() -> tuple[Bandit, Bandit]:
    """Two people and two states; help in both of the last two weeks lifts, nothing else does."""
    stays = np.array([[1.0, 0.0], [0.0, 1.0]])
    rows = np.zeros((2, 4, 2, 2, 2))
    rows[:] = stays[:, None]
    rows[:, 0b11, 0] = [0.0, 1.0]
    bandit = Bandit(np.broadcast_to(stays[:, None], (2, 2, 2, 2)), [[0.0, 1.0]] * 2, 1)  # type: ignore[arg-type]
    return bandit, remembering(bandit, rows)


def test_a_world_that_remembers_moves_by_state_and_past_help_and_tells_the_state() -> None:
    bandit, hidden = two_weeks()
    seed = next(
        seed
        for seed in range(20)
        if (RememberingWorld(bandit, seed, hidden=hidden).reported == 0).all()
    )
    world = RememberingWorld(bandit, seed, hidden=hidden)
    assert (world.states == 0).all()  # nobody was helped before
    told = []
    for week, arm in enumerate((0, 0, 1, 1)):
        world.begin(week + 1, 1)
        before = world.reported
        states, helped, then = world.report(np.array([arm]))
        assert np.array_equal(states, before)
        assert np.array_equal(helped, actions(np.array([arm]), 2))
        assert np.array_equal(then, world.reported)
        told.append(then.tolist())
    assert told == [[0, 0], [0, 0], [1, 0], [1, 0]]
    world.begin(5, 1)
    world.step(np.array([0]))
    assert world.reported.tolist() == [1, 1]
    assert world.reward(np.array([0])) == 2.0


def test_a_restart_forgets_past_help() -> None:
    bandit, hidden = two_weeks()
    world = RememberingWorld(bandit, 0, hidden=hidden, restart=True)
    for episode in (1, 2):
        world.begin(episode, 1)
        assert (world.states < 2).all()
        world.step(np.array([0]))
