"""A study's course: made, observed, closed."""

import pytest
from playing import Clock, answer_open, clinic, cpap, everyone, play

from dopl_core import studies
from dopl_core.learning.bandit import actions
from dopl_core.studies import Ask, Store, StudyError, Waiting
from dopl_core.studies.collect import duels
from dopl_core.studies.operate import planning
from dopl_core.studies.store import blobs, log_reader
from dopl_core.studies.store.study_reader import read_study


def test_a_simulated_study_queues_its_whole_episode_at_once(store: Store) -> None:
    study = studies.create_study(store, cpap(horizon=3))
    found = studies.get_study(store, study)
    assert (found.asked, found.given, found.episode, found.epoch) == (9, 0, 1, 3)
    learner = studies.load_learner(store, study)
    assert learner.visits.sum() == 3 * 20
    people = [studies.next_duel(store, study, f"person {n}") for n in range(9)]
    assert all(isinstance(one, Ask) for one in people)


def test_every_epoch_of_a_study_is_what_the_learner_alone_would_do(store: Store) -> None:
    """The service adds nothing to the learner: a simulated loop gives the same."""
    from dopl_core.studies.model.factories import learner_of, world_of

    config = cpap(ties_allowed=True)
    study = studies.create_study(store, config)
    play(store, study, 60, undo=0.0)
    shown = studies.answers(store, study).set_index(["episode", "epoch", "duel"])
    with store.read() as connection:
        numbers = log_reader.annotator_numbers(connection, study)
    learner, world = learner_of(config), world_of(config)
    for k in range(1, studies.get_study(store, study).episode + 1):
        learner.replan()
        world.begin(k, config.horizon)
        for h in range(config.horizon):
            states = world.states
            arms = learner.activate(states, h)
            for n, duel in enumerate(learner.duels(states, arms, h)):
                if (k, h, n) not in shown.index:
                    continue
                row = shown.loc[k, h, n]
                assert (row.left_arm, row.right_arm) == (str(duel[0] + 1), str(duel[2] + 1))
                credit = {"left": 1.0, "right": 0.0, "tie": 0.5}.get(row.outcome)
                if credit is not None:
                    learner.count_duels([duel], [credit], 1.0, numbers[row.annotator])
            learner.count_moves(states, actions(arms, config.n_arms), world.step(arms))
    kept = studies.load_learner(store, study)
    assert blobs.digest(kept.state()) == blobs.digest(learner.state())


def test_an_observed_study_waits_for_its_owner_after_each_epoch(store: Store) -> None:
    study = studies.create_study(store, clinic())
    answer_open(store, study)
    waiting = studies.next_duel(store, study, "Ann")
    assert isinstance(waiting, Waiting)
    assert (waiting.reason, waiting.plan_due) == ("owner", False)
    assert not studies.advance(store, study)
    assert not studies.observe(store, study, everyone())
    answer_open(store, study)
    assert studies.observe(store, study, everyone("Low"))  # two epochs: now a plan is due
    assert studies.get_study(store, study).waits_for == "plan"
    assert studies.advance(store, study)
    assert set(studies.present_states(store, study).values()) == {"Low"}
    assert studies.load_learner(store, study).visits.sum() == 8


def test_states_may_come_before_the_answers_which_stay_welcome(store: Store) -> None:
    study = studies.create_study(store, clinic())
    early = studies.next_duel(store, study, "Ann")
    assert isinstance(early, Ask)
    studies.observe(store, study, everyone())
    assert studies.observe(store, study, everyone("Moderate"))  # the owner never waits for answers
    assert studies.get_study(store, study).plan_due
    answer_open(store, study, "Bob")
    assert studies.advance(store, study)
    late = studies.answer(store, early.impression, "left", too_fast_ms=0)
    assert late.saved  # last week's question is still worth an answer: it counts in the next plan
    assert studies.load_learner(store, study).counts.total() == 2
    studies.observe(store, study, everyone())
    studies.observe(store, study, everyone())
    studies.advance(store, study)
    assert studies.plans(store, study).answers.tolist() == [0, 1, 2]
    assert studies.replay_study(store, study).counts.total() == 2


def test_reported_columns_are_on_the_cards_of_the_next_epoch(store: Store) -> None:
    study = studies.create_study(store, clinic())
    fresh = {arm: {"hours": "9 9 9"} for arm in everyone()}
    answer_open(store, study)
    studies.observe(store, study, everyone(), fresh)
    found = studies.next_duel(store, study, "Ann")
    assert isinstance(found, Ask)
    assert found.left.columns["hours"] == "9 9 9"
    assert found.left.columns["age"].startswith("6")  # what was not reported stays
    answer_open(store, study)
    studies.observe(store, study, everyone(), {"p1": {"age": "70"}})
    studies.advance(store, study)
    shown = studies.next_duel(store, study, "Ann")
    assert isinstance(shown, Ask)
    assert shown.right.columns["hours"] == "9 9 9"


def test_what_was_reported_is_read_once_and_not_taken_for_that_of_a_study_imported_anew(
    store: Store,
) -> None:
    study = studies.create_study(store, clinic())
    content = studies.export_bundle(store, study)
    hours = []
    for said in ("1 1 1", "2 2 2"):
        studies.observe(store, study, everyone(), {arm: {"hours": said} for arm in everyone()})
        for name in ("Ann", "Bob"):
            studies.next_duel(store, study, name)
        assert len(store.reports) == len(hours) + 1
        with read_study(store, study) as reader:
            known = reader.reported_columns(1, 1)
        hours.append(known["p1"]["hours"])
        studies.delete_study(store, study)
        studies.import_bundle(store, content)
    assert hours == ["1 1 1", "2 2 2"]


@pytest.mark.parametrize(
    ("states", "message"),
    [
        (everyone() | {"p9": "Low"}, 'arm id "p9" is not one of p1, p2, p3, p4'),
        (everyone() | {"p2": "Hihg"}, 'arm "p2": state "Hihg" is not one of Low, Moderate, High'),
    ],
)
def test_a_bad_report_is_refused_whole(
    sqlite_store: Store, states: dict[str, str], message: str
) -> None:
    study = studies.create_study(sqlite_store, clinic())
    before = studies.get_study(sqlite_store, study)
    with pytest.raises(StudyError, match=message):
        studies.observe(sqlite_store, study, states)
    assert studies.get_study(sqlite_store, study) == before


def test_bad_columns_are_refused_with_the_whole_report(sqlite_store: Store) -> None:
    study = studies.create_study(sqlite_store, clinic())
    before = studies.get_study(sqlite_store, study)
    for columns, message in (({"p9": {}}, '"p9" is not one of'), ({"p1": {"a": "\0"}}, "be kept")):
        with pytest.raises(StudyError, match=message):
            studies.observe(sqlite_store, study, everyone(), columns)
    assert studies.get_study(sqlite_store, study) == before


def test_states_are_not_reported_where_the_world_moves_by_itself_or_the_plan_comes_first(
    sqlite_store: Store,
) -> None:
    simulated = studies.create_study(sqlite_store, cpap())
    with pytest.raises(StudyError, match="moves by itself"):
        studies.observe(sqlite_store, simulated, {})
    study = studies.create_study(sqlite_store, clinic())
    for _ in range(2):
        studies.observe(sqlite_store, study, everyone())
    with pytest.raises(StudyError, match="week 2 is reported: the next list comes first"):
        studies.observe(sqlite_store, study, everyone())
    studies.close_study(sqlite_store, study)
    with pytest.raises(StudyError, match="is closed"):
        studies.observe(sqlite_store, study, everyone())


def test_the_owner_can_stop_waiting_for_missing_ratings(store: Store) -> None:
    study = studies.create_study(store, cpap(ratings=3))
    mine = studies.next_duel(store, study, "Ann")
    assert isinstance(mine, Ask)
    answered = studies.next_duel(store, study, "Bob")
    assert isinstance(answered, Ask)
    studies.answer(store, answered.impression, "left", too_fast_ms=0)
    assert studies.close_duels(store, study)
    assert studies.answer(store, mine.impression, "left", too_fast_ms=0).status == "taken"
    assert studies.advance(store, study)
    assert studies.load_learner(store, study).counts.total() == 1


def test_a_clock_that_goes_back_an_hour_holds_nothing_up(store: Store, clock: Clock) -> None:
    study = studies.create_study(store, cpap(lease_seconds=60))
    first = studies.next_duel(store, study, "Ann")
    assert isinstance(first, Ask)
    studies.answer(store, first.impression, "left", too_fast_ms=0)
    second = studies.next_duel(store, study, "Ann")
    held = studies.next_duel(store, study, "Bob")
    assert isinstance(second, Ask)
    assert isinstance(held, Ask)
    clock.wait(-3600)
    assert studies.answer(store, second.impression, "right").saved  # not "too quick" for an hour
    third = studies.next_duel(store, study, "Cy")
    assert isinstance(third, Ask)
    taken_back = studies.undo(store, study, "Ann")
    assert taken_back is not None
    assert taken_back.duel == second.duel  # the last answer by the log, not by the clock
    with planning.write_study(store, study) as turn:
        turn.planner, turn.planner_until = "dead", turn.now + 3_600_000
        assert not turn.planning(duels.PLANNER_LEASE)
