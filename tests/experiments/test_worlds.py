"""Drawn worlds: another one for each seed, and what their definitions promise."""

import numpy as np
import pytest
from numpy.typing import NDArray

from dopl_core import environments, simulate
from dopl_core.experiments import metrics, worlds
from dopl_core.experiments.runs import Run
from dopl_core.experiments.sweep import advance
from dopl_core.experiments.worlds import SEASON, WEEKS, WORLDS, draw, world_of
from dopl_core.learning.bandit import UNKNOWN, actions
from dopl_core.learning.planning import plan


@pytest.mark.parametrize("name", WORLDS)
def test_a_world_is_drawn_from_its_seed(name: str) -> None:
    first, again, other = WORLDS[name](1), WORLDS[name](1), WORLDS[name](2)
    assert np.array_equal(first.bandit.transitions, again.bandit.transitions)
    same = np.array_equal(first.bandit.transitions, other.bandit.transitions)
    as_cpap = name.endswith("_reports") or name in ("idle_rise", "idle_fall", "idle_wave")
    assert same == as_cpap  # CPAP has no ranges to draw from
    assert first.bandit.name == name
    assert worlds.load(name, 1).rewards.shape == first.bandit.rewards.shape


@pytest.mark.parametrize("name", [name for name in WORLDS if name.startswith(("liang", "idle"))])
def test_weeks_are_transitions_and_the_bandit_has_their_average(name: str) -> None:
    bandit, weeks, *_ = draw(name, 0)
    assert weeks is not None
    assert len(weeks) == (WEEKS if name.startswith("liang") else SEASON)
    assert weeks.min() >= 0
    assert np.allclose(weeks.sum(axis=-1), 1)
    assert np.allclose(weeks.mean(axis=0), bandit.transitions)
    assert np.abs(weeks[0] - weeks[-1]).max() > 0.01


@pytest.mark.parametrize(
    ("name", "arms", "budget", "weeks"),
    [("liang", 100, 20, 50), ("liang_400", 400, 10, 50), ("idle_own_wave", 20, 8, 26)],
)
def test_a_world_has_the_size_of_its_definition(
    name: str, arms: int, budget: int, weeks: int
) -> None:
    bandit = draw(name, 0).bandit
    assert (bandit.n_arms, bandit.budget, bandit.episodes * bandit.horizon) == (arms, budget, weeks)


@pytest.mark.parametrize("name", [name for name in WORLDS if name.startswith("idle_")])
def test_help_does_nothing_in_an_idle_world(name: str) -> None:
    weeks = draw(name, 0).weeks
    assert weeks is not None
    assert np.array_equal(weeks[:, :, :, 0], weeks[:, :, :, 1])
    table = simulate("worst_first", name, episodes=5, horizon=1, seeds=1)
    assert (table.reward == table.random_reward).all()


def test_a_rise_moves_people_up_and_a_fall_down() -> None:
    up, down = (draw(f"idle_{kind}", 0).weeks for kind in ("rise", "fall"))
    assert up is not None
    assert down is not None
    alone = environments.load("cpap").transitions[:, :, 0]
    for week in (1, 26):
        share = 0.45 * week / 26
        rise, fall = (own[week - 1, :, :, 1] for own in (up, down))
        assert np.allclose(rise, (1 - share) * alone + share * np.eye(3)[2])
        assert np.allclose(fall, (1 - share) * alone + share * np.eye(3)[0])


def test_a_wave_goes_up_in_the_first_half_of_a_period_and_down_in_the_second() -> None:
    weeks = draw("idle_wave", 0).weeks
    assert weeks is not None
    alone = environments.load("cpap").transitions[:, :, 0]
    for week, state in ((3, 2), (10, 0), (16, 2)):
        share = 0.4 * abs(np.sin(2 * np.pi * week / 13))
        assert np.allclose(weeks[week - 1, :, :, 1], (1 - share) * alone + share * np.eye(3)[state])


def test_everybody_in_their_own_way_scatters_about_cpap_as_after_thirty_moves() -> None:
    own = np.array([_before_the_season(WORLDS["idle_own_rise"](seed).weeks) for seed in range(40)])
    alone = environments.load("cpap").transitions[:, :, 0]
    assert np.abs(own.mean(axis=0) - alone).max() < 0.1  # several standard errors
    variance = ((own - alone) ** 2).mean() / (alone * (1 - alone)).mean()
    assert variance == pytest.approx(1 / 31, rel=0.1)  # of a Dirichlet with 30 in all


def _before_the_season(weeks: NDArray[np.float64] | None) -> NDArray[np.float64]:
    """The rows [N, S, S'] that the first week of a rise was mixed from."""
    assert weeks is not None
    share = 0.45 / 26
    return np.asarray((weeks[0, :, :, 0] - share * np.eye(3)[2]) / (1 - share))


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


@pytest.mark.parametrize("name", ["late_reports", "misread_reports"])
@pytest.mark.parametrize("learner", ["dopl", "mle_qwic", "uc_whittle"])
def test_a_run_with_wrong_reports_continues_as_if_it_had_not_stopped(
    name: str, learner: str
) -> None:
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


def test_without_floors_a_plan_leaves_the_badly_off_out_of_the_three_groups() -> None:
    bandit = draw("three_groups", 0).bandit
    P = bandit.transitions
    best = plan(bandit.rewards, P, P, bandit.budget, engine="lagrangian")
    helped = best.occupancy[..., 1].sum(axis=1).reshape(3, 10).sum(axis=1)
    assert helped[1] > 0.6 * bandit.budget
    assert helped[2] < 0.2 * bandit.budget
    even = plan(
        bandit.rewards, P, P, bandit.budget, engine="lagrangian",
        groups=np.repeat([0, 1, 2], 10), floors=[1, 1, 2],
    )  # fmt: skip
    assert 0.9 * best.value < even.value < best.value
