"""What strengths and evidence matter for: advantages, and questions about them."""

from dataclasses import replace

import numpy as np
import pytest

from dopl_core.learning import decisions
from dopl_core.learning.counts import counted
from dopl_core.learning.planning import plan
from dopl_core.learning.preferences import calibrated
from dopl_core.learning.transitions.class_rows import WEIGHT
from dopl_core.learning.transitions.dynamics import Dynamics

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


def test_the_best_state_needs_less_evidence_the_more_moves_were_seen_in_it(bandit):
    P, rewards = bandit
    made = plan(rewards, P, P, B, engine="lagrangian")
    needed = [
        decisions.caution(made, P, np.array([[5, 5], [5, 5], best]))
        for best in ([0, 0], [25, 0], [25, 6], [25, 600], [2500, 600])
    ]
    assert np.array(needed)[:, :-1] == pytest.approx(0)
    assert (np.diff([n[-1] for n in needed]) < 0).all()
    assert needed[-1][-1] < 0.1 * needed[0][-1]
    values = made.start[1:].reshape(N, 1, S)
    of_values = (P[:, -1] * (values - (P[:, -1] * values).sum(2, keepdims=True)) ** 2).sum(2)
    expected = np.sqrt((of_values.mean(axis=0) / [26, 7]).sum())
    assert needed[2][-1] == pytest.approx(decisions.CAUTION * expected)


@pytest.mark.parametrize(("errors", "share"), [(0.5, 1), (1, 1), (1.5, 0.5), (2, 0), (5, 0)])
def test_a_credible_effect_in_the_best_state_needs_no_further_evidence(bandit, errors, share):
    P, rewards = bandit
    made = plan(rewards, P, P, B, engine="lagrangian")
    seen = np.array([[5, 5], [5, 5], [400, 360]])
    values = made.start[1:].reshape(N, 1, S)
    without = P.copy()
    without[:, -1, 1] = P[:, -1, 0]
    towards = np.eye(S)[values[:, 0].argmax(axis=1)]

    def mixed(x):
        rows = without.copy()
        rows[:, -1, 1] = (1 - x) * rows[:, -1, 1] + x * towards
        return rows

    def measured(x):
        rows = mixed(x)[:, -1]
        centre = (rows * values).sum(axis=2, keepdims=True)
        of_values = (rows * (values - centre) ** 2).sum(axis=2).mean(axis=0)
        by_moves = 360 / (360 + WEIGHT)  # the prior is worth this many moves
        return np.sqrt((of_values / [401, 361]).sum()), by_moves * np.diff(centre[..., 0]).mean()

    at = next(x for x in np.linspace(0, 1, 4001) if measured(x)[1] >= errors * measured(x)[0])
    needed = decisions.caution(made, mixed(at), seen)[-1] / measured(at)[0]
    assert needed == pytest.approx(share, abs=0.02)


def test_a_plan_that_did_not_count_its_moves_needs_no_evidence(bandit):
    P, rewards = bandit
    made = plan(rewards, P, P, B, engine="lagrangian")
    assert decisions.caution(made, P, None) == pytest.approx(0)


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
