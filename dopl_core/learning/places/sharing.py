"""Places of a list shared out among groups: floors that hold over time, within one place.

A floor is an expected number of places, a list has whole ones. So each group is owed the sum of its
floors so far, less the places that it has had. A place is due at the first list at which the group
would be owed a whole place. No list leaves more places due than later lists can give.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dopl_core.learning.bandit import Arrays, FloatArray, IntArray

_AHEAD = 1_000  # lists that are looked ahead
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Sharing:
    """The groups of all arms, and what each is to get.

    names: what the groups are called, after the name of what they are groups of
    codes: [N] the group of each arm, a position in names[1:]
    shares: [G] least share of the places; None to raise the worst-off group as far as possible
    """

    names: tuple[str, ...]
    codes: IntArray
    shares: FloatArray | None


@dataclass(frozen=True, eq=False)
class Ledger:
    """What each group gets of a list, and what it is owed from the lists before.

    owed, floors: [G] in places of a list; floors: None until the first plan
    """

    sharing: Sharing
    owed: FloatArray
    floors: FloatArray | None = None

    def planned(self, budget: int, present: NDArray[np.bool_], caps: FloatArray | None) -> "Ledger":
        """With the floors of the next plan, as far as they can be met."""
        most = present.astype(np.float64) if caps is None else present * caps
        reach = np.bincount(self.sharing.codes, weights=most, minlength=len(self.owed))
        shares = np.zeros(len(reach)) if self.sharing.shares is None else self.sharing.shares
        return replace(self, floors=np.minimum(shares * budget, reach))

    def after(self, lists: Sequence[IntArray], budget: int) -> "Ledger":
        """With the places of lists counted.

        A shorter list owes less. Where rules kept a group off its places, no more than one whole
        list is carried.
        """
        owed, codes = self.owed, self.sharing.codes
        floors = np.zeros(len(owed)) if self.floors is None else self.floors
        for arms in lists if self.floors is not None else ():
            had = np.bincount(codes[arms], minlength=len(owed))
            owed = np.minimum(owed + floors * (len(arms) / budget) - had, budget)
        return replace(self, owed=owed)

    def choose(
        self, order: IntArray, lists: Sequence[IntArray], places: int, budget: int
    ) -> IntArray:
        """The arms of `order`, the most urgent first, that get the places of a list."""
        if self.floors is None:
            return order[:places]
        owed = self.after(lists, budget).owed
        return choose(order, self.sharing.codes, owed, self.floors, places, budget)

    def state(self) -> Arrays:
        """The ledger as plain arrays; empty before the first plan."""
        if self.floors is None:
            return {}
        return {"sharing.floors": self.floors, "sharing.owed": self.owed}

    def restored(self, state: Arrays) -> "Ledger":
        """With what `state` returned."""
        owed = state.get("sharing.owed", np.zeros(len(self.owed)))
        return Ledger(self.sharing, owed, state.get("sharing.floors"))


def ledger(sharing: Sharing | None, before: Ledger | None = None) -> Ledger | None:
    """The ledger of a sharing; groups keep what they are owed, if they are of the same kind."""
    if sharing is None:
        return None
    kind, *names = sharing.names
    known: dict[str, float] = {}
    if before is not None and before.sharing.names[0] == kind:
        known = dict(zip(before.sharing.names[1:], before.owed.tolist(), strict=True))
    return Ledger(sharing, np.array([known.get(name, 0.0) for name in names]))


def pick(
    score: FloatArray, may: IntArray, book: Ledger | None, lists: Sequence[IntArray], budget: int
) -> IntArray:
    """The arms in order that get the places: those of highest score [N] among the arms `may`."""
    order = may[np.argsort(-score[may], kind="stable")]
    places = min(budget, len(order))
    return np.sort(order[:places] if book is None else book.choose(order, lists, places, budget))


def choose(
    order: IntArray,
    codes: IntArray,
    owed: FloatArray,
    floors: FloatArray,
    places: int,
    budget: int,
) -> IntArray:
    """The arms that get the places of a list: the first in `order`, as far as nothing else is due.

    order: [.] the arms that may be listed, the most urgent first;  codes: [N] their groups
    owed, floors: [G];  places: to be filled now;  budget: places of each later list

    due[g, j] places of group g are due within the next j lists. The later lists can give
    budget * (j - 1) of all that is due, so this list gives the rest, for each j.
    """
    ahead = np.arange(1, 1 + _look_ahead(owed, floors, places))
    due = np.floor(owed[:, None] + floors[:, None] * ahead + _ROUNDING)
    due = np.maximum(due, 0).astype(np.int64)
    now = np.minimum(due.sum(axis=0) - budget * (ahead - 1), places)
    left = [order[codes[order] == group].tolist() for group in range(len(floors))]
    rank = {arm: number for number, arm in enumerate(order.tolist())}
    chosen: list[int] = []
    had = np.zeros(len(floors), dtype=np.int64)
    for j in np.flatnonzero(now > 0):
        while np.minimum(had, due[:, j]).sum() < now[j]:
            open_ = [group for group in np.flatnonzero(had < due[:, j]) if left[group]]
            if not open_:
                break
            group = min(open_, key=lambda g: rank[left[g][0]])
            chosen.append(left[group].pop(0))
            had[group] += 1
    taken = set(chosen)
    rest = [arm for arm in order.tolist() if arm not in taken]
    return np.array(chosen + rest[: places - len(chosen)], dtype=np.int64)


def _look_ahead(owed: FloatArray, floors: FloatArray, places: int) -> int:
    """The number of lists after which all groups with a floor are owed more than this list has."""
    some = floors > 0
    if not some.any():
        return 1
    return int(np.clip(np.ceil((places + 1 - owed[some]) / floors[some]).max(), 1, _AHEAD))
