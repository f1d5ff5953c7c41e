"""The simulated world moves as its bandit says, with the same luck for every learner."""

import numpy as np
import pytest

from dopl_core import environments, simulate
from dopl_core.world import SimulatedWorld, bradley_terry


def test_example_1_of_the_paper_is_reproduced_to_two_decimals():
    r = np.array([0, 0.85, 0.70, 1.15])
    expected = [
        [0.50, 0.30, 0.33, 0.24],
        [0.70, 0.50, 0.54, 0.43],
        [0.67, 0.46, 0.50, 0.39],
        [0.76, 0.57, 0.61, 0.50],
    ]
    assert np.abs(bradley_terry(r[:, None] - r) - expected).max() < 0.0051


def test_arms_move_with_the_bandits_frequencies():
    bandit = environments.load("cpap")
    world = SimulatedWorld(bandit, seed=0)
    seen = np.zeros_like(bandit.transitions)
    active = np.zeros(20, dtype=int)
    active[::3] = 1
    world.begin(1, 20_000)
    for _ in range(20_000):
        before = world.states
        seen[np.arange(20), before, active, world.step(np.flatnonzero(active))] += 1
    visits = seen.sum(axis=3, keepdims=True)
    error = np.abs(seen / np.maximum(visits, 1) - bandit.transitions)
    assert (error < 5 / np.sqrt(np.maximum(visits, 1)))[visits[..., 0] > 0].all()


def test_random_numbers_depend_on_seed_and_episode_not_on_actions():
    bandit = environments.load("app_marketing")

    def moves(seed, arms):
        world = SimulatedWorld(bandit, seed)
        world.begin(1, 30)
        return np.array([world.step(np.array(arms)).copy() for _ in range(30)])

    same_action = [0, 1, 2, 4, 5, 6, 7, 8]
    one, other = moves(5, [0, 1, 2, 3]), moves(5, [0, 1, 2, 9])
    assert (one[:, same_action] == other[:, same_action]).all()
    assert (one[:, 3] != other[:, 3]).any()
    assert (one != moves(6, [0, 1, 2, 3])).any()


def test_states_carry_over_unless_the_world_restarts():
    bandit = environments.load("cpap")
    world = SimulatedWorld(bandit, 1)
    world.begin(1, 5)
    after = world.step(np.arange(8))
    world.begin(2, 5)
    assert (world.states == after).all()
    again = SimulatedWorld(bandit, 1, restart=True)
    again.begin(1, 5)
    first = again.states
    again.begin(2, 5)
    assert (again.states != first).any()


def test_temperature_sets_how_accurate_the_oracle_is():
    bandit = environments.load("cpap")
    duels = np.tile([0, 2, 1, 0], (7, 1))  # high adherence against low: F = e / (1 + e) = 0.731

    def accuracy(temperature):
        world = SimulatedWorld(bandit, 3, temperature=temperature)
        world.begin(1, 500)
        won = []
        for _ in range(500):
            won.append(world.answer(duels) == 1)
            world.step(np.arange(8))
        return np.mean(won)

    assert accuracy(1.0) == pytest.approx(0.731, abs=0.03)
    assert accuracy(0.1) > 0.99
    assert accuracy(100.0) == pytest.approx(0.5, abs=0.03)
    with pytest.raises(ValueError, match="temperature is 0"):
        SimulatedWorld(bandit, 0, temperature=0)


def test_the_reward_is_of_all_arms_or_of_the_active_ones():
    bandit = environments.load("cpap")
    world = SimulatedWorld(bandit, 0)
    everyone = bandit.rewards[np.arange(20), world.states]
    assert world.reward(np.arange(8)) == everyone.sum()
    object.__setattr__(bandit, "pays", "active")
    assert world.reward(np.arange(8)) == everyone[:8].sum()


class Relapse(SimulatedWorld):
    """Everybody falls to the worst state in the second epoch of each episode."""

    def next_chances(self, states, helped, epoch):
        worst = np.eye(self.bandit.n_states)[np.zeros_like(states)]
        return worst if epoch == 1 else super().next_chances(states, helped, epoch)


class LowestNumber(SimulatedWorld):
    """Of two arms, the one with the lower number is always preferred."""

    def win_chances(self, duels):
        return (duels[..., 0] < duels[..., 2]).astype(float)


class Unchanged(SimulatedWorld):
    def next_chances(self, states, helped, epoch):
        return super().next_chances(states, helped, epoch)

    def win_chances(self, duels):
        return super().win_chances(duels)


def test_a_subclass_can_move_arms_by_time():
    world = Relapse(environments.load("cpap"), seed=0)
    world.begin(1, 3)
    first, second = world.step(np.arange(8)), world.step(np.arange(8))
    assert first.any()
    assert not second.any()


def test_a_subclass_can_answer_by_a_function():
    world = LowestNumber(environments.load("cpap"), seed=0)
    world.begin(1, 3)
    duels = np.array([[0, 0, 1, 2], [5, 2, 3, 0]])
    assert world.answer(duels).tolist() == [1, 0]


def test_a_subclass_that_changes_nothing_plays_the_same():
    settings = {"episodes": 3, "horizon": 4, "seeds": 1}
    same = ["reward", "oracle_reward", "random_reward", "r_error"]
    plain = simulate("mle_lp", "cpap", **settings)[same]
    assert simulate("mle_lp", "cpap", world=Unchanged, **settings)[same].equals(plain)


def test_the_references_live_in_the_same_world_as_the_learner():
    table = simulate("oracle", "cpap", episodes=3, horizon=4, seeds=1, world=Relapse, ties="paper")
    assert (table.regret == 0).all()
    calm = simulate("oracle", "cpap", episodes=3, horizon=4, seeds=1)
    assert table.random_reward.mean() < calm.random_reward.mean()
