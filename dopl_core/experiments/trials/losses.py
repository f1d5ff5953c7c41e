"""Log loss of the next state, one step ahead: the learner beside simple models."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from dopl_core.experiments.trials import models
from dopl_core.experiments.trials.learnt import Played, play
from dopl_core.experiments.trials.reading import Source, read_history
from dopl_core.experiments.trials.trial import Moves, Trial
from dopl_core.learning.bandit import FloatArray

OURS = "dopl"
PARTS = ("early", "late", "all")
Z = 1.959964  # of a 95 % interval
LEAST_CHANCE = 1e-6  # of a next state: a loss is at most 13.8


def trial_table(
    trial: Trial | Source,
    roster: Source | None = None,
    *,
    states: Sequence[str] = (),
    played: Played | None = None,
) -> pd.DataFrame:
    """One row for each part of a trial and each model.

    Before each step, a model predicts everybody's next state from the steps before; then it learns
    the step. The early part is the first half of all moves, whole steps, the late part the rest.

    Parameters
    ----------
    trial : Trial, DataFrame, Path or bytes
        A trial; or records with the columns id, when, state, helped, as a table or a CSV file.
    roster : DataFrame, Path or bytes
        Columns that were known at the start, by id.
    states : sequence of str
        The states from worst to best; numbers need none.
    played : Played
        What `play` returned for this trial, if it is there.

    Returns
    -------
    DataFrame
        part, model, moves, people; loss and loss_se, the mean of -ln p(next state) and its standard
        error by person; difference, the learner's loss less that of this model (below 0: the
        learner predicts better), difference_se, and its 95 % interval low to high.

    Examples
    --------
    >>> records = pd.DataFrame({"id": list("aabb"), "when": [1, 2, 1, 2], "helped": [1, 0, 0, 0]})
    >>> table = trial_table(records.assign(state=[0, 1, 0, 0]))
    >>> table[table.part == "all"].model.tolist()
    ['dopl', 'shares', 'pooled chain', 'personal chain', 'ordinal logistic']
    """
    if not isinstance(trial, Trial):
        trial = read_history(trial, roster, states=states)
    found = losses(trial, play(trial) if played is None else played)
    parts = part_of(trial.moves)
    rows = []
    for part in PARTS:
        at = np.ones(len(parts), dtype=bool) if part == "all" else parts == part
        if at.any():
            rows += [_row(part, name, found, at, trial.moves.person) for name in found]
    return pd.DataFrame(rows)


def losses(trial: Trial, played: Played) -> dict[str, FloatArray]:
    """The losses [M] of all moves by model, the learner first.

    Where the states have no order, the regression, which needs one, is left out.
    """
    steps = sorted(set(trial.moves.step.tolist()))
    chances = {OURS: played.chances}
    for name, model in models.MODELS.items():
        if trial.ordered or model is not models.ordinal_logistic:
            found = np.zeros_like(played.chances)
            for step in steps:
                found[step] = model(trial, step)
            chances[name] = found
    moves = trial.moves
    return {
        name: -np.log(np.maximum(each[moves.step, moves.person, moves.next_state], LEAST_CHANCE))
        for name, each in chances.items()
    }


def part_of(moves: Moves) -> np.ndarray:
    """ "early" or "late" for each move [M]: a step is early if its middle is in the first half."""
    sizes = np.bincount(moves.step)
    middles = sizes.cumsum() - sizes / 2
    return np.where(middles[moves.step] <= moves.size / 2, "early", "late")


def mean_and_error(values: FloatArray, person: np.ndarray) -> tuple[float, float]:
    """The mean of values [M] and its standard error, which lets values of a person depend.

    With r_i the sum of the residuals of person i of G: sqrt(G / (G - 1) sum r_i^2) / M.
    """
    mean = float(values.mean())
    by_person = np.bincount(person, values - mean)
    people = len(np.unique(person))
    if people < 2:
        return mean, np.nan
    return mean, float(np.sqrt(people / (people - 1) * (by_person**2).sum()) / len(values))


def _row(
    part: str, name: str, found: dict[str, FloatArray], at: np.ndarray, person: np.ndarray
) -> dict[str, object]:
    person = person[at]
    loss, loss_se = mean_and_error(found[name][at], person)
    row = {"part": part, "model": name, "moves": int(at.sum()), "people": len(np.unique(person))}
    difference, error = mean_and_error((found[OURS] - found[name])[at], person)
    if name == OURS:
        difference = error = np.nan
    return row | {
        "loss": loss,
        "loss_se": loss_se,
        "difference": difference,
        "difference_se": error,
        "low": difference - Z * error,
        "high": difference + Z * error,
    }
