"""The reported weeks of a study as arrays, and who was better off after each of them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dopl_core.learning.bandit import UNKNOWN, FloatArray, IntArray, better_states


class ReportedWeeks(NamedTuple):
    """The reported weeks, all [w, n]: states (or UNKNOWN), and 0/1 for helped, listed, by lot.

    by lot: drawn at random, if listed for a place, else to wait
    barred: who could not be drawn by lot by the study's rules; None if there are no such rules
    groups: [n] or [w, n] codes of groups that places are shared out among; None if there are none
    """

    states: IntArray
    helped: IntArray
    next_states: IntArray
    listed: IntArray
    by_lot: IntArray
    barred: NDArray[np.bool_] | None = None
    groups: IntArray | None = None


def better_off(states: IntArray, next_states: IntArray, n_states: int) -> FloatArray:
    """1 where an arm is better off afterwards, 0 where it is not, NaN where a state is unknown."""
    up = better_states(n_states)[states, next_states]
    known = (states != UNKNOWN) & (next_states != UNKNOWN)
    return np.where(known, up.astype(float), np.nan)
