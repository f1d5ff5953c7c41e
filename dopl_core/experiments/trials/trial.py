"""A trial as arrays, and its moves: what a model may have seen before a step."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dopl_core.learning.bandit import UNKNOWN, IntArray
from dopl_core.learning.columns import Columns

WAVES = 8  # of people with one move each: seven can be predicted from earlier ones


@dataclass(frozen=True, eq=False)
class Trial:
    """What was recorded of N people in T steps.

    states: [T+1, N] from 0, the worst; UNKNOWN where there is no record
    helped: [T, N] 1 if the person was helped between two states, else 0
    labels: [S] names of the states
    randomised: whether help was drawn at random
    ordered: whether the states go from worst to best
    columns: what was known of the people at the start;  left_out: columns that are not used
    """

    name: str
    states: IntArray
    helped: IntArray
    labels: tuple[str, ...]
    randomised: bool = False
    ordered: bool = True
    columns: Columns | None = None
    left_out: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        T, N = self.helped.shape
        if self.states.shape != (T + 1, N):
            raise ValueError(
                f"{self.name}: states have the shape {self.states.shape}, {(T + 1, N)} needed:"
                " one row more than help"
            )
        if not np.isin(self.helped, (0, 1)).all():
            raise ValueError(f"{self.name}: helped must be 1 or 0")
        if self.states.min() < UNKNOWN or self.states.max() >= len(self.labels):
            raise ValueError(f"{self.name}: states must be 0 to {len(self.labels) - 1}, or -1")
        if len(self.labels) < 2:
            raise ValueError(f"{self.name}: at least 2 states needed")
        if not self.moves.size:
            raise ValueError(f"{self.name} has no moves: two states of a person in a row needed")

    @property
    def n_steps(self) -> int:
        return self.helped.shape[0]

    @property
    def n_people(self) -> int:
        return self.helped.shape[1]

    @property
    def n_states(self) -> int:
        return len(self.labels)

    @cached_property
    def moves(self) -> "Moves":
        """All moves, those of the first step first."""
        step, person = np.nonzero(self.known)
        return Moves(
            step,
            person,
            self.states[:-1][step, person],
            self.helped[step, person],
            self.states[1:][step, person],
        )

    @cached_property
    def known(self) -> NDArray[np.bool_]:
        """Whether the states before and after each step are known [T, N]."""
        return (self.states[:-1] != UNKNOWN) & (self.states[1:] != UNKNOWN)

    def seen_before(self, step: int) -> IntArray:
        """Moves [N, S, 2, S] of the steps before this one."""
        seen = np.zeros((self.n_people, self.n_states, 2, self.n_states), dtype=np.int64)
        past = self.moves.up_to(step)
        np.add.at(seen, (past.person, past.state, past.helped, past.next_state), 1)
        return seen


class Moves(NamedTuple):
    """M moves; all arrays [M]."""

    step: IntArray
    person: IntArray
    state: IntArray
    helped: IntArray
    next_state: IntArray

    @property
    def size(self) -> int:
        return len(self.step)

    def up_to(self, step: int) -> "Moves":
        """The moves of the steps before this one."""
        return Moves(*(values[self.step < step] for values in self))


def in_waves(
    states: ArrayLike, helped: ArrayLike, next_states: ArrayLike, *, seed: int = 0
) -> tuple[IntArray, IntArray]:
    """States [W+1, N] and help [W, N] of people with one move each [N], who come in W waves.

    The order of people says nothing here, so waves are drawn at random. Wave w has its two states
    at w and w + 1, and its moves can be predicted from those of the earlier waves.
    """
    before, acted, after = (
        np.asarray(values, dtype=np.int64) for values in (states, helped, next_states)
    )
    N = len(before)
    wave = np.random.default_rng(seed).permutation(N) % WAVES
    person, last = np.arange(N), min(WAVES, N)
    found, help_given = np.full((last + 1, N), UNKNOWN), np.zeros((last, N), dtype=np.int64)
    found[wave, person], found[wave + 1, person] = before, after
    help_given[wave, person] = acted
    return found, help_given
