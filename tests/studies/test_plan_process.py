"""Plans in a process of their own."""

import os
import signal
from types import SimpleNamespace

import pytest

from dopl_core.studies import service
from dopl_core.studies.plan_process import Planner


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path / 'dopl.db'}"


@pytest.fixture
def planner(url):
    started = Planner(url)
    yield started
    started.close()


def play_a_round(store):
    """A study whose plan is due."""
    config = service.from_environment("app_marketing", practice=False, horizon=1)
    study = service.create_study(store, config)
    while isinstance(ask := service.next_duel(store, study, "Ann"), service.Ask):
        service.answer(store, ask.impression, "left", too_fast_ms=0)
    return study


def test_a_plan_that_is_due_is_made_elsewhere(planner, url):
    store = service.open_store(url)
    study = play_a_round(store)
    planner.ask(study).result(timeout=30)
    assert service.get_study(store, study).episode == 2


def test_all_who_ask_while_it_is_made_wait_for_the_same_plan(planner, url):
    study = play_a_round(service.open_store(url))
    first = planner.ask(study)
    assert planner.ask(study) is first
    first.result(timeout=30)


def test_one_studys_trouble_is_not_the_others(planner, url):
    store = service.open_store(url)
    planner.ask("no-such-study").result(timeout=30)
    study = play_a_round(store)
    planner.wait(study, seconds=30)
    assert service.get_study(store, study).episode == 2


def test_a_planner_that_is_killed_is_replaced(planner, url):
    store = service.open_store(url)
    planner.ask("warm").result(timeout=30)
    os.kill(planner._process.pid, signal.SIGKILL)
    planner._process.wait()
    study = play_a_round(store)
    planner.wait(study, seconds=30)
    assert service.get_study(store, study).episode == 2


def test_whoever_waits_when_it_is_killed_is_let_go(planner):
    planner.ask("warm").result(timeout=30)
    os.kill(planner._process.pid, signal.SIGSTOP)
    waiting = planner.ask("any")
    os.kill(planner._process.pid, signal.SIGKILL)
    waiting.result(timeout=30)


def test_a_pipe_that_breaks_under_a_click_lets_the_click_go_on(planner):
    def broken(_):
        raise BrokenPipeError

    alive = planner._process
    planner._process = SimpleNamespace(poll=lambda: None, stdin=SimpleNamespace(write=broken))
    planner.ask("any").result(timeout=1)
    planner._process = alive
    planner.ask("any").result(timeout=30)
