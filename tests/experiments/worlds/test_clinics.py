"""Clinics and programmes keep what their definitions promise."""

import numpy as np
import pytest
from numpy.typing import NDArray

from dopl_core import environments, simulate
from dopl_core.experiments.worlds import SEASON, WEEKS, WORLDS, draw
from dopl_core.learning.planning import plan


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
