"""The owner's changes of a list: the next in line moves up, and the log keeps every change."""

import numpy as np
import pytest
from bundles import files
from playing import check_replay, clinic, cohort, everyone, report_from

from dopl_core import studies
from dopl_core.studies import Store, StudyError, WeekList
from dopl_core.studies.exchange import bundle
from dopl_core.studies.model.errors import ReplayError
from dopl_core.studies.operate import list_changes
from dopl_core.studies.replay.episode import change_list
from dopl_core.studies.replay.replay import replay

STATES = ["Poor", "Fair", "Good"]


def ten(store: Store, **rules: object) -> str:
    return studies.create_study(store, cohort(10, STATES, 3, budget=3, horizon=1, **rules))


def now(store: Store, study: str) -> WeekList:
    [week] = studies.read_lists(store, study, last=1)
    return week


def ids(people: list[studies.Listed]) -> list[str]:
    return [one.id for one in people]


def test_half_as_many_as_the_budget_rounded_up_are_next_in_line(sqlite_store: Store) -> None:
    week = now(sqlite_store, ten(sqlite_store))
    assert (len(week.listed), len(week.reserve)) == (3, 2)
    assert not set(ids(week.listed)) & set(ids(week.reserve))
    rows = [
        dict(zip(studies.list_columns(week), row, strict=True)) for row in studies.list_rows(week)
    ]
    assert [row["reserve"] for row in rows] == [0, 0, 0, 1, 1]
    assert rows[3]["why"].startswith("Next in line.")


def test_the_next_in_line_moves_up_when_somebody_is_taken_off(store: Store) -> None:
    study = ten(store)
    before = now(store, study)
    gone = before.listed[0].id
    studies.change_list(store, study, remove=[gone], because="in hospital", week=1)
    after = now(store, study)
    assert set(ids(after.listed)) == {*ids(before.listed)} - {gone} | {before.reserve[0].id}
    assert after.reserve[0].id == before.reserve[1].id
    assert [(one.id, one.changed, one.because) for one in after.removed] == [
        (gone, "off", "in hospital")
    ]
    assert gone not in ids(after.reserve)


def test_the_least_urgent_makes_room_for_somebody_who_is_put_on(sqlite_store: Store) -> None:
    study = ten(sqlite_store, find_out=0)
    before = now(sqlite_store, study)
    known = set(ids(before.everybody))
    new = next(f"p{n}" for n in range(10) if f"p{n}" not in known)
    studies.change_list(sqlite_store, study, add=[new], because="asked for it")
    after = now(sqlite_store, study)
    assert len(after.listed) == 3
    [put_on] = [one for one in after.listed if one.changed == "on"]
    assert (put_on.id, put_on.because) == (new, "asked for it")
    [row] = [row for row in studies.list_rows(after) if row[1] == new]
    assert row[7] == "Put on the list by the owner: asked for it"
    assert row[-3:] == ("on", "asked for it", 0)
    [made_room] = set(ids(before.listed)) - set(ids(after.listed))
    assert after.reserve[0].id == made_room


def test_places_drawn_at_random_are_kept_for_the_comparison(sqlite_store: Store) -> None:
    study = ten(sqlite_store, by_lot=2)
    week = now(sqlite_store, study)
    drawn = [one.id for one in week.listed if one.by_lot]
    studies.change_list(sqlite_store, study, add=[week.reserve[0].id], because="urgent")
    assert set(drawn) < set(ids(now(sqlite_store, study).listed))
    with pytest.raises(StudyError, match="all are yours or drawn at random"):
        studies.change_list(sqlite_store, study, add=[week.reserve[1].id], because="urgent")


def test_who_waits_by_lot_is_named_and_moves_up_only_by_the_owner(store: Store) -> None:
    study = ten(store, by_lot=1)
    week = now(store, study)
    [waiting] = ids(week.left_out)
    assert waiting not in ids(week.everybody)
    assert studies.why_listed(week.left_out[0], week).startswith("Chosen at random to wait this ")
    assert "chosen at random to wait this week" in studies.explain(store, study, waiting).where
    for _ in range(6):  # everybody else moves up before
        gone = now(store, study).listed[0].id
        studies.change_list(store, study, remove=[gone], because="away")
    assert ids(now(store, study).left_out) == [waiting]
    gone = now(store, study).listed[0].id
    studies.change_list(store, study, remove=[gone], add=[waiting], because="is worse")
    assert waiting in ids(now(store, study).listed)
    assert not now(store, study).left_out
    check_replay(store, study)


def test_a_report_without_marks_means_that_the_changed_list_was_helped(store: Store) -> None:
    study = ten(store)
    gone = now(store, study).listed[0].id
    studies.change_list(store, study, remove=[gone], because="on holiday")
    listed = ids(now(store, study).listed)
    visits = studies.load_learner(store, study).visits
    studies.observe(store, study, studies.present_states(store, study))
    moved = studies.load_learner(store, study).visits - visits
    config = studies.get_study(store, study).config
    helped = np.flatnonzero(moved[:, :, 1].sum(axis=(1, 2)))
    assert {config.arms[n].id for n in helped} == set(listed)
    [week] = studies.read_lists(store, study)
    assert [one.helped for one in week.everybody] == [True] * 3 + [False] * 3


def test_somebody_next_in_line_who_was_helped_counts(sqlite_store: Store) -> None:
    study = ten(sqlite_store)
    week = now(sqlite_store, study)
    helped = [week.reserve[0].id, *ids(week.listed)[:2]]
    studies.observe(sqlite_store, study, studies.present_states(sqlite_store, study), helped=helped)
    [week] = studies.read_lists(sqlite_store, study)
    assert [one.helped for one in week.everybody] == [True, True, False, True, False]
    assert studies.read_week(sqlite_store, study, 1)[helped[0]].helped


def test_changed_lists_export_import_and_replay_to_the_bit(store: Store) -> None:
    study, rng = ten(store, by_lot=1), np.random.default_rng(2)
    for number in range(3):
        week = now(store, study)
        off, on = week.listed[number % 3].id, week.reserve[0].id
        studies.change_list(store, study, remove=[off], because="not there")
        if number:
            if on not in ids(now(store, study).listed):
                studies.change_list(store, study, add=[on], because="more urgent")
            report_from(store, study, rng)
        else:  # exactly the list of the plan was helped after all
            report_from(store, study, rng, ids(week.listed))
        studies.advance(store, study)
    gone = now(store, study).listed[0].id
    studies.change_list(store, study, remove=[gone], because="in hospital")  # and still open
    told: list[str] = []
    check_replay(store, study, told.append)
    assert told == ["Everything is reproduced to the bit."]
    first = studies.export_bundle(store, study)
    lists, weeks = files(first)["lists.csv"].decode(), studies.read_lists(store, study)
    assert "4," + gone + ",0," in lists
    assert ",off,in hospital" in lists
    learner = studies.load_learner(store, study).state()
    studies.delete_study(store, study)
    studies.import_bundle(store, first)
    assert studies.export_bundle(store, study) == first
    assert studies.read_lists(store, study) == weeks
    again = studies.load_learner(store, study).state()
    assert all(learner[name].tobytes() == array.tobytes() for name, array in again.items())
    check_replay(store, study)


def test_a_changed_list_that_the_plan_would_not_have_filled_so_is_refused(
    sqlite_store: Store,
) -> None:
    study = ten(sqlite_store)
    week = now(sqlite_store, study)
    studies.change_list(sqlite_store, study, remove=[week.listed[0].id], because="not there")
    log = bundle.read(studies.export_bundle(sqlite_store, study))
    other = {week.reserve[0].id: week.reserve[1].id, week.reserve[1].id: week.reserve[0].id}
    text = log.events[-1].body or ""
    for one, two in other.items():
        text = text.replace(f'"{one}"', f'"@{two}"')
    object.__setattr__(log.events[-1], "body", text.replace("@", ""))
    with pytest.raises(ReplayError, match="other people move up"):
        replay(log)


def test_a_change_that_cannot_be_is_refused_in_words_and_changes_nothing(store: Store) -> None:
    study = studies.create_study(store, clinic(horizon=1))
    listed = ids(now(store, study).listed)
    off = next(arm for arm in everyone() if arm not in listed)
    wrong: list[tuple[dict, str]] = [
        ({"remove": ["nobody"]}, '"nobody" is not one of p1'),
        ({"remove": [off]}, f'"{off}" cannot be taken off the list: case is not on it'),
        ({"add": [listed[0]]}, f'"{listed[0]}" is on the list already'),
        ({"remove": [listed[0], listed[0]]}, "is named twice"),
        ({}, "nobody is named"),
        ({"remove": listed[:1], "because": " "}, "Please write why"),
        ({"remove": listed[:1], "because": "x" * 201}, "use at most 200 characters"),
        ({"remove": listed[:1], "week": 2}, "week 2 is not open"),
    ]
    for change, words in wrong:
        with pytest.raises(StudyError, match=words):
            studies.change_list(store, study, **({"because": "why not"} | change))
    assert ids(now(store, study).listed) == listed
    studies.change_list(store, study, remove=listed[:1], because="ill")
    with pytest.raises(StudyError, match="was taken off it already"):
        studies.change_list(store, study, remove=listed[:1], because="ill")
    studies.observe(store, study, everyone())
    with pytest.raises(StudyError, match="week 1 is reported: wait for the next list"):
        studies.change_list(store, study, remove=listed[1:], because="ill")
    studies.close_study(store, study)
    with pytest.raises(StudyError, match="is closed: reopen it"):
        studies.change_list(store, study, remove=listed[1:], because="ill")


def test_somebody_who_has_left_is_not_next_in_line_and_gets_no_place(store: Store) -> None:
    study = ten(store)
    before = now(store, study)
    (left, second), off = ids(before.reserve), before.listed[0].id
    studies.leave(store, study, [left])
    assert ids(now(store, study).reserve) == [second]
    with pytest.raises(StudyError, match=f'"{left}" has left; re-admit them first'):
        studies.change_list(store, study, add=[left], because="asked for it")
    studies.change_list(store, study, remove=[off], because="not there")
    after = now(store, study)
    assert set(ids(after.listed)) == {*ids(before.listed)} - {off} | {second}
    assert len(after.reserve) == 2
    assert left not in ids(after.everybody)
    check_replay(store, study)
    report_from(store, study, np.random.default_rng(1))
    check_replay(store, study)


def test_somebody_on_the_list_who_leaves_makes_room_for_the_next_in_line(store: Store) -> None:
    study = ten(store)
    before = now(store, study)
    [first, second], (next_one, *_) = ids(before.listed)[:2], ids(before.reserve)
    studies.leave(store, study, [first])
    after = now(store, study)
    assert next_one in ids(after.listed)
    assert first not in ids(after.listed)
    assert [(one.id, one.because) for one in after.removed] == [(first, "has left")]
    assert len(after.listed) == len(before.listed)
    roster = [arm for arm in studies.coming_config(store, study).arms if arm.id != second]
    studies.update_people(store, study, [arm for arm in roster if arm.present], left=True)
    assert second not in ids(now(store, study).listed)
    studies.replay_study(store, study)


def test_logs_of_older_versions_in_which_somebody_who_had_left_moved_up_still_replay(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, study = sqlite_store, ten(sqlite_store)
    before = now(store, study)
    left = before.reserve[0].id
    studies.leave(store, study, [left])
    monkeypatch.setattr(list_changes, "changed_arms", lambda *args: change_list(*args[:4]))
    studies.change_list(store, study, remove=[before.listed[0].id], because="not there")
    assert left in ids(now(store, study).listed)
    check_replay(store, study)


def test_two_changes_in_one_week_never_bring_back_somebody_taken_off(sqlite_store: Store) -> None:
    study = ten(sqlite_store)
    gone = []
    for _ in range(4):
        gone.append(now(sqlite_store, study).listed[0].id)
        studies.change_list(sqlite_store, study, remove=[gone[-1]], because="not there")
        week = now(sqlite_store, study)
        assert not set(gone) & set(ids(week.listed + week.reserve))
        assert len(week.listed) == 3
    studies.change_list(sqlite_store, study, add=[gone[0]], because="back again")
    assert gone[0] in ids(now(sqlite_store, study).listed)
    assert sorted(ids(now(sqlite_store, study).removed)) == sorted(gone[1:])
