"""Whether answers are enough: on Insights, by `dopl enough`, and in the export."""

import csv
import io
import math
import zipfile
from collections.abc import Iterator
from dataclasses import replace

import pytest
from playing import clinic

from dopl_core import cli, studies
from dopl_core.learning.bradley_terry.reliability import Measure
from dopl_core.studies import Store, reliability, reliability_text
from dopl_core.studies.exchange.reliability_csv import Reliability, of_impressions
from dopl_core.studies.model.log_values import Impression

BOTH = {"Ann": Measure(1.0), "Bob": Measure(1.1)}
GOOD = Reliability(200, 20, 30, Measure(0.9, 0.85, 0.94), Measure(0.8, 0.7, 0.9), BOTH)
ENOUGH = reliability.Enough(200, GOOD, 8, {50: 0.2, 200: 1.4})


def shown(count: int, outcome: str = "left", annotator: str = "Ann") -> Iterator[Impression]:
    for n in range(count):
        sides = (n % 3, 0, n % 3 + 1, 1)
        yield Impression((1, 0, n), "policy", sides, annotator, 1, outcome, n, n, None)


def test_only_answers_with_a_winner_of_people_who_count_are_judged() -> None:
    every = [*shown(4), *shown(3, "tie"), *shown(2, "skip"), *shown(5, annotator="Bob")]
    judged = reliability.judgements(of_impressions(every), ["Bob"])
    assert (judged.names, judged.people, judged.annotators.tolist()) == (["Ann"], 4, [0] * 4)
    assert (judged.winners.tolist(), judged.losers.tolist()) == ([0, 2, 4, 0], [1, 3, 5, 1])
    right = reliability.judgements(of_impressions(shown(1, "right")))
    assert (right.winners.tolist(), right.losers.tolist()) == ([1], [0])


def test_nothing_is_said_from_few_answers() -> None:
    assert reliability.measure(reliability.judgements(of_impressions(shown(29)))) is None
    assert reliability.measure(reliability.judgements(of_impressions(shown(30)))) is not None
    few = reliability.Enough(29, None, 0, {})
    assert not few.is_enough
    assert reliability_text.advice(few).endswith(": at least 1 more needed")
    assert reliability_text.finding(few).data.empty


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "You can stop asking: the answers are reliable (0.90)"),
        ({"separation": Measure(0.82, 0.7, 0.9)}, "but that is not sure yet"),
        ({"separation": Measure(0.5, 0.3, 0.6)}, "not reliable yet (0.50)"),
        ({"answers": 60}, "there are only 6 of 10 comparisons a person"),
        ({"halves": Measure(0.7)}, "two halves of the annotators do not agree enough yet"),
        ({"halves": Measure(math.nan)}, "two halves of the annotators do not agree enough yet"),
        ({"halves": Measure(math.nan), "infit": {"Ann": Measure(1.0)}}, "Let a second person"),
    ],
)
def test_the_advice_needs_reliability_certainty_agreement_and_ten_comparisons_a_person(
    changes: dict[str, object], words: str
) -> None:
    enough = replace(ENOUGH, found=replace(GOOD, **changes))
    assert words in reliability_text.advice(enough)
    assert enough.is_enough == (not changes)


def test_nobody_is_told_to_go_on_where_more_answers_bring_nothing() -> None:
    stuck = replace(GOOD, answers=2000, separation=Measure(0.5, 0.4, 0.6))
    enough = replace(ENOUGH, found=stuck, changed={50: 0.1, 200: 0.2})
    neither = "200 more would neither make them so nor change the list"
    assert reliability_text.advice(enough) == f"The answers are not reliable (0.50); {neither}"
    assert not enough.is_enough
    assert "Go on" in reliability_text.advice(replace(enough, changed={}))


def test_annotators_who_do_not_fit_are_named_with_their_infit() -> None:
    fits = "Every annotator's answers fit those of the others (infit 1.00 to 1.10)."
    assert fits in reliability_text.finding(ENOUGH).note
    alike = reliability_text.fit_text(replace(GOOD, infit=dict.fromkeys("AB", Measure(1.0))))
    assert alike == ["Every annotator's answers fit those of the others (infit 1.00)."]
    bad = BOTH | {"Cem": Measure(1.5, 1.2, 1.8), "Dan": Measure(1.4, 0.9, 1.9)}
    assert reliability_text.fit_text(replace(GOOD, infit=bad)) == [
        "Cem's answers do not fit those of the others: infit 1.50 (95 % interval 1.20 to 1.80); "
        "1 is expected."
    ]
    assert reliability_text.fit_text(replace(GOOD, infit={"Ann": Measure(1.5, 1.2, 1.8)})) == []


def test_all_measures_are_told_with_their_intervals() -> None:
    infit = {"Ann": Measure(0.9, 0.8, 1.0), "Cem": Measure(1.5, 1.2, 1.8), "Eva": Measure(math.nan)}
    told = reliability_text.measures(replace(GOOD, infit=infit))
    assert told.values.tolist() == [
        ["scale separation", 0.9, 0.85, 0.94],
        ["split halves", 0.8, 0.7, 0.9],
        ["infit: Cem", 1.5, 1.2, 1.8],
        ["infit: Ann", 0.9, 0.8, 1.0],
    ]
    alone = replace(GOOD, halves=Measure(math.nan))
    assert "split halves" not in reliability_text.measures(alone).measure.tolist()


def test_where_people_move_part_of_more_answers_goes_to_new_items() -> None:
    one_state = replace(GOOD, items=20, separation=Measure(0.5))
    assert one_state.with_more(200) == pytest.approx(2 / 3)
    assert replace(one_state, items=30).with_more(200) == pytest.approx(2**0.5 / (1 + 2**0.5))


def test_the_text_says_what_more_answers_would_bring_and_change() -> None:
    text = reliability_text.finding(ENOUGH)
    assert "reliability is 0.90 (95 % interval 0.85 to 0.94)" in text.note
    assert "about 0.91 with 50 more answers and 0.93 with 200 more answers" in text.note
    changes = "almost none with 50 more answers and about 1 with 200 more answers would change."
    assert f"Of the 8 places on the list, {changes}" in text.note
    none = reliability_text.places_text(replace(ENOUGH, changed={50: 0.0, 200: 0.4}))
    assert none == ["200 more answers would change none of the 8 places on the list."]
    assert text.data.answers.tolist() == [200, 250, 400]
    assert "about 20 comparisons a person; at least 10 are usual." in text.note


def test_nothing_is_expected_of_more_answers_where_there_is_only_chance() -> None:
    chance = replace(GOOD, separation=Measure(-0.2, -0.7, 0.2))
    text = reliability_text.finding(replace(ENOUGH, found=chance))
    assert text.data.answers.tolist() == [200]
    assert "Expect" not in text.note
    assert "So far the answers tell people apart no better than chance." in text.note


def test_the_export_and_the_command_say_the_same(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store = sqlite_store
    study = studies.create_study(store, clinic(horizon=1, confidence="calibrated", answers=40))
    studies.rehearse(store, study, annotators=2, answers=60)
    enough = reliability.measure_enough(store, study)
    assert enough.found is not None
    content = studies.export_bundle(store, study)
    with zipfile.ZipFile(io.BytesIO(content)) as bundle:
        text = bundle.read("reliability.csv").decode()
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [row["measure"] for row in rows][:2] == ["scale_separation", "split_half"]
    assert float(rows[0]["value"]) == pytest.approx(enough.found.separation.value, abs=1e-4)
    assert {row["annotator"] for row in rows[2:]} == {"rehearsal 1", "rehearsal 2"}
    monkeypatch.setattr(studies, "open_store", lambda: store)
    with pytest.raises(SystemExit) as ended:
        cli.main(["enough", study])
    assert ended.value.code == (0 if enough.is_enough else 1)
    assert reliability_text.advice(enough) in capsys.readouterr().out


def test_the_exit_code_of_the_command_tells_errors_from_not_yet(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(studies, "open_store", lambda: sqlite_store)
    study = studies.create_study(sqlite_store, clinic())
    for name, code in ((study, 1), ("no-such", 2)):
        with pytest.raises(SystemExit) as ended:
            cli.main(["enough", name])
        assert ended.value.code == code
    assert capsys.readouterr().err == 'dopl: there is no study "no-such"\n'

    monkeypatch.setattr(reliability, "measure_enough", lambda *_: ENOUGH)
    with pytest.raises(SystemExit) as ended:
        cli.main(["enough", study])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("You can stop asking")

    def broken(*_: object) -> None:
        raise RuntimeError("something unforeseen")

    monkeypatch.setattr(reliability, "measure_enough", broken)
    with pytest.raises(SystemExit) as ended:
        cli.main(["enough", study])
    assert ended.value.code == 2
    assert "something unforeseen" in capsys.readouterr().err
