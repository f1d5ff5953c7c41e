"""Corrections change what is known, never what was reported."""

import numpy as np
import pytest
from playing import clinic

from dopl_core.learning.bandit import IntArray
from dopl_core.studies.model.corrections import corrected
from dopl_core.studies.model.errors import LogError
from dopl_core.studies.model.event_bodies import Corrected
from dopl_core.studies.model.log_values import Epoch, moves_in


def states(*numbers: int) -> IntArray:
    return np.array(numbers, dtype=np.int64)


def epoch(before: IntArray, after: IntArray, helped: list[int]) -> Epoch:
    return Epoch(1, 0, before, states(0, 1), after, "owner", helped=np.array(helped, dtype=int))


def reported() -> list[Epoch]:
    return [
        epoch(states(0, 2, 1, 0), states(1, 1, 1, 1), [0]),
        epoch(states(1, 1, 1, 1), states(0, 0, 0, 0), [1]),
    ]


def test_a_correction_changes_the_end_of_a_week_and_the_beginning_of_the_next() -> None:
    ended = reported()
    body = Corrected(1, {"p2": ("Moderate", "High")}, {"p1": (1, 0)})
    before, helped, after = moves_in(corrected(ended, [body], clinic()), 4)
    assert after[0].tolist() == [1, 2, 1, 1]
    assert before[1].tolist() == [1, 2, 1, 1]
    assert helped.tolist() == [[0, 0, 0, 0], [0, 1, 0, 0]]
    assert ended[0].next_states is not None
    assert ended[0].next_states.tolist() == [1] * 4  # the report itself stays


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (Corrected(3, {"p1": (None, "Low")}, {}), "week 3, which has no report"),
        (Corrected(-1, {"p1": (None, "Low")}, {}), "week -1, which has no report"),
        (Corrected(0, {}, {"p1": (0, 1)}), "helped before the first list"),
        (Corrected(1, {"p9": (None, "Low")}, {}), '"p9" is not one of'),
        (Corrected(1, {"p1": (None, "Lwo")}, {}), '"Lwo" is not one of'),
    ],
)
def test_a_correction_that_fits_nothing_is_refused(body: Corrected, reason: str) -> None:
    with pytest.raises((LogError, ValueError), match=reason):
        corrected(reported(), [body], clinic())
