"""A study's course: made, observed, planned by exactly one, closed."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa
from playing import STATES, Clock, clinic, cpap, play

from dopl_core.learning.bandit import actions
from dopl_core.learning.dopl import Dopl
from dopl_core.studies import arrays, asking, fold, reading, running, schema, service
from dopl_core.studies.service import Ask, Store, StudyConfig, StudyError, Waiting


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
        turn.planner, turn.planner_until = "dead", turn.now + 6_000
    assert not service.advance(store, study)
    waiting = service.next_duel(store, study, "Ann")
    assert isinstance(waiting, Waiting)
    assert (waiting.reason, waiting.plan_due) == ("plan", False)
    clock.wait(7)
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


# --- two planners, a clock that goes back, tampering


def test_a_plan_longer_than_its_lease_is_made_once_though_two_plan(
    store: Store, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lease is renewed while a plan is made: nobody takes over from a planner that lives."""
    monkeypatch.setattr(asking, "PLANNER_LEASE", 1.5)  # a busy machine may hold up its renewal
    real = service.open_store(url)  # on the real clock, which leases run by
    study = service.create_study(real, cpap())
    answer_open(real, study)
    begun, begin = [], running.begin

    def slow(*given: object) -> object:
        begun.append(threading.get_ident())
        time.sleep(3.0)
        return begin(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(running, "begin", slow)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(service.advance, real, study)
        while not begun:
            time.sleep(0.01)
        others = [service.advance(real, study) for _ in range(20) if time.sleep(0.1) is None]
        assert first.result()
    assert others == [False] * 20
    assert len(begun) == 1
    assert service.get_study(real, study).episode == 2
    real.close()


def test_a_list_does_not_wait_while_answers_keep_coming(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = service.create_study(store, clinic(horizon=1, answers=4, confidence="calibrated"))
    shown = service.next_duel(store, study, "Ann")
    assert isinstance(shown, Ask)
    assert service.observe(store, study, everyone())
    begin = running.begin

    def meanwhile(*given: object) -> object:
        made = begin(*given)  # type: ignore[arg-type]
        service.answer(store, shown.impression, "left", too_fast_ms=0)
        return made

    monkeypatch.setattr(running, "begin", meanwhile)
    assert service.advance(store, study)
    monkeypatch.undo()
    assert service.plans(store, study).answers.tolist() == [0, 0]  # it counts in the next one
    service.observe(store, study, everyone("Low"))
    assert service.advance(store, study)
    assert service.plans(store, study).answers.tolist() == [0, 0, 1]
    assert service.replay_study(store, study).counts.total() == 1
    content = service.export_bundle(store, study)
    assert service.replay_bundle(content).counts.total() == 1


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


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("UPDATE events SET outcome = 'right' WHERE study = :study AND seq = :seq", "not what was"),
        ("DELETE FROM events WHERE study = :study AND seq = :seq", "is missing"),
        ("UPDATE events SET at = at + 1 WHERE study = :study AND seq = :seq", "not what was"),
    ],
)
def test_a_log_that_was_tampered_with_is_seen(store: Store, change: str, reason: str) -> None:
    study = service.create_study(store, cpap())
    play(store, study, 20, undo=0.0)
    service.replay_study(store, study)
    e = schema.events.c
    with store.write() as connection:
        said = sa.select(e.seq).where(e.study == study, e.outcome == "left").limit(1)
        seq = connection.execute(said).scalar_one()
        connection.execute(sa.text(change), {"study": study, "seq": seq})
    with pytest.raises(ValueError, match=reason):
        service.replay_study(store, study)


def test_exchanging_two_outcomes_is_seen_by_the_snapshots_checksum(store: Store) -> None:
    study = service.create_study(store, cpap(ratings=1))
    play(store, study, 60, undo=0.0)
    kept = service.load_learner(store, study).counts.wins()
    e = schema.events.c
    with store.write() as connection:
        for outcome, other in (("left", "right"), ("right", "left")):
            said = sa.select(sa.func.min(e.seq)).where(e.study == study, e.outcome == outcome)
            seq = connection.execute(said.where(e.kind == "answered")).scalar_one()
            here = sa.update(schema.events).where(e.study == study, e.seq == seq)
            connection.execute(here.values(outcome=f"{other} "))
        for word in ("left", "right"):
            now = sa.update(schema.events).where(e.study == study, e.outcome == f"{word} ")
            connection.execute(now.values(outcome=word))
    assert (service.load_learner(store, study).counts.wins() != kept).any()


def test_everybody_sees_how_far_a_long_plan_is(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = service.open_store(url)  # on the real clock, which leases run by
    study = service.create_study(store, clinic(horizon=1))
    service.observe(store, study, dict.fromkeys(service.present_states(store, study), "Low"))
    monkeypatch.setattr(asking, "PLANNER_LEASE", 0.3)
    seen, begin = [], running.begin

    def slow(config: StudyConfig, learner: Dopl, *given: object) -> object:
        learner.tell("strengths")
        deadline = time.monotonic() + 20
        while not seen and time.monotonic() < deadline:
            time.sleep(0.05)
            seen.extend(filter(None, [service.get_study(store, study).step]))
        return begin(config, learner, *given)

    monkeypatch.setattr(running, "begin", slow)
    assert service.advance(store, study)
    assert seen == ["strengths"]
    assert service.get_study(store, study).step == ""
    store.close()
