"""Plans: exactly one process makes each, even when others die, are slow or undo an answer."""

import threading
import time

import pytest
from playing import Clock, answer_open, clinic, cpap, everyone

from dopl_core import studies
from dopl_core.learning.learner import Learner
from dopl_core.studies import Ask, Store, StudyConfig, Waiting
from dopl_core.studies.collect import duels
from dopl_core.studies.operate import planning
from dopl_core.studies.store import study_reader


def test_exactly_one_of_many_makes_the_plan(store: Store) -> None:
    study = studies.create_study(store, cpap())
    answer_open(store, study)
    made: list[bool] = []
    threads = [
        threading.Thread(target=lambda: made.append(studies.advance(store, study)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(made) == [False] * 7 + [True]
    assert studies.plans(store, study).plan.tolist() == [1, 2]


def test_a_planner_that_died_is_replaced_when_its_lease_has_run_out(
    store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = studies.create_study(store, cpap())
    answer_open(store, study)
    with planning.write_study(store, study) as tx:  # as a planner does first, then it dies
        tx.row.planner, tx.row.planner_until = "dead", tx.now + 6_000
    assert not studies.advance(store, study)
    waiting = studies.next_duel(store, study, "Ann")
    assert isinstance(waiting, Waiting)
    assert (waiting.reason, waiting.plan_due) == ("plan", False)
    clock.wait(7)
    waiting = studies.next_duel(store, study, "Ann")
    assert isinstance(waiting, Waiting)
    assert waiting.plan_due
    assert studies.advance(store, study)


def test_a_planner_that_fails_says_so_and_leaves_the_study_as_it_was(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = studies.create_study(store, cpap())
    answer_open(store, study)

    def fails(*_: object, **__: object) -> None:
        raise MemoryError("too large")

    with monkeypatch.context() as patch:
        patch.setattr(planning, "begin", fails)
        with pytest.raises(MemoryError):
            studies.advance(store, study)
    assert studies.get_study(store, study).plan_due
    assert studies.advance(store, study)


def test_an_answer_taken_back_while_the_plan_is_made_is_not_in_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = studies.create_study(store, cpap())
    answer_open(store, study)
    begin = planning.begin

    def slowly(*given: object, **more: object) -> object:
        monkeypatch.setattr(planning, "begin", begin)
        studies.undo(store, study, "Ann")
        return begin(*given, **more)

    monkeypatch.setattr(planning, "begin", slowly)
    assert not studies.advance(store, study)  # it is no longer due
    assert studies.get_study(store, study).episode == 1
    answer_open(store, study)
    assert studies.advance(store, study)
    assert studies.plans(store, study).answers.tolist() == [0, 6]


def test_two_planners_at_once_commit_one_plan(
    store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = studies.create_study(store, cpap())
    answer_open(store, study)
    begin = planning.begin

    def slower_than_its_lease(*given: object, **more: object) -> object:
        monkeypatch.setattr(planning, "begin", begin)
        clock.wait(60)
        assert studies.advance(store, study)  # somebody else, who is faster
        return begin(*given, **more)

    monkeypatch.setattr(planning, "begin", slower_than_its_lease)
    assert not studies.advance(store, study)
    assert studies.plans(store, study).plan.tolist() == [1, 2]


def test_a_plan_longer_than_its_lease_is_made_once_though_two_plan(
    store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lease is renewed while a plan is made: nobody takes over from a planner that lives."""
    monkeypatch.setattr(duels, "PLANNER_LEASE", 0.3)  # which runs by the clock of the tests
    study = studies.create_study(store, cpap())
    answer_open(store, study)
    begin, others = planning.begin, []

    def leased_until() -> int:
        with store.read() as connection:
            return int(study_reader.study_row(connection, study).planner_until or 0)

    def slow(*given: object, **more: object) -> object:
        monkeypatch.setattr(planning, "begin", begin)
        for _ in range(5):
            clock.wait(0.2)
            deadline = time.monotonic() + 20
            while leased_until() < store.now() + 300 and time.monotonic() < deadline:
                time.sleep(0.01)
            others.append(studies.advance(store, study))
        return begin(*given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(planning, "begin", slow)
    assert studies.advance(store, study)
    assert others == [False] * 5
    assert studies.plans(store, study).plan.tolist() == [1, 2]


def test_a_plan_without_progress_loses_its_lease_and_another_makes_it(
    store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duels, "PLANNER_LEASE", 0.15)
    monkeypatch.setattr(planning, "STEP_LIMIT", 0.0)
    study = studies.create_study(store, cpap())
    answer_open(store, study)
    begin = planning.begin

    def hung(*given: object, **more: object) -> object:
        monkeypatch.setattr(planning, "begin", begin)
        clock.wait(0.2)
        time.sleep(0.2)  # in which a lease would be renewed
        assert studies.advance(store, study)
        return begin(*given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(planning, "begin", hung)
    assert not studies.advance(store, study)
    assert studies.plans(store, study).plan.tolist() == [1, 2]


def test_a_list_does_not_wait_while_answers_keep_coming(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = studies.create_study(store, clinic(horizon=1, answers=4, confidence="calibrated"))
    shown = studies.next_duel(store, study, "Ann")
    assert isinstance(shown, Ask)
    assert studies.observe(store, study, everyone())
    begin = planning.begin

    def meanwhile(*given: object, **more: object) -> object:
        made = begin(*given, **more)  # type: ignore[arg-type]
        studies.answer(store, shown.impression, "left", too_fast_ms=0)
        return made

    monkeypatch.setattr(planning, "begin", meanwhile)
    assert studies.advance(store, study)
    monkeypatch.undo()
    assert studies.plans(store, study).answers.tolist() == [0, 0]  # it counts in the next one
    studies.observe(store, study, everyone("Low"))
    assert studies.advance(store, study)
    assert studies.plans(store, study).answers.tolist() == [0, 0, 1]
    assert studies.replay_study(store, study).counts.total() == 1
    content = studies.export_bundle(store, study)
    assert studies.replay_bundle(content).counts.total() == 1


def test_everybody_sees_how_far_a_long_plan_is(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = studies.open_store(url)  # on the real clock, which leases run by
    study = studies.create_study(store, clinic(horizon=1))
    studies.observe(store, study, dict.fromkeys(studies.present_states(store, study), "Low"))
    monkeypatch.setattr(duels, "PLANNER_LEASE", 0.3)
    seen, begin = [], planning.begin

    def slow(config: StudyConfig, learner: Learner, *given: object, **more: object) -> object:
        learner.tell("strengths")
        deadline = time.monotonic() + 20
        while not seen and time.monotonic() < deadline:
            time.sleep(0.05)
            seen.extend(filter(None, [studies.get_study(store, study).step]))
        return begin(config, learner, *given, **more)

    monkeypatch.setattr(planning, "begin", slow)
    assert studies.advance(store, study)
    assert seen == ["strengths"]
    assert studies.get_study(store, study).step == ""
    store.close()
