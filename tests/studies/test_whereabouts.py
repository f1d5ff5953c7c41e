"""Where arms are that nobody has reported: from where they were last seen, and how arms move."""

import numpy as np
import pytest
from playing import clinic

from dopl_core.learning.bandit import UNKNOWN, IntArray
from dopl_core.studies.changes import changed
from dopl_core.studies.history import Event as Happened
from dopl_core.studies.history import Move, as_counted, corrected, moves_counted
from dopl_core.studies.whereabouts import coming_states, first_states, last_seen, where

ROWS = np.random.default_rng(0).dirichlet(np.ones(3), size=(4, 3, 2))  # [N, S, A, S']


def states(*numbers: int) -> IntArray:
    return np.array(numbers, dtype=np.int64)


def move(before: IntArray, after: IntArray | None, helped: list[int]) -> Move:
    return Move(1, 0, before, states(0, 1), after, "owner", helped=np.array(helped, dtype=int))


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
    chances = where(NOW, PAST, np.ones(4, dtype=bool), ROWS)
    assert chances is not None
    assert chances[1] == pytest.approx(ROWS[1, 1, 1] @ ROWS[1, :, 0])  # helped, then left alone
    assert chances[2] == pytest.approx(ROWS[2, 2, 0])
    assert where(states(0, 1, 2, 0), PAST, np.ones(4, dtype=bool), ROWS) is None


def test_an_arm_that_was_never_seen_may_be_where_others_are() -> None:
    chances = where(states(0, 0, 0, UNKNOWN), [], np.ones(4, dtype=bool), ROWS)
    assert chances is not None
    assert chances[3] == pytest.approx([4 / 6, 1 / 6, 1 / 6])


def test_newcomers_bring_their_state_and_those_who_left_have_none() -> None:
    config = clinic()
    new = {"id": "p5", "label": "Eva", "group": "ward", "state": "High"}
    later = changed(config, [("arms_joined", {"arms": [new]}), ("arms_left", {"arms": ["p1"]})])
    assert first_states(config).tolist() == [0, 2, 1, 0]
    after = move(states(0, 2, 1, 0), states(1, 1, 1, 1), [0])
    assert coming_states(later, [after], config).tolist() == [UNKNOWN, 1, 1, 1, 2]
    assert coming_states(later, [], None).tolist() == [UNKNOWN, 2, 1, 0, 2]


def test_a_correction_changes_where_an_arm_went_and_where_it_set_out_from() -> None:
    config, ended = (
        clinic(),
        [
            move(states(0, 2, 1, 0), states(1, 1, 1, 1), [0]),
            move(states(1, 1, 1, 1), states(0, 0, 0, 0), [1]),
        ],
    )
    body = {"week": 1, "states": {"p2": ["Moderate", "High"]}, "helped": {"p1": [1, 0]}}
    fixed = corrected(ended, [body], config)
    before, helped, after = moves_counted(fixed, 4)
    assert after[0].tolist() == [1, 2, 1, 1]
    assert before[1].tolist() == [1, 2, 1, 1]
    assert helped.tolist() == [[0, 0, 0, 0], [0, 1, 0, 0]]
    assert ended[0].next_states is not None
    assert ended[0].next_states.tolist() == [1] * 4  # what was reported stays


def test_a_plan_counts_what_it_had_heard_and_not_what_came_while_it_was_made() -> None:
    log = [
        Happened(1, "made"),
        Happened(2, "answered", "Ann", 0, "left"),
        Happened(3, "answered", "Ann", 1, "left"),
        Happened(4, "planned", body='{"plan": 1, "heard": 2}'),
        Happened(5, "answered", "Ann", 2, "left"),
        Happened(6, "planned", body='{"plan": 2}'),
    ]
    assert [event.at for _, event in as_counted(log)] == [1, 2, 4, 3, 5, 6]
