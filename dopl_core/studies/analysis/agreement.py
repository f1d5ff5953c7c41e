"""Agreement between annotators and with their own repeats: standard measures on plain arrays.

alpha   Krippendorff's alpha for nominal data: any number of ratings per duel, by any raters
fleiss  Fleiss' kappa. If duels have different numbers of ratings, the observed agreement is the
        mean over duels of the share of agreeing pairs of raters, which generalises Fleiss' own
cohen   Cohen's kappa for two raters

Each takes the weight of every row of its table, `times` [..., rows], so that one call measures all
resamples of a bootstrap. The result is NaN if no duel has two ratings or all answers are the same.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dopl_core.studies.model.outcomes import CREDIT, LEARNT

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]

RESAMPLES = 1000
MIN_DUELS = 5  # duels with two ratings that an interval needs

_PLACE = ["episode", "epoch", "duel"]


class Interval(NamedTuple):
    """A measure and its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Agreement:
    """Agreement on the duels that two or more annotators have rated.

    same: share of pairs of raters of a duel who gave the same answer, mean over duels
    kappa: Cohen's if there are two annotators, else Fleiss'
    """

    duels: int
    people: int
    same: float
    alpha: Interval
    kappa: Interval

    @property
    def is_cohens(self) -> bool:
        """Whether `kappa` is Cohen's, not Fleiss'."""
        return self.people == 2


def choices(answers: "pd.DataFrame") -> "pd.DataFrame":
    """One row per answer to a duel or its repeat, independent of the sides of the cards.

    answers: as frames.answers returns them
    duel: a number for each duel;  again: whether it is a repeat
    choice: 0 the arm-state on the left when the duel was first shown, 1 the other one, 2 a tie
    """
    import pandas as pd

    rated = answers[answers.outcome.isin(list(CREDIT)) & answers.purpose.isin((*LEARNT, "repeat"))]
    duel = rated.groupby(_PLACE, sort=False).ngroup()
    left = rated.left_arm + "\0" + rated.left_state
    swapped = left != left.groupby(duel).transform("first")
    chosen = rated.outcome.map({"left": 0, "right": 1, "tie": 2}).astype(int)
    return pd.DataFrame(
        {
            "duel": duel,
            "annotator": rated.annotator,
            "choice": chosen.where(~swapped | (chosen == 2), 1 - chosen),
            "again": rated.purpose == "repeat",
        }
    )


def measure_agreement(answers: "pd.DataFrame", seed: int = 0) -> Agreement | None:
    """Agreement of the first answers to each duel; None if no duel has two of them.

    answers: of all annotators, as frames.answers returns them
    """
    chosen = choices(answers)
    first = chosen[~chosen.again]
    several = first[first.groupby("duel").annotator.transform("size") >= 2]
    if several.empty:
        return None
    counts = _table(several, "duel", "choice")
    people = several.annotator.nunique()
    rows, times = np.unique(counts, axis=0, return_counts=True)
    if people == 2:
        by_duel = several.sort_values("annotator").groupby("duel").choice
        pairs, both = np.unique(
            np.column_stack([by_duel.first(), by_duel.last()]), axis=0, return_counts=True
        )
        kappa = bootstrap(cohen, pairs, both, seed)
    else:
        kappa = bootstrap(fleiss, rows, times, seed)
    same = float(times @ _agreeing(rows) / times.sum())
    return Agreement(len(counts), people, same, bootstrap(alpha, rows, times, seed), kappa)


def consistency(choices: "pd.DataFrame") -> tuple[int, int]:
    """How many repeats got the same answer as the first time, and how many repeats there are."""
    on = ["duel", "annotator"]
    both = choices[~choices.again].merge(choices[choices.again], on=on, suffixes=("", "_again"))
    return int((both.choice == both.choice_again).sum()), len(both)


def alpha(counts: ArrayLike, times: ArrayLike = 1.0) -> Floats:
    """Krippendorff's alpha for nominal data and any number of observers (Krippendorff 2011).

    counts: [rows, C] ratings of a duel by answer;  times: [..., rows] weights
    """
    counts, times = _with_times(counts, times)
    raters = counts.sum(axis=1)
    weight = times * (raters >= 2)
    # Pairs of ratings within a duel that differ, divided by the number of ratings minus 1.
    differ = (counts * (raters[:, None] - counts)).sum(axis=1) / np.maximum(raters - 1, 1)
    totals = weight @ counts  # [..., C]
    total = totals.sum(axis=-1)
    by_chance = (totals * (total[..., None] - totals)).sum(axis=-1)
    return _ratio(by_chance - (total - 1) * (weight @ differ), by_chance)


def fleiss(counts: ArrayLike, times: ArrayLike = 1.0) -> Floats:
    """Fleiss' kappa; counts and times as in alpha."""
    counts, times = _with_times(counts, times)
    weight = times * (counts.sum(axis=1) >= 2)
    observed = _ratio(weight @ _agreeing(counts), weight.sum(axis=-1))
    totals = weight @ counts
    shares = _ratio(totals, totals.sum(axis=-1, keepdims=True))
    by_chance = (shares**2).sum(axis=-1)
    return _ratio(observed - by_chance, 1 - by_chance)


def cohen(pairs: ArrayLike, times: ArrayLike = 1.0) -> Floats:
    """Cohen's kappa; pairs: [rows, 2] the answers of the two raters;  times: [..., rows]."""
    pairs, times = _with_times(pairs, times)
    codes = np.unique(pairs)
    one, other = (times @ (pairs[:, [rater]] == codes) for rater in (0, 1))  # [..., C]
    total = times.sum(axis=-1)
    observed = _ratio(times @ (pairs[:, 0] == pairs[:, 1]), total)
    by_chance = _ratio((one * other).sum(axis=-1), total**2)
    return _ratio(observed - by_chance, 1 - by_chance)


def bootstrap(
    measure: Callable[[ArrayLike, ArrayLike], Floats],
    rows: ArrayLike,
    times: ArrayLike,
    seed: int = 0,
) -> Interval:
    """A measure of a table with its bootstrap interval over the duels.

    times: [rows] how often each row occurs; equal rows are drawn together. Resamples without a
    result are left out. With fewer than MIN_DUELS duels there is no interval.
    """
    times = np.asarray(times)
    value, total = float(measure(rows, times)), int(times.sum())
    if total < MIN_DUELS or np.isnan(value):
        return Interval(value, np.nan, np.nan)
    draws = np.random.default_rng(seed).multinomial(total, times / total, size=RESAMPLES)
    values = measure(rows, draws)
    low, high = np.quantile(values[~np.isnan(values)], [0.025, 0.975])
    return Interval(value, float(low), float(high))


def _agreeing(counts: ArrayLike) -> Floats:
    """Share of agreeing pairs of raters in each row; 0 if there is no pair."""
    counts = np.asarray(counts, dtype=float)
    raters = counts.sum(axis=1)
    same = (counts * (counts - 1)).sum(axis=1)
    share: Floats = same / np.maximum(raters * (raters - 1), 1)
    return share


def _table(choices: "pd.DataFrame", rows: str, columns: str) -> NDArray[np.int64]:
    table: NDArray[np.int64] = choices.groupby([rows, columns]).size().unstack(fill_value=0).values
    return table


def _with_times(rows: ArrayLike, times: ArrayLike) -> tuple[Floats, Floats]:
    rows = np.asarray(rows, dtype=float)
    times = np.asarray(times, dtype=float)
    return rows, times if times.ndim else np.full(len(rows), float(times))


def _ratio(above: ArrayLike, below: ArrayLike) -> Floats:
    """above / below, NaN where below is 0; below counts as 0 up to rounding errors."""
    above, below = np.broadcast_arrays(np.asarray(above, float), np.asarray(below, float))
    found = np.full(above.shape, np.nan)
    np.divide(above, below, out=found, where=np.abs(below) > 1e-12)
    return found
