"""A study that lives: people come and go, weeks are missed, reports are wrong; nothing is lost."""

import numpy as np
import pytest
from playing import STATES, check_replay, clinic

from dopl_core import studies
from dopl_core.studies import Arm, Ask, Store, StudyError


def everybody(store: Store, study: str, state: str = "Moderate") -> dict[str, str | None]:
    return dict.fromkeys(studies.present_states(store, study), state)


def next_week(store: Store, study: str, **report: object) -> None:
    studies.observe(store, study, everybody(store, study), **report)  # type: ignore[arg-type]
    assert studies.advance(store, study)


def on_the_list(store: Store, study: str) -> list[str]:
    return [one.id for one in studies.read_lists(store, study)[-1].listed]


@pytest.fixture
def study(store: Store) -> str:
    config = clinic(horizon=1, confidence="calibrated", engine="lagrangian", answers=4)
    return studies.create_study(store, config)


# --- people


def test_newcomers_are_on_lists_from_the_next_one_on(store: Store, study: str) -> None:
    studies.join(store, study, [Arm("p5", "Eva", "ward", "Low"), Arm("p6", "Fay", "home", "")])
    assert "p5" not in studies.present_states(store, study)
    next_week(store, study)
    states = studies.present_states(store, study)
    assert (states["p5"], states["p6"]) == ("Low", None)
    assert studies.load_learner(store, study).n_arms == 6
    check_replay(store, study)


def test_those_who_leave_are_on_no_list_and_in_no_duel_and_keep_their_number(
    store: Store, study: str
) -> None:
    studies.leave(store, study, ["p2"])
    found = studies.next_duel(store, study, "Ann")
    while isinstance(found, Ask):
        assert "p2" not in (found.left.arm, found.right.arm)
        studies.answer(store, found.impression, "left", too_fast_ms=0)
        found = studies.next_duel(store, study, "Ann")
    for _ in range(3):
        next_week(store, study)
        assert "p2" not in on_the_list(store, study)
        assert set(studies.present_states(store, study)) == {"p1", "p3", "p4"}
    studies.join(store, study, [Arm("p2", "Bo", "ward", "High", {"age": "62"})])
    next_week(store, study)
    assert studies.present_states(store, study)["p2"] == "High"
    assert studies.get_study(store, study).config.arm_number("p2") == 1
    check_replay(store, study)


def test_coming_and_going_that_makes_no_sense_is_refused(store: Store, study: str) -> None:
    with pytest.raises(StudyError, match='"p1" is here already'):
        studies.join(store, study, [Arm("p1", "Ada", "ward", "Low")])
    with pytest.raises(StudyError, match='state "Lwo" is not one of'):
        studies.join(store, study, [Arm("p9", "Ida", "ward", "Lwo")])
    with pytest.raises(StudyError, match='"p9" is not one of'):
        studies.leave(store, study, ["p9"])
    studies.leave(store, study, ["p1"])
    with pytest.raises(StudyError, match='"p1" has left already'):
        studies.leave(store, study, ["p1"])
    with pytest.raises(ValueError, match=r"at least two are needed|budget"):
        studies.leave(store, study, ["p2", "p3"])


# --- reports


def test_a_state_that_is_unknown_counts_no_move_and_is_not_asked_about(
    store: Store, study: str
) -> None:
    studies.observe(store, study, everybody(store, study) | {"p3": None})
    studies.advance(store, study)
    assert studies.load_learner(store, study).visits.sum() == 3
    assert studies.present_states(store, study)["p3"] is None
    found = studies.next_duel(store, study, "Ann")
    while isinstance(found, Ask):
        assert "p3" not in (found.left.arm, found.right.arm)
        studies.answer(store, found.impression, "left", too_fast_ms=0)
        found = studies.next_duel(store, study, "Ann")
    studies.observe(store, study, {"p1": "Low"})  # the others are left out
    studies.advance(store, study)
    entries = {one.id: one for one in studies.read_lists(store, study)[-1].listed}
    for one in entries.values():
        if one.id != "p1":
            assert one.state is None
            assert one.weeks_ago == (2 if one.id == "p3" else 1)
            assert one.last_seen == "Moderate" or one.id == "p3"
    assert studies.load_learner(store, study).visits.sum() == 4
    check_replay(store, study)


def test_moves_are_counted_by_what_was_done_and_the_list_is_kept_too(
    store: Store, study: str
) -> None:
    listed = on_the_list(store, study)
    others = sorted({"p1", "p2", "p3", "p4"} - set(listed))
    next_week(store, study, helped=[listed[0], others[0]])
    visits = studies.load_learner(store, study).visits
    helped = {f"p{n + 1}" for n in np.flatnonzero(visits[:, :, 1].sum(axis=(1, 2)))}
    assert helped == {listed[0], others[0]}
    first = studies.read_lists(store, study)[0]
    assert [one.id for one in first.listed] == listed
    assert {one.id: one.helped for one in first.listed} == {listed[0]: True, listed[1]: False}
    assert first.listed[0].then == "Moderate"
    with pytest.raises(StudyError, match='"p9" is not one of'):
        studies.observe(store, study, {}, helped=["p9"])
    check_replay(store, study)


def test_a_report_belongs_to_its_week(store: Store, study: str) -> None:
    """Two owners, one click each: the second is told, and records no false week."""
    report = everybody(store, study)
    studies.observe(store, study, report, week=1)
    studies.advance(store, study)
    with pytest.raises(StudyError, match="week 1 is reported already: it is week 2 that is open"):
        studies.observe(store, study, report, week=1)
    with pytest.raises(StudyError, match="week 3 is to come"):
        studies.observe(store, study, report, week=3)
    assert studies.load_learner(store, study).visits.sum() == 4


# --- corrections


def test_a_correction_holds_in_the_next_list_and_overwrites_nothing(
    store: Store, study: str
) -> None:
    listed = on_the_list(store, study)
    next_week(store, study)
    next_week(store, study)
    before = studies.load_learner(store, study).visits
    studies.correct(store, study, 1, {"p1": "High"}, {listed[0]: False})
    after = studies.load_learner(store, study).visits
    assert after.sum() == before.sum()
    assert after[:, :, 1].sum() == before[:, :, 1].sum() - 1
    assert after[0, :, :, 2].sum() == before[0, :, :, 2].sum() + 1  # it came to High ...
    assert after[0, 2].sum() == before[0, 2].sum() + 1  # ... and left from there
    studies.correct(store, study, 0, {"p4": "High"})  # the roster was wrong
    assert studies.load_learner(store, study).visits[3, 0].sum() == 0
    next_week(store, study)
    check_replay(store, study)
    with pytest.raises(StudyError, match="The report already says this"):
        studies.correct(store, study, 1, {"p1": "High"})
    with pytest.raises(StudyError, match="week 9 has no report: the latest is of week "):
        studies.correct(store, study, 9, {"p1": "High"})


def test_a_state_can_be_corrected_to_unknown_and_back(store: Store, study: str) -> None:
    next_week(store, study)
    next_week(store, study)
    before = studies.load_learner(store, study).state()["recent"]
    studies.correct(store, study, 1, {"p1": None})
    learner = studies.load_learner(store, study)
    assert learner.visits.sum() == 6
    assert (learner.state()["recent"] != before).sum() == 2  # the end of a week, and the next start
    studies.correct(store, study, 1, {"p1": "Moderate"})
    learner = studies.load_learner(store, study)
    assert learner.visits.sum() == 8
    assert (learner.state()["recent"] == before).all()
    next_week(store, study)
    check_replay(store, study)


# --- settings


def test_settings_hold_from_the_next_list_on(store: Store, study: str) -> None:
    studies.change_settings(store, study, budget=3, question="Who sleeps better?", title="Sleep")
    now = studies.get_study(store, study)
    assert (now.title, now.config.budget, len(on_the_list(store, study))) == ("Sleep", 2, 2)
    next_week(store, study)
    config = studies.get_study(store, study).config
    assert (config.budget, config.question, config.title) == (3, "Who sleeps better?", "Sleep")
    assert len(on_the_list(store, study)) == 3
    for settings, reason in (
        ({"budget": 9}, "budget is 9"),
        ({"seed": 3}, '"seed" cannot be changed'),
        ({"budget": 3}, "The settings already say this"),
        ({"ratings": 0}, "from 1 to"),
    ):
        with pytest.raises(ValueError, match=reason):
            studies.change_settings(store, study, **settings)
    check_replay(store, study)


# --- before the first list


def test_the_first_list_helps_the_badly_off_and_among_equals_it_is_by_lot(store: Store) -> None:
    """What the owner said of the states is knowledge, before any answer and any move."""
    arms = [Arm(f"p{n}", f"Patient {n}", "all", STATES[n % 3]) for n in range(30)]
    chosen: set[str] = set()
    for seed in range(6):
        rules = {"title": "Ward", "budget": 4, "practice": False, "seed": seed, "find_out": 0}
        study = studies.create_study(store, studies.from_roster(arms, STATES, **rules))
        listed = studies.read_lists(store, study)[-1].listed
        assert {one.state for one in listed} == {"Low"}
        assert all(one.badly_off and one.equal for one in listed)
        chosen |= {one.id for one in listed}
    assert len(chosen) > 6  # of ten who are alike, not always the same


def test_a_first_sitting_asks_about_everybody_and_ends_when_the_owner_likes(store: Store) -> None:
    config = clinic(horizon=1, confidence="calibrated", sitting=12, answers=4)
    study = studies.create_study(store, config)
    assert studies.epoch_list(store, study) == []
    seen: set[str] = set()
    for _ in range(5):
        found = studies.next_duel(store, study, "Ann")
        assert isinstance(found, Ask)
        assert found.purpose == "sitting"
        assert found.total == 12
        seen |= {found.left.arm, found.right.arm}
        studies.answer(store, found.impression, "left", too_fast_ms=0)
    assert seen == {"p1", "p2", "p3", "p4"}
    assert not studies.advance(store, study)
    assert studies.close_duels(store, study)
    assert studies.advance(store, study)
    assert studies.plans(store, study).answers.tolist() == [5]
    assert len(on_the_list(store, study)) == 2
    check_replay(store, study)


HISTORY = b"""id,when,state,helped
p1,2026-01-05,Low,0
p1,2026-01-12,Low,1
p1,2026-01-19,High,0
old,2026-01-05,Moderate,1
old,2026-01-12,High,0
p2,2026-01-05,High,0
p2,2026-01-26,Low,0
"""


def test_past_records_are_counted_before_the_first_plan(store: Store) -> None:
    config = clinic(horizon=1, confidence="calibrated", sitting=6)
    past = studies.read_history(HISTORY, config)
    assert (past.moves, past.arms, past.gaps) == (3, 3, 1)
    for given in (True, False):
        study = studies.create_study(store, config, past if given else None)
        if not given:
            studies.add_history(store, study, past)
        with pytest.raises(StudyError, match="has past records already"):
            studies.add_history(store, study, past)
        learner = studies.load_learner(store, study)
        assert learner.visits.sum() == 3
        assert learner.n_arms == 5  # one more than the roster has
        assert learner.present.tolist() == [True] * 4 + [False]
        check_replay(store, study)
        studies.close_duels(store, study)
        studies.advance(store, study)
        assert "old" not in studies.present_states(store, study)
        with pytest.raises(StudyError, match="has its first plan"):
            studies.add_history(store, study, past)
        check_replay(store, study)
        content = studies.export_bundle(store, study)
        studies.delete_study(store, study)
        studies.import_bundle(store, content)
        assert studies.export_bundle(store, study) == content


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (b"p1,2026-01-05,Low,0", '"p1" already has a record of 2026-01-05'),
        (b",2026-01-05,Low,0", "id is empty"),
        (b"p3,soon,Low,0", 'when is "soon"'),
        (b"p3,2026-01-05,Lwo,0", 'state "Lwo" is not one of Low, Moderate, High'),
        (b"p3,2026-01-05,Low,often", 'helped is "often": 1 or 0 needed'),
        (b"p3,2026-01-05,Low,", "helped is empty: 1 or 0 needed"),
    ],
)
def test_a_wrong_record_is_refused_by_its_number(row: bytes, reason: str) -> None:
    with pytest.raises(studies.CsvError, match=f"history.csv row 9: {reason}"):
        studies.read_history(HISTORY + row + b"\n", clinic())
