"""What strengths and evidence matter for: advantages, and questions about them."""

from dataclasses import replace

import numpy as np
import pytest

from dopl_core.learning import decisions
from dopl_core.learning.counts import counted
from dopl_core.learning.moves.dynamics import Dynamics
from dopl_core.learning.planning import plan
from dopl_core.learning.preferences import calibrated

N, S, B = 6, 3, 2
NOTHING = calibrated(counted(np.zeros((N * S, N * S))), S, None)  # is known of strengths


@pytest.fixture(scope="module")
def bandit():
    rng = np.random.default_rng(0)
    return rng.dirichlet(np.ones(S), size=(N, S, 2)), rng.random((N, S))


def known(P, sd=0.0):
    return Dynamics(P, np.full(P.shape, sd), P, P)


@pytest.mark.parametrize("pays", ["all", "active"])
def test_advantages_are_those_of_the_plan(bandit, pays):
    """With the multiplier as the price of help, which the policy pays where it acts."""
    P, rewards = bandit
    made = plan(rewards, P, P, B, engine="lagrangian", pays=pays)
    gain = (decisions.advantages_of(made, P, pays)[1] @ rewards[:, :, None])[:, :, 0]
    relative, J = decisions.advantages_of(made, P, "all")
    paid = (J @ (made.multiplier * made.index)[:, :, None])[:, :, 0]
    assert gain - paid - made.multiplier == pytest.approx(made.advantage, abs=1e-3)
    level = relative.sum(axis=2)
    assert level == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("sd", [0.0, 0.2])
def test_an_arms_own_level_matters_to_no_decision(bandit, sd):
    P, rewards = bandit
    made = plan(rewards, P, P, B, engine="lagrangian")
    matters = decisions.importance(made, known(P, sd), NOTHING, "all")
    assert (matters @ np.ones(S)) == pytest.approx(0, abs=1e-4)
    assert (np.linalg.eigvalsh(matters) > -1e-9).all()


def test_decisions_far_from_the_cut_matter_less(bandit):
    P, rewards = bandit
    made = plan(rewards, P, P, B, engine="lagrangian")
    size = [
        np.trace(
            decisions.importance(replace(made, advantage=advantage), known(P), NOTHING, "all"),
            axis1=1,
            axis2=2,
        )
        for advantage in (np.full((N, S), 100.0), np.zeros((N, S)))
    ]
    assert (size[0] < size[1]).all()


def test_while_the_effect_of_help_is_unknown_differences_within_an_arm_matter(bandit):
    P, rewards = bandit
    P = np.repeat(P[:, :, :1], 2, axis=2)  # help does nothing, as far as is known
    made = plan(rewards, P, P, B, engine="lagrangian")
    assert decisions.importance(made, known(P), NOTHING, "all") == pytest.approx(0)
    assert np.linalg.eigvalsh(decisions.importance(made, known(P, 0.2), NOTHING, "all")).max() > 0


def with_effect(P, effect, covariance):
    return replace(known(P), effect=effect, effect_covariance=covariance)


def test_what_help_is_worth_is_the_value_of_its_changes_to_those_in_a_state(bandit):
    """By hand from draws of the changes: each person counts as often as they are in the state."""
    P, rewards = bandit
    made = plan(rewards, P, P, B, engine="lagrangian")
    rng = np.random.default_rng(2)
    effect, root = rng.normal(size=(S, S)), rng.normal(size=(S, S, S))
    covariance = root @ root.transpose(0, 2, 1)
    found = decisions.effect_of_help(made, with_effect(P, effect, covariance))
    values = made.start[1:].reshape(N, S)
    there = made.occupancy.sum(axis=2)
    for s in range(S):
        weight = there[:, s] / there[:, s].sum()
        changes = effect[s] + rng.standard_normal((20_000, S)) @ root[s].T
        gains = changes @ (weight @ values)
        assert found.gain[s] == pytest.approx(weight @ (values @ effect[s]))
        assert found.error[s] == pytest.approx(gains.std(), rel=0.03)


def test_where_no_effect_is_estimated_nothing_is_said_of_it(bandit):
    P, rewards = bandit
    assert decisions.effect_of_help(plan(rewards, P, P, B, engine="lagrangian"), known(P)) is None


@pytest.mark.parametrize(("errors", "credible"), [(0, False), (1, False), (2, True), (50, True)])
def test_a_gain_in_the_best_state_is_credible_from_some_standard_errors(errors, credible):
    error = np.array([9.0, 9.0, 0.1])
    effect = decisions.Effect(np.array([0.0, 0.0, errors * 0.1]), error)
    assert effect.is_credible_in_best == credible


def test_the_better_off_need_a_margin_that_shrinks_as_help_becomes_known():

    def margin(error):
        return decisions.margin(decisions.Effect(np.zeros(4), np.asarray(error)))

    assert margin(np.ones(4))[0] == 0
    assert (np.diff(margin(np.ones(4))) > 0).all()
    error = np.array([0.3, 0.2, 0.4, 0.1])
    assert margin(error)[0] == 0
    assert (margin(error) >= 0).all()
    for less in (0.5, 0.1, 0.0):
        assert margin(less * error) == pytest.approx(less * margin(error))


def test_the_own_covariance_is_that_of_an_arms_states():
    rng = np.random.default_rng(1)
    wins = np.zeros((N * S, N * S))
    i = rng.integers(N * S, size=60)
    np.add.at(wins, (i, (i + rng.integers(1, N * S, size=60)) % (N * S)), 1.0)
    belief = calibrated(counted(wins), S, None)
    own = decisions.own_covariance(belief)
    V = belief.covariance
    for n in range(N):
        here = slice(n * S, n * S + S)
        assert own[n] == pytest.approx(V[here, here])
