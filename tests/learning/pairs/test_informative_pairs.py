"""Where annotators are limited, each pair that is asked can be judged by one of them."""

import numpy as np
import pytest

from dopl_core.learning.bandit import UNKNOWN
from dopl_core.learning.dopl import Dopl
from dopl_core.learning.pairs.informative_pairs import for_each, judgeable

N, S = 12, 3
NONE = np.empty((0, 4), dtype=np.int64)


def pairs_of(duels):
    return [frozenset(pair) for pair in duels[:, ::2].tolist()]


@pytest.mark.parametrize("seed", range(8))
def test_each_pair_is_judgeable_asked_once_and_of_present_arms_in_known_states(seed):
    rng = np.random.default_rng(seed)
    answers = int(rng.choice([0, 10]))  # as few as the list needs, or more
    learner = Dopl(N, S, 5, horizon=1, seed=seed, answers=answers)
    present = rng.random(N) < 0.9
    present[:8] = True
    learner.adapt(present, 5, answers=answers)
    states = np.where(present & (rng.random(N) < 0.9), rng.integers(S, size=N), UNKNOWN)
    states[:3] = 0
    learner.judged = (rng.random((rng.integers(1, 4), N)) < 0.5) & present
    learner.judged[0, :3] = True
    rounds = [learner.first_round(states, 20)]
    learner.count_duels(rounds[0], rng.integers(2, size=len(rounds[0])))
    learner.replan()
    where = np.full((N, S), 1 / S)
    arms = learner.activate(states, 0, where)
    rounds.append(learner.duels(states, arms, 0))
    for duels in rounds:
        assert 0 < len(duels) <= max(20, answers)
        assert len(judgeable(duels, learner.judged)) == len(duels)
        pairs = pairs_of(duels)
        assert len(set(pairs)) == len(pairs)
        assert all(len(pair) == 2 for pair in pairs)
        assert present[duels[:, ::2]].all()
        assert (duels[:, 1::2] == states[duels[:, ::2]]).all()
        assert (duels[:, 1::2] != UNKNOWN).all()


def test_the_number_of_pairs_is_shared_evenly_and_what_some_leave_goes_to_others():
    learner, states = Dopl(N, S, 5, horizon=1), np.zeros(N, dtype=np.int64)
    learner.judged = np.arange(N) < np.array([[2], [12]])
    learner.judged[1, :2] = False
    duels = learner.first_round(states, 11)
    assert [len(judgeable(duels, one[None])) for one in learner.judged] == [1, 10]
    learner.judged = np.stack([np.arange(N) % 3 == k for k in range(3)])  # six pairs each
    duels = learner.first_round(states, 11)
    assert [len(judgeable(duels, one[None])) for one in learner.judged] == [4, 4, 3]
    assert len(learner.first_round(states, 100)) == 18


def test_without_limits_the_pairs_are_the_same_to_the_bit():
    learner, states = Dopl(N, S, 5, horizon=1, answers=9), np.arange(N) % S
    free = learner.first_round(states, 30)
    learner.judged = np.ones((0, N), dtype=bool)
    assert (learner.first_round(states, 30) == free).all()
    assert len(for_each(lambda asked, count, arms: free[:count], None, NONE, 7)) == 7
