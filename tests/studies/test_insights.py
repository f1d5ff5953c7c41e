"""The tables that owners look at."""

import numpy as np
import pytest
from playing import STATES, Clock, clinic, cpap, play

from dopl_core.studies import service
from dopl_core.studies.service import Ask, Store


def answer(store: Store, study: str, name: str, outcome: str, response_ms: int = 800) -> Ask:
    found = service.next_duel(store, study, name)
    assert isinstance(found, Ask)
    service.answer(store, found.impression, outcome, response_ms=response_ms, too_fast_ms=0)
    return found


def test_the_list_names_the_arms_that_the_plan_helps_and_why(store: Store) -> None:
    study = service.create_study(store, clinic())
    helped = service.epoch_list(store, study)
    learner = service.load_learner(store, study)
    states = service.present_states(store, study)
    assert states == {"p1": "Low", "p2": "High", "p3": "Moderate", "p4": "Low"}
    numbers = np.array([STATES.index(state) for state in states.values()])
    arms = [f"p{n + 1}" for n in learner.activate(numbers, 0)]
    assert sorted(one.arm for one in helped) == arms
    for one in helped:
        assert one.state == states[one.arm]
        assert sum(one.if_helped.values()) == pytest.approx(1)
        assert list(one.if_not) == list(STATES)
        better = STATES[min(STATES.index(one.state) + 1, 2) :]
        assert one.better_if_helped == pytest.approx(sum(one.if_helped[s] for s in better))
    urgency = [(one.index, one.advantage) for one in helped]
    assert urgency == sorted(urgency, reverse=True)


def test_a_simulated_study_lists_the_first_epoch_that_wants_ratings(store: Store) -> None:
    study = service.create_study(store, cpap())
    first = {one.arm for one in service.epoch_list(store, study)}
    assert len(first) == 4
    shown = [answer(store, study, "Ann", "left") for _ in range(3)]
    assert {side.arm for found in shown for side in (found.left, found.right)} == first
    found = service.next_duel(store, study, "Ann")
    assert isinstance(found, Ask)
    second = {one.arm for one in service.epoch_list(store, study)}
    assert {found.left.arm, found.right.arm} <= second
    for _ in range(3):
        answer(store, study, "Ann", "left")
    assert {one.arm for one in service.epoch_list(store, study)} == second


def test_answers_are_one_row_an_impression_with_times(store: Store, clock: Clock) -> None:
    study = service.create_study(store, cpap())
    answer(store, study, "Ann", "left", 900)
    answer(store, study, "Bob", "skip", 400)
    service.next_duel(store, study, "Bob")
    frame = service.answers(store, study)
    assert frame.outcome.fillna("").tolist() == ["left", "skip", ""]
    assert frame.response_ms.tolist()[:2] == [900, 400]
    assert frame.shown_at.dt.tz is not None
    assert service.answers(store, study, "Ann").annotator.tolist() == ["Ann"]


def test_an_empty_study_has_empty_tables(store: Store) -> None:
    study = service.create_study(store, cpap())
    answers = service.answers(store, study)
    assert answers.empty
    assert service.agreement(answers) is None
    assert service.annotators(answers).empty
    assert len(service.plans(store, study)) == 1
    assert len(service.beliefs(cpap(), service.load_learner(store, study))) == 60


def test_agreement_is_the_share_of_pairs_who_say_the_same(store: Store) -> None:
    study = service.create_study(store, cpap(ratings=3))
    for name, outcome in (("Ann", "left"), ("Bob", "left"), ("Cy", "right")):
        answer(store, study, name, outcome)
    answer(store, study, "Ann", "left")
    answer(store, study, "Bob", "skip")
    answers = service.answers(store, study)
    found = service.agreement(answers)
    assert found is not None
    assert (found.duels, found.people) == (1, 3)  # a skip says nothing
    assert found.same == pytest.approx(1 / 3)
    people = service.annotators(answers).set_index("annotator")
    assert people.agreement["Ann"] == pytest.approx(1 / 2)
    assert people.agreement["Cy"] == 0
    assert people.answers.to_dict() == {"Ann": 2, "Bob": 2, "Cy": 1}
    assert people.left_share["Bob"] == 1
    assert people.skips["Bob"] == 1


def test_answers_of_a_first_sitting_count_and_others_are_measured_without_those_left_out(
    store: Store,
) -> None:
    study = service.create_study(store, clinic(horizon=1, sitting=6, ratings=3))
    for name, outcome in (("Ann", "left"), ("Bob", "left"), ("Cy", "right")):
        answer(store, study, name, outcome)
    answers = service.answers(store, study)
    people = service.annotators(answers).set_index("annotator")
    assert people.answers.tolist() == [1, 1, 1]
    assert people.agreement["Ann"] == pytest.approx(1 / 2)
    people = service.annotators(answers, excluded=["Cy"]).set_index("annotator")
    assert people.agreement.tolist() == [1, 1, 0]  # Cy is compared with those who count


def test_plans_show_engine_worth_and_answers_used(store: Store) -> None:
    study = service.create_study(store, cpap(confidence="calibrated"))
    play(store, study, 20, undo=0.0)
    frame = service.plans(store, study)
    assert frame.plan.tolist() == list(range(1, len(frame) + 1))
    assert frame.answers.is_monotonic_increasing
    assert (frame.value >= frame.random_value - 1e-6).all()
    assert set(frame.engine) == {"lagrangian"}
    assert frame.changed.between(0, 1).all()


def test_beliefs_and_transitions_are_the_learners(store: Store) -> None:
    config = clinic()
    study = service.create_study(store, config)
    play(store, study, 20)
    learner = service.load_learner(store, study)
    assert learner.preferences is not None
    assert learner.dynamics is not None
    frame = service.beliefs(config, learner)
    assert np.array_equal(frame["mean"], learner.preferences.mean.ravel())
    assert frame.answers.sum() == 2 * learner.counts.total()
    assert frame.visits.sum() == learner.visits.sum()
    moves = service.transitions(config, learner)
    assert len(moves) == 2 * 3 * 2 * 3  # groups, states, actions, next states
    sums = moves.groupby(["group", "state", "action"]).chance.sum()
    assert np.allclose(sums, 1)
    assert moves.visits.sum() == learner.visits.sum()
