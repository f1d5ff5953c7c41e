"""A study's course: made, observed, planned by exactly one, closed."""

import threading

import pytest
import sqlalchemy as sa
from playing import STATES, Clock, clinic, cpap, play

from dopl_core.learning.bandit import actions
from dopl_core.studies import arrays, running, schema, service
from dopl_core.studies.service import Ask, Store, StudyError, Waiting


def everyone(state: str = "High") -> dict[str, str]:
    return dict.fromkeys(("p1", "p2", "p3", "p4"), state)


def answer_open(store: Store, study: str, name: str = "Ann") -> None:
    while isinstance(found := service.next_duel(store, study, name), Ask):
        service.answer(store, found.impression, "left", too_fast_ms=0)


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
                    learner.count_duels([duel], [credit])
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
    assert service.load_learner(store, study).wins.sum() == 2
    service.observe(store, study, everyone())
    service.observe(store, study, everyone())
    service.advance(store, study)
    assert service.plans(store, study).answers.tolist() == [0, 1, 2]
    assert service.replay_study(store, study).wins.sum() == 2


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
    assert service.load_learner(store, study).wins.sum() == 1


def test_exactly_one_of_many_makes_the_plan(store: Store) -> None:
    study = service.create_study(store, cpap())
    answer_open(store, study)
    made: list[bool] = []
    threads = [
        threading.Thread(target=lambda: made.append(service.advance(store, study)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(made) == [False] * 7 + [True]
    assert service.plans(store, study).plan.tolist() == [1, 2]


def test_a_planner_that_died_is_replaced_when_its_lease_has_run_out(
    store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = service.create_study(store, cpap())
    answer_open(store, study)
    with running.take_turn(store, study) as turn:  # as a planner does first, then it dies
        turn.planner, turn.planner_until = "dead", turn.now + 20_000
    assert not service.advance(store, study)
    waiting = service.next_duel(store, study, "Ann")
    assert isinstance(waiting, Waiting)
    assert (waiting.reason, waiting.plan_due) == ("plan", False)
    clock.wait(21)
    waiting = service.next_duel(store, study, "Ann")
    assert isinstance(waiting, Waiting)
    assert waiting.plan_due
    assert service.advance(store, study)


def test_a_planner_that_fails_says_so_and_leaves_the_study_as_it_was(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = service.create_study(store, cpap())
    answer_open(store, study)

    def fails(*_: object) -> None:
        raise MemoryError("too large")

    with monkeypatch.context() as patch:
        patch.setattr(running, "begin", fails)
        with pytest.raises(MemoryError):
            service.advance(store, study)
    assert service.get_study(store, study).plan_due
    assert service.advance(store, study)


def test_an_answer_taken_back_while_the_plan_is_made_is_not_in_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = service.create_study(store, cpap())
    answer_open(store, study)
    begin = running.begin

    def slowly(*given: object) -> object:
        monkeypatch.setattr(running, "begin", begin)
        service.undo(store, study, "Ann")
        return begin(*given)

    monkeypatch.setattr(running, "begin", slowly)
    assert not service.advance(store, study)  # it is no longer due
    assert service.get_study(store, study).episode == 1
    answer_open(store, study)
    assert service.advance(store, study)
    assert service.plans(store, study).answers.tolist() == [0, 6]


def test_two_planners_at_once_commit_one_plan(
    store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = service.create_study(store, cpap())
    answer_open(store, study)
    begin = running.begin

    def slower_than_its_lease(*given: object) -> object:
        monkeypatch.setattr(running, "begin", begin)
        clock.wait(60)
        assert service.advance(store, study)  # somebody else, who is faster
        return begin(*given)

    monkeypatch.setattr(running, "begin", slower_than_its_lease)
    assert not service.advance(store, study)
    assert service.plans(store, study).plan.tolist() == [1, 2]


def test_a_deleted_study_leaves_nothing(store: Store) -> None:
    study, other = (service.create_study(store, cpap()) for _ in range(2))
    play(store, study, 20)
    play(store, other, 5)
    service.delete_study(store, study)
    assert [found.id for found in service.list_studies(store)] == [other]
    with store.read() as connection:
        for table in schema.metadata.sorted_tables:
            if "study" in table.c:
                query = sa.select(sa.func.count()).where(table.c.study == study)
                assert connection.execute(query).scalar() == 0, table.name
    with pytest.raises(StudyError, match="no study"):
        service.delete_study(store, study)


def test_studies_are_listed_newest_first_with_what_they_wait_for(
    store: Store, clock: Clock
) -> None:
    old = service.create_study(store, cpap(title="Old"))
    clock.wait(5)
    new = service.create_study(store, clinic(title="Ünï: new!"))
    answer_open(store, new)
    found = service.list_studies(store)
    assert [study.id for study in found] == [new, old]
    assert new.startswith("uni-new-")
    assert [study.waits_for for study in found] == ["owner", "annotators"]
    service.close_study(store, old)
    assert service.get_study(store, old).waits_for == "nobody"


def test_the_engine_is_chosen_by_size_and_kept_with_each_plan(sqlite_store: Store) -> None:
    assert service.engine_for(20, 3) == "cbc"
    assert service.engine_for(10_000, 3) == "lagrangian"
    config = service.from_environment("cpap", budget=4, confidence="paper")
    assert config.engine == "cbc"
    study = service.create_study(sqlite_store, config)
    assert service.plans(sqlite_store, study).engine.tolist() == ["cbc"]


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"budget": 1}, "budget is 1"),
        ({"budget": 99}, "budget is 99"),
        ({"horizon": 0}, "horizon is 0"),
        ({"ratings": 0}, "ratings is 0"),
        ({"lease_seconds": 0}, "lease_seconds is 0"),
        ({"lease_seconds": float("nan")}, "lease_seconds is nan"),
        ({"confidence": "none"}, 'confidence is "none"'),
        ({"design": "all"}, 'design is "all"'),
        ({"engine": "glpk"}, 'engine is "glpk"'),
        ({"title": " "}, "title is empty"),
        ({"title": "a\0b"}, "title has a character"),
        ({"seed": -1}, "seed is -1"),
        ({"episodes": 1.5}, "episodes is 1.5"),
        ({"pays": "none"}, 'pays is "none"'),
    ],
)
def test_rules_that_cannot_be_played_are_refused(rules: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        cpap(**rules)


def test_arms_and_states_of_a_roster_are_checked() -> None:
    arms = [service.Arm("a", "A", state="Low"), service.Arm("b", "B", state="Up")]
    with pytest.raises(StudyError, match='arm "b": state "Up" is not one of Low, Moderate, High'):
        service.from_roster(arms, STATES, title="T", budget=2)
    twice = [service.Arm("a", "A", state="Low"), service.Arm("a", "B", state="Low")]
    with pytest.raises(StudyError, match='arm id "a" is given twice'):
        service.from_roster(twice, STATES, title="T", budget=2)
    with pytest.raises(StudyError, match="budget is missing"):
        service.from_roster(arms, STATES, title="T")
    with pytest.raises(StudyError, match="1 states given"):
        service.from_roster([service.Arm("a", "A", state="Low")] * 1, ["Low"], title="T", budget=2)
