"""Pairs of many arms: what the candidates are worth, and that nothing is looked at twice."""

import numpy as np
import pytest

from dopl_core import environments
from dopl_core.experiments.simulator import play, prepare
from dopl_core.learning.bandit import Bandit
from dopl_core.learning.dopl import Dopl
from dopl_core.learning.pairs import many_pairs, pair_designs
from dopl_core.world import SimulatedWorld

N, S = 30, 3


@pytest.fixture(params=["strengths", "differences"])
def known(request):
    """What is known of 30 arms with 3 states, and the same as matrices [M, M].

    What matters: strengths, each by its own weight, or also differences within an arm.
    """
    rng = np.random.default_rng(0)
    of_states = np.tile(rng.normal(size=(S, S)), (N, 1)) + 0.1 * rng.normal(size=(N * S, S))
    within, rest = rng.random(N * S), rng.random(N * S)
    common = np.column_stack([of_states, within])
    same_arm = np.kron(np.eye(N), np.ones((S, S)))
    covariance = of_states @ of_states.T + same_arm * np.outer(within, within) + np.diag(rest)
    weights, strengths = rng.random((N, S, 1)), rng.normal(size=N * S)
    apart = 0.9 if request.param == "differences" else 0.0
    matters = weights * np.eye(S) - apart * weights.mean(axis=1, keepdims=True) / S
    codes = np.arange(N) * S + rng.integers(S, size=N)
    about = many_pairs.unknown(common, covariance.diagonal(), strengths, matters, codes)
    whole = np.zeros((N, S, N, S))
    whole[np.arange(N), :, np.arange(N)] = matters
    return about, covariance, whole.reshape(N * S, N * S), codes


def test_what_a_few_are_worth_is_what_the_whole_covariance_says(known):
    about, V, matters, codes = known
    some = np.array([3, 17, 4, 9])
    information = about.information(some)
    towards = V[:, codes[some]]
    assert information.covariance == pytest.approx(V[np.ix_(codes[some], codes[some])])
    assert information.gram == pytest.approx(towards.T @ matters @ towards)


def test_what_was_asked_is_worth_less_and_the_others_tell_less_of_states(known):
    about, _, _, _ = known
    scores, own, common = about.scores(), about.own, about.common
    about.ask(np.array([[0, 1], [0, 2]]))
    assert (about.scores() < scores).all()
    assert (about.own[:3] < own[:3]).all()
    assert (about.own[3:] == own[3:]).all()
    assert np.linalg.norm(about.common) < np.linalg.norm(common)


def test_pairs_of_few_are_about_as_informative_as_those_found_among_all(known):
    about, V, matters, codes = known
    none, keys = np.empty((0, 2), dtype=np.int64), np.random.default_rng(1).random(N + 20)
    towards, inner = V[:, codes], V[np.ix_(codes, codes)]
    args = towards.T @ matters @ towards, inner, about.strengths
    best = pair_designs.most_informative(*args, none, keys)
    found = many_pairs.most_informative(about, none, keys)

    def left_unknown(pairs):
        told = np.zeros((len(pairs), N * S))
        told[np.arange(len(pairs)), codes[pairs[:, 0]]] = 1
        told[np.arange(len(pairs)), codes[pairs[:, 1]]] = -1
        gain = np.linalg.solve(told @ V @ told.T + 4 * np.eye(len(pairs)), told @ V)
        return np.trace(matters @ (V - V @ told.T @ gain))

    by_lot = np.random.default_rng(2).permuted(np.tile(np.arange(N), (20, 1)), axis=1)[:, :2]
    assert left_unknown(found) < left_unknown(best) * 1.02
    assert left_unknown(found) < left_unknown(by_lot)


def test_no_pair_is_asked_twice_if_each_may_be_asked_once(known):
    about, _, _, _ = known
    asked = np.array([[0, 1], [5, 2]])
    left = N * (N - 1) // 2 - len(asked)
    found = many_pairs.most_informative(about, asked, np.linspace(0, 1, N + left), once=True)
    assert len(np.unique(np.sort(np.concatenate([asked, found]), axis=1), axis=0)) == left + 2
    assert (found[:, 0] != found[:, 1]).all()


def many(copies, **rules):
    """CPAP's arms, `copies` times, and a learner that plans for them."""
    cpap = environments.load("cpap")
    P, r = np.tile(cpap.transitions, (copies, 1, 1, 1)), np.tile(cpap.rewards, (copies, 1))
    bandit = Bandit(P, r, 8 * copies)
    return bandit, Dopl(len(r), 3, 8 * copies, horizon=2, **rules)


def test_a_sitting_of_many_arms_asks_about_as_many_of_them_as_it_can():
    bandit, learner = many(15, answers=150)
    world = SimulatedWorld(bandit, 0, temperature=0.4)
    duels = learner.first_round(world.states, 140)
    assert duels.shape == (140, 4)
    assert len(np.unique(duels[:, ::2])) > 190
    assert (duels[:, 0] != duels[:, 2]).all()
    assert (duels[:, 1] == world.states[duels[:, 0]]).all()


@pytest.mark.parametrize("rules", [{"answers": 150}, {"design": "informative"}])
def test_many_arms_are_played_with_and_restored_to_the_bit(rules):
    bandit, learner = many(20, **rules)
    world = SimulatedWorld(bandit, 0, temperature=0.4)
    prepare(learner, world, 5, 200)
    list(play(learner, world, 2))
    learner.replan()
    assert learner.preferences.covariance is None
    _, twin = many(20, **rules)
    twin.restore(learner.state())
    arms = learner.activate(world.states, 0)
    duels = learner.duels(world.states, arms, 0)
    assert (duels == twin.duels(world.states, arms, 0)).all()
    tree = duels[: len(arms) - 1, ::2]
    parts = {arm: {arm} for arm in arms.tolist()}
    for left, right in tree.tolist():
        assert parts[left] is not parts[right]
        whole = parts[left] | parts[right]
        parts |= dict.fromkeys(whole, whole)
    assert len(parts[arms[0]]) == len(arms)
    learner.replan()
    twin.replan()
    for name, array in learner.state().items():
        assert array.tobytes() == twin.state()[name].tobytes(), name
