"""Plans made in a subprocess."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from dopl_core import studies
from dopl_core.studies.operate import planner_process
from dopl_core.studies.operate.planner_process import Job, Planner, Worker
from dopl_core.studies.operate.planning import STEP_LIMIT

# A subprocess in which plans of studies called "hangs" hang once, while others go on slowly.
HANGING = """
import sys, time
from pathlib import Path
from dopl_core.studies.collect import duels
from dopl_core.studies.operate import planner_process, planning
folder, really = Path(sys.argv[1]), planning.begin

def begin(config, learner, *others, **more):
    if config.title == "hangs" and not (folder / "hung").exists():
        (folder / "hung").touch()
        time.sleep(3600)
    while config.title == "slow" and not (folder / "go").exists():
        learner.tell("moves")
        time.sleep(0.02)
    return really(config, learner, *others, **more)

planning.begin, planning.STEP_LIMIT, duels.PLANNER_LEASE = begin, 0.5, 0.3
planner_process.main()
"""


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    return f"sqlite:///{tmp_path_factory.mktemp('planner') / 'dopl.db'}"


class Clock:
    """Time that passes when a test says so."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture(scope="module")
def planner(url):
    started = Planner(url, Clock())
    yield started
    started.close()


def play_a_round(store, title="T"):
    """A study whose plan is due."""
    config = studies.from_environment("app_marketing", practice=False, horizon=1, title=title)
    study = studies.create_study(store, config)
    while isinstance(ask := studies.next_duel(store, study, "Ann"), studies.Ask):
        studies.answer(store, ask.impression, "left", too_fast_ms=0)
    return study


def test_the_subprocess_makes_a_plan_that_is_due(planner, url):
    store = studies.open_store(url)
    study = play_a_round(store)
    planner.ask(study).result(timeout=120)
    assert studies.get_study(store, study).episode == 2


def test_concurrent_requests_for_one_study_share_one_job(planner, url):
    study = play_a_round(studies.open_store(url))
    first = planner.ask(study)
    assert planner.ask(study) is first
    first.result(timeout=120)


def test_a_failure_of_one_study_does_not_stop_the_others(planner, url):
    store = studies.open_store(url)
    planner.ask("no-such-study").result(timeout=120)
    study = play_a_round(store)
    planner.wait(study, seconds=120)
    assert studies.get_study(store, study).episode == 2


def test_a_killed_subprocess_is_replaced(planner, url):
    store = studies.open_store(url)
    planner.ask("warm").result(timeout=120)
    os.kill(planner._worker.process.pid, signal.SIGKILL)
    until(lambda: planner._worker.ended)
    study = play_a_round(store)
    planner.wait(study, seconds=120)
    assert studies.get_study(store, study).episode == 2


def test_killing_the_subprocess_releases_waiting_callers(planner):
    planner.ask("warm").result(timeout=120)
    os.kill(planner._worker.process.pid, signal.SIGSTOP)
    waiting = planner.ask("any")
    os.kill(planner._worker.process.pid, signal.SIGKILL)
    waiting.result(timeout=120)


def test_a_broken_pipe_does_not_block_the_caller(planner):
    def broken(_):
        raise BrokenPipeError

    planner.ask("warm").result(timeout=120)
    alive = planner._worker.process
    planner._worker.process = SimpleNamespace(stdin=SimpleNamespace(write=broken))
    planner.ask("any").result(timeout=60)
    planner._worker.process = alive
    planner.ask("any").result(timeout=120)


def test_a_plan_stalls_once_it_has_begun_or_when_none_of_its_process_goes_on():
    waits, fresh, old = Job(), Job(at=9.0), Job(at=1.0)
    worker = Worker(None, 9.0, jobs={"waits": waits, "fresh": fresh, "old": old})
    assert worker.stalled(5.0) == ["old"]
    worker.heard = 4.0
    assert worker.stalled(5.0) == ["waits", "fresh", "old"]
    assert not Worker(None, 0.0).stalled(5.0)  # nobody asks anything of it


def test_a_subprocess_that_stops_is_ended_and_another_makes_the_plan(planner, url):
    clock, store = planner._clock, studies.open_store(url)
    planner.ask("warm").result(timeout=120)
    stopped = planner._worker.process
    os.kill(stopped.pid, signal.SIGSTOP)
    study = play_a_round(store)
    waiting = planner.ask(study)
    clock.now += STEP_LIMIT - 1
    planner.replace_hung()
    assert stopped.poll() is None
    assert not waiting.done()
    clock.now += 2
    planner.replace_hung()
    assert stopped.poll() == -signal.SIGKILL
    waiting.result(timeout=0)
    planner.ask(study).result(timeout=120)
    assert studies.get_study(store, study).episode == 2
    store.close()


@pytest.mark.long
def test_a_hung_plan_is_made_elsewhere_and_slow_ones_beside_it_go_on(url, tmp_path, monkeypatch):
    monkeypatch.setattr(planner_process, "COMMAND", (sys.executable, "-c", HANGING, tmp_path))
    clock, store = Clock(), studies.open_store(url)
    planner = Planner(url, clock)
    hangs, slow = play_a_round(store, "hangs"), play_a_round(store, "slow")
    first, worker = planner.ask(hangs), planner._worker
    until(lambda: (tmp_path / "hung").exists())
    goes_on = planner.ask(slow)
    until(lambda: worker.jobs[slow].at is not None)
    clock.now += STEP_LIMIT + 1
    until(lambda: worker.jobs[slow].at == clock.now)
    planner.replace_hung()
    first.result(timeout=0)
    assert worker.process.poll() is None
    assert planner.ask(slow) is goes_on
    until(lambda: planner.ask(hangs).result(120) or studies.get_study(store, hangs).episode == 2)
    assert not goes_on.done()
    (tmp_path / "go").touch()
    goes_on.result(timeout=120)
    assert studies.get_study(store, slow).episode == 2
    planner.replace_hung()
    assert worker.process.poll() == -signal.SIGKILL
    assert planner._worker.process.poll() is None
    planner.close()
    store.close()


# A planner with a solver, and a server that starts it.
SOLVING = """
import subprocess, sys
from dopl_core.studies.operate.planner_process import main
solver = subprocess.Popen(["sleep", "600"])
print(solver.pid, file=open(sys.argv[1], "w"))
main()
"""
SERVER = """
import sys, time
from dopl_core.studies.operate import planner_process
planner_process.COMMAND = (sys.executable, "-c", *sys.argv[1:])
print(planner_process.Planner()._worker.process.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.long
def test_a_planner_and_its_solvers_end_with_a_server_that_was_killed(url, tmp_path, monkeypatch):
    monkeypatch.setenv("DOPL_DATABASE_URL", url)
    file = tmp_path / "solver"
    command = [sys.executable, "-c", SERVER, SOLVING, str(file)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    planner = int(server.stdout.readline())
    until(lambda: file.exists() and file.read_text().endswith("\n"))
    solver = int(file.read_text())
    assert is_running(planner)
    assert is_running(solver)
    server.kill()
    server.communicate()
    until(lambda: not is_running(planner) and not is_running(solver))


def is_running(pid):
    """Whether a process runs; one that has ended may still wait for its parent to notice."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def until(holds, tries=3000):
    for _ in range(tries):
        if holds():
            return
        time.sleep(0.02)
    raise AssertionError
