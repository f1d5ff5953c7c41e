"""Drawn worlds: another one for each seed, and what their definitions promise."""

import numpy as np
import pytest

from dopl_core import environments, simulate
from dopl_core.experiments import worlds
from dopl_core.experiments.worlds import SEASON, WEEKS, WORLDS, draw, world_of
from dopl_core.learning.planning import plan


@pytest.mark.parametrize("name", WORLDS)
def test_a_world_is_drawn_from_its_seed(name: str) -> None:
    first, again, other = WORLDS[name](1), WORLDS[name](1), WORLDS[name](2)
    assert np.array_equal(first.bandit.transitions, again.bandit.transitions)
    same = np.array_equal(first.bandit.transitions, other.bandit.transitions)
    assert same == name.startswith("idle_")  # CPAP has no ranges to draw from
    assert first.bandit.name == name
    assert worlds.load(name, 1).rewards.shape == first.bandit.rewards.shape


@pytest.mark.parametrize("name", [name for name in WORLDS if name != "three_groups"])
def test_weeks_are_transitions_and_the_bandit_has_their_average(name: str) -> None:
    bandit, weeks = draw(name, 0)
    assert weeks is not None
    assert len(weeks) == (WEEKS if name == "liang" else SEASON)
    assert weeks.min() >= 0
    assert np.allclose(weeks.sum(axis=-1), 1)
    assert np.allclose(weeks.mean(axis=0), bandit.transitions)
    assert np.abs(weeks[0] - weeks[-1]).max() > 0.01


@pytest.mark.parametrize("name", ["idle_rise", "idle_fall", "idle_wave"])
def test_help_does_nothing_in_an_idle_world(name: str) -> None:
    weeks = draw(name, 0).weeks
    assert weeks is not None
    assert np.array_equal(weeks[:, :, :, 0], weeks[:, :, :, 1])
    cpap = environments.load("cpap")
    assert np.allclose(weeks[0, :, :, 0], cpap.transitions[:, :, 0])
    table = simulate("worst_first", name, episodes=5, horizon=1, seeds=1)
    assert (table.reward == table.random_reward).all()


def test_a_rise_moves_people_up_and_a_fall_down() -> None:
    up, down = (draw(f"idle_{kind}", 0).weeks for kind in ("rise", "fall"))
    assert up is not None
    assert down is not None
    share = 0.45 * (SEASON - 1) / SEASON
    assert np.allclose(up[-1, ..., -1] - up[0, ..., -1], share * (1 - up[0, ..., -1]))
    assert np.allclose(down[-1, ..., 0] - down[0, ..., 0], share * (1 - down[0, ..., 0]))


def test_a_weekly_world_moves_by_its_week_and_after_the_last_by_the_last() -> None:
    bandit, weeks = draw("liang", 3)
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
