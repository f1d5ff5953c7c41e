"""What is known of each arm beside its state: columns of categories and of numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from dopl_core.learning.bandit import FloatArray, IntArray

MOST_VALUES = 12  # of a category: with more, most are about one arm
ARMS_PER_VALUE = 3  # a column of text with fewer arms for each value is nearly unique
MISSING = -1  # the code of a missing category; a missing number is NaN
NOTHING = frozenset(("", "-", "?", "na", "n/a", "nan", "none", "null", "unknown"))
NEVER = frozenset(
    (
        *("id", "name", "label", "state", "note", "notes", "comment", "comments"),
        *("photo", "picture", "image", "email", "e-mail", "mail", "phone", "telephone", "address"),
    )
)

Kind = Literal["category", "number"]


@dataclass(frozen=True, eq=False)
class Column:
    """One column of N arms.

    values: [N] standardised numbers, NaN where missing; or codes of `labels`, MISSING where missing
    """

    name: str
    kind: Kind
    values: FloatArray | IntArray
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns that a learner may use; each has a value for every arm, or says it is missing."""

    each: tuple[Column, ...]
    n_arms: int

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.each)


def read(names: Sequence[str], texts: Sequence[Sequence[str]]) -> Columns:
    """The columns that can explain anything, from the cells [N][columns] of a roster.

    Left out are columns that are constant, nearly unique text, ids, names and notes.
    """
    for number, row in enumerate(texts):
        if len(row) != len(names):
            raise ValueError(
                f"columns: row {number + 1} has {len(row)} cells, {len(names)} needed, one for each"
                " column"
            )
    cells = zip(*texts, strict=True) if texts else ((),) * len(names)
    found = (column(name, own) for name, own in zip(names, cells, strict=True))
    return Columns(tuple(one for one in found if one is not None), len(texts))


def of_bandit(columns: Mapping[str, Sequence[str]], n_arms: int) -> Columns:
    """The columns of a simulated world: texts [N] by name."""
    return read(tuple(columns), tuple(zip(*columns.values(), strict=True)) or ((),) * n_arms)


def category(name: str, texts: Sequence[str]) -> Column:
    """A column of categories, whatever its texts [N] are; an empty one is missing."""
    labels = tuple(sorted({text for text in texts if text}))
    code = {label: number for number, label in enumerate(labels)}
    values = np.array([code.get(text, MISSING) for text in texts], dtype=np.int64)
    return Column(name, "category", values, labels)


def column(name: str, texts: Sequence[str]) -> Column | None:
    """A column of categories or numbers, whichever its texts [N] are; None if neither is useful."""
    if name.strip().lower() in NEVER:
        return None
    known = ["" if text.strip().lower() in NOTHING else text.strip() for text in texts]
    values = {text for text in known if text}
    if len(values) < 2:
        return None
    if len(values) > 2 and all(_number(text) is not None for text in values):
        numbers = np.array([np.nan if (x := _number(text)) is None else x for text in known])
        return None if _counts_up(numbers) else Column(name, "number", standardised(numbers))
    some = sum(map(bool, known))
    if len(values) > most_values(some):
        return None
    return category(name, known)


def together(columns: Columns | None, groups: Sequence[str] | None, n_arms: int) -> Columns | None:
    """All that is known of the arms: their columns, and their groups as one more."""
    each = () if columns is None else grown(columns, n_arms).each
    if groups is not None and "group" not in {one.name for one in each}:
        values = {text for text in groups if text}
        if 1 < len(values) <= most_values(len(groups)):
            each = (*each, category("group", groups))
    return Columns(each, n_arms) if each else None


def most_values(n_arms: int) -> int:
    """The most values that a category of this many arms may have; with more it is nearly unique."""
    return max(2, min(MOST_VALUES, n_arms // ARMS_PER_VALUE))


def grown(columns: Columns, n_arms: int) -> Columns:
    """The same columns where arms are new since: of these everything is missing."""
    new = n_arms - columns.n_arms
    if new <= 0:
        return columns
    missing = {"category": np.full(new, MISSING), "number": np.full(new, np.nan)}
    each = tuple(
        replace(one, values=np.concatenate([one.values, missing[one.kind]])) for one in columns.each
    )
    return Columns(each, n_arms)


def standardised(numbers: FloatArray) -> FloatArray:
    """Numbers [N] with mean 0 and standard deviation 1, NaN where they are missing."""
    spread = np.nanstd(numbers)
    return np.asarray((numbers - np.nanmean(numbers)) / (spread if spread > 0 else 1.0))


def _number(text: str) -> float | None:
    try:
        value = float(text.replace(",", ".") if text.count(",") == 1 else text)
    except ValueError:
        return None
    return value if np.isfinite(value) and abs(value) < 1e9 else None


def _counts_up(numbers: FloatArray) -> bool:
    """Whether whole numbers rise by 1 from arm to arm: an id, not a measurement."""
    return len(numbers) > 2 and bool((np.diff(numbers) == 1).all())
