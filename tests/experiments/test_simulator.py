import numpy as np
import pandas as pd
import pytest

from dopl_core import environments
from dopl_core.experiments import sweep
from dopl_core.experiments.baselines import Oracle, Random
from dopl_core.experiments.metrics import truth
from dopl_core.experiments.simulator import References, play, play_episode
from dopl_core.learning.bandit import Bandit, actions
from dopl_core.world import SimulatedWorld


@pytest.mark.parametrize("name", ["app_marketing", "cpap", "armman"])
@pytest.mark.parametrize("restart", [False, True])
def test_references_are_the_oracle_and_random_help_to_the_bit(name: str, restart: bool) -> None:
    bandit = environments.load(name)
    oracle = Oracle(bandit, horizon=30, seed=5, ties="paper")
    chance = Random(bandit.n_arms, bandit.n_states, bandit.budget, horizon=30, seed=5)
    worlds = [SimulatedWorld(bandit, 5, restart=restart) for _ in range(2)]
    references = References(bandit, truth(bandit).oracle, worlds[0].states)
    for (best, _), (worst, _) in zip(
        play(oracle, worlds[0], 4), play(chance, worlds[1], 4), strict=True
    ):
        assert references.play(worlds[0], oracle.tie_keys) == (best, worst)


def test_references_are_paid_as_the_bandit_pays() -> None:
    cpap = environments.load("cpap")
    bandit = Bandit(cpap.transitions, cpap.rewards, cpap.budget, pays="active")
    oracle, world = Oracle(bandit, horizon=20, ties="paper"), SimulatedWorld(bandit, 0)
    references = References(bandit, truth(bandit).oracle, world.states)
    oracle.replan()
    best = play_episode(oracle, world)
    assert references.play(world, oracle.tie_keys)[0] == pytest.approx(best)


def test_an_episode_answered_at_its_end_is_the_same_as_answered_epoch_by_epoch() -> None:
    run = sweep.Run("cpap", "dopl", 2, 3, 30, confidence="paper", design="tree")
    bandit = run.bandit()
    at_once, step_by_step = (run.make_learner(bandit) for _ in range(2))
    worlds = [SimulatedWorld(bandit, 2) for _ in range(2)]
    for _ in range(3):
        at_once.replan()
        total = play_episode(at_once, worlds[0]) * 30
        step_by_step.replan()
        worlds[1].begin(step_by_step.episode, 30)
        for epoch in range(30):
            states = worlds[1].states
            arms = step_by_step.activate(states, epoch)
            total -= worlds[1].reward(arms)
            duels = step_by_step.duels(states, arms, epoch)
            step_by_step.count_duels(duels, worlds[1].answer(duels))
            step_by_step.count_moves(states, actions(arms, 20), worlds[1].step(arms))
        assert total == pytest.approx(0)
        assert np.array_equal(at_once.counts.wins(), step_by_step.counts.wins())
        assert np.array_equal(at_once.visits, step_by_step.visits)


def test_counts_survive_a_long_run() -> None:
    run = sweep.Run("cpap", "dopl", 0, 40, 250, confidence="paper")
    learner, world = run.make_learner(run.bandit()), SimulatedWorld(run.bandit(), 0)
    for episode, _ in enumerate(play(learner, world, 40), start=1):
        epochs = 250 * episode
        assert learner.visits.sum() == 20 * epochs
        assert learner.visits[:, :, 1].sum() == 8 * epochs
        assert learner.counts.total() == 7 * epochs
    assert (learner.counts.wins() >= 0).all()
    assert not np.diag(learner.counts.wins()).any()


@pytest.fixture(scope="module")
def paper(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """DOPL with the paper's confidence, its tie rule and fresh states each episode, 3 seeds."""
    names = ["cpap", "app_marketing"]
    settings = {"confidence": "paper", "ties": "paper", "restart": True}
    runs = sweep.grid(names, ["dopl"], range(3), episodes=300, horizon=100, **settings)
    return sweep.run(runs, tmp_path_factory.mktemp("paper"), jobs=2)


@pytest.mark.long
@pytest.mark.parametrize("name", ["cpap", "app_marketing"])
def test_with_the_papers_confidence_dopl_beats_random_clearly_by_episode_200(
    paper: pd.DataFrame, name: str
) -> None:
    late = paper[(paper.environment == name) & paper.episode.between(181, 200)]
    of_seed = late.groupby("seed")[["reward", "oracle_reward", "random_reward"]].mean()
    gain = of_seed.reward - of_seed.random_reward
    possible = of_seed.oracle_reward - of_seed.random_reward
    assert (gain > 0).all()
    assert gain.mean() > 0.3 * possible.mean()


@pytest.mark.long
@pytest.mark.parametrize("name", ["cpap", "app_marketing"])
def test_with_the_papers_confidence_regret_grows_sublinearly_from_there_on(
    paper: pd.DataFrame, name: str
) -> None:
    rows = paper[paper.environment == name]
    first, second, third = (
        rows[rows.episode.between(begin, begin + 99)].regret.mean() for begin in (1, 101, 201)
    )
    assert second > third
    assert third < 0.75 * first
