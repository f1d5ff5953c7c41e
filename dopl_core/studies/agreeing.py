"""How far people agree, with one another and with themselves: standard measures on plain arrays.

alpha   Krippendorff's, nominal: any number of ratings a duel, of anybody
fleiss  Fleiss' kappa: likewise; where duels have unlike numbers of ratings, the mean over duels of
        the share of pairs of raters who agree, which is Fleiss' own where the numbers are alike
cohen   Cohen's kappa, of two people

Each takes how often every row of its table was seen, `times` [..., rows], so that one call measures
all resamples of a bootstrap. NaN where nothing can be said: no overlap, or one answer only.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dopl_core.studies.vocabulary import CREDIT, LEARNT

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]

RESAMPLES = 1000
FEWEST = 5  # duels that two people have rated; from fewer, no range is given

_PLACE = ["episode", "epoch", "duel"]


class Range(NamedTuple):
    """A measure and its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Agreement:
    """How far people agree on the duels that two or more have rated.

    same: share of pairs of raters of a duel who said the same, mean over duels
    kappa: Cohen's where two people have rated all of these duels, else Fleiss'
    """

    duels: int
    people: int
    same: float
    alpha: Range
    kappa: Range

    @property
    def cohens(self) -> bool:
        """Whose kappa it is."""
        return self.people == 2


def choices(answers: "pd.DataFrame") -> "pd.DataFrame":
    """One row an answer to a duel, or to its repeat: what was chosen, whatever side it stood on.

    answers: as insights.answers gives them
    duel: a number a duel;  again: whether it is a repeat
    choice: 0 the arm-state that stood left when the duel was first shown, 1 the other one, 2 a tie
    """
    import pandas as pd

    said = answers[answers.outcome.isin(list(CREDIT)) & answers.purpose.isin((*LEARNT, "repeat"))]
    duel = said.groupby(_PLACE, sort=False).ngroup()
    left = said.left_arm + "\0" + said.left_state
    swapped = left != left.groupby(duel).transform("first")
    chosen = said.outcome.map({"left": 0, "right": 1, "tie": 2}).astype(int)
    return pd.DataFrame(
        {
            "duel": duel,
            "person": said.annotator,
            "choice": chosen.where(~swapped | (chosen == 2), 1 - chosen),
            "again": said.purpose == "repeat",
        }
    )


def agreement(choices: "pd.DataFrame", seed: int = 0) -> Agreement | None:
    """Of the first answers to each duel; None where no duel has two of them."""
    first = choices[~choices.again]
    several = first[first.groupby("duel").person.transform("size") >= 2]
    if several.empty:
        return None
    counts = _table(several, "duel", "choice")
    people = several.person.nunique()
    rows, times = np.unique(counts, axis=0, return_counts=True)
    if people == 2:
        given = several.sort_values("person").groupby("duel").choice
        pairs, both = np.unique(
            np.column_stack([given.first(), given.last()]), axis=0, return_counts=True
        )
        kappa = bootstrap(cohen, pairs, both, seed)
    else:
        kappa = bootstrap(fleiss, rows, times, seed)
    same = float(times @ _agreeing(rows) / times.sum())
    return Agreement(len(counts), people, same, bootstrap(alpha, rows, times, seed), kappa)


def consistency(choices: "pd.DataFrame") -> tuple[int, int]:
    """Repeats that were answered as before, of how many."""
    on = ["duel", "person"]
    both = choices[~choices.again].merge(choices[choices.again], on=on, suffixes=("", "_again"))
    return int((both.choice == both.choice_again).sum()), len(both)


def alpha(counts: ArrayLike, times: ArrayLike = 1.0) -> Floats:
    """Krippendorff's alpha for nominal data (Krippendorff 2011, eq. for any number of observers).

    counts: [rows, C] how often each answer was given to a duel;  times: [..., rows]
    """
    counts, times = _with_times(counts, times)
    raters = counts.sum(axis=1)
    weight = times * (raters >= 2)
    # Pairs within a duel that differ, each duel's by one less than its ratings.
    differ = (counts * (raters[:, None] - counts)).sum(axis=1) / np.maximum(raters - 1, 1)
    said = weight @ counts  # [..., C]
    total = said.sum(axis=-1)
    by_chance = (said * (total[..., None] - said)).sum(axis=-1)
    return _ratio(by_chance - (total - 1) * (weight @ differ), by_chance)


def fleiss(counts: ArrayLike, times: ArrayLike = 1.0) -> Floats:
    """Fleiss' kappa; counts, times: as for alpha."""
    counts, times = _with_times(counts, times)
    weight = times * (counts.sum(axis=1) >= 2)
    seen = _ratio(weight @ _agreeing(counts), weight.sum(axis=-1))
    said = weight @ counts
    shares = _ratio(said, said.sum(axis=-1, keepdims=True))
    by_chance = (shares**2).sum(axis=-1)
    return _ratio(seen - by_chance, 1 - by_chance)


def cohen(pairs: ArrayLike, times: ArrayLike = 1.0) -> Floats:
    """Cohen's kappa; pairs: [rows, 2] what the one said and what the other;  times: [..., rows]."""
    pairs, times = _with_times(pairs, times)
    codes = np.unique(pairs)
    one, other = (times @ (pairs[:, [who]] == codes) for who in (0, 1))  # [..., C]
    total = times.sum(axis=-1)
    seen = _ratio(times @ (pairs[:, 0] == pairs[:, 1]), total)
    by_chance = _ratio((one * other).sum(axis=-1), total**2)
    return _ratio(seen - by_chance, 1 - by_chance)


def bootstrap(
    measure: Callable[[ArrayLike, ArrayLike], Floats],
    rows: ArrayLike,
    times: ArrayLike,
    seed: int = 0,
) -> Range:
    """A measure of a table, and its interval over resamples of the duels.

    times: [rows] how often each row was seen; rows that are alike are drawn together. Resamples of
    which nothing can be said are left out; from fewer duels than FEWEST, there is no interval.
    """
    times = np.asarray(times)
    value, total = float(measure(rows, times)), int(times.sum())
    if total < FEWEST or np.isnan(value):
        return Range(value, np.nan, np.nan)
    draws = np.random.default_rng(seed).multinomial(total, times / total, size=RESAMPLES)
    found = measure(rows, draws)
    low, high = np.quantile(found[~np.isnan(found)], [0.025, 0.975])
    return Range(value, float(low), float(high))


def _agreeing(counts: ArrayLike) -> Floats:
    """Share of the pairs of raters of each row who said the same, 0 where there is no pair."""
    counts = np.asarray(counts, dtype=float)
    raters = counts.sum(axis=1)
    same = (counts * (counts - 1)).sum(axis=1)
    found: Floats = same / np.maximum(raters * (raters - 1), 1)
    return found


def _table(choices: "pd.DataFrame", rows: str, columns: str) -> NDArray[np.int64]:
    table: NDArray[np.int64] = choices.groupby([rows, columns]).size().unstack(fill_value=0).values
    return table


def _with_times(rows: ArrayLike, times: ArrayLike) -> tuple[Floats, Floats]:
    rows = np.asarray(rows, dtype=float)
    times = np.asarray(times, dtype=float)
    return rows, times if times.ndim else np.full(len(rows), float(times))


def _ratio(above: ArrayLike, below: ArrayLike) -> Floats:
    """A share, NaN where it is of nothing; sums that should be 0 are rounded to it."""
    above, below = np.broadcast_arrays(np.asarray(above, float), np.asarray(below, float))
    found = np.full(above.shape, np.nan)
    np.divide(above, below, out=found, where=np.abs(below) > 1e-12)
    return found
