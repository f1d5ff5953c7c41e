"""Who won against whom, how often, and by whose word: a sparse table, as large as its answers."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dopl_core.learning.bandit import FloatArray, IntArray

# Winner, loser and who answered are one number, so that a sort of numbers sorts the table.
_CODE, _WHO = 22, 19  # bits
MOST_CODES, MOST_PEOPLE = 1 << _CODE, 1 << _WHO


class Table(NamedTuple):
    """All that was answered, in order of winner, loser and who; arrays [E].

    winner, loser: codes (arm * S + state);  who: the number of the one who said so
    times: how often, a tie half for each side; never 0
    """

    winner: IntArray
    loser: IntArray
    who: IntArray
    times: FloatArray


class Counts:
    """Counts of duels between M arm-states.

    Answers are kept as they come and sorted when somebody looks; what is taken back leaves no
    trace, so equal answers give equal tables, in whatever order they came.
    """

    def __init__(self, size: int) -> None:
        self.grow(size)
        self._keys, self._times = np.empty(0, dtype=np.int64), np.empty(0)
        self._table: Table | None = None
        self._new: list[tuple[IntArray, FloatArray]] = []
        self._waiting = 0

    def grow(self, size: int) -> None:
        """Room for more arm-states; the codes of those that are known stay."""
        if size > MOST_CODES:
            raise ValueError(f"{size} arm-states: at most {MOST_CODES} can be counted")
        self.size = size

    def add(
        self, winner: IntArray, loser: IntArray, times: ArrayLike = 1.0, who: ArrayLike = 0
    ) -> None:
        """Count duels [D]; times and who may be one for all."""
        people = np.asarray(who, dtype=np.int64)
        if people.size and not 0 <= people.min() <= people.max() < MOST_PEOPLE:
            raise ValueError(f"who is {people}: people are numbered from 0 up to {MOST_PEOPLE - 1}")
        keys = (winner << _CODE | loser) << _WHO | people
        self._new.append((keys, np.broadcast_to(np.asarray(times, dtype=float), keys.shape)))
        self._waiting += len(keys)
        if self._waiting > max(10_000, len(self._keys)):  # so that waiting answers stay few
            self._sort()

    def table(self) -> Table:
        """What was counted so far."""
        self._sort()
        if self._table is None:
            pair, who = self._keys >> _WHO, self._keys & (MOST_PEOPLE - 1)
            self._table = Table(pair >> _CODE, pair & (MOST_CODES - 1), who, self._times)
        return self._table

    def wins(self) -> FloatArray:
        """How often the row has won against the column [M, M]: for methods that are for few."""
        winner, loser, _, times = self.table()
        M = self.size
        return summed(winner * M + loser, times, M * M).reshape(M, M)

    def compared(self) -> FloatArray:
        """In how many duels each arm-state was [M]."""
        winner, loser, _, times = self.table()
        return summed(winner, times, self.size) + summed(loser, times, self.size)

    def total(self) -> float:
        """How many duels were counted."""
        return float(self.table().times.sum())

    def state(self) -> dict[str, NDArray[Any]]:
        """The table as arrays: at [E, 3] winner, loser and who, and times [E]."""
        *at, times = self.table()
        return {"duels.at": np.stack(at, axis=1), "duels.times": times.copy()}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Add what `state` gave."""
        winner, loser, who = state["duels.at"].T
        self.add(winner, loser, state["duels.times"], who)

    def _sort(self) -> None:
        if not self._new:
            return
        keys, times = (np.concatenate(new) for new in zip(*self._new, strict=True))
        at = np.searchsorted(self._keys, keys)
        known = self._keys.take(at, mode="clip") == keys if len(self._keys) else keys < 0
        self._times = self._times + summed(at[known], times[known], len(self._keys))
        if not known.all():
            unheard, at = np.unique(keys[~known], return_inverse=True)
            before = np.searchsorted(self._keys, unheard)
            self._keys = np.insert(self._keys, before, unheard)
            self._times = np.insert(self._times, before, summed(at, times[~known], len(unheard)))
        if not self._times.all():
            left = self._times != 0
            self._keys, self._times = self._keys[left], self._times[left]
        self._new, self._waiting, self._table = [], 0, None


def summed(at: IntArray, values: FloatArray, size: int) -> FloatArray:
    """The sums [size] of the values [E] at each place."""
    return np.asarray(np.bincount(at, values, size), dtype=np.float64)


def counted(wins: ArrayLike) -> Counts:
    """The counts of wins [M, M] of rows over columns, all by one person."""
    dense = np.asarray(wins, dtype=float)
    counts = Counts(len(dense))
    winner, loser = np.nonzero(dense)
    counts.add(winner, loser, dense[winner, loser])
    return counts
