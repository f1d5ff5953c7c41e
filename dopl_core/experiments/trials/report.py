"""Both tables of an uploaded trial, and what a reader must know about them."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from dopl_core.experiments.trials.learnt import play
from dopl_core.experiments.trials.losses import OURS, trial_table
from dopl_core.experiments.trials.reading import Source, read_history
from dopl_core.experiments.trials.trial import Trial
from dopl_core.experiments.trials.value import value_table

# What a page computes while somebody waits: about half a minute.
MOST_PEOPLE, MOST_MOVES, MOST_STATES = 1_000, 10_000, 8


@dataclass(frozen=True, eq=False)
class Report:
    """What a page shows of a trial.

    losses, values: as of `trial_table` and `value_table`; values is None if help was not by chance
    finding: the main result in a sentence;  notes: what was not used, and why
    """

    losses: pd.DataFrame
    values: pd.DataFrame | None
    finding: str
    notes: tuple[str, ...]


def report(
    history: Source,
    roster: Source | None = None,
    *,
    states: Sequence[str] = (),
    randomised: bool = False,
) -> Report:
    """Predict a trial of limited size step by step; arguments are those of `read_history`."""
    trial = read_history(history, roster, states=states, randomised=randomised)
    _check_size(trial)
    played = play(trial)
    losses = trial_table(trial, played=played)
    values = value_table(trial, played) if randomised else None
    return Report(losses, values, finding(losses), tuple(_notes(trial)))


def finding(losses: pd.DataFrame) -> str:
    """Whether the learner predicts better than the simple model that is best on all moves."""
    rows = losses[losses.part == "all"].set_index("model")
    best = rows.loss.drop(OURS).idxmin()
    row = rows.loc[best]
    says = "about as well as"
    if row.high < 0:
        says = "better than"
    elif row.low > 0:
        says = "less well than"
    return (
        f"On {row.moves} moves of {row.people} people, DOPL predicts {says} the best simple model"
        f" ({best}): {row.difference:+.3f}, 95 % interval {row.low:+.3f} to {row.high:+.3f}"
    )


def _check_size(trial: Trial) -> None:
    sizes = (
        ("people", trial.n_people, MOST_PEOPLE),
        ("moves", trial.moves.size, MOST_MOVES),
        ("states", trial.n_states, MOST_STATES),
    )
    for what, size, most in sizes:
        if size > most:
            raise ValueError(
                f"history.csv: {size:,} {what} exceed the limit of this page, {most:,}; use"
                " `dopl bench trials FOLDER` or trial_table"
            )


def _notes(trial: Trial) -> list[str]:
    found = []
    if trial.columns is not None:
        names = ", ".join(trial.columns.names) or "none"
        found.append(f"Columns that are used: {names}.")
    if trial.left_out:
        names = ", ".join(trial.left_out)
        found.append(f"Not used, because they may be later results: {names}.")
    if not trial.ordered:
        found.append("The states have no order. Write them from worst to best to use it.")
    return found
