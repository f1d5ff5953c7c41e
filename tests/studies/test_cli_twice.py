"""Commands that are run twice, at once, or stopped half way: nothing counts twice."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from bundles import picture, zipped
from playing import check_replay, clinic

from dopl_core import cli, studies
from dopl_core.studies import Store, StudyError

WEEK = "id,state,helped\np1,Moderate,1\np2,High,0\np3,Low,0\np4,Low,1\n"
SAME = "id,helped,state\np4,yes,Low\np2,0,High\np1,1,Moderate\np3,0,Low\n"
OTHER = WEEK.replace("p4,Low", "p4,High")

# `dopl` that is killed when it makes a list.
KILLED = """
import os, sys
from dopl_core import cli
from dopl_core.studies.operate import planning
planning.begin = lambda *_, **__: os.kill(os.getpid(), 9)
cli.main(sys.argv[1:])
"""


@pytest.fixture
def store(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """On the real clock, which commands run by."""
    monkeypatch.setenv("DOPL_DATABASE_URL", url)
    store = studies.open_store(url)
    monkeypatch.setattr(studies, "open_store", lambda: store)
    yield store
    store.close()


@pytest.fixture
def study(store: Store) -> str:
    return studies.create_study(store, clinic(horizon=1))


@pytest.fixture
def week(tmp_path: Path) -> Callable[[str], str]:
    """Writes a report into a file; the path."""

    def write(content: str) -> str:
        (tmp_path / "week.csv").write_text(content)
        return str(tmp_path / "week.csv")

    return write


def weeks(store: Store, study: str) -> list[bool]:
    """For each list whether it is reported."""
    return [one.reported for one in studies.read_lists(store, study)]


def test_a_report_counts_once_however_often_its_file_is_sent(
    store: Store, study: str, week: Callable[[str], str]
) -> None:
    cli.main(["report", study, week(WEEK)])
    for content in (WEEK, SAME):
        with pytest.raises(SystemExit, match=r"the report of week 1 again.*add --week 2"):
            cli.main(["report", study, week(content)])
    assert weeks(store, study) == [True, False]
    cli.main(["report", study, week(WEEK), "--week", "2"])
    cli.main(["report", study, week(OTHER)])
    assert weeks(store, study) == [True, True, True, False]
    check_replay(store, study)


def test_a_report_of_another_week_is_refused(
    store: Store, study: str, week: Callable[[str], str]
) -> None:
    cli.main(["report", study, week(WEEK), "--week", "1"])
    for number, reason in (("1", "week 1 is reported already"), ("3", "week 3 is to come")):
        with pytest.raises(SystemExit, match=reason):
            cli.main(["report", study, week(OTHER), "--week", number])
    assert weeks(store, study) == [True, False]


def test_an_imported_study_knows_its_last_report(
    store: Store, study: str, week: Callable[[str], str]
) -> None:
    cli.main(["report", study, week(WEEK)])
    content = studies.export_bundle(store, study)
    with pytest.raises(StudyError, match="is here already"):
        studies.import_bundle(store, content)
    studies.delete_study(store, study)
    assert studies.import_bundle(store, content) == study
    assert studies.export_bundle(store, study) == content
    with pytest.raises(SystemExit, match="the report of week 1 again"):
        cli.main(["report", study, week(WEEK)])


def stop_before_the_list(study: str, file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object) -> bool:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(studies, "advance", stopped)
        with pytest.raises(SystemExit):
            cli.main(["report", study, file])


def test_a_run_that_was_stopped_before_the_list_is_continued_by_the_next(
    store: Store,
    study: str,
    week: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    stop_before_the_list(study, week(WEEK), monkeypatch)
    assert weeks(store, study) == [True]
    cli.main(["report", study, week(WEEK)])
    said = capsys.readouterr().out
    assert f"{study}: list of week 2 made, 2 to help" in said
    assert f"{study}: week 1 was reported with this file already" in said
    assert weeks(store, study) == [True, False]

    stop_before_the_list(study, week(OTHER), monkeypatch)
    with pytest.raises(SystemExit, match="the list of week 3 is new: to report week 3, add --week"):
        cli.main(["report", study, week(WEEK)])  # nobody can have been helped from that list
    assert weeks(store, study) == [True, True, False]

    stop_before_the_list(study, week(WEEK), monkeypatch)
    cli.main(["report", study, week(OTHER), "--week", "4"])
    assert weeks(store, study) == [True] * 4 + [False]
    check_replay(store, study)


def test_of_three_reports_at_once_exactly_one_counts(store: Store, study: str) -> None:
    def send(_: int) -> bool:
        try:
            studies.observe(store, study, {"p1": "Low"}, week=1, again=False)
        except StudyError:
            return False
        return True

    with ThreadPoolExecutor(3) as threads:
        assert sorted(threads.map(send, range(3))) == [False, False, True]
    assert weeks(store, study) == [True]


@pytest.mark.long
def test_of_three_processes_that_report_exactly_one_counts(
    store: Store, study: str, week: Callable[[str], str]
) -> None:
    command = [sys.executable, "-m", "dopl_core.cli", "report", study, week(WEEK)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    started = [subprocess.Popen(command, **pipes) for _ in range(3)]
    said = [process.communicate()[0] for process in started]
    assert sum("week 1 reported:" in one for one in said) == 1
    for process, one in zip(started, said, strict=True):
        assert "week 1" in one
        # Whoever comes before the list is made makes it.
        succeeds = "week 1 reported:" in one or "was reported with this file already" in one
        assert process.returncode == (not succeeds)
    assert weeks(store, study) == [True, False]


@pytest.mark.long
def test_a_report_killed_while_it_makes_the_list_is_continued(
    store: Store, study: str, week: Callable[[str], str]
) -> None:
    command = [sys.executable, "-c", KILLED, "report", study, week(WEEK)]
    assert subprocess.run(command, env=os.environ, check=False).returncode == -9
    assert weeks(store, study) == [True]
    cli.main(["report", study, week(WEEK)])  # waits until the killed one's lease is over
    assert weeks(store, study) == [True, False]
    check_replay(store, study)


# --- people


def here(store: Store, study: str) -> list[str]:
    return [arm.id for arm in studies.coming_config(store, study).arms if arm.present]


def test_people_who_joined_and_left_do_so_once(
    store: Store, study: str, week: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    roster = week("id,state\np1,Low\np2,High\np3,Low\np5,High\n")
    for said in ("1 joined, 1 left", "0 joined, 0 left"):
        cli.main(["people", study, roster, "--left"])
        assert said in capsys.readouterr().out
    assert here(store, study) == ["p1", "p2", "p3", "p5"]
    studies.remember_columns(store, study, "roster", studies.Columns("Bed", "Now"))
    cli.main(["people", study, week("Bed,Now\np6,High\n")])
    assert here(store, study)[-1] == "p6"


def test_more_than_a_third_leave_only_when_that_is_confirmed(
    store: Store, study: str, week: Callable[[str], str]
) -> None:
    roster, before = week("id,state\np1,Low\np5,High\np6,Low\n"), studies.last_event(store, study)
    with pytest.raises(SystemExit, match=r"3 of 4 people are missing.*add --yes; nothing was"):
        cli.main(["people", study, roster, "--left"])
    assert studies.last_event(store, study) == before
    cli.main(["people", study, roster, "--left", "--yes"])
    assert here(store, study) == ["p1", "p5", "p6"]
    check_replay(store, study)


def test_nobody_joins_if_those_who_should_leave_cannot(
    store: Store, study: str, week: Callable[[str], str]
) -> None:
    before = studies.last_event(store, study)
    studies.change_settings(store, study, budget=4)
    with pytest.raises(SystemExit, match="budget"):
        cli.main(["people", study, week("id,state\np1,Low\np9,Low\n"), "--left", "--yes"])
    assert studies.last_event(store, study) == before + 1
    assert here(store, study) == ["p1", "p2", "p3", "p4"]


def test_of_two_who_add_the_same_people_one_does(store: Store, study: str) -> None:
    roster = [*studies.coming_config(store, study).arms, studies.Arm("p5", "Eva", "ward", "Low")]
    with ThreadPoolExecutor(2) as threads:
        done = threads.map(lambda _: studies.update_people(store, study, roster), range(2))
        assert sorted(done) == [(0, 0), (1, 0)]
    assert here(store, study) == ["p1", "p2", "p3", "p4", "p5"]


# --- what can be given once


def test_past_records_answers_corrections_settings_and_bundles_count_once(
    store: Store, week: Callable[[str], str], tmp_path: Path
) -> None:
    study = studies.create_study(store, clinic(horizon=1, sitting=2))
    history = tmp_path / "history.csv"
    history.write_text("id,when,state,helped\np1,2026-01-05,Low,0\np1,2026-01-12,High,0\n")
    answers = tmp_path / "answers.csv"
    answers.write_text("annotator,winner,loser,when\nAnn,p1,p2,\n")
    once(store, study, ["history", study, str(history)], "has past records already")
    once(store, study, ["answers", study, str(answers)], "has past answers already")
    once(store, study, ["settings", study, "budget=3"], "already say this")
    studies.close_duels(store, study)
    cli.main(["list", study])
    cli.main(["report", study, week(WEEK)])
    correction = tmp_path / "corrected.csv"
    correction.write_text("id,state\np4,High\n")
    once(store, study, ["correct", study, str(correction), "--week", "1"], "already says this")
    bundle = tmp_path / "study.zip"
    cli.main(["export", study, "--out", str(bundle)])
    studies.delete_study(store, study)
    once(store, study, ["import", str(bundle)], "is here already")
    check_replay(store, study)


def once(store: Store, study: str, command: list[str], reason: str) -> None:
    """The command works, and does nothing more when it is run again."""
    cli.main(command)
    before = studies.last_event(store, study)
    with pytest.raises(SystemExit, match=reason):
        cli.main(command)
    assert studies.last_event(store, study) == before


def test_the_same_photos_again_change_nothing(
    store: Store, study: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    zips = [tmp_path / "photos.zip", tmp_path / "more.zip"]
    zips[0].write_bytes(zipped({"p1.png": picture("PNG")}))
    zips[1].write_bytes(zipped({"p1.png": picture("PNG"), "p2.png": picture("PNG", (9, 9))}))
    events = studies.last_event(store, study)
    for file, said, more in (
        (0, "1 photos kept", 1),
        (0, "0 photos kept, 1 were", 0),
        (1, "1 ", 1),
    ):
        cli.main(["photos", study, str(zips[file])])
        events += more
        assert said in capsys.readouterr().out
        assert studies.last_event(store, study) == events
    for more in (1, 0):
        studies.remove_photos(store, study)
        events += more
        assert studies.last_event(store, study) == events
    check_replay(store, study)


def test_a_wrong_file_changes_nothing(store: Store, study: str, week: Callable[[str], str]) -> None:
    before = studies.last_event(store, study)
    for content in ("", "name,mood\nAda,fine\n", "id,state,helped\np1,Lwo,1\n", "\0\1"):
        for command in ("report", "people", "history", "answers", "correct", "photos"):
            more = ["--week", "0"] if command == "correct" else []
            with pytest.raises(SystemExit, match=r"dopl: "):
                cli.main([command, study, week(content), *more])
    assert studies.last_event(store, study) == before


def test_a_report_is_undone_by_its_week_and_once(
    store: Store, study: str, week: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    before = studies.read_lists(store, study)
    with pytest.raises(SystemExit, match="has no report to undo"):
        cli.main(["report", study, "--undo", "--week", "1"])
    cli.main(["report", study, week(WEEK)])
    for wrong in (["--undo"], [week(WEEK), "--undo", "--week", "1"]):
        with pytest.raises(SystemExit, match="write --undo --week 1, without a file"):
            cli.main(["report", study, *wrong])
    with pytest.raises(SystemExit, match="which file has the report"):
        cli.main(["report", study])
    capsys.readouterr()
    cli.main(["report", study, "--undo", "--week", "1"])
    assert "the report of week 1 is undone, and its list is open again" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="has no report to undo"):
        cli.main(["report", study, "--undo", "--week", "1"])
    assert studies.read_lists(store, study) == before
    cli.main(["report", study, week(WEEK)])  # the same file counts again
    assert weeks(store, study) == [True, False]
