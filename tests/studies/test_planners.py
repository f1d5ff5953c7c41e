"""Plans: each is made by exactly one, whoever dies, is slow or takes an answer back meanwhile."""

import threading
import time

import pytest
from playing import Clock, answer_open, clinic, cpap, everyone

from dopl_core.learning.dopl import Dopl
from dopl_core.studies import asking, reading, running, service
from dopl_core.studies.service import Ask, Store, StudyConfig, Waiting


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


def test_a_plan_longer_than_its_lease_is_made_once_though_two_plan(
    store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lease is renewed while a plan is made: nobody takes over from a planner that lives."""
    monkeypatch.setattr(asking, "PLANNER_LEASE", 0.3)  # which runs by the clock of the tests
    study = service.create_study(store, cpap())
    answer_open(store, study)
    begin, others = running.begin, []

    def leased_until() -> int:
        with store.read() as connection:
            return int(reading.study_row(connection, study).planner_until)

    def slow(*given: object) -> object:
        monkeypatch.setattr(running, "begin", begin)
        for _ in range(5):
            clock.wait(0.2)
            deadline = time.monotonic() + 20
            while leased_until() < store.now() + 300 and time.monotonic() < deadline:
                time.sleep(0.01)
            others.append(service.advance(store, study))
        return begin(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(running, "begin", slow)
    assert service.advance(store, study)
    assert others == [False] * 5
    assert service.plans(store, study).plan.tolist() == [1, 2]


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
