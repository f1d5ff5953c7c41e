"""Reasons: the owner asks some annotators why, they may say so, and nothing else changes."""

import json

import pytest
from bundles import edited, files, zipped
from playing import check_replay, clinic, cpap, digest

from dopl_core import studies
from dopl_core.studies import Ask, CsvError, Receipt, Store, StudyError
from dopl_core.studies.exchange import bundle_csv

TAGS = {"reason_tags": "trend, state now, trend"}


def say(
    store: Store, study: str, outcome: str = "left", name: str = "Ann", ms: int | None = None
) -> tuple[int, Receipt]:
    """One answer: its impression, and what became of it."""
    found = studies.next_duel(store, study, name)
    assert isinstance(found, Ask)
    done = studies.answer(store, found.impression, outcome, response_ms=ms, too_fast_ms=0)
    assert done.saved
    return found.impression, done


def reasons(store: Store, study: str) -> list[tuple[str, str, str]]:
    """Of all answers for which a reason was asked: who, the tags, the text."""
    found = studies.answers(store, study)
    asked = found[found.reason_asked == 1]
    return list(asked[["annotator", "reason_tags", "reason"]].itertuples(index=False, name=None))


def test_a_reason_reaches_the_owner_and_the_bundle_and_changes_nothing_else(store: Store) -> None:
    study = studies.create_study(store, clinic(sitting=6, reason_every=1, **TAGS))
    assert studies.get_study(store, study).config.tags == ("trend", "state now")
    first, receipt = say(store, study)
    assert receipt.asks_reason
    before = digest(store, study)
    studies.give_reason(store, first, "Ann", ["trend"], "better nights")
    studies.give_reason(store, first, "Ann", ["state now", "trend"], "  =sleeps,\n more ")
    for name, tags, text, words in (
        ("Bob", ["trend"], "", "somebody else"),
        ("Ann", ["mood"], "", 'reason "mood" is not one of trend, state now'),
        ("Ann", [], " \n", "Please choose a reason, or write one"),
        ("Ann", [], "x" * 501, "at most 500"),
    ):
        with pytest.raises(StudyError, match=words):
            studies.give_reason(store, first, name, tags, text)
    assert digest(store, study) == before
    say(store, study)  # asked, and nothing given
    given = [("Ann", "trend, state now", "=sleeps, more"), ("Ann", "", "")]
    assert reasons(store, study) == given
    check_replay(store, study)
    content = studies.export_bundle(store, study)
    studies.delete_study(store, study)
    studies.import_bundle(store, content)
    assert studies.export_bundle(store, study) == content
    assert reasons(store, study) == given


def test_a_reason_ends_with_its_answer(sqlite_store: Store) -> None:
    study = studies.create_study(sqlite_store, clinic(sitting=6, reason_every=1, **TAGS))
    first, _ = say(sqlite_store, study)
    studies.give_reason(sqlite_store, first, "Ann", ["trend"])
    assert studies.change(sqlite_store, first, "Ann", "right")
    assert reasons(sqlite_store, study) == []
    with pytest.raises(StudyError, match="no reason was asked"):
        studies.give_reason(sqlite_store, first, "Ann", ["trend"])
    second, _ = say(sqlite_store, study)
    studies.give_reason(sqlite_store, second, "Ann", ["trend"])
    studies.undo(sqlite_store, study, "Ann")
    assert reasons(sqlite_store, study) == []
    check_replay(sqlite_store, study)


def test_one_in_n_answers_is_asked_for_a_reason_and_never_practice_or_skips(
    sqlite_store: Store,
) -> None:
    rules = {"budget": 10, "horizon": 5, "ratings": 2, "ties_allowed": True, "practice": True}
    study = studies.create_study(sqlite_store, cpap(reason_every=3, **rules))
    kinds: list[tuple[bool, bool]] = []
    for name in ("Ann", "Bob"):
        for number in range(40):
            found = studies.next_duel(sqlite_store, study, name)
            assert isinstance(found, Ask)
            outcome = ("left", "skip", "tie")[number % 3]
            done = studies.answer(sqlite_store, found.impression, outcome, too_fast_ms=0)
            kinds.append((done.asks_reason, outcome != "skip" and found.purpose != "practice"))
    assert all(may for asked, may in kinds if asked)
    could = [asked for asked, may in kinds if may]
    assert len(could) > 40
    assert 0.15 < sum(could) / len(could) < 0.55  # one in three
    gaps = "".join("x" if asked else "." for asked in could).split("x")
    assert len(set(map(len, gaps))) > 2  # nobody can count up to it
    assert len(reasons(sqlite_store, study)) == sum(could)


def test_an_unsure_answer_is_equal_or_takes_twice_as_long_as_usual(store: Store) -> None:
    rules = {"budget": 10, "horizon": 2, "ties_allowed": True, "reason_unsure": True}
    study = studies.create_study(store, cpap(**rules))
    asked = [say(store, study, ms=ms)[1].asks_reason for ms in (9_000, 1_000, 1_000, 1_100, 1_000)]
    assert asked == [False] * 5  # what is usual is not known yet
    slow = [say(store, study, ms=ms)[1].asks_reason for ms in (1_900, 2_300, 1_000)]
    assert slow == [False, True, False]
    assert not say(store, study, "skip", ms=9_000)[1].asks_reason
    assert say(store, study, "tie", ms=900)[1].asks_reason
    assert not say(store, study, name="Bob", ms=9_000)[1].asks_reason


def test_nobody_is_asked_unless_the_owner_says_so(sqlite_store: Store) -> None:
    study = studies.create_study(sqlite_store, clinic(sitting=6, ties_allowed=True, **TAGS))
    first, receipt = say(sqlite_store, study, "tie")
    assert not receipt.asks_reason
    with pytest.raises(StudyError, match="no reason was asked"):
        studies.give_reason(sqlite_store, first, "Ann", ["trend"])
    assert reasons(sqlite_store, study) == []


def test_words_about_an_erased_person_go_and_tags_stay(sqlite_store: Store) -> None:
    study = studies.create_study(sqlite_store, clinic(sitting=6, reason_every=1, **TAGS))
    pairs = []
    for number in range(4):
        first, _ = say(sqlite_store, study)
        studies.give_reason(sqlite_store, first, "Ann", ["trend"], f"word {number}")
        row = studies.answers(sqlite_store, study).iloc[-1]
        pairs.append({row.left_arm, row.right_arm})
    studies.erase_person(sqlite_store, study, "p1")
    expected = ["" if "p1" in pair else f"word {n}" for n, pair in enumerate(pairs)]
    assert set(expected) > {""}
    assert reasons(sqlite_store, study) == [("Ann", "trend", text) for text in expected]
    check_replay(sqlite_store, study)


def test_a_bundle_with_another_reason_than_its_log_is_refused(sqlite_store: Store) -> None:
    study = studies.create_study(sqlite_store, clinic(sitting=6, reason_every=1, **TAGS))
    first, _ = say(sqlite_store, study)
    studies.give_reason(sqlite_store, first, "Ann", ["trend"], "why")
    content = studies.export_bundle(sqlite_store, study)
    for column, value in (("reason", "other"), ("reason_tags", "trend, x"), ("reason_asked", "")):

        def edit(rows: list[dict[str, str]], cell: str = column, new: str = value) -> None:
            rows[0][cell] = new

        with pytest.raises(CsvError, match=r"duels.csv row 2: .*reason"):
            studies.replay_bundle(edited(content, "duels.csv", edit))


def test_a_bundle_of_version_5_has_no_reasons_and_opens(sqlite_store: Store) -> None:
    study = studies.create_study(sqlite_store, clinic(sitting=6))
    say(sqlite_store, study)
    members = files(studies.export_bundle(sqlite_store, study))
    about = json.loads(members["study.json"]) | {"schema": 5}
    short = b"\r\n".join(line.removesuffix(b",,,") for line in members["duels.csv"].split(b"\r\n"))
    short = short.replace(b",reason_asked,reason_tags,reason", b"")
    assert short.splitlines()[0].decode().split(",") == list(bundle_csv.DUELS_5)
    old = zipped(members | {"duels.csv": short, "study.json": json.dumps(about).encode()})
    studies.delete_study(sqlite_store, study)
    assert studies.import_bundle(sqlite_store, old) == study
    assert files(studies.export_bundle(sqlite_store, study))["duels.csv"] == members["duels.csv"]


@pytest.mark.parametrize("tags", ["a,b,c,d,e,f,g,h,i", f"short, {'x' * 61}"])
def test_too_many_and_too_long_reasons_to_choose_from_are_refused(tags: str) -> None:
    with pytest.raises(StudyError, match="reason_tags: at most 8 reasons of at most 60 characters"):
        clinic(reason_tags=tags)
