"""An undone report leaves no trace in what the study knows, and every trace in its log."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from bundles import files
from playing import Clock, answer_open, check_replay, clinic, digest, everyone

from dopl_core import studies
from dopl_core.studies import Arm, Store, StudyError
from dopl_core.studies.exchange import bundle
from dopl_core.studies.model.errors import LogError
from dopl_core.studies.model.event_kinds import standing
from dopl_core.studies.model.log_values import Event
from dopl_core.studies.store.log_reader import read_log

RULES = {"by_lot": 1, "answers": 3, "confidence": "calibrated"}


def kinds(store: Store, study: str) -> list[str]:
    return [event.kind for event in read_log(store, study).events]


def test_only_what_the_report_led_to_is_undone() -> None:
    log = [
        Event(1, "planned", body='{"plan": 1, "engine": "cbc"}'),
        Event(2, "listed", body='{"week": 1, "list": []}'),
        Event(3, "observed", body='{"episode": 1, "epoch": 0, "source": "owner"}'),
        Event(4, "answered", "Ann", 0, "left"),
        Event(5, "planned", body='{"plan": 2, "engine": "cbc"}'),
        Event(6, "listed", body='{"week": 2, "list": []}'),
        Event(7, "corrected", body='{"week": 0, "states": {}, "helped": {}}'),
        Event(8, "corrected", body='{"week": 1, "states": {}, "helped": {}}'),
        Event(9, "settings_changed", body='{"settings": {}}'),
        Event(10, "report_undone", body='{"week": 1, "since": 3}'),
        Event(11, "observed", body='{"episode": 1, "epoch": 0, "source": "owner"}'),
    ]
    assert [seq for seq, _ in standing(enumerate(log, 1))] == [1, 2, 4, 7, 9, 10, 11]


@pytest.mark.parametrize("horizon", [1, 2])
@pytest.mark.parametrize("answered", [False, True])
def test_the_list_before_is_back_and_the_study_goes_on_as_without_the_report(
    store: Store, clock: Clock, horizon: int, answered: bool
) -> None:
    one, other = (studies.create_study(store, clinic(horizon=horizon, **RULES)) for _ in range(2))
    for study in (one, other):
        answer_open(store, study)
        first = studies.read_lists(store, study)[0]
        studies.change_list(store, study, remove=[first.listed[0].id], because="ill")
    before, learner = studies.read_lists(store, one), digest(store, one)
    study = studies.get_study(store, one)
    news = {"p1": {"hours": "9 9 9"}}
    studies.observe(store, one, everyone("Low"), news, helped=["p4"], week=1)
    studies.advance(store, one)
    week = studies.read_lists(store, one)[-1]
    assert week.week == 2
    studies.change_list(store, one, remove=[week.listed[0].id], because="not there")
    studies.correct(store, one, 1, {"p2": "High"})
    studies.change_draft(store, one, 2, lambda draft: draft.states.update({"p1": "Low"}))
    if answered:
        answer_open(store, one)
    studies.undo_report(store, one, 1)
    assert studies.read_lists(store, one) == before
    assert studies.read_cards(store, one)["p1"]["hours"] == "1 2 3"
    assert studies.read_draft(store, one, 2) == studies.Draft()
    if not answered:
        assert digest(store, one) == learner
        assert studies.get_study(store, one) == study
    check_replay(store, one)
    for name in (one, other):
        studies.observe(store, name, everyone("Moderate"), week=1)
        studies.advance(store, name)
        assert studies.get_study(store, name).plan_due is False
    lists = [studies.read_lists(store, name)[-1] for name in (one, other)]
    if not answered:
        assert lists[0] == lists[1]
        assert digest(store, one) == digest(store, other)
    check_replay(store, one)


@pytest.mark.parametrize("horizon", [1, 2])
def test_answers_given_since_stay_counted(store: Store, horizon: int) -> None:
    study = studies.create_study(store, clinic(horizon=horizon, **RULES))
    answer_open(store, study)
    given = studies.load_learner(store, study).counts.total()
    studies.observe(store, study, everyone("Low"))
    studies.advance(store, study)
    answer_open(store, study, "Bob")
    more = studies.load_learner(store, study).counts.total()
    assert more > given
    studies.undo_report(store, study, 1)
    assert studies.load_learner(store, study).counts.total() == more
    studies.observe(store, study, everyone("High"))
    studies.advance(store, study)
    answer_open(store, study, "Bob")  # the list of week 2 asks duels of its own
    last = studies.load_learner(store, study).counts.total()
    assert last > more
    numbers = studies.answers(store, study).query("episode + epoch == 2").duel
    assert sorted(numbers) == list(range(len(numbers)))
    check_replay(store, study)


def test_somebody_who_sees_a_question_of_the_undone_list_loses_it(store: Store) -> None:
    study = studies.create_study(store, clinic(horizon=1, **RULES))
    studies.observe(store, study, everyone("Low"))
    studies.advance(store, study)
    shown = studies.next_duel(store, study, "Ann")
    assert isinstance(shown, studies.Ask)
    studies.undo_report(store, study, 1)
    assert studies.answer(store, shown.impression, "left", too_fast_ms=0).status == "taken"
    again = studies.next_duel(store, study, "Ann")  # of week 1, whose questions are open again
    assert isinstance(again, studies.Ask)
    assert (again.episode, again.impression) == (1, shown.impression + 1)
    check_replay(store, study)


def test_reports_undone_one_after_the_other_export_import_and_replay_to_the_bit(
    store: Store,
) -> None:
    study = studies.create_study(store, clinic(horizon=1, **RULES))
    lists = []
    for week in (1, 2, 3):
        answer_open(store, study)
        lists.append(studies.read_lists(store, study))
        studies.observe(store, study, everyone("Low" if week % 2 else "High"), week=week)
        studies.advance(store, study)
    answer_open(store, study, "Bob")
    for week in (3, 2):
        studies.undo_report(store, study, week)
        assert studies.read_lists(store, study) == lists[week - 1]
        check_bundle(store, study)
    studies.observe(store, study, everyone("Moderate"), week=2)
    check_bundle(store, study)
    studies.advance(store, study)
    told: list[str] = []
    check_replay(store, study, told.append)
    assert told == ["Everything is reproduced to the bit."]
    check_bundle(store, study)
    content = files(studies.export_bundle(store, study))
    assert len(content["plans.csv"].splitlines()) == 1 + 3
    assert b"report_undone" in content["events.csv"]
    assert len(content["transitions.csv"].splitlines()) == 1 + 3 * 4
    assert {line.split(b",")[0] for line in content["lists.csv"].splitlines()[1:]} == {
        b"1",
        b"2",
        b"3",
    }


def check_bundle(store: Store, study: str) -> None:
    """The study that is imported is the one that was exported; it is kept."""
    content, before = studies.export_bundle(store, study), digest(store, study)
    lists, about = studies.read_lists(store, study), studies.get_study(store, study)
    studies.delete_study(store, study)
    studies.import_bundle(store, content)
    assert studies.export_bundle(store, study) == content
    assert digest(store, study) == before
    assert studies.read_lists(store, study) == lists
    assert studies.get_study(store, study) == about
    studies.export_bundle(store, study, without_names=True)


def test_newcomers_are_as_they_were_and_answers_about_them_count_in_the_next_plan(
    store: Store,
) -> None:
    study = studies.create_study(store, clinic(horizon=1, **RULES))
    new = Arm("p5", "Ed", "home", "Low", {"age": "70", "hours": "1"})
    studies.join(store, study, [new])
    said = everyone("Low") | {"p5": "High"}
    studies.observe(store, study, said, {"p5": {"hours": "8"}}, week=1)
    studies.advance(store, study)
    studies.leave(store, study, ["p4"])
    answer_open(store, study)
    asked = studies.answers(store, study)
    assert {"p5"} & {*asked.left_arm, *asked.right_arm}
    studies.undo_report(store, study, 1)
    by_id = {arm.id: arm for arm in studies.coming_config(store, study).arms}
    assert by_id["p5"] == new
    assert not by_id["p4"].present
    assert studies.answers(store, study).equals(asked)
    assert len(studies.own_answers(store, study, "Ann")) == len(asked)
    check_replay(store, study)
    check_bundle(store, study)
    answer_open(store, study, "Bob")
    assert "p4" not in studies.answers(store, study).query("annotator == 'Bob'").left_arm.tolist()
    studies.observe(store, study, everyone("High"), week=1)
    studies.advance(store, study)
    total = studies.load_learner(store, study).counts.total()
    assert studies.plans(store, study).answers.iloc[-1] == total
    assert studies.present_states(store, study)["p5"] == "Low"
    check_replay(store, study)
    check_bundle(store, study)


def test_the_same_report_may_be_sent_again_after_it_was_undone(sqlite_store: Store) -> None:
    study = studies.create_study(sqlite_store, clinic(horizon=1))
    studies.observe(sqlite_store, study, everyone(), again=False)
    assert studies.is_last_report(sqlite_store, study, everyone())
    studies.undo_report(sqlite_store, study, 1)
    assert not studies.is_last_report(sqlite_store, study, everyone())
    studies.observe(sqlite_store, study, everyone(), again=False)
    assert studies.last_report(sqlite_store, study).week == 1  # type: ignore[union-attr]


def test_a_report_that_cannot_be_undone_is_refused_in_words(store: Store, clock: Clock) -> None:
    study = studies.create_study(store, clinic(horizon=1))
    assert studies.last_report(store, study) is None
    with pytest.raises(StudyError, match="has no report to undo"):
        studies.undo_report(store, study, 1)
    for week in (1, 2):
        studies.observe(store, study, everyone(), week=week)
        studies.advance(store, study)
    clock.wait(60)
    last = studies.last_report(store, study)
    assert last is not None
    assert (last.week, last.ago) == (2, 60)
    before = kinds(store, study)
    with pytest.raises(
        StudyError, match="only the latest report can be undone, which is of week 2"
    ):
        studies.undo_report(store, study, 1)
    with pytest.raises(StudyError, match="week 3 has no report: the latest report is of week 2"):
        studies.undo_report(store, study, 3)
    studies.close_study(store, study)
    with pytest.raises(StudyError, match="is closed: reopen it to undo a report"):
        studies.undo_report(store, study, 2)
    assert kinds(store, study) == [*before, "closed"]


def test_a_report_is_undone_once_by_two_processes_at_once(store: Store) -> None:
    study = studies.create_study(store, clinic(horizon=1))
    for week in (1, 2):
        studies.observe(store, study, everyone(), week=week)
        studies.advance(store, study)

    def undo(_: int) -> str:
        try:
            studies.undo_report(store, study, 2)
        except StudyError as error:
            return str(error)
        return ""

    with ThreadPoolExecutor(4) as pool:
        said = sorted(pool.map(undo, range(4)))
    assert said == ["", *["week 2 has no report: the latest report is of week 1"] * 3]
    assert kinds(store, study).count("report_undone") == 1
    check_replay(store, study)


def test_a_plan_that_is_made_while_its_report_is_undone_is_dropped(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dopl_core.studies.operate import planning

    study = studies.create_study(store, clinic(horizon=1))
    studies.observe(store, study, everyone())
    make = planning._make_plan

    def slow(*given: object) -> planning.MadePlan:
        made = make(*given)  # type: ignore[arg-type]
        studies.undo_report(store, study, 1)
        return made

    monkeypatch.setattr(planning, "_make_plan", slow)
    assert studies.advance(store, study) is False
    assert studies.get_study(store, study).episode == 1
    check_replay(store, study)


@pytest.mark.parametrize(
    ("old", "new"), [('"week": 2', '"week": 1'), ('"since": ', '"since": 1'), ("2", "7")]
)
def test_a_log_that_undoes_another_report_is_refused(
    sqlite_store: Store, old: str, new: str
) -> None:
    study = studies.create_study(sqlite_store, clinic(horizon=1))
    for week in (1, 2):
        studies.observe(sqlite_store, study, everyone(), week=week)
        studies.advance(sqlite_store, study)
    studies.undo_report(sqlite_store, study, 2)
    log = read_log(sqlite_store, study)
    body = (log.events[-1].body or "").replace(old, new, 1)
    object.__setattr__(log.events[-1], "body", body)
    with pytest.raises(LogError, match="is not the latest one"):
        bundle.check(log)
