"""A study's course: made, observed, closed."""

import pytest
from playing import Clock, answer_open, clinic, cpap, everyone, play

from dopl_core.learning.bandit import actions
from dopl_core.studies import arrays, asking, fold, reading, running, service
from dopl_core.studies.service import Ask, Store, StudyError, Waiting


def test_a_simulated_study_queues_its_whole_episode_at_once(store: Store) -> None:
    study = service.create_study(store, cpap(horizon=3))
    found = service.get_study(store, study)
    assert (found.asked, found.given, found.episode, found.epoch) == (9, 0, 1, 3)
    learner = service.load_learner(store, study)
    assert learner.visits.sum() == 3 * 20
    people = [service.next_duel(store, study, f"person {n}") for n in range(9)]
    assert all(isinstance(one, Ask) for one in people)


def test_every_epoch_of_a_study_is_what_the_learner_alone_would_do(store: Store) -> None:
    """The service adds nothing to the learner: a simulated loop gives the same."""
    from dopl_core.studies.config import learner_of, world_of

    config = cpap(ties_allowed=True)
    study = service.create_study(store, config)
    play(store, study, 60, undo=0.0)
    shown = service.answers(store, study).set_index(["episode", "epoch", "duel"])
    with store.read() as connection:
        numbers = fold.people(connection, study)
    learner, world = learner_of(config), world_of(config)
    for k in range(1, service.get_study(store, study).episode + 1):
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
    kept = service.load_learner(store, study)
    assert arrays.digest(kept.state()) == arrays.digest(learner.state())


def test_an_observed_study_waits_for_its_owner_after_each_epoch(store: Store) -> None:
    study = service.create_study(store, clinic())
    answer_open(store, study)
    waiting = service.next_duel(store, study, "Ann")
    assert isinstance(waiting, Waiting)
    assert (waiting.reason, waiting.plan_due) == ("owner", False)
    assert not service.advance(store, study)
    assert not service.observe(store, study, everyone())
    answer_open(store, study)
    assert service.observe(store, study, everyone("Low"))  # two epochs: now a plan is due
    assert service.get_study(store, study).waits_for == "plan"
    assert service.advance(store, study)
    assert set(service.present_states(store, study).values()) == {"Low"}
    assert service.load_learner(store, study).visits.sum() == 8


def test_states_may_come_before_the_answers_which_stay_welcome(store: Store) -> None:
    study = service.create_study(store, clinic())
    early = service.next_duel(store, study, "Ann")
    assert isinstance(early, Ask)
    service.observe(store, study, everyone())
    assert service.observe(store, study, everyone("Moderate"))  # the owner never waits for answers
    assert service.get_study(store, study).plan_due
    answer_open(store, study, "Bob")
    assert service.advance(store, study)
    late = service.answer(store, early.impression, "left", too_fast_ms=0)
    assert late.saved  # last week's question is still worth an answer: it counts in the next plan
    assert service.load_learner(store, study).counts.total() == 2
    service.observe(store, study, everyone())
    service.observe(store, study, everyone())
    service.advance(store, study)
    assert service.plans(store, study).answers.tolist() == [0, 1, 2]
    assert service.replay_study(store, study).counts.total() == 2


def test_reported_columns_are_on_the_cards_of_the_next_epoch(store: Store) -> None:
    study = service.create_study(store, clinic())
    fresh = {arm: {"hours": "9 9 9"} for arm in everyone()}
    answer_open(store, study)
    service.observe(store, study, everyone(), fresh)
    found = service.next_duel(store, study, "Ann")
    assert isinstance(found, Ask)
    assert found.left.columns["hours"] == "9 9 9"
    assert found.left.columns["age"].startswith("6")  # what was not reported stays
    answer_open(store, study)
    service.observe(store, study, everyone(), {"p1": {"age": "70"}})
    service.advance(store, study)
    shown = service.next_duel(store, study, "Ann")
    assert isinstance(shown, Ask)
    assert shown.right.columns["hours"] == "9 9 9"


def test_what_was_reported_is_read_once_and_not_taken_for_that_of_a_study_imported_anew(
    store: Store,
) -> None:
    study = service.create_study(store, clinic())
    content = service.export_bundle(store, study)
    hours = []
    for said in ("1 1 1", "2 2 2"):
        service.observe(store, study, everyone(), {arm: {"hours": said} for arm in everyone()})
        for name in ("Ann", "Bob"):
            service.next_duel(store, study, name)
        assert len(store.reports) == len(hours) + 1
        with store.read() as connection:
            known = reading.reported_columns(store, connection, study, 1, 1)
        hours.append(known["p1"]["hours"])
        service.delete_study(store, study)
        service.import_bundle(store, content)
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
    study = service.create_study(sqlite_store, clinic())
    before = service.get_study(sqlite_store, study)
    with pytest.raises(StudyError, match=message):
        service.observe(sqlite_store, study, states)
    assert service.get_study(sqlite_store, study) == before


def test_bad_columns_are_refused_with_the_whole_report(sqlite_store: Store) -> None:
    study = service.create_study(sqlite_store, clinic())
    before = service.get_study(sqlite_store, study)
    for columns, message in (({"p9": {}}, '"p9" is not one of'), ({"p1": {"a": "\0"}}, "be kept")):
        with pytest.raises(StudyError, match=message):
            service.observe(sqlite_store, study, everyone(), columns)
    assert service.get_study(sqlite_store, study) == before


def test_states_are_not_reported_where_the_world_moves_by_itself_or_the_plan_comes_first(
    sqlite_store: Store,
) -> None:
    simulated = service.create_study(sqlite_store, cpap())
    with pytest.raises(StudyError, match="moves by itself"):
        service.observe(sqlite_store, simulated, {})
    study = service.create_study(sqlite_store, clinic())
    for _ in range(2):
        service.observe(sqlite_store, study, everyone())
    with pytest.raises(StudyError, match="week 2 is reported: the next list comes first"):
        service.observe(sqlite_store, study, everyone())
    service.close_study(sqlite_store, study)
    with pytest.raises(StudyError, match="is closed"):
        service.observe(sqlite_store, study, everyone())


def test_the_owner_can_stop_waiting_for_missing_ratings(store: Store) -> None:
    study = service.create_study(store, cpap(ratings=3))
    mine = service.next_duel(store, study, "Ann")
    assert isinstance(mine, Ask)
    answered = service.next_duel(store, study, "Bob")
    assert isinstance(answered, Ask)
    service.answer(store, answered.impression, "left", too_fast_ms=0)
    assert service.close_duels(store, study)
    assert service.answer(store, mine.impression, "left", too_fast_ms=0).status == "taken"
    assert service.advance(store, study)
    assert service.load_learner(store, study).counts.total() == 1


def test_a_clock_that_goes_back_an_hour_holds_nothing_up(store: Store, clock: Clock) -> None:
    study = service.create_study(store, cpap(lease_seconds=60))
    first = service.next_duel(store, study, "Ann")
    assert isinstance(first, Ask)
    service.answer(store, first.impression, "left", too_fast_ms=0)
    second = service.next_duel(store, study, "Ann")
    held = service.next_duel(store, study, "Bob")
    assert isinstance(second, Ask)
    assert isinstance(held, Ask)
    clock.wait(-3600)
    assert service.answer(store, second.impression, "right").saved  # not "too quick" for an hour
    third = service.next_duel(store, study, "Cy")
    assert isinstance(third, Ask)
    taken_back = service.undo(store, study, "Ann")
    assert taken_back is not None
    assert taken_back.duel == second.duel  # the last answer by the log, not by the clock
    with running.take_turn(store, study) as turn:
        turn.planner, turn.planner_until = "dead", turn.now + 3_600_000
        assert not turn.planning(asking.PLANNER_LEASE)
