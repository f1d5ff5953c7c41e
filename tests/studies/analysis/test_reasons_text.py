"""Tables of reasons: how often, by whom, in which words."""

import pandas as pd

from dopl_core.studies.analysis.reasons_text import tags_finding, words_finding

COLUMNS = ["annotator", "outcome", "reason_asked", "reason_tags", "reason", "answered_at"]
ROWS = [
    ("Ann", "left", 1.0, "trend, state", "", "2026-01-01"),
    ("Ann", "right", 1.0, "trend", "=more hours", "2026-01-02"),
    ("Bob", "tie", 1.0, "", "the same", "2026-01-03"),
    ("Bob", "left", 1.0, "trend", "", "2026-01-04"),
    ("Bob", "left", 1.0, "", "", "2026-01-05"),
    ("Bob", "left", None, None, None, "2026-01-06"),
]


def answers(rows: list[tuple[object, ...]]) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=COLUMNS)
    frame["answered_at"] = pd.to_datetime(frame.answered_at, utc=True)
    return frame.assign(left_arm="p1", right_arm="p2")


def test_tags_are_counted_of_the_reasons_given_and_reasons_of_the_times_asked() -> None:
    found = tags_finding(answers(ROWS))
    assert found is not None
    assert found.title == "People gave a reason 4 of 5 times (80 %) that they were asked"
    assert found.data.to_numpy().tolist() == [["trend", 3, 4, 2], ["state", 1, 4, 1]]


def test_own_words_are_told_with_the_answer_and_the_newest_first() -> None:
    found = words_finding(answers(ROWS), {"p1": "Maria"})
    assert found is not None
    assert found.title == "2 reasons in people's own words"
    assert found.data.iloc[:, :4].to_numpy().tolist() == [
        ["Bob", "Maria and p2 are equal", "the same", ""],
        ["Ann", "p2 over Maria", "=more hours", "trend"],
    ]


def test_nothing_is_told_where_nobody_was_asked_and_no_share_where_nobody_said() -> None:
    assert tags_finding(answers(ROWS[5:])) is None
    assert words_finding(answers(ROWS[4:]), {}) is None
    assert tags_finding(answers([])) is None
    found = tags_finding(answers(ROWS[4:5]))
    assert found is not None
    assert found.title == "Nobody gave a reason yet; people were asked 1 time"
    assert found.data.empty
