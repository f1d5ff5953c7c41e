"""Every kind of event: its fields are checked, and it has one effect."""

import json

import pytest
from playing import clinic

from dopl_core.studies.model.errors import LogError
from dopl_core.studies.model.event_kinds import KINDS, apply, body_of, in_plan_order, read_body
from dopl_core.studies.model.log_values import Event, Shown
from dopl_core.studies.model.progress import Progress

DUEL = Shown((1, 0, 0), "policy", (0, 0, 1, 2))


def test_a_plan_counts_what_it_knows_of_and_not_what_came_while_it_was_made() -> None:
    log = [
        Event(1, "made", body='{"config": ""}'),
        Event(2, "answered", "Ann", 0, "left"),
        Event(3, "answered", "Ann", 1, "left"),
        Event(4, "planned", body='{"plan": 1, "engine": "cbc", "heard": 2}'),
        Event(5, "answered", "Ann", 2, "left"),
        Event(6, "planned", body='{"plan": 2, "engine": "cbc"}'),
    ]
    assert [event.at for _, event in in_plan_order(log)] == [1, 2, 4, 3, 5, 6]


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_body_that_is_not_an_object_is_refused(kind: str) -> None:
    for body in ("[]", "1", "{", "nul", '"text"', "NaN"):
        with pytest.raises(LogError, match=kind):
            read_body(kind, body)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("planned", '{"plan": "one", "engine": "cbc"}'),
        ("planned", '{"engine": "cbc"}'),
        ("observed", '{"episode": 1, "epoch": 0, "source": "rumour"}'),
        ("corrected", '{"week": 1, "states": {"p1": "Low"}, "helped": {}}'),
        ("arms_left", '{"arms": [1]}'),
        ("first_round_drawn", '{"first_duel": -1}'),
        ("flagged", '{"comment": "torn"}'),
        ("reasoned", '{"tags": "age", "text": ""}'),
        ("listed", '{"week": 1, "list": [{"id": "p1"}]}'),
    ],
)
def test_a_body_with_wrong_fields_is_refused(kind: str, body: str) -> None:
    with pytest.raises(LogError, match=f"{kind}: "):
        body_of(Event(1, kind, body=body))


def test_an_answer_counts_until_it_is_taken_back() -> None:
    progress = Progress(clinic(), [], [DUEL])
    answer = Event(1, "answered", "Ann", 0, "left")
    apply(progress, answer)
    progress.count()
    assert progress.learner.counts.total() == 1
    apply(progress, Event(2, "undone", "Ann", 0, "left"))
    progress.count()
    assert progress.learner.counts.total() == 0


def test_answers_of_an_excluded_annotator_count_again_when_they_are_included() -> None:
    progress = Progress(clinic(), [], [DUEL])
    totals = []
    for event in (
        Event(1, "answered", "Ann", 0, "left"),
        Event(2, "answered", "Bob", 0, "right"),
        Event(3, "person_excluded", "Ann"),
        Event(4, "answered", "Ann", 0, "left"),
        Event(5, "person_included", "Ann"),
    ):
        apply(progress, event)
        progress.count()
        totals.append(progress.learner.counts.total())
    assert totals == [1, 2, 1, 1, 3]


def test_past_answers_count_in_the_state_of_their_time_for_their_annotator() -> None:
    progress = Progress(clinic(), [], [DUEL])
    records = "id,when,state,helped\np1,2026-01-05,High,0\np1,2026-01-12,Moderate,0\n"
    rows = ("Bob,p1,p2,2026-01-06", "Ann,p2,p1,2026-01-18T23:00:00Z", "Bob,p3,p1,2026-01-19")
    answers = "\n".join(("annotator,winner,loser,when", *rows))
    for kind, body in (
        ("history_added", {"records": records}),
        ("answers_added", {"answers": answers, "count": 3}),
    ):
        apply(progress, Event(1, kind, body=json.dumps(body)))
    progress.count()
    assert progress.annotators == {"Bob": 0, "Ann": 1}
    winner, loser, who, times = progress.learner.counts.table()
    # p1 was High in the first week, Moderate in the second, and is Low by the roster
    assert list(
        zip(winner.tolist(), loser.tolist(), who.tolist(), times.tolist(), strict=True)
    ) == [
        (2, 5, 0, 1),
        (5, 1, 1, 1),
        (7, 0, 0, 1),
    ]


def test_kinds_without_an_effect_leave_the_learner_as_it_is() -> None:
    progress = Progress(clinic(), [], [DUEL])
    before = progress.learner.state()
    for kind, one in KINDS.items():
        if one.effect is None:
            apply(progress, Event(1, kind, "Ann"))
    progress.count()
    after = progress.learner.state()
    assert {name: array.tobytes() for name, array in after.items()} == {
        name: array.tobytes() for name, array in before.items()
    }
