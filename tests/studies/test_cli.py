"""The commands about studies offer every setting, and read it as what it is."""

import argparse
import csv
import re
import shutil
from pathlib import Path

import pytest

from dopl_core import cli, studies

ROOT = Path(__file__).resolve().parents[2]
ROSTER = "id,state,age\np1,Low,50\np2,High,60\np3,Low,70\np4,High,80\n"


def help_of(command: str) -> str:
    [commands] = [a for a in cli.parser()._actions if isinstance(a, argparse._SubParsersAction)]
    return " ".join(commands.choices[command].format_help().split())


@pytest.fixture
def new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Make a study by `dopl new`, with more options; its configuration and its id."""
    monkeypatch.setenv("DOPL_DATABASE_URL", f"sqlite:///{tmp_path}/studies.db")
    (tmp_path / "roster.csv").write_text(ROSTER)

    def run(*options: str) -> tuple[studies.StudyConfig, str]:
        needed = ("--states", "Low,High", "--budget", "2", "--title", "Ward")
        cli.main(["new", str(tmp_path / "roster.csv"), *needed, *options])
        study = capsys.readouterr().out.strip()
        store = studies.open_store()
        found = studies.coming_config(store, study)
        store.close()
        return found, study

    return run


def test_dopl_settings_explains_every_setting() -> None:
    text = help_of("settings")
    for name, setting in studies.SETTINGS.items():
        if setting.about.changes == "never":
            assert name in text.partition("that never change: ")[2]
        else:
            assert f"{name}: {setting.about.label} {setting.needed}" in text


def test_dopl_new_has_an_option_for_every_setting_of_an_observed_world() -> None:
    text = help_of("new")
    for setting in studies.offered_in("observed"):
        assert f"--{setting.name.replace('_', '-')} " in text


def test_a_new_study_takes_its_options_and_offered_values(new) -> None:
    config, _ = new("--sitting", "5", "--show-id", "yes", "--quota", "7")
    assert (config.sitting, config.show_id, config.quota) == (5, True, 7)
    assert (config.answers, config.repeat_every, config.noun) == (30, 10, "person")
    assert config.hide_state
    assert new("--hide-state", "off")[0].hide_state is False


def test_the_kind_of_help_is_chosen_when_a_study_is_made_and_later(new) -> None:
    assert new()[0].help_kind == "other"
    config, study = new("--help-kind", "call")
    assert config.help_kind == "call"
    cli.main(["settings", study, "help_kind=money"])
    store = studies.open_store()
    assert studies.coming_config(store, study).help_kind == "money"
    store.close()
    assert "--help-kind message|call|visit|treatment|money|other What kind" in help_of("new")
    assert "help_kind: What kind of help is it? one of message, call, visit" in help_of("settings")


def test_places_to_find_out_are_a_number_or_the_default(new) -> None:
    assert new()[0].find_out is None
    config, study = new("--find-out", "1")
    assert config.find_out == 1
    for typed, places in (("0", 0), ("default", None)):
        cli.main(["settings", study, f"find_out={typed}"])
        store = studies.open_store()
        assert studies.coming_config(store, study).find_out == places
        store.close()
    with pytest.raises(SystemExit, match="find_out is 2: it must be less than the budget, which"):
        cli.main(["settings", study, "find_out=2"])
    assert "empty: by default) (default: the learner chooses)" in help_of("new")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--help-kind", "letter"), 'help_kind is "letter": it must be one of call, message'),
        (("--quota", "many"), 'quota is "many": a whole number from 0 to 1000000 needed'),
        (("--show-id", "maybe"), 'show_id is "maybe": on or off needed'),
        (("--design", "ring"), 'design is "ring": it must be one of'),
    ],
)
def test_an_option_that_does_not_fit_is_refused(new, options: tuple[str, str], reason: str) -> None:
    with pytest.raises(SystemExit, match=reason):
        new(*options)


def test_dopl_answers_adds_past_answers_or_says_which_row_is_wrong(new, tmp_path, capsys) -> None:
    _, study = new("--sitting", "5")
    file = tmp_path / "before.csv"
    file.write_text("annotator,winner,loser,when\nmodel,p1,p2,\nAnn,p3,p9,\n")
    with pytest.raises(SystemExit, match=r'before.csv row 3: "p9" is not in the roster'):
        cli.main(["answers", study, str(file)])
    file.write_text("annotator,winner,loser,when\nmodel,p1,p2,\nAnn,p3,p4,2026-01-05\n")
    cli.main(["answers", study, str(file)])
    assert "2 answers of 2 annotators found" in capsys.readouterr().out
    store = studies.open_store()
    assert studies.load_learner(store, study).counts.total() == 2
    store.close()


def test_a_switch_is_turned_on_and_off_by_command(new) -> None:
    _, study = new("--sitting", "0", "--hide-state", "off")
    for typed, value in (("on", True), ("no", False), ("1", True), ("FALSE", False)):
        cli.main(["settings", study, f"hide_state={typed}"])
        store = studies.open_store()
        assert studies.coming_config(store, study).hide_state is value
        store.close()
    for wrong, reason in (("hide_state=o", "on or off needed"), ("hide_state", "NAME=VALUE")):
        with pytest.raises(SystemExit, match=reason):
            cli.main(["settings", study, wrong])


def test_changed_places_of_a_trial_are_a_deviation_that_is_named(new, capsys) -> None:
    config, study = new("--sitting", "0", "--by-lot", "1")
    cli.main(["settings", study, "by_lot=0"])
    assert capsys.readouterr().err == ""
    promised = studies.Protocol(
        **{"question": "Do calls help?", "people": 4, "budget": 2, "by_lot": 1, "effect": 0.2},
        **{"weeks": 8, "looks": (8,)},
    )
    store = studies.open_store()
    trial = studies.create_study(store, config, protocol=promised)
    store.close()
    cli.main(["settings", trial, "by_lot=0"])
    assert "Until then, keep 2 places, 1 of them chosen at random" in capsys.readouterr().err
    cli.main(["settings", trial, "show_id=on"])
    assert capsys.readouterr().err == ""


def test_a_column_that_nobody_has_is_named(new, capsys, tmp_path) -> None:
    _, study = new("--sitting", "0")
    needed = ("--states", "Low,High", "--budget", "2", "--title", "Ward")
    cli.main(["new", str(tmp_path / "roster.csv"), *needed, "--hidden-columns", "Age"])
    warned = 'hidden_columns: nobody has a column "Age" yet, only group, age\n'
    assert capsys.readouterr().err == warned
    cli.main(["settings", study, "hidden_columns=Age", "list_columns=age"])
    assert capsys.readouterr().err == warned


def test_a_study_with_a_list_waits_for_its_owner_and_not_for_answers(new, capsys) -> None:
    new("--sitting", "0")
    cli.main(["studies"])
    assert "waits for owner" in capsys.readouterr().out


@pytest.fixture
def ward(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sqlite_template: str) -> str:
    """A study whose roster, title and word for a week hold codes for terminals."""
    monkeypatch.setenv("DOPL_DATABASE_URL", f"sqlite:///{shutil.copy(sqlite_template, tmp_path)}")
    evil = "\x1b[2J\u202e\nForged: "
    arms = [studies.Arm(f"p{n}", f"{evil}{n}", state=("Low", "High")[n % 2]) for n in range(4)]
    rules = {"budget": 2, "title": f"{evil}T", "epoch_word": f"{evil}week", "practice": False}
    config = studies.from_roster(arms, ["Low", "High"], **rules)
    store = studies.open_store()
    study = studies.create_study(store, config)
    store.close()
    return study


def test_no_command_sends_codes_from_a_roster_to_the_terminal(ward, tmp_path, capsys) -> None:
    (tmp_path / "week.csv").write_text("id,state,helped\np0,High,1\np1,Low,0\np2,Low,1\np3,Low,0\n")
    for words in (["list", ward], ["studies"], ["report", ward, str(tmp_path / "week.csv")]):
        cli.main(words)
        said = capsys.readouterr().out
        assert "Forged: " in said
        assert not any(mark in said for mark in ("\x1b", "\u202e", "\nForged"))


def test_exported_files_can_be_read_by_their_owner_only(ward, tmp_path) -> None:
    bundle, listed = tmp_path / "some.zip", tmp_path / "list.csv"
    listed.write_text("a longer file of an earlier week, open to all\n" * 100)
    listed.chmod(0o644)
    cli.main(["export", ward, "--out", str(bundle)])
    cli.main(["list", ward, "--out", str(listed)])
    assert {file.stat().st_mode & 0o777 for file in (bundle, listed)} == {0o600}
    assert "earlier week" not in listed.read_text()
    assert "\x1b[2J" in listed.read_text()  # a file keeps what the roster says


def test_the_commands_print_by_one_function_only() -> None:
    files = (ROOT / "dopl_core" / "studies" / name for name in ("cli.py", "weekly_cli.py"))
    source = "".join(file.read_text() for file in files)
    assert re.findall(r"\bprint\(.*", source) == ["print(one_line(words), **options)"]


def test_dopl_list_changes_the_open_list_or_says_why_not(new, capsys) -> None:
    _, study = new("--sitting", "0")
    cli.main(["list", study])
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    listed = [row["id"] for row in rows if row["reserve"] == "0"]
    assert len(listed) == 2
    cli.main(["list", study, "--remove", listed[0], "--because", "on holiday"])
    after = {row["id"]: row for row in csv.DictReader(capsys.readouterr().out.splitlines())}
    assert (after[listed[0]]["changed"], after[listed[0]]["because"]) == ("off", "on holiday")
    assert sum(row["reserve"] == "0" and row["changed"] != "off" for row in after.values()) == 2
    for options, reason in (
        (["--remove", listed[0], "--because", "again"], "was taken off it already"),
        (["--add", "nobody", "--because", "x"], '"nobody" is not one of'),
        (["--remove", listed[1]], "Please write why"),
        (["--remove", listed[1], "--because", "x", "--week", "2"], "week 2 is not open"),
    ):
        with pytest.raises(SystemExit, match=reason):
            cli.main(["list", study, *options])
