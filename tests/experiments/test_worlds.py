"""Drawn worlds: another one for each seed, played by name like an environment."""

import numpy as np
import pytest

from dopl_core import environments, simulate
from dopl_core.experiments import worlds
from dopl_core.experiments.worlds import WORLDS, draw, world_of
from dopl_core.experiments.worlds.drawn import (
    RememberingWorld,
    ReportedWorld,
    WeeklyReportedWorld,
    WeeklyWorld,
)
from dopl_core.world import SimulatedWorld


@pytest.mark.parametrize("name", WORLDS)
def test_a_world_is_drawn_from_its_seed(name: str) -> None:
    first, again, other = WORLDS[name](1), WORLDS[name](1), WORLDS[name](2)
    assert np.array_equal(first.bandit.transitions, again.bandit.transitions)
    same = np.array_equal(first.bandit.transitions, other.bandit.transitions)
    as_cpap = name.endswith("_reports") or name in ("idle_rise", "idle_fall", "idle_wave")
    assert same == as_cpap  # CPAP has no ranges to draw from
    assert first.bandit.name == name
    assert worlds.load(name, 1).rewards.shape == first.bandit.rewards.shape


@pytest.mark.parametrize("name", WORLDS)
def test_states_of_a_drawn_world_go_from_worst_to_best(name: str) -> None:
    values = draw(name, 0).bandit.rewards
    assert (np.diff(values, axis=1) > 0).all()
    assert values[:, 0].max() == 0


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("cpap", SimulatedWorld),
        ("chain_even", SimulatedWorld),
        ("liang", WeeklyWorld),
        ("late_reports", ReportedWorld),
        ("chain_wave", WeeklyReportedWorld),
        ("chain_late", RememberingWorld),
    ],
)
def test_a_world_is_of_the_kind_that_it_needs(name: str, kind: type) -> None:
    assert type(world_of(name, 0, worlds.load(name, 0), seed=0)) is kind


def test_rising_turns_an_environment_that_lists_the_best_state_first() -> None:
    armman, cpap = environments.load("armman"), environments.load("cpap")
    turned = worlds.rising(armman)
    assert (np.diff(turned.rewards, axis=1) > 0).all()
    assert np.array_equal(turned.transitions[3, 0, 1], armman.transitions[3, 2, 1, ::-1])
    assert [state.label for state in turned.states] == [s.label for s in armman.states[::-1]]
    assert worlds.rising(cpap) is cpap


@pytest.mark.parametrize("name", ["chain_late", "chain_wearing", "chain_wave", "keeping_kinds"])
def test_all_learners_meet_the_same_references_in_a_new_world(name: str) -> None:
    """The references have their own past help, not that of the learner."""
    settings = {"episodes": 4, "horizon": 5, "seeds": 1, "ties": "paper"}
    tables = [simulate(one, name, **settings) for one in ("oracle", "worst_first", "random")]
    for column in ("oracle_reward", "random_reward"):
        assert all((table[column] == tables[0][column]).all() for table in tables), column
    if name != "chain_wave":  # the oracle of the references knows states that are misread here
        assert (tables[0].regret == 0).all()
    assert (tables[1].regret != 0).any()
