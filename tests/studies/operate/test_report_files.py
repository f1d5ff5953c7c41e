"""Reports by file: newcomers, files of another week, empty cells, and news for cards."""

from pathlib import Path

import pytest
from playing import check_replay, clinic

from dopl_core import cli, studies
from dopl_core.studies import Arm, CsvError, Store, StudyError


@pytest.fixture
def study(store: Store) -> str:
    return studies.create_study(store, clinic(horizon=1))


def everybody(store: Store, study: str) -> dict[str, str | None]:
    return dict.fromkeys(studies.present_states(store, study), "Moderate")


def test_somebody_who_joined_since_the_list_is_reported_at_once(store: Store, study: str) -> None:
    new = Arm("p5", "Eva", "ward", "Low", {"age": "70"})
    studies.join(store, study, [new, Arm("p6", "Fay", "home", "High")])
    config = studies.report_config(store, study)
    content = b"id,state,age\np1,High,61\np5,High,71\n"
    read = studies.read_report(content, config)
    studies.observe(store, study, everybody(store, study) | read.states, read.columns)
    assert studies.advance(store, study)
    states = studies.present_states(store, study)
    assert (states["p1"], states["p5"], states["p6"]) == ("High", "High", "High")
    assert studies.load_learner(store, study).visits.sum() == 4  # none of them a newcomer's
    arms = {arm.id: arm for arm in studies.get_study(store, study).config.arms}
    assert arms["p5"].columns == {"age": "71"}
    check_replay(store, study)
    bundle = studies.export_bundle(store, study)
    studies.delete_study(store, study)
    studies.import_bundle(store, bundle)
    assert studies.export_bundle(store, study) == bundle


def test_a_newcomer_cannot_have_been_helped_and_needs_a_known_state(
    store: Store, study: str
) -> None:
    studies.join(store, study, [Arm("p5", "Eva", "ward", "Low")])
    before = studies.last_event(store, study)
    for states, helped, reason in (
        ({"p5": "Lwo"}, None, 'arm "p5": .*"Lwo"'),
        ({"p5": "High"}, ["p5"], '"p5" joined after the list was made'),
        ({"p7": "High"}, None, '"p7" is not one of'),
    ):
        with pytest.raises(StudyError, match=reason):
            studies.observe(store, study, states, helped=helped)
    assert studies.last_event(store, study) == before


def test_a_person_who_leaves_with_the_next_list_is_still_reported(store: Store, study: str) -> None:
    studies.leave(store, study, ["p2"])
    config = studies.report_config(store, study)
    assert studies.read_report(b"id,state\np2,Low\n", config).states == {"p2": "Low"}


def test_the_list_of_another_week_is_no_report_of_this_one() -> None:
    listed = b"week,id,state,helped\n2,p1,Low,1\n2,p2,High,0\n"
    assert studies.read_report(listed, clinic(), week=2).states == {"p1": "Low", "p2": "High"}
    with pytest.raises(CsvError, match=r"row 2: this is about week 2, but week 3 is reported"):
        studies.read_report(listed, clinic(), week=3)
    assert studies.read_report(listed, clinic()).helped == ["p1"]  # nobody said which week


def test_a_column_week_on_cards_is_no_week_of_the_study() -> None:
    arms = [Arm(f"p{n}", f"p{n}", "all", "Low", {"week": "30"}) for n in range(4)]
    config = studies.from_roster(arms, ("Low", "High"), title="Mothers", budget=2)
    found = studies.read_report(b"id,state,week\np1,High,31\n", config, week=2)
    assert found.columns == {"p1": {"week": "31"}}


def test_empty_cells_of_helped_are_asked_about() -> None:
    report = studies.read_report(b"id,state,helped\np1,Low,1\np2,Low,\np3,Low,0\n", clinic())
    assert (report.helped, report.blank) == (["p1"], ["p2"])
    assert report.who_was_helped("no") == ["p1"]
    assert report.who_was_helped("yes") == ["p1", "p2"]
    with pytest.raises(CsvError, match=r"helped is empty in 1 rows \(p2\): write 1 or 0, or add"):
        report.who_was_helped(None)


def test_the_command_asks_about_empty_cells_and_names_what_is_new_on_cards(
    sqlite_store: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(studies, "open_store", lambda: sqlite_store)
    study = studies.create_study(sqlite_store, clinic(horizon=1))
    file = tmp_path / "week.csv"
    file.write_text("id,state,helped,hours\np1,High,1,5 6\np2,High,,7 7\n")
    with pytest.raises(SystemExit, match="helped is empty in 1 rows"):
        cli.main(["report", study, str(file)])
    cli.main(["report", study, str(file), "--empty-helped", "no"])
    assert "new on cards: hours" in capsys.readouterr().out
    helped = {i for i, one in studies.read_week(sqlite_store, study, 1).items() if one.helped}
    assert helped == {"p1"}
    file.write_text("id,state,helped\np1,Moderate,\n")
    cli.main(["correct", study, str(file), "--week", "1"])
    known = studies.read_week(sqlite_store, study, 1)["p1"]
    assert (known.state, known.helped) == ("Moderate", True)  # an empty cell corrects nothing
