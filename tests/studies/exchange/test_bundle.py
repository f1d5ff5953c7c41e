"""Bundles: the same bytes again, the same learner, refused whole when anything is wrong."""

import csv
import io
import json
from collections.abc import Callable

import pytest
from bundles import Edit, edited, files, zipped
from playing import STATES, Clock, clinic, cpap, digest, play, played

from dopl_core import studies
from dopl_core.studies import Ask, CsvError, Store, StudyError
from dopl_core.studies.exchange import bundle
from dopl_core.studies.model import safe_csv
from dopl_core.studies.model.event_kinds import KINDS
from dopl_core.studies.store import blobs

NASTY = (
    '=HYPERLINK("http://x")',
    "'quoted",
    "a,b;c",
    'say "hi"',
    "two\nlines\r\n",
    "+1",
    "-",
    "@x",
)
NASTY += ("\tindented", "ünï ☃ 患者", "=1+1", "'=1", "''", "|cmd", "％", " spaces ")


def nasty(**rules: object) -> studies.StudyConfig:
    """A clinic whose every text would hurt a spreadsheet or a parser."""
    arms = [
        studies.Arm(name, f"{name} label", f"{name} group", NASTY[n % 3], {name: name})
        for n, name in enumerate(NASTY)
    ]
    small = {"title": "=cmd|'/c calc'!A1", "budget": 5, "horizon": 2, "confidence": "paper"}
    small |= {"engine": "lagrangian", "ties_allowed": True, "question": 'Wer, "wer"?\nWer?'}
    return studies.from_roster(arms, NASTY[:3], **(small | rules))


@pytest.mark.parametrize("make", [cpap, clinic, nasty])
def test_export_import_export_gives_the_same_bytes_and_the_same_learner(
    store: Store, clock: Clock, make: Callable[..., studies.StudyConfig]
) -> None:
    config = make(ratings=2, ties_allowed=True, practice=True, repeat_every=4, lease_seconds=9)
    study = played(store, clock, config)
    exported = studies.export_bundle(store, study)
    assert studies.export_bundle(store, study) == exported
    learner = digest(store, study)
    before = studies.get_study(store, study)
    studies.delete_study(store, study)
    assert studies.import_bundle(store, exported) == study
    assert studies.export_bundle(store, study) == exported
    assert digest(store, study) == learner
    assert studies.get_study(store, study) == before
    replayed = studies.replay_bundle(exported)
    assert blobs.digest(replayed.state()) == learner


def test_an_imported_study_goes_on_as_the_one_it_came_from(store: Store, clock: Clock) -> None:
    study = played(store, clock, cpap(ratings=2, lease_seconds=9))
    exported = studies.export_bundle(store, study)
    now = clock.now
    play(store, study, 60, people=("Ann", "Eve"), clock=clock)
    went_on = files(studies.export_bundle(store, study))
    studies.delete_study(store, study)
    studies.import_bundle(store, exported)
    clock.now = now
    play(store, study, 60, people=("Ann", "Eve"), clock=clock)
    again = files(studies.export_bundle(store, study))
    for name in ("duels.csv", "transitions.csv", "study.json"):
        assert again[name] == went_on[name], name
    assert studies.replay_study(store, study).episode == studies.get_study(store, study).episode


def test_closed_duels_and_reports_survive(store: Store, clock: Clock) -> None:
    study = studies.create_study(store, clinic(ratings=3))
    play(store, study, 3, clock=clock)
    studies.close_duels(store, study)
    report = dict.fromkeys(("p1", "p2", "p3", "p4"), "Low")
    studies.observe(store, study, report, {"p1": {"hours": "=9"}})
    exported = studies.export_bundle(store, study)
    studies.delete_study(store, study)
    studies.import_bundle(store, exported)
    assert studies.export_bundle(store, study) == exported
    found = [studies.next_duel(store, study, name) for name in ("Ann", "Bob", "Eve")]
    asked = [one for one in found if isinstance(one, Ask)]
    assert asked
    sides = [side for one in asked for side in (one.left, one.right)]
    assert {side.columns["hours"] for side in sides if side.arm == "p1"} <= {"=9"}


def test_a_new_kind_of_event_comes_with_a_new_version_of_bundles() -> None:
    """Earlier programs do not know the kind, and say by the version why they read no further."""
    assert (bundle.VERSION, len(KINDS)) == (7, 35)


def test_the_files_have_the_designs_columns(sqlite_store: Store, clock: Clock) -> None:
    study = played(sqlite_store, clock, clinic())
    members = files(studies.export_bundle(sqlite_store, study))
    assert list(members) == [
        "study.json",
        "duels.csv",
        "queue.csv",
        "transitions.csv",
        "plans.csv",
        "events.csv",
        "salts.csv",
        "arrays.npz",
        "lists.csv",
        "reliability.csv",
        "codebook.md",
    ]
    assert members["duels.csv"].splitlines()[0].decode() == (
        "study,session,annotator,episode,epoch,duel,left_arm,left_state,right_arm,right_state,"
        "purpose,outcome,winner_arm,loser_arm,shown_at,answered_at,response_ms,confidence,plan,"
        "trip_ms,narrow,participant,reason_asked,reason_tags,reason"
    )
    assert members["transitions.csv"].splitlines()[0].decode() == (
        "study,episode,epoch,arm,state,activated,next_state,source,listed,by_lot,"
        "corrected_at,reported"
    )
    rows = list(csv.DictReader(io.StringIO(members["duels.csv"].decode(), newline="")))
    left = next(row for row in rows if row["outcome"] == "left")
    assert (left["winner_arm"], left["loser_arm"]) == (left["left_arm"], left["right_arm"])
    assert left["left_arm"] in ("p1", "p2", "p3", "p4")
    assert left["answered_at"].startswith("2026-")
    assert left["answered_at"].endswith("Z")
    assert {row["outcome"] for row in rows} >= {"left", "right", "skip", "undone"}
    assert json.loads(members["study.json"])["schema"] == bundle.VERSION


def test_no_cell_would_run_as_a_formula(sqlite_store: Store, clock: Clock) -> None:
    study = played(sqlite_store, clock, nasty())
    members = files(studies.export_bundle(sqlite_store, study))
    seen = set()
    for name, content in members.items():
        if not name.endswith(".csv"):
            continue
        for row in csv.reader(io.StringIO(content.decode("utf-8-sig"), newline="")):
            for cell in row:
                assert not cell.startswith(tuple("=+-@\t\r|%")), cell
                seen.add(cell)
    assert '\'=HYPERLINK("http://x")' in seen
    assert "'=Bob()" in seen


@pytest.mark.parametrize("text", [*NASTY, "", "plain", "'" * 5, "5", "-5", "\r", "\n=1"])
def test_quoted_text_comes_back(text: str) -> None:
    assert safe_csv.unquote(safe_csv.quote(text)) == text
    content = safe_csv.write(["a", "b"], [[text, "x"]])
    _, rows = safe_csv.read(content, "t.csv")
    assert [safe_csv.unquote(row["a"]) for _, row in rows] == [text]


def test_a_study_that_is_here_already_is_not_imported_over(store: Store, clock: Clock) -> None:
    study = played(store, clock, cpap(), 15)
    exported = studies.export_bundle(store, study)
    play(store, study, 5)
    before = studies.export_bundle(store, study)
    with pytest.raises(StudyError, match="is here already, so nothing was imported"):
        studies.import_bundle(store, exported)
    assert studies.export_bundle(store, study) == before


def test_another_version_of_a_deleted_study_comes_with_its_own_changes(store: Store) -> None:
    study = studies.create_study(store, clinic(horizon=1))
    first = studies.export_bundle(store, study)
    versions = {}
    for question in ("Who sleeps better?", "Who is better off?"):
        studies.change_settings(store, study, question=question)
        versions[question] = studies.export_bundle(store, study)
        studies.delete_study(store, study)
        studies.import_bundle(store, first)
    for question, version in versions.items():
        studies.delete_study(store, study)
        studies.import_bundle(store, version)
        assert studies.coming_config(store, study).question == question


def test_other_processes_see_the_changes_of_another_version_too(store: Store) -> None:
    study = studies.create_study(store, clinic(horizon=1))
    first = studies.export_bundle(store, study)
    other = Store(store.engine)  # as another process has it: what it has parsed is its own
    for question in ("Who sleeps better?", "Who is better off?"):
        studies.change_settings(store, study, question=question)
        assert studies.coming_config(other, study).question == question
        studies.delete_study(store, study)
        studies.import_bundle(store, first)


def cell(row: int, column: str, text: str) -> Edit:
    return lambda rows: rows[row].__setitem__(column, text)


def another_state(rows: list[dict[str, str]]) -> None:
    rows[5]["state"] = next(state for state in STATES if state != rows[5]["state"])


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A clinic's bundle to spoil."""
    clock = Clock()
    store = studies.open_store(f"sqlite:///{tmp_path_factory.mktemp('b')}/b.db", clock=clock)
    study = played(store, clock, clinic(ratings=2))
    return studies.export_bundle(store, study)


@pytest.mark.parametrize(
    ("name", "edit", "message"),
    [
        ("duels.csv", cell(0, "left_arm", "p9"), 'duels.csv row 2: arm id "p9" is not one of p1'),
        ("duels.csv", cell(4, "outcome", "up"), 'duels.csv row 6: outcome "up" is not one of'),
        ("duels.csv", cell(0, "purpose", "fun"), 'duels.csv row 2: purpose "fun"'),
        ("duels.csv", cell(1, "left_state", "Hihg"), 'row 3: state "Hihg" is not one of Low'),
        ("duels.csv", cell(0, "shown_at", "noon"), "duels.csv row 2: Invalid isoformat"),
        ("duels.csv", cell(0, "shown_at", "2026-01-01"), "duels.csv row 2: .*UTC needed"),
        ("duels.csv", cell(0, "response_ms", "-3"), 'row 2: response_ms is "-3"'),
        ("duels.csv", cell(0, "study", "other"), 'row 2: study is "other"'),
        ("duels.csv", cell(0, "annotator", "Zoe"), 'row 2: annotator "Zoe" is not in study.json'),
        ("duels.csv", cell(0, "epoch", "7"), "row 2: the epoch is not in transitions.csv"),
        ("transitions.csv", cell(6, "arm", "p1"), 'transitions.csv row 8: arm is "p1", not "p3"'),
        ("transitions.csv", cell(0, "state", "Up"), 'row 2: state "Up" is not one of'),
        ("transitions.csv", cell(0, "activated", "2"), 'row 2: activated "2"'),
        ("transitions.csv", another_state, "transitions.csv row 7: state is"),
        ("transitions.csv", lambda rows: rows.pop(), "the epoch has 3 of 4 arms"),
        ("plans.csv", cell(1, "plan", "5"), 'plans.csv row 3: plan is "5", not "2"'),
        ("plans.csv", cell(0, "value", "much"), "plans.csv row 2: could not convert"),
        (
            "plans.csv",
            lambda rows: rows.pop(),
            r"transitions.csv row \d+: there is no plan 7 in plans.csv",
        ),
        ("plans.csv", cell(-1, "digest", "0"), "arrays.npz: not the arrays of the last plan"),
    ],
)
def test_a_spoilt_cell_is_refused_with_file_row_and_reason(
    sqlite_store: Store, exported: bytes, name: str, edit: Edit, message: str
) -> None:
    with pytest.raises(CsvError, match=message):
        studies.import_bundle(sqlite_store, edited(exported, name, edit))
    assert studies.list_studies(sqlite_store) == []


def test_answers_that_do_not_add_up_are_refused(sqlite_store: Store, exported: bytes) -> None:
    def rated(rows: list[dict[str, str]]) -> dict[str, str]:
        return next(row for row in rows if row["outcome"] == "left" and row["episode"] == "1")

    for edit, message in (
        (lambda rows: rows.append(dict(rated(rows))), "shown to the same person before"),
        (lambda rows: rows.append(rated(rows) | {"annotator": "Eve"}), '"Eve" is not in study'),
        (lambda rows: rows.remove(rated(rows)), r"impression \d+ is not in duels.csv"),
    ):
        with pytest.raises(CsvError, match=message):
            studies.import_bundle(sqlite_store, edited(exported, "duels.csv", edit))
    with pytest.raises(CsvError, match=r"events.csv row \d+: the impression of another person"):
        studies.import_bundle(
            sqlite_store,
            edited(
                exported,
                "events.csv",
                lambda rows: next(r for r in rows if r["kind"] == "answered").update(
                    annotator="Zoe"
                ),
            ),
        )
    with pytest.raises(CsvError, match=r"plans.csv row 3: made with 99 answers"):
        studies.import_bundle(sqlite_store, edited(exported, "plans.csv", cell(1, "answers", "99")))
    members = files(exported)
    about = json.loads(members["study.json"])
    about["annotators"].append(about["annotators"][0] | {"name": "Eve"})
    members["study.json"] = json.dumps(about).encode()
    with pytest.raises(CsvError, match="the duel has more than 2 ratings"):
        studies.import_bundle(
            sqlite_store,
            edited(
                zipped(members),
                "duels.csv",
                lambda rows: rows.append(rated(rows) | {"annotator": "Eve"}),
            ),
        )
    about["asked"] += 1
    members["study.json"] = json.dumps(about).encode()
    with pytest.raises(StudyError, match="ratings are missing by its count"):
        studies.import_bundle(sqlite_store, zipped(members))
    assert studies.list_studies(sqlite_store) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": 99}, "made by a newer version of dopl"),
        ({"schema": None}, '"schema", the version of the bundle, is missing'),
        ({"study": "../../etc"}, 'study "../../etc" is not an id'),
        ({"status": "odd"}, 'status is "odd": it must be one of'),
        ({"config": {}}, "study.json"),
        ({"config": {"arms": [], "states": []}}, "study.json"),
        ({"annotators": [{}]}, 'annotators: number 1: key "joined_at" is missing'),
        ({"asked": 0, "given": 5}, "5 answers given of 0 asked"),
        ({"made_at": "never"}, "study.json: Invalid isoformat"),
    ],
)
def test_a_spoilt_study_json_is_refused(
    sqlite_store: Store, exported: bytes, change: dict[str, object], message: str
) -> None:
    members = files(exported)
    about = json.loads(members["study.json"]) | change
    members["study.json"] = json.dumps(about).encode()
    with pytest.raises(ValueError, match=message):
        studies.import_bundle(sqlite_store, zipped(members))
    assert studies.list_studies(sqlite_store) == []
