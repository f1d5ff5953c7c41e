"""The tables of a study."""

import numpy as np
import pytest
from playing import STATES, Clock, clinic, cpap, play

from dopl_core import studies
from dopl_core.studies import Ask, Store
from dopl_core.studies.operate.known_effects import known_effects


def answer(store: Store, study: str, name: str, outcome: str, response_ms: int = 800) -> Ask:
    found = studies.next_duel(store, study, name)
    assert isinstance(found, Ask)
    studies.answer(store, found.impression, outcome, response_ms=response_ms, too_fast_ms=0)
    return found


def test_the_epoch_list_has_the_arms_of_the_plan_with_reasons(store: Store) -> None:
    study = studies.create_study(store, clinic())
    helped = studies.epoch_list(store, study)
    learner = studies.load_learner(store, study)
    states = studies.present_states(store, study)
    assert states == {"p1": "Low", "p2": "High", "p3": "Moderate", "p4": "Low"}
    numbers = np.array([STATES.index(state) for state in states.values()])
    arms = [f"p{n + 1}" for n in learner.activate(numbers, 0)]
    assert sorted(one.arm for one in helped) == arms
    for one in helped:
        assert one.state == states[one.arm]
        assert one.seen == f'What help does in "{one.state}" is not known yet.'
    urgency = [(one.index, one.advantage) for one in helped]
    assert urgency == sorted(urgency, reverse=True)


def test_a_simulated_study_lists_the_first_epoch_with_missing_ratings(store: Store) -> None:
    study = studies.create_study(store, cpap())
    first = {one.arm for one in studies.epoch_list(store, study)}
    assert len(first) == 4
    shown = [answer(store, study, "Ann", "left") for _ in range(3)]
    assert {side.arm for found in shown for side in (found.left, found.right)} == first
    found = studies.next_duel(store, study, "Ann")
    assert isinstance(found, Ask)
    second = {one.arm for one in studies.epoch_list(store, study)}
    assert {found.left.arm, found.right.arm} <= second
    for _ in range(3):
        answer(store, study, "Ann", "left")
    assert {one.arm for one in studies.epoch_list(store, study)} == second


def test_reasons_in_a_simulated_study_count_moves_that_were_made(store: Store) -> None:
    study = studies.create_study(store, cpap())
    play(store, study, 30)
    learner = studies.load_learner(store, study)
    assert learner.episode > 2
    known = dict(zip(labels_of(store, study), known_effects(learner.visits), strict=True))
    for one in studies.epoch_list(store, study):
        assert one.known_effect == known[one.state]
        assert f'Patients in "{one.state}"' in one.seen or "Nobody" in one.seen


def labels_of(store: Store, study: str) -> list[str]:
    return [state.label for state in studies.get_study(store, study).config.states]


def test_answers_have_one_row_per_impression_with_times(store: Store, clock: Clock) -> None:
    study = studies.create_study(store, cpap())
    answer(store, study, "Ann", "left", 900)
    answer(store, study, "Bob", "skip", 400)
    studies.next_duel(store, study, "Bob")
    frame = studies.answers(store, study)
    assert frame.outcome.fillna("").tolist() == ["left", "skip", ""]
    assert frame.response_ms.tolist()[:2] == [900, 400]
    assert frame.shown_at.dt.tz is not None
    assert studies.answers(store, study, "Ann").annotator.tolist() == ["Ann"]


def test_an_empty_study_has_empty_tables(store: Store) -> None:
    study = studies.create_study(store, cpap())
    answers = studies.answers(store, study)
    assert answers.empty
    assert studies.measure_agreement(answers) is None
    assert studies.annotators(answers).empty
    assert len(studies.plans(store, study)) == 1
    assert len(studies.beliefs(cpap(), studies.load_learner(store, study))) == 60


def test_agreement_is_the_share_of_pairs_with_the_same_answer(store: Store) -> None:
    study = studies.create_study(store, cpap(ratings=3))
    for name, outcome in (("Ann", "left"), ("Bob", "left"), ("Cy", "right")):
        answer(store, study, name, outcome)
    answer(store, study, "Ann", "left")
    answer(store, study, "Bob", "skip")
    answers = studies.answers(store, study)
    found = studies.measure_agreement(answers)
    assert found is not None
    assert (found.duels, found.people) == (1, 3)  # a skip does not count
    assert found.same == pytest.approx(1 / 3)
    people = studies.annotators(answers).set_index("annotator")
    assert people.agreement["Ann"] == pytest.approx(1 / 2)
    assert people.agreement["Cy"] == 0
    assert people.answers.to_dict() == {"Ann": 2, "Bob": 2, "Cy": 1}
    assert people.left_share["Bob"] == 1
    assert people.skips["Bob"] == 1


def test_answers_of_a_first_sitting_count_and_agreement_ignores_excluded_annotators(
    store: Store,
) -> None:
    study = studies.create_study(store, clinic(horizon=1, sitting=6, ratings=3))
    for name, outcome in (("Ann", "left"), ("Bob", "left"), ("Cy", "right")):
        answer(store, study, name, outcome)
    answers = studies.answers(store, study)
    people = studies.annotators(answers).set_index("annotator")
    assert people.answers.tolist() == [1, 1, 1]
    assert people.agreement["Ann"] == pytest.approx(1 / 2)
    people = studies.annotators(answers, excluded=["Cy"]).set_index("annotator")
    assert people.agreement.tolist() == [1, 1, 0]  # Cy is compared with the annotators who count


def test_plans_show_engine_value_and_answers_used(store: Store) -> None:
    study = studies.create_study(store, cpap(confidence="calibrated"))
    play(store, study, 20, undo=0.0)
    frame = studies.plans(store, study)
    assert frame.plan.tolist() == list(range(1, len(frame) + 1))
    assert frame.answers.is_monotonic_increasing
    assert (frame.value >= frame.random_value - 1e-6).all()
    assert set(frame.engine) == {"lagrangian"}
    assert frame.changed[1:].between(0, 1, inclusive="right").any()  # answers change plans


def test_beliefs_and_transitions_match_the_learner(store: Store) -> None:
    config = clinic()
    study = studies.create_study(store, config)
    play(store, study, 20)
    learner = studies.load_learner(store, study)
    assert learner.preferences is not None
    assert learner.dynamics is not None
    frame = studies.beliefs(config, learner)
    assert np.array_equal(frame["mean"], learner.preferences.mean.ravel())
    assert frame.answers.sum() == 2 * learner.counts.total()
    assert frame.visits.sum() == learner.visits.sum()
    moves = studies.transitions(config, learner)
    assert len(moves) == 2 * 3 * 2 * 3  # groups, states, actions, next states
    sums = moves.groupby(["group", "state", "action"]).chance.sum()
    assert np.allclose(sums, 1)
    assert moves.visits.sum() == learner.visits.sum()


def test_who_answers_in_no_time_and_contradicts_themselves_weighs_little(
    sqlite_store: Store,
) -> None:
    store, rng = sqlite_store, np.random.default_rng(0)
    arms = [studies.Arm(f"p{n}", f"P {n}", "all", STATES[n % 3]) for n in range(12)]
    rules = {"title": "Ward", "budget": 3, "practice": False, "sitting": 60, "repeat_every": 5}
    study = studies.create_study(store, studies.from_roster(arms, STATES, **rules))
    people = {"Ann": 3000, "Bob": 2500, "Quick but honest": 400, "At random": 400}  # ms an answer
    for who, took in [*people.items()] * 18:
        found = studies.next_duel(store, study, who)
        assert isinstance(found, Ask)
        gap = 3 * (found.left.state_number - found.right.state_number)
        chance = 0.5 if who == "At random" else 1 / (1 + np.exp(-gap))
        outcome = "left" if rng.random() < chance else "right"
        studies.answer(store, found.impression, outcome, response_ms=took, too_fast_ms=0)
    studies.close_duels(store, study)
    studies.advance(store, study)
    weight = studies.sureness(store, study, studies.load_learner(store, study))
    assert weight.pop("At random") < 0.25  # .07 ± .004 on 16 seeds, at most .11
    assert min(weight.values()) > 0.85  # an honest person may be quick: 1.02 ± .01 on these seeds
