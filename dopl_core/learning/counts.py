"""Which arm-state won against which, how often, by which annotator: a sparse table of answers."""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dopl_core.learning.bandit import UNKNOWN, FloatArray, IntArray

# Winner, loser and annotator are packed into one number, so that sorting numbers sorts the table.
_CODE, _WHO = 22, 19  # bits
MOST_CODES, MOST_PEOPLE = 1 << _CODE, 1 << _WHO

# Answers that tell about their annotators only: answers to own duels that were asked again, and
# those answers to duels that were too fast to have looked at both sides.
HABITS = ("repeats", "fast")
COUNTED = tuple(f"{kind}.{what}" for kind in ("duels", *HABITS) for what in ("at", "times"))


class Table(NamedTuple):
    """All answers, in order of winner, loser and annotator; arrays [E].

    winner, loser: codes (arm * S + state);  who: the annotator's number
    times: how often; a tie counts half for each side; never 0
    """

    winner: IntArray
    loser: IntArray
    who: IntArray
    times: FloatArray


class Counts:
    """Counts of duels between M arm-states.

    Answers are kept as they come and sorted when the table is read. An answer that is taken back
    leaves no trace, so equal answers give equal tables, whatever their order.
    habits: by HABITS, the counts that tell about annotators only
    """

    def __init__(self, size: int, *, has_habits: bool = True) -> None:
        kinds = HABITS if has_habits else ()
        self.habits = {kind: Counts(size, has_habits=False) for kind in kinds}
        self.grow(size)
        self._keys, self._times = np.empty(0, dtype=np.int64), np.empty(0)
        self._table: Table | None = None
        self._new: list[tuple[IntArray, FloatArray]] = []
        self._waiting = 0
        self._excluded: tuple[frozenset[int], frozenset[int]] = (frozenset(), frozenset())

    def grow(self, size: int) -> None:
        """Make room for more arm-states; the codes of known arm-states stay."""
        if size > MOST_CODES:
            raise ValueError(f"{size} arm-states exceed the limit of {MOST_CODES}")
        self.size = size
        for one in self.habits.values():
            one.grow(size)

    def add(
        self, winner: IntArray, loser: IntArray, times: ArrayLike = 1.0, who: ArrayLike = 0
    ) -> None:
        """Count duels [D]; `times` and `who` may be one number for all."""
        people = np.asarray(who, dtype=np.int64)
        if people.size and not 0 <= people.min() <= people.max() < MOST_PEOPLE:
            raise ValueError(f"who is {people}: must be from 0 to {MOST_PEOPLE - 1}")
        keys = (winner << _CODE | loser) << _WHO | people
        self._new.append((keys, np.broadcast_to(np.asarray(times, dtype=float), keys.shape)))
        self._waiting += len(keys)
        if self._waiting > max(10_000, len(self._keys)):  # to bound the memory of unsorted answers
            self._sort()

    def add_answers(
        self,
        left: IntArray,
        right: IntArray,
        credit: FloatArray,
        times: ArrayLike = 1.0,
        who: ArrayLike = 0,
    ) -> None:
        """Count answers; credit: [D] 1 if left won, 0 if right won, in between for a tie."""
        won, lost = credit > 0, credit < 1
        winner, loser = np.where(won, left, right), np.where(won, right, left)
        self.add(winner, loser, times * np.where(won, credit, 1.0), who)
        tied = won & lost
        if tied.any():
            times, who = (np.broadcast_to(x, tied.shape)[tied] for x in (times, who))
            self.add(right[tied], left[tied], times * (1 - credit[tied]), who)

    def exclude(self, people: Collection[int], codes: Collection[int] = ()) -> None:
        """Leave answers out of everything but `state`: of these people, about these arm-states."""
        now = frozenset(people), frozenset(codes)
        if self._excluded != now:
            self._excluded, self._table = now, None

    def table(self) -> Table:
        """The answers counted so far, without the excluded ones."""
        self._sort()
        if self._table is None:
            everything = self._everything()
            people, codes = map(list, self._excluded)
            if people or codes:
                winner, loser, who, times = everything
                kept = ~(np.isin(who, people) | np.isin(winner, codes) | np.isin(loser, codes))
                everything = Table(winner[kept], loser[kept], who[kept], times[kept])
            self._table = everything
        return self._table

    def _everything(self) -> Table:
        pair, who = self._keys >> _WHO, self._keys & (MOST_PEOPLE - 1)
        return Table(pair >> _CODE, pair & (MOST_CODES - 1), who, self._times)

    def wins(self) -> FloatArray:
        """How often the row won against the column [M, M]; only for few arm-states."""
        winner, loser, _, times = self.table()
        M = self.size
        return summed(winner * M + loser, times, M * M).reshape(M, M)

    def compared(self) -> FloatArray:
        """The number of duels of each arm-state [M]."""
        winner, loser, _, times = self.table()
        return summed(winner, times, self.size) + summed(loser, times, self.size)

    def total(self) -> float:
        """The number of duels counted."""
        return float(self.table().times.sum())

    def state(self) -> dict[str, NDArray[Any]]:
        """All answers as arrays by COUNTED: [E, 3] winner, loser and annotator, and [E] times."""
        found: dict[str, NDArray[Any]] = {}
        for kind, one in {"duels": self, **self.habits}.items():
            one._sort()
            *at, times = one._everything()
            found |= {f"{kind}.at": np.stack(at, axis=1), f"{kind}.times": times.copy()}
        return found

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Add the answers that `state` returned."""
        for kind, one in {"duels": self, **self.habits}.items():
            winner, loser, who = state[f"{kind}.at"].T
            one.add(winner, loser, state[f"{kind}.times"], who)

    def _sort(self) -> None:
        if not self._new:
            return
        keys, times = (np.concatenate(new) for new in zip(*self._new, strict=True))
        keys, at = np.unique(keys, return_inverse=True)
        times = summed(at, times, len(keys))
        at = self._keys.searchsorted(keys)
        known = self._keys.take(at, mode="clip") == keys if len(self._keys) else keys < 0
        self._times = self._times.copy()  # tables that were read keep theirs
        self._times[at[known]] += times[known]
        if not known.all():
            new = ~known
            self._keys = np.insert(self._keys, at[new], keys[new])
            self._times = np.insert(self._times, at[new], times[new])
        if not self._times.all():
            left = self._times != 0
            self._keys, self._times = self._keys[left], self._times[left]
        self._new, self._waiting, self._table = [], 0, None


def summed(at: IntArray, values: FloatArray, size: int) -> FloatArray:
    """The sum [size] of the values [E] at each position."""
    return np.asarray(np.bincount(at, values, size), dtype=np.float64)


def counted(wins: ArrayLike) -> Counts:
    """The counts of wins [M, M] of rows over columns, all by one annotator."""
    dense = np.asarray(wins, dtype=float)
    counts = Counts(len(dense))
    winner, loser = np.nonzero(dense)
    counts.add(winner, loser, dense[winner, loser])
    return counts


def add_moves(
    visits: IntArray, states: IntArray, helped: IntArray, next_states: IntArray, times: int
) -> None:
    """Add moves of all arms, [N] or [E, N], to visits [N, S, A, S'], where states are known."""
    arms = np.broadcast_to(np.arange(len(visits)), states.shape)
    known = (states != UNKNOWN) & (next_states != UNKNOWN)
    if known.all():
        moves = (arms, states, helped, next_states)
    else:
        moves = (arms[known], states[known], np.asarray(helped)[known], next_states[known])
    if states.ndim == 1:
        visits[moves] += times
    else:
        codes = np.ravel_multi_index(moves, visits.shape).ravel()
        visits += times * np.bincount(codes, minlength=visits.size).reshape(visits.shape)
