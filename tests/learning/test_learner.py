"""A learner's flow: exactly B arms, exactly B-1 duels, every count kept, everything rebuildable."""

import numpy as np
import pytest

from dopl_core import environments
from dopl_core.experiments.baselines import index_plan
from dopl_core.experiments.simulator import play
from dopl_core.learning.dopl import Dopl
from dopl_core.learning.learner import Learner
from dopl_core.learning.places.sharing import Sharing
from dopl_core.learning.planning import plan
from dopl_core.world import SimulatedWorld


def dopl(bandit, **options):
    options = {"horizon": 5, "confidence": "paper", "engine": "highs"} | options
    return Dopl(bandit.n_arms, bandit.n_states, bandit.budget, **options)


ZEROS = np.zeros(20, dtype=int)


class SimplePlan(Learner):
    """A learner that implements what it must."""

    def make_plan(self):
        return index_plan(np.zeros((self.n_arms, self.n_states)))


@pytest.fixture
def cpap():
    return environments.load("cpap")


def played(bandit, episodes, **options):
    learner = dopl(bandit, **options)
    rewards = [reward for reward, _ in play(learner, SimulatedWorld(bandit, 0), episodes)]
    return learner, rewards


def test_counts_survive_a_long_run(cpap):
    learner, _ = played(cpap, 60, horizon=20)
    epochs = 60 * 20
    assert learner.visits.sum() == epochs * 20
    assert learner.visits[:, :, 1].sum() == epochs * 8
    assert learner.counts.total() == epochs * 7
    assert np.trace(learner.counts.wins()) == 0


@pytest.mark.parametrize("design", ["star", "tree"])
def test_an_epoch_is_a_function_of_seed_episode_and_epoch(cpap, design):
    first, _ = played(cpap, 3, design=design, seed=4)
    second = dopl(cpap, design=design, seed=4)
    second.restore(first.state())
    for learner in (first, second):
        learner.replan()
    states = np.arange(20) % 3
    for epoch in range(5):
        arms = first.activate(states, epoch)
        assert (arms == second.activate(states, epoch)).all()
        assert (first.duels(states, arms, epoch) == second.duels(states, arms, epoch)).all()
        assert (first.duels(states, arms, epoch) == first.duels(states, arms, epoch)).all()
    third = dopl(cpap, design=design, seed=5)
    third.restore(first.state())
    assert (first.duels(states, arms, 0) != third.duels(states, arms, 0)).any()


def test_duels_are_between_activated_arms_in_their_present_states(cpap):
    learner, _ = played(cpap, 2)
    learner.replan()
    states = np.arange(20) % 3
    arms = learner.activate(states, 0)
    duels = learner.duels(states, arms, 0)
    assert len(set(arms.tolist())) == 8
    assert duels.shape == (7, 4)
    assert set(duels[:, [0, 2]].ravel().tolist()) == set(arms.tolist())
    assert (duels[:, 1] == states[duels[:, 0]]).all()
    assert (duels[:, 3] == states[duels[:, 2]]).all()


def test_the_best_ranked_are_activated_and_ties_are_broken_at_random(cpap):
    learner = dopl(cpap, horizon=200)
    learner.replan()
    learner.priority = np.zeros((20, 3))
    learner.priority[3], learner.priority[7] = 2, 1
    states = np.zeros(20, dtype=int)
    times = np.zeros(20)
    for epoch in range(200):
        times[learner.activate(states, epoch)] += 1
    assert times[3] == times[7] == 200
    rest = np.delete(times, [3, 7])
    assert rest.sum() == 200 * 6
    assert rest.min() > 40


def test_undo_leaves_no_trace(cpap):
    learner, _ = played(cpap, 2)
    learner.replan()
    states = np.arange(20) % 3
    duels = learner.duels(states, learner.activate(states, 0), 0)
    before = learner.state()
    credit = np.array([0.5, 0.5, 1, 1, 1, 0, 0])
    learner.count_duels(duels, credit)
    assert learner.counts.total() > before["duels.times"].sum()
    learner.count_duels(duels, credit, -1)
    after = learner.state()
    assert before.keys() == after.keys()
    assert all((before[key] == after[key]).all() for key in before)


@pytest.mark.parametrize("confidence", ["paper", "calibrated"])
def test_a_restored_learner_continues_to_the_bit(cpap, confidence):
    learner, _ = played(cpap, 3, confidence=confidence)
    twin = dopl(cpap, confidence=confidence)
    twin.restore(learner.state())
    for each in (learner, twin):
        each.replan()
        each.replan()
    one, other = learner.state(), twin.state()
    assert one.keys() == other.keys()
    assert all(np.array_equal(one[key], other[key]) for key in one)


def test_the_reference_is_fixed_or_the_most_compared(cpap):
    stays, _ = played(cpap, 12)
    moves, _ = played(cpap, 12, reference="most-compared")
    compared = moves.counts.wins() + moves.counts.wins().T
    stays.replan()
    moves.replan()
    assert moves.preferences.reference == compared.sum(axis=1).argmax()
    fresh = dopl(cpap)
    fresh.replan()
    assert fresh.preferences.reference is None
    duel = np.array([[2, 1, 5, 0]])
    fresh.count_duels(duel, [0.0])
    fresh.replan()
    assert fresh.preferences.reference == 2 * 3 + 1
    for _ in range(5):
        fresh.count_duels([[4, 0, 5, 0]], [0.0])
    fresh.replan()
    assert fresh.preferences.reference == 2 * 3 + 1


def test_with_known_transitions_the_plan_is_that_of_the_lp(cpap):
    learner = dopl(cpap, confidence="paper")
    P = cpap.transitions
    truth = plan(cpap.rewards, P, P, 8, engine="highs")
    learner.visits[:] = np.round(P * 1e9)
    learner.replan()
    # Preferences unknown: all overestimates equal, so the value is that of rewards all 1.
    assert learner.plan.value == pytest.approx(20)
    assert truth.value == pytest.approx(15.9004, abs=1e-4)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda x: x.count_duels([[0, 0, 1, 0]], [2]), "1 if the left side won"),
        (lambda x: x.count_duels([[0, 0, 1, 0]], [1, 1]), "of 1 duels"),
        (lambda x: x.count_duels([[0, 3, 1, 0]], [0]), "states of 3"),
        (lambda x: x.count_duels([[0, 0, 1, 0], [1, 0, 1, 0]], [1, 1]), "two different arms"),
        (lambda x: x.count_moves(ZEROS, ZEROS, [3] + [0] * 19), "next states: arm 0 is in state 3"),
        (lambda x: x.count_moves([0] * 19, ZEROS, ZEROS), "one state for each of 20 arms"),
        (lambda x: x.activate([-1] + [0] * 19, 0), "arm 0 is in state -1"),
        (lambda x: x.activate([0.5] * 20, 0), "states are numbered 0 to 2"),
    ],
)
def test_bad_input_is_refused_and_changes_nothing(cpap, call, reason):
    learner = dopl(cpap)
    learner.replan()
    before = learner.state()
    with pytest.raises(ValueError, match=reason):
        call(learner)
    after = learner.state()
    assert all(np.array_equal(before[key], after[key]) for key in before)


def test_an_episode_begins_with_a_plan_and_ends_after_its_horizon(cpap):
    learner = dopl(cpap, horizon=1)
    states = np.zeros(20, dtype=int)
    with pytest.raises(ValueError, match="no plan yet"):
        learner.activate(states, 0)
    learner.replan()
    assert len(learner.activate(states, 0)) == 8
    with pytest.raises(ValueError, match="episode 1 is over after 1 epochs"):
        learner.activate(states, 1)


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ({"horizon": 0}, "at least 1 epoch"),
        ({"design": "ring"}, "star, tree, informative"),
        ({"confidence": "high"}, "calibrated, paper"),
        ({"ties": "coin"}, "advantage, paper"),
        ({"epsilon": 0}, "between 0 and 1"),
        ({"reference": "best"}, "fixed, most-compared"),
        ({"find_out": 8}, "find_out is 8: it must be at least 0 and below the budget"),
        ({"help_kind": "letter"}, "message, call, visit, treatment, money, other"),
    ],
)
def test_an_unknown_option_is_refused_and_the_known_ones_are_named(cpap, option, reason):
    with pytest.raises(ValueError, match=reason):
        dopl(cpap, **option)


def test_the_kind_of_help_stays_until_another_one_is_given(cpap):
    assert dopl(cpap).help_kind == "other"
    learner = dopl(cpap, help_kind="call")
    learner.adapt(learner.present, 8)
    assert learner.help_kind == "call"
    learner.adapt(learner.present, 8, help_kind="visit")
    assert learner.help_kind == "visit"
    with pytest.raises(ValueError, match=r'^help_kind is "letter": it must be one of message, '):
        learner.adapt(learner.present, 8, help_kind="letter")
    assert learner.help_kind == "visit"


def test_places_to_find_out_stay_as_they_are_or_go_back_to_the_default(cpap):
    learner = dopl(cpap, find_out=2)
    learner.adapt(learner.present, 8)
    assert learner.find_out == 2
    learner.adapt(learner.present, 8, find_out=0)
    assert learner.find_out == 0
    with pytest.raises(ValueError, match="find_out is 8: it must be at least 0 and below"):
        learner.adapt(learner.present, 8, find_out=8)
    learner.adapt(learner.present, 8, find_out=None)
    assert learner.find_out is None
    assert dopl(cpap).find_out is None


def test_a_learner_lists_nobody_to_find_out_unless_it_says_so(cpap):
    learner = SimplePlan(20, 3, 8, horizon=1)
    learner.replan()
    listed = learner.activate(ZEROS, 0)
    assert learner.finds_out(ZEROS, listed).shape == (0,)
    assert learner.finds_out(ZEROS, listed).dtype == listed.dtype


def test_places_by_lot_go_from_listed_arms_to_present_others_and_are_reproducible():
    learner = Dopl(10, 2, 4, horizon=1, seed=7, confidence="paper")
    learner.adapt(np.arange(10) < 8, 4, by_lot=2)
    drawn, waited = np.zeros(10), np.zeros(10)
    for _ in range(200):
        learner.replan()
        listed = learner.activate(np.zeros(10, dtype=int), 0)
        waiting, others = learner.draw_lots(listed, 0)
        assert len(listed) == 4
        assert len(waiting) == len(others) == 2
        assert np.isin(waiting, listed).all()
        assert not np.isin(others, listed).any()
        again = learner.draw_lots(listed, 0)
        assert [arms.tolist() for arms in again] == [waiting.tolist(), others.tolist()]
        drawn[others] += 1
        waited[waiting] += 1
    assert not drawn[8:].any()
    assert min(drawn[:8].min(), waited[:8].min()) > 30  # 50 expected each: all ties are random here


def test_a_place_by_lot_stays_in_the_group_that_places_are_shared_out_among():
    learner = Dopl(10, 2, 4, horizon=1, seed=7)
    codes = np.arange(10) % 2
    sharing = Sharing(("ward", "A", "B"), codes, np.array([0.5, 0.5]))
    learner.adapt(learner.present, 4, by_lot=2, sharing=sharing)
    for _ in range(20):
        learner.replan()
        listed = learner.activate(np.zeros(10, dtype=int), 0)
        waiting, drawn = learner.draw_lots(listed, 0)
        assert np.bincount(codes[waiting], minlength=2).tolist() == (
            np.bincount(codes[drawn], minlength=2).tolist()
        )


def test_no_arm_is_drawn_if_no_place_is_drawn_by_lot():
    learner = Dopl(4, 2, 2, horizon=1)
    learner.replan()
    listed = learner.activate(np.zeros(4, dtype=int), 0)
    assert [len(arms) for arms in learner.draw_lots(listed, 0)] == [0, 0]
