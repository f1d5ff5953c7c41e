"""What a list would have been worth, where help was drawn at random: inverse probability weights.

A policy says, before each step, with what chance it helps each person. People whose drawn help
agrees with it stand for all: they are weighted by the inverse of the chance of that help. The value
is the mean state afterwards, from 0, all in the worst state, to 1, all in the best.

Some trials have two arms: a person is helped throughout or never. After the first step, a person's
past then shows the arm, so a list that depends on it would favour those whom help made better off.
Such people are listed by what the moves of others show. The chance of help is estimated among the
people in one state at one step, which makes the two arms comparable state by state.
"""

import numpy as np
import pandas as pd

from dopl_core.experiments.trials.learnt import BoolArray, Played, lists_by_others, play
from dopl_core.experiments.trials.losses import OURS
from dopl_core.experiments.trials.trial import Moves, Trial
from dopl_core.learning.bandit import UNKNOWN, FloatArray, IntArray

NO_HELP = "no help"
PRIOR = 4.0  # people that the step's chance of help counts for among those in one state


def value_table(trial: Trial, played: Played | None = None) -> pd.DataFrame:
    """One row for each policy: the learner's lists, worst first, random and no help.

    value, value_se: mean state after a step, 0 to 1, and its standard error by person
    gain, gain_se: the same less no help;  difference, difference_se: the learner less this policy
    places: of people on all lists;  agreeing: moves that have a weight
    """
    if not trial.randomised:
        raise ValueError(f"{trial.name}: the value of a list needs help that was drawn at random")
    moves = trial.moves
    chance = chance_of_help(moves, trial.n_states)
    drawn = (chance > 0) & (chance < 1)
    if not drawn.any():
        raise ValueError(f"{trial.name}: at each step everybody was helped, or nobody")
    kept, chance = Moves(*(values[drawn] for values in moves)), chance[drawn]
    if has_arms(moves):
        listed = lists_by_others(trial)
    else:
        listed = (play(trial) if played is None else played).listed
    outcome = kept.next_state / (trial.n_states - 1)
    chances = policies(trial, listed)
    helps = {name: each[kept.step, kept.person] for name, each in chances.items()}
    found = {name: weighted_mean(each, chance, kept, outcome) for name, each in helps.items()}
    return pd.DataFrame([_row(name, found, helps[name], kept) for name in helps])


def has_arms(moves: Moves) -> bool:
    """Whether everybody is helped throughout or never, and somebody has moved twice."""
    of_person, helped = np.bincount(moves.person), np.bincount(moves.person, moves.helped)
    return bool(of_person.max() > 1 and ((helped == 0) | (helped == of_person)).all())


def policies(trial: Trial, listed: BoolArray) -> dict[str, FloatArray]:
    """The chance of help [T, N] by policy; each but no help has the places of the lists [T, N]."""
    places, here = listed.sum(axis=1), trial.known
    states = np.where(here, trial.states[:-1], UNKNOWN)
    equal = places / np.maximum(here.sum(axis=1), 1)
    return {
        OURS: listed.astype(float),
        "worst first": np.stack([worst_first(*each) for each in zip(states, places, strict=True)]),
        "random": here * equal[:, None],
        NO_HELP: np.zeros(listed.shape),
    }


def worst_first(states: IntArray, places: float) -> FloatArray:
    """The chance of help [N] if the worst off are helped; people in one state share its places."""
    found = np.zeros(len(states))
    for state in range(int(states.max()) + 1):
        same = states == state
        if same.any():
            found[same] = min(1.0, places / same.sum())
            places -= found[same].sum()
    return found


def chance_of_help(moves: Moves, n_states: int) -> FloatArray:
    """The chance of help [M] of people in one state at one step, shrunk to that of the step."""
    steps = int(moves.step.max()) + 1
    with np.errstate(invalid="ignore"):
        of_step = np.bincount(moves.step, moves.helped, steps) / np.bincount(
            moves.step, minlength=steps
        )
    cell = moves.step * n_states + moves.state
    helped, people = np.bincount(cell, moves.helped), np.bincount(cell)
    return np.asarray((helped[cell] + PRIOR * of_step[moves.step]) / (people[cell] + PRIOR))


def weighted_mean(
    helps: FloatArray, chance: FloatArray, moves: Moves, outcome: FloatArray
) -> tuple[float, FloatArray]:
    """The value of a policy, and each person's influence on it [N].

    helps: [M] the policy's chance of help;  chance: [M] the trial's;  outcome: [M]
    With the weights w = pi(a) / p(a) scaled to a mean of 1 in each step, the value is the mean of
    w y, and the influence of a move is w (y - the weighted mean of its step) / M.
    """
    agrees = np.where(moves.helped == 1, helps / chance, (1 - helps) / (1 - chance))
    total, people = np.bincount(moves.step, agrees), np.bincount(moves.step)
    used = total[moves.step] > 0  # steps where somebody agrees with the policy
    step, w, y = moves.step[used], agrees[used], outcome[used]
    w = w * (people / np.where(total > 0, total, 1))[step]
    mean = np.bincount(step, w * y, len(people)) / np.maximum(people, 1)
    influence = np.bincount(moves.person[used], w * (y - mean[step]), moves.person.max() + 1)
    return float((w * y).sum() / used.sum()), influence / used.sum()


def _row(
    name: str, found: dict[str, tuple[float, FloatArray]], helps: FloatArray, moves: Moves
) -> dict[str, object]:
    value, influence = found[name]
    row = {"policy": name, "value": value, "value_se": _error(influence)}
    for what, one, other in (("gain", name, NO_HELP), ("difference", OURS, name)):
        same = one == other
        row[what] = np.nan if same else found[one][0] - found[other][0]
        row[f"{what}_se"] = np.nan if same else _error(found[one][1] - found[other][1])
    agreeing = np.where(moves.helped == 1, helps, 1 - helps) > 0
    return row | {"places": float(helps.sum()), "agreeing": int(agreeing.sum())}


def _error(influence: FloatArray) -> float:
    """The standard error by person, from each person's influence."""
    return float(np.sqrt((influence**2).sum()))
