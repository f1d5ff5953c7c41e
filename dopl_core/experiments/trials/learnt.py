"""The learner in a trial: before each step it predicts and makes a list, then learns the step."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dopl_core.experiments.trials.trial import Trial
from dopl_core.learning.bandit import UNKNOWN, FloatArray
from dopl_core.learning.dopl import Dopl
from dopl_core.learning.learner import Learner

BoolArray = NDArray[np.bool_]
SHARE = 0.25  # of the people who move at a step: places on a list
FOLDS = 4  # parts of the people; each is listed by what the moves of the others show

Factory = Callable[[Trial, int, int], Learner]  # (trial, budget, seed)


@dataclass(frozen=True, eq=False)
class Played:
    """What a learner said before each step.

    chances: [T, N, S'] of the next state, with the help that was given
    listed: [T, N] whether it would help the person
    """

    chances: FloatArray
    listed: BoolArray


def our_learner(trial: Trial, budget: int, seed: int) -> Learner:
    """The learner of studies, with the trial's columns and the order of its states."""
    sizes = trial.n_people, trial.n_states, budget
    return Dopl(*sizes, horizon=1, seed=seed, ordered=trial.ordered, columns=trial.columns)


def play(
    trial: Trial, *, share: float = SHARE, seed: int = 0, learner: Factory = our_learner
) -> Played:
    """Let a learner go through a trial, step by step; it is never told what comes later."""
    return _play(trial, np.zeros(trial.n_people, dtype=bool), share, seed, learner)


def lists_by_others(
    trial: Trial, *, share: float = SHARE, seed: int = 0, learner: Factory = our_learner
) -> BoolArray:
    """Whether the learner would help each person [T, N], having seen only moves of other people."""
    fold = np.random.default_rng(seed).permutation(trial.n_people) % FOLDS
    parts = (_play(trial, fold == one, share, seed, learner).listed for one in np.unique(fold))
    return np.asarray(np.logical_or.reduce(list(parts)))


def _play(trial: Trial, unseen: BoolArray, share: float, seed: int, learner: Factory) -> Played:
    """Play; if some people are unseen [N], their moves and help are not told, and only they are
    listed.

    A list is of people whose move is recorded: without it, its value is not known.
    """
    if not 0 < share < 1:
        raise ValueError(f"share is {share}: it must be between 0 and 1")
    T, N = trial.helped.shape
    chances, listed = np.zeros((T, N, trial.n_states)), np.zeros((T, N), dtype=bool)
    ours = learner(trial, _places(N, share), seed)
    where = np.full((N, trial.n_states), 1 / trial.n_states)  # of absent people, who are not listed
    for step in range(T):
        states, helped = trial.states[step], trial.helped[step]
        here = trial.known[step] & (unseen | (not unseen.any()))
        if here.any():
            ours.adapt(here, _places(int(here.sum()), share))
            ours.replan()
            rows = ours.known_dynamics().mean  # [N, S, 2, S']
            chances[step] = rows[np.arange(N), np.maximum(states, 0), helped]
            listed[step, ours.activate(states, 0, where=where)] = True
        # Nor is it told who of the unseen was helped: a list by earlier help would know their arm.
        then = np.where(unseen, UNKNOWN, trial.states[step + 1])
        ours.count_moves(states, np.where(unseen, 0, helped), then)
    return Played(chances, listed)


def _places(people: int, share: float) -> int:
    """The number of places on a list for so many people; at least 1."""
    return max(1, round(share * people))
