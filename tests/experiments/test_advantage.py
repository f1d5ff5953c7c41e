"""The share of the best list's advantage: 1 for the best list, 0 for a random one."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dopl_core.experiments import worlds
from dopl_core.experiments.advantage import (
    Weeks,
    difference,
    gains_of,
    jackknife,
    play_shares,
    share,
)
from dopl_core.experiments.baselines import MiddleFirst, Oracle, Random, WorstFirst
from dopl_core.experiments.worlds import draw, world_of
from dopl_core.learning.bandit import Bandit, IntArray
from dopl_core.learning.dopl import Dopl
from dopl_core.learning.learner import Learner
from dopl_core.learning.planning import plan


def makes(kind: Callable[..., Learner], **own: Any) -> Callable[[Bandit, int], Learner]:
    """How to make a learner of a kind that knows only the size of its bandit."""
    return lambda bandit, seed: kind(
        bandit.n_arms, bandit.n_states, bandit.budget, horizon=1, seed=seed, **own
    )


def knows_everything(bandit: Bandit, seed: int) -> Learner:
    return Oracle(bandit, horizon=1, seed=seed)


@pytest.mark.parametrize("name", ["cpap", "armman", "chain_even", "keeping_kinds", "three_groups"])
@pytest.mark.parametrize("start", [False, True])
def test_the_oracle_has_all_of_the_advantage(name: str, start: bool) -> None:
    plays = [play_shares(name, knows_everything, seed, 6, start) for seed in range(2)]
    assert share(plays, 1, 6) == pytest.approx((1, 0), abs=1e-6)


@pytest.mark.parametrize("name", ["cpap", "chain_late", "chain_wearing", "chain_wave", "own_ways"])
def test_random_help_has_none_of_it_and_nobody_exceeds_the_best_list(name: str) -> None:
    plays = [play_shares(name, makes(Random), seed, 40) for seed in range(4)]
    assert share(plays, 1, 40)[0] == pytest.approx(0, abs=0.12)  # several standard errors
    for one in plays:
        assert (one.mine <= one.best + 1e-9).all()
        assert (one.chance <= one.best + 1e-9).all()
        assert len(one.mine) == 40


def test_a_list_counts_by_the_advantages_of_the_states_that_people_are_in() -> None:
    """The first week of CPAP, by hand."""
    bandit = worlds.load("cpap", 0)
    P, world = bandit.transitions, world_of("cpap", 0, bandit, seed=5)
    best = plan(bandit.rewards, P, P, 8, engine="lagrangian").advantage
    gain = best[np.arange(20), world.states]
    learner = makes(WorstFirst)(bandit, 5)
    learner.replan()
    chosen = learner.activate(world.states, 0)
    found = play_shares("cpap", makes(WorstFirst), 5, 1)
    expected = gain[chosen].sum(), np.sort(gain)[-8:].sum(), 8 * gain.mean()
    assert [float(part[0]) for part in found] == pytest.approx(expected)


def test_reports_that_are_late_are_counted_by_the_true_states() -> None:
    """The oracle plans with the truth, but is told the states of the week before."""
    late = [play_shares("late_reports", knows_everything, seed, 30) for seed in range(2)]
    assert 0.4 < share(late, 2, 30)[0] < 0.95
    assert share(late, 1, 1)[0] == pytest.approx(1)  # the roster is right


def test_a_world_that_changes_counts_by_the_transitions_of_the_week() -> None:
    bandit, weeks, *_ = draw("liang", 2)
    assert weeks is not None
    world, gains = world_of("liang", 2, bandit, seed=0), gains_of("liang", 2)
    for week in (0, 30):
        world.begin(week + 1, 1)
        P = weeks[week]
        best = plan(bandit.rewards, P, P, bandit.budget, engine="lagrangian").advantage
        assert gains(world) == pytest.approx(best[np.arange(100), world.states], abs=1e-7)


def test_a_world_that_remembers_help_counts_past_help() -> None:
    """Where help wears, the best list spares those who have just been helped."""
    bandit = draw("chain_wearing", 0).bandit
    world, gains = world_of("chain_wearing", 0, bandit, seed=0), gains_of("chain_wearing", 0)
    fresh = gains(world)
    world.states = world.states + 0b1111 * bandit.n_states  # helped in each of four weeks
    worn = gains(world)
    useful = fresh > 0
    assert useful.any()
    assert (worn[useful] < fresh[useful]).all()


def test_states_are_turned_from_worst_to_best() -> None:
    seen: list[Bandit] = []

    def make(bandit: Bandit, seed: int) -> Learner:
        seen.append(bandit)
        return makes(MiddleFirst)(bandit, seed)

    plays = [play_shares("armman", make, seed, 20) for seed in range(2)]
    assert (np.diff(seen[0].rewards, axis=1) > 0).all()
    assert 0.5 < share(plays, 1, 20)[0] < 1


@pytest.mark.parametrize(
    ("start", "answers", "asked", "weeks"),
    [
        (False, "asked", 2 * 7, 2),
        (False, "none", 0, 2),
        (True, "asked", 200 + 2 * 30, 28),
        (True, "none", 0, 28),
    ],
)
def test_a_learner_is_told_what_its_start_promises(
    start: bool, answers: Any, asked: int, weeks: int
) -> None:
    made: list[Learner] = []

    def make(bandit: Bandit, seed: int) -> Learner:
        made.append(makes(Dopl, ordered=True)(bandit, seed))
        return made[0]

    play_shares("cpap", make, 0, 2, start, answers)
    assert made[0].counts.total() == asked
    assert made[0].visits.sum() == 20 * weeks


class Recorder(Random):
    """Random help that keeps what it was told."""

    told: list[IntArray]

    def activate(self, states: IntArray, *args: Any, **more: Any) -> IntArray:
        self.told = [*getattr(self, "told", []), states]
        return super().activate(states, *args, **more)


def test_all_learners_meet_the_same_people_in_the_first_week() -> None:
    made: list[Recorder] = []

    def make(bandit: Bandit, seed: int) -> Learner:
        made.append(Recorder(bandit.n_arms, bandit.n_states, bandit.budget, horizon=1, seed=9))
        return made[-1]

    plays = [play_shares("chain_middle", make, 3, 2) for _ in range(2)]
    plays.append(play_shares("chain_middle", makes(WorstFirst), 3, 2))
    assert np.array_equal(made[0].told[1], made[1].told[1])
    assert len({float(one.best[0]) for one in plays}) == 1


def weeks_of(*shares: float) -> list[Weeks]:
    """Plays of two weeks in which the best list has 2 and 4 more than a random one, which has 1."""
    best, chance = np.array([3.0, 5.0]), np.ones(2)
    return [Weeks(1 + one * (best - chance), best, chance) for one in shares]


def test_a_share_is_a_ratio_of_sums_over_the_weeks_of_a_window() -> None:
    one = Weeks(np.array([1.0, 5.0, 9.0]), np.array([3.0, 5.0, 9.0]), np.ones(3))
    assert share([one], 1, 2)[0] == pytest.approx(4 / 6)  # and not the mean of 0 and 1
    assert share([one], 2, 3)[0] == pytest.approx(1)
    assert np.isnan(share([one], 1, 2)[1])


def test_with_equal_weights_the_jackknife_is_the_standard_error_of_a_mean() -> None:
    values = np.array([0.1, 0.5, 0.9, 0.3])
    found, error = share(weeks_of(*values), 1, 2)
    assert found == pytest.approx(values.mean())
    assert error == pytest.approx(values.std(ddof=1) / 2)


def test_a_difference_is_paired_by_seed() -> None:
    found, error = difference(weeks_of(0.2, 0.9, 0.4), weeks_of(0.1, 0.8, 0.3), 1, 2)
    assert (found, error) == pytest.approx((0.1, 0))


def test_where_there_is_nothing_to_gain_there_is_no_share() -> None:
    plays = [play_shares("chain_none", makes(Random), seed, 3) for seed in range(2)]
    assert np.isnan(share(plays, 1, 3)).all()
    assert np.isnan(jackknife(np.array([[1e-9], [1e-8]]))).all()
