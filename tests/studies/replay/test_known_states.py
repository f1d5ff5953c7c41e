"""Where arms are that nobody has reported: from where they were last seen, and how arms move."""

import numpy as np
import pytest
from playing import clinic

from dopl_core.learning.bandit import UNKNOWN, IntArray
from dopl_core.studies.model.config_changes import changed
from dopl_core.studies.model.event_bodies import ArmsJoined, ArmsLeft
from dopl_core.studies.model.log_values import Epoch
from dopl_core.studies.replay.known_states import (
    coming_states,
    first_states,
    last_seen,
    likely_states,
)

ROWS = np.random.default_rng(0).dirichlet(np.ones(3), size=(4, 3, 2))  # [N, S, A, S']


def states(*numbers: int) -> IntArray:
    return np.array(numbers, dtype=np.int64)


def move(before: IntArray, after: IntArray | None, helped: list[int]) -> Epoch:
    return Epoch(1, 0, before, states(0, 1), after, "owner", helped=np.array(helped, dtype=int))


PAST = [
    move(states(0, 1, 2, 0), states(1, UNKNOWN, 2, 0), [0, 1]),
    move(states(1, UNKNOWN, 2, 0), states(1, UNKNOWN, UNKNOWN, 0), [0]),
]
NOW = states(1, UNKNOWN, UNKNOWN, 0)


def test_an_arm_was_last_seen_where_it_was_last_reported() -> None:
    seen = [last_seen(arm, NOW, PAST) for arm in range(4)]
    assert [(one.state, one.ago) for one in seen if one] == [(1, 0), (1, 2), (2, 1), (0, 0)]
    assert last_seen(0, states(UNKNOWN), []) is None


def test_an_arm_moves_on_from_there_helped_or_not_as_arms_do() -> None:
    chances = likely_states(NOW, PAST, np.ones(4, dtype=bool), ROWS)
    assert chances is not None
    assert chances[1] == pytest.approx(ROWS[1, 1, 1] @ ROWS[1, :, 0])  # helped, then left alone
    assert chances[2] == pytest.approx(ROWS[2, 2, 0])
    assert likely_states(states(0, 1, 2, 0), PAST, np.ones(4, dtype=bool), ROWS) is None


def test_an_arm_that_was_never_seen_may_be_where_others_are() -> None:
    chances = likely_states(states(0, 0, 0, UNKNOWN), [], np.ones(4, dtype=bool), ROWS)
    assert chances is not None
    assert chances[3] == pytest.approx([4 / 6, 1 / 6, 1 / 6])


def test_newcomers_bring_their_state_and_those_who_left_have_none() -> None:
    config = clinic()
    new = {"id": "p5", "label": "Eva", "group": "ward", "state": "High"}
    later = changed(config, [("arms_joined", ArmsJoined([new])), ("arms_left", ArmsLeft(["p1"]))])
    assert first_states(config).tolist() == [0, 2, 1, 0]
    after = move(states(0, 2, 1, 0), states(1, 1, 1, 1), [0])
    assert coming_states(later, [after], config).tolist() == [UNKNOWN, 1, 1, 1, 2]
    assert coming_states(later, [], None).tolist() == [UNKNOWN, 2, 1, 0, 2]
