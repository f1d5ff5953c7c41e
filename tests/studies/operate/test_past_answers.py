"""Answers of before: they are an event, they count once, and bundles keep them."""

import pytest
from bundles import files, zipped
from playing import answer_open, check_replay, clinic, digest, everyone

from dopl_core import studies
from dopl_core.studies import Ask, CsvError, Store, StudyError
from dopl_core.studies.store import log_reader

RECORDS = (
    b"id,when,state,helped\np1,2026-01-05,High,0\np1,2026-01-12,Low,1\nold,1,Low,0\nold,8,Low,1\n"
)
ANSWERS = (
    b"annotator,winner,loser,when\nmodel,p1,p2,2026-01-05\nAnn,p3,p4,\nmodel,p2,p4,2026-02-01\n"
    b"model,p3,old,8\n"
)


def study_with_answers(store: Store, at_once: bool, **rules: object) -> str:
    """A clinic with past records and past answers, given at once or during its first round."""
    config = clinic(horizon=1, confidence="calibrated", **rules)
    past = studies.read_history(RECORDS, config)
    if at_once:
        answers = studies.read_answers(ANSWERS, config, past.text)
        return studies.create_study(store, config, past, answers)
    study = studies.create_study(store, config, past)
    answer_two(store, study)
    studies.add_answers(store, study, ANSWERS)
    return study


def answer_two(store: Store, study: str) -> None:
    for _ in range(2):
        found = studies.next_duel(store, study, "Zoe")
        assert isinstance(found, Ask)
        studies.answer(store, found.impression, "left", too_fast_ms=0)


@pytest.mark.parametrize("at_once", [True, False])
def test_past_answers_count_once_and_survive_export_and_import(store: Store, at_once: bool) -> None:
    study = study_with_answers(store, at_once, sitting=4)
    before = 0 if at_once else 2
    assert studies.load_learner(store, study).counts.total() == 4 + before
    check_replay(store, study)
    answer_open(store, study)
    studies.advance(store, study)
    for _ in range(2):  # a snapshot is written with each plan
        assert studies.load_learner(store, study).counts.total() >= 4 + 4
        check_replay(store, study)
        answer_open(store, study)
        studies.observe(store, study, everyone())
        studies.advance(store, study)
    assert studies.plans(store, study).answers.tolist()[0] == 4 + 4
    learner, content = digest(store, study), studies.export_bundle(store, study)
    assert files(content)["answers.csv"].splitlines() == ANSWERS.splitlines()
    assert b"model" not in files(content)["events.csv"]
    studies.delete_study(store, study)
    studies.import_bundle(store, content)
    assert digest(store, study) == learner
    check_replay(store, study)
    assert studies.export_bundle(store, study) == content


def test_the_first_plan_of_a_study_without_a_first_round_knows_past_answers(store: Store) -> None:
    study = study_with_answers(store, True, sitting=0)
    assert studies.plans(store, study).answers.tolist() == [4]
    assert studies.load_learner(store, study).counts.total() == 4
    check_replay(store, study)


@pytest.mark.parametrize("at_once", [True, False])
def test_annotators_are_numbered_in_the_order_of_the_log(store: Store, at_once: bool) -> None:
    study = study_with_answers(store, at_once, sitting=6)
    answer_two(store, study)
    with store.read() as connection:
        numbers = log_reader.annotator_numbers(connection, study)
    names = ("model", "Ann", "Zoe") if at_once else ("Zoe", "model", "Ann")
    assert numbers == {name: number for number, name in enumerate(names)}
    check_replay(store, study)


def test_an_annotator_of_past_answers_can_be_excluded_and_included(store: Store) -> None:
    study = study_with_answers(store, True, sitting=4)
    assert studies.past_annotators(store, study) == ["model", "Ann"]
    studies.exclude(store, study, "model")
    assert studies.load_learner(store, study).counts.total() == 1
    studies.close_duels(store, study)
    studies.advance(store, study)
    assert studies.plans(store, study).answers.tolist() == [1]
    studies.include(store, study, "model")
    assert check_replay(store, study).counts.total() == 4
    with pytest.raises(StudyError, match='nobody called "Eve"'):
        studies.exclude(store, study, "Eve")
    content = studies.export_bundle(store, study)
    studies.delete_study(store, study)
    studies.import_bundle(store, content)
    assert studies.export_bundle(store, study) == content


def test_a_bundle_without_names_hides_the_annotators_of_past_answers(sqlite_store: Store) -> None:
    study = study_with_answers(sqlite_store, False, sitting=4)
    content = studies.export_bundle(sqlite_store, study, without_names=True)
    members = files(content)
    members.pop("codebook.md")
    assert not any(name in text for text in members.values() for name in (b"model", b"Zoe"))
    replayed = studies.replay_bundle(content).state()
    folded = studies.load_learner(sqlite_store, study).state()
    assert {name: a.tobytes() for name, a in replayed.items()} == {
        name: a.tobytes() for name, a in folded.items()
    }


def test_past_answers_are_given_once_and_before_the_first_plan(sqlite_store: Store) -> None:
    study = study_with_answers(sqlite_store, True, sitting=4)
    with pytest.raises(StudyError, match="has past answers already"):
        studies.add_answers(sqlite_store, study, ANSWERS)
    other = studies.create_study(sqlite_store, clinic(sitting=0))
    with pytest.raises(StudyError, match="has its first plan: past answers are given before it"):
        studies.add_answers(sqlite_store, other, ANSWERS)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("Ann,p1,p9,", '"p9" is not in the roster'),
        ("Ann,,p1,", '"" is not in the roster'),
        ("Ann,p1,p1,", 'winner and loser are both "p1"'),
        (",p1,p2,", "the annotator has no name"),
        ("Ann,p1,p2,soon", 'when is "soon": a date'),
        ("Ann,p1,old,", '"old" has no state, neither then nor in the roster'),
        ("Ann,p1,old,2026-01-05", '"old" has no state'),
        ("Ann,p1", "2 cells, but 4 columns"),
    ],
)
def test_a_wrong_answer_is_refused_by_its_number(row: str, reason: str) -> None:
    config = clinic()
    records = studies.read_history(RECORDS, config).text
    with pytest.raises(CsvError, match=f"answers.csv row 6: {reason}"):
        studies.read_answers(ANSWERS + row.encode() + b"\n", config, records)


def test_a_file_without_answers_or_without_a_column_is_refused() -> None:
    with pytest.raises(CsvError, match=r"answers.csv has no rows"):
        studies.read_answers(b"annotator,winner,loser,when\n", clinic())
    with pytest.raises(CsvError, match=r'answers.csv row 1: column "loser" is missing'):
        studies.read_answers(b"annotator,winner,when\nAnn,p1,\n", clinic())


def test_a_bundle_with_changed_past_answers_is_refused(sqlite_store: Store) -> None:
    study = study_with_answers(sqlite_store, True, sitting=4)
    members = files(studies.export_bundle(sqlite_store, study))
    whole = members["answers.csv"]
    for changed, reason in (
        (whole.replace(b"p3,p4", b"p3,p9"), '"p9" is not in the roster'),
        (whole.replace(b"p3,p4", b"p4,p3"), "not the log that was exported"),
        (whole.rstrip().rpartition(b"\n")[0] + b"\n", "not the 4 answers"),
        (None, "answers.csv is missing"),
    ):
        content = dict(members)
        content.pop("answers.csv")
        content |= {} if changed is None else {"answers.csv": changed}
        with pytest.raises(CsvError, match=reason):
            studies.replay_bundle(zipped(content))
