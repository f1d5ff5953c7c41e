"""Calibrated confidence: intervals that hold what they promise, and a learner that gets there."""

from pathlib import Path

import numpy as np
import pytest

from dopl_core import environments
from dopl_core.experiments import runs
from dopl_core.experiments.baselines import Oracle, Random
from dopl_core.experiments.metrics import kendall
from dopl_core.experiments.simulator import play, prepare
from dopl_core.learning import preferences
from dopl_core.learning.bandit import Bandit
from dopl_core.learning.bradley_terry.spreads import order, unordered
from dopl_core.learning.bradley_terry.strengths import Answers, before_answers, settled
from dopl_core.learning.counts import counted
from dopl_core.learning.decisions import importance
from dopl_core.learning.dopl import Dopl
from dopl_core.learning.moves import model, weeks
from dopl_core.learning.planning import plan
from dopl_core.world import SimulatedWorld, bradley_terry

EVERYONE_DIFFERS = str(Path(__file__).parents[1] / "data" / "everyone_differs.toml")
Z90 = 1.645


def asked(rng, strengths, duels, tied=0.0):
    """wins [M, M] of stars of random arms in random states."""
    N, S = strengths.shape
    wins = np.zeros((N * S, N * S))
    for _ in range(duels // 5):
        codes = rng.choice(N, 6, replace=False) * S + rng.integers(S, size=6)
        for i, j in zip(np.repeat(codes[0], 5), codes[1:], strict=True):
            if rng.random() < tied:
                wins[i, j] += 0.5
                wins[j, i] += 0.5
                continue
            won = rng.random() < bradley_terry(strengths.flat[i] - strengths.flat[j])
            wins[(i, j) if won else (j, i)] += 1
    return wins


def of_moves(visits):
    """What is believed of rows whose states have no order, by moves [N, S, A, S']."""
    recent = weeks.nothing_yet(len(visits))
    return model.estimate(visits, None, recent, np.random.default_rng(0), ordered=False)


def truths(rng, N=20, S=4):
    """Strengths of several making: all parts, each on its own, and what no prior here is like."""
    parts = rng.normal(size=S), rng.normal(size=(N, 1)), rng.normal(size=(N, S))
    yield 0.25 * parts[0] + 0.2 * parts[1] + 0.1 * parts[2]
    yield np.tile(rng.random((N, 1)), (1, S))
    yield rng.random((N, S))
    yield np.clip(np.linspace(0, 0.6, S) + 0.4 * rng.random((N, 1)), 0, 1)


@pytest.mark.parametrize("temperature", [1.0, 0.4])
def test_90_percent_intervals_of_strengths_cover_their_share(temperature):
    rng = np.random.default_rng(0)
    covered = []
    for _ in range(6):
        for truth in truths(rng):
            strengths = truth / temperature
            for duels in (100, 500, 2500):
                wins = asked(rng, strengths, duels)
                reference = preferences.most_compared(counted(wins))
                belief = preferences.calibrated(counted(wins), 4, reference)
                gap = np.abs(belief.mean - (strengths - strengths.flat[reference]))
                known = np.arange(gap.size).reshape(gap.shape) == reference
                covered.append((gap <= Z90 * belief.sd)[~known].mean())
    assert 0.85 <= np.mean(covered) <= 0.95


def test_90_percent_intervals_of_rows_cover_their_share():
    rng = np.random.default_rng(1)
    covered = []
    for kinds in (1, 3, 20):
        for total in (30, 100, 300) * 6:
            # With 20 kinds every arm is its own.
            kind = np.arange(20) if kinds == 20 else rng.integers(kinds, size=20)
            rows = rng.dirichlet(np.ones(3), size=(kinds, 3, 2))[kind]
            share = rng.dirichlet(np.ones(6), size=20).reshape(20, 3, 2)
            belief = of_moves(rng.multinomial(rng.poisson(total * share), rows))
            covered.append((np.abs(belief.mean - rows) <= Z90 * belief.sd).mean())
    assert 0.85 <= np.mean(covered) <= 0.95


def test_without_data_everything_is_possible():
    belief = preferences.calibrated(counted(np.zeros((12, 12))), 3, None)
    assert (belief.mean == 0).all()
    assert (belief.overestimate > 0.3).all()
    rows = of_moves(np.zeros((4, 3, 2, 3), dtype=int))
    assert rows.mean[:, :, 0] == pytest.approx(rows.mean[:, :, 1])
    assert (rows.mean > 0.1).all()
    assert (rows.high - rows.low > 0.3).all()


@pytest.mark.parametrize("prior", [unordered(3), order(3)])
def test_the_prior_is_the_posterior_of_no_answers(prior):
    answers = Answers(counted(np.zeros((12, 12))), None)
    nothing = settled(answers, np.zeros(12), (4, 3), prior)
    for found, expected in zip(before_answers((4, 3), prior), nothing, strict=True):
        assert found == pytest.approx(expected)


def test_where_states_are_ordered_arms_differ_most_in_the_best():
    belief = preferences.calibrated(counted(np.zeros((12, 12))), 3, None, ordered=True)
    own = belief.covariance.reshape(4, 3, 4, 3)[0, :, 0] - belief.covariance[:3, 3:6]
    assert (np.diff(own.diagonal()) > 0).all()
    assert own[1, 2] > own[0, 2]


def test_states_from_worst_to_best_rise_before_any_answer_and_answers_overrule_it():
    belief = preferences.calibrated(counted(np.zeros((18, 18))), 3, None, ordered=True)
    assert (np.diff(belief.mean, axis=1) > 0.1).all()
    falling = asked(np.random.default_rng(10), np.tile([2.0, 1.0, 0.0], (6, 1)), 300)
    belief = preferences.calibrated(counted(falling), 3, None, ordered=True)
    assert (np.diff(belief.mean, axis=1) < -0.3).all()


def test_a_few_answers_tell_how_sure_people_are():
    rng = np.random.default_rng(11)
    for temperature in (1.0, 0.3, 0.1):
        truth = np.tile([0.0, 0.5, 1.0], (10, 1)) / temperature
        mean = preferences.calibrated(counted(asked(rng, truth, 400)), 3, None).mean
        assert np.ptp(mean.mean(axis=0)) == pytest.approx(1 / temperature, rel=0.4)


def test_strengths_from_codes_are_those_from_counts():
    winners, losers = np.array([5, 5, 1, 3]), np.array([0, 2, 4, 0])
    wins = np.zeros((6, 6))
    np.add.at(wins, (winners, losers), 1)
    mean, sd = preferences.calibrated_strengths(winners, losers, 3, 2)
    belief = preferences.calibrated(counted(wins), 2, None)
    assert (mean == belief.mean).all()
    assert (sd == belief.sd).all()


def test_a_sitting_asks_about_all_arms_and_the_further_answers_of_an_epoch_too():
    bandit = environments.load("cpap")
    learner = Dopl(20, 3, 8, horizon=2, answers=30, ordered=True)
    world = SimulatedWorld(bandit, 0, temperature=0.4)
    prepare(learner, world, 26, 100)
    assert learner.visits.sum() == 26 * 20
    assert learner.counts.total() == 100
    assert (learner.counts.wins() + learner.counts.wins().T).any(axis=0).sum() == 20
    list(play(learner, world, 2))
    assert learner.counts.total() == 100 + 4 * 30
    learner.replan()
    twin = Dopl(20, 3, 8, horizon=2, answers=30, ordered=True)
    twin.restore(learner.state())
    arms = learner.activate(world.states, 0)
    duels = learner.duels(world.states, arms, 0)
    assert (duels == twin.duels(world.states, arms, 0)).all()
    assert np.isin(duels[:7, ::2], arms).all()
    assert not np.isin(duels[7:, ::2], arms).all()
    assert (duels[:, 1] == world.states[duels[:, 0]]).all()
    assert (duels[:, 0] != duels[:, 2]).all()


def test_a_chosen_sitting_leaves_less_unknown_than_one_by_lot():
    learner, states = Dopl(20, 3, 8, horizon=1), np.arange(20) % 3
    V = preferences.calibrated(learner.counts, 3, None).covariance

    def left_unknown(duels):
        asked = np.zeros((len(duels), 60))
        np.put_along_axis(asked, duels[:, [0]] * 3 + duels[:, [1]], 1, axis=1)
        np.put_along_axis(asked, duels[:, [2]] * 3 + duels[:, [3]], -1, axis=1)
        return np.trace(
            V
            - V @ asked.T @ np.linalg.solve(asked @ V @ asked.T + 4 * np.eye(len(duels)), asked @ V)
        )

    rng = np.random.default_rng(0)
    by_lot = [np.array([rng.choice(20, 2, replace=False) for _ in range(60)]) for _ in range(8)]
    others = [left_unknown(np.stack([p, states[p]], axis=2).reshape(-1, 4)) for p in by_lot]
    assert left_unknown(learner.first_round(states, 60)) < min(others)


@pytest.mark.long
def test_with_many_answers_and_moves_the_truth_is_found():
    rng = np.random.default_rng(2)
    strengths = rng.random((8, 3))
    wins = asked(rng, strengths, 300_000)
    belief = preferences.calibrated(counted(wins), 3, 0)
    assert belief.mean == pytest.approx(strengths - strengths.flat[0], abs=0.06)
    assert np.abs(belief.overestimate - belief.mean).max() < 0.06
    rows = rng.dirichlet(np.ones(3), size=(8, 3, 2))
    found = of_moves(rng.multinomial(20_000, rows))
    assert found.mean == pytest.approx(rows, abs=0.02)
    assert (found.high - found.low).max() < 0.02


def test_what_was_never_asked_again_stays_unknown_even_if_it_is_the_reference():
    # Arm 0 in state 0 against arm 1 in state 0 once; then a thousand times the others.
    rng = np.random.default_rng(8)
    strengths = np.tile([0.0, 0.5, 1.0], (6, 1))
    wins = asked(rng, strengths[:, 1:], 5000)
    wins = np.pad(wins.reshape(6, 2, 6, 2), ((0, 0), (1, 0), (0, 0), (1, 0))).reshape(18, 18)
    wins[0, 4] = wins[3, 1] = 1
    belief = preferences.calibrated(counted(wins), 3, reference=0)
    bonus = belief.overestimate - belief.mean
    assert bonus[:, 0].min() > 3 * bonus[:, 1:].max()


def test_answers_that_are_all_undone_leave_nothing_behind():
    wins = asked(np.random.default_rng(9), np.tile([0.0, 1.0], (6, 1)), 100)
    warm = preferences.calibrated(counted(wins), 2, 0).warm
    assert (preferences.calibrated(counted(np.zeros((12, 12))), 2, 0, warm).mean == 0).all()


def test_a_tie_is_half_an_answer_to_either_side():
    rng = np.random.default_rng(3)
    belief = preferences.calibrated(counted(asked(rng, np.zeros((6, 2)), 600, tied=1.0)), 2, 0)
    assert belief.mean == pytest.approx(0, abs=1e-9)


def test_what_states_have_in_common_is_learned_from_all_arms():
    rng = np.random.default_rng(4)
    by_state = np.tile([0.0, 0.5, 1.0], (20, 1))
    by_arm_state = rng.permuted(by_state, axis=1)
    error = [
        np.std(preferences.calibrated(counted(asked(rng, truth, 1000)), 3, 0).mean - truth)
        for truth in (by_state, by_arm_state)
    ]
    assert error[0] < error[1] / 2


def normalised(learner, bandit, seed, episodes, window):
    """Reward in the last `window` episodes: 0 is chance, 1 the paper's oracle, on the same luck."""
    flow = {"horizon": learner.horizon, "seed": seed}
    shape = bandit.n_arms, bandit.n_states, bandit.budget
    players = learner, Oracle(bandit, ties="paper", **flow), Random(*shape, **flow)
    mine, oracle, chance = (
        np.mean([r for r, _ in play(player, SimulatedWorld(bandit, seed), episodes)][-window:])
        for player in players
    )
    return (mine - chance) / (oracle - chance)


@pytest.mark.long
def test_it_learns_where_everyone_differs_and_the_papers_widths_do_not():
    bandit = environments.load(EVERYONE_DIFFERS)
    shape = bandit.n_arms, bandit.n_states, bandit.budget
    score = {
        confidence: np.mean(
            [
                normalised(
                    Dopl(*shape, horizon=5, seed=seed, confidence=confidence), bandit, seed, 160, 80
                )
                for seed in range(3)
            ]
        )
        for confidence in ("calibrated", "paper")
    }
    assert score["calibrated"] > 0.5
    assert score["paper"] < 0.2


def a_small_bandit():
    rng = np.random.default_rng(7)
    return Bandit(rng.dirichlet(np.ones(3), size=(6, 3, 2)), rng.random((6, 3)), 2)


def test_with_ever_more_data_the_plan_becomes_that_of_the_truth():
    bandit = a_small_bandit()
    P, strengths = bandit.transitions, bandit.rewards.ravel()
    truth = plan(bandit.rewards, P, P, 2)
    F = bradley_terry(strengths[:, None] - strengths)
    np.fill_diagonal(F, 0)
    errors, values = [], []
    for data in (10, 1_000, 100_000, 10_000_000):
        learner = Dopl(6, 3, 2, horizon=5)
        learner.visits[:] = np.round(data * P)
        learner.counts = counted(data * F)
        learner.replan()
        reference = learner.preferences.reference
        errors.append(1 - kendall(learner.plan.index, truth.index))
        values.append(abs(learner.plan.value - truth.value + 6 * strengths[reference]))
    assert errors[-1] == 0
    assert values[-1] < 0.01
    assert values == sorted(values, reverse=True)


def test_in_a_long_run_the_regret_fades_and_no_arm_state_was_starved():
    bandit = a_small_bandit()
    learner, oracle = Dopl(6, 3, 2, horizon=40), Oracle(bandit, horizon=40)
    worlds = SimulatedWorld(bandit, 0), SimulatedWorld(bandit, 0)
    regret = []
    for _ in range(100):
        best, mine = (next(play(*who, 1))[0] for who in zip((oracle, learner), worlds, strict=True))
        regret.append(best - mine)
        if learner.episode == 10:
            # Every arm-state has been helped by now, those that the best plan leaves alone too.
            assert (learner.visits[:, :, 1].sum(axis=2) > 0).all()
    assert np.mean(regret[50:]) < 0.1 * np.mean(regret[:5])


@pytest.mark.parametrize("episodes", [0, 12])
def test_informative_duels_tell_more_than_a_random_star(episodes):
    bandit = environments.load("cpap")
    learner = Dopl(20, 3, 8, horizon=5, design="informative")
    list(play(learner, SimulatedWorld(bandit, 0), episodes))
    learner.replan()
    twin = Dopl(20, 3, 8, horizon=5, design="informative")
    twin.restore(learner.state())
    states = np.arange(20) % 3
    arms = learner.activate(states, 0)
    duels = learner.duels(states, arms, 0)
    assert (duels == twin.duels(states, arms, 0)).all()
    assert set(duels[:, [0, 2]].ravel().tolist()) == set(arms.tolist())

    def left_unknown(duels):
        """Variance of the advantages that decide, as decisions.py weighs them, after answers."""
        V, codes = learner.preferences.covariance, duels[:, ::2] * 3 + duels[:, 1::2]
        asked = np.zeros((len(duels), 60))
        np.put_along_axis(asked, codes[:, :1], 1, axis=1)
        np.put_along_axis(asked, codes[:, 1:], -1, axis=1)
        F = bradley_terry(asked @ learner.preferences.mean.ravel())
        told = (
            V @ asked.T @ np.linalg.solve(asked @ V @ asked.T + np.diag(1 / F / (1 - F)), asked @ V)
        )
        left = (V - told).reshape(20, 3, 20, 3)[np.arange(20), :, np.arange(20)]
        matters = importance(learner.plan, learner.dynamics, learner.preferences, "all")
        return (matters * left).sum()

    stars = []
    for seed in range(8):
        star = Dopl(20, 3, 8, horizon=5, seed=seed)
        star.replan()
        stars.append(left_unknown(star.duels(states, arms, 0)))
    assert left_unknown(duels) < np.mean(stars)


def test_calibrated_is_the_default_and_never_told_the_environments_groups():
    run = runs.grid(["cpap"], ["dopl"], [0])[0]
    learner = run.make_learner(run.bandit())
    assert learner.confidence == "calibrated"
    assert learner.groups is None
