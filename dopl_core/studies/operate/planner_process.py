"""A subprocess that makes the plans of studies, so that no click waits for a plan.

It reads study ids from standard input, one a line. It prints each id with a tab and a step
whenever a plan goes on, and the id alone when the plan is made. It ends with the server that
started it. `python -m dopl_core.studies.operate.planner_process` runs it.

A watchdog in the server replaces a subprocess whose plan makes no progress within a time limit:
one that lives may still hang. Slow plans that go on are left alone.
"""

import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field

from dopl_core.paths import ROOT
from dopl_core.studies.operate.planning import STEP_LIMIT, advance
from dopl_core.studies.store.database import open_store

AT_ONCE = 4  # plans of different studies made in parallel
COMMAND = (sys.executable, "-m", "dopl_core.studies.operate.planner_process")


@dataclass
class Job:
    """A plan that was asked for; at: of its last progress, None while it waits for its turn."""

    done: "Future[None]" = field(default_factory=Future)
    at: float | None = None


@dataclass(eq=False)
class Worker:
    """A subprocess, and the plans that it was asked for.

    heard: when it last said anything;  ended: it will say nothing more
    """

    process: "subprocess.Popen[str]"
    heard: float
    ended: bool = False
    jobs: dict[str, Job] = field(default_factory=dict)

    def end(self) -> None:
        """End the subprocess, and the solver that it may have started."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stalled(self, since: float) -> list[str]:
        """The studies whose plans have made no progress since then."""
        if self.heard < since:  # not one of its plans goes on
            return list(self.jobs)
        return [study for study, job in self.jobs.items() if job.at is not None and job.at < since]


class Planner:
    """Asks the subprocess for plans; concurrent requests for one study share one job.

    url: of the database, as in `open_store`;  clock: seconds; tests move it
    """

    def __init__(self, url: str | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._environment = os.environ | ({"DOPL_DATABASE_URL": url} if url else {})
        self._clock = clock
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._hung: list[Worker] = []  # with other plans that go on
        self._worker = self._start()
        threading.Thread(target=self._watch, daemon=True).start()

    def ask(self, study: str) -> "Future[None]":
        """Request this study's plan; returns the job, a running one if there is one."""
        with self._lock:
            for worker in (self._worker, *self._hung):
                if study in worker.jobs:
                    return worker.jobs[study].done
            return self._send(study)

    def wait(self, study: str, seconds: float) -> None:
        """Request a plan and wait for it, with a timeout in seconds."""
        wait([self.ask(study)], timeout=seconds)

    def close(self) -> None:
        """End the subprocess."""
        self._closed.set()
        for worker in (self._worker, *self._hung):
            worker.end()

    def replace_hung(self) -> None:
        """Start another subprocess for those that hang, and end these once no plan goes on."""
        since = self._clock() - STEP_LIMIT
        with self._lock:
            if self._worker.stalled(since):
                self._hung.append(self._worker)
                self._worker = self._start()
            released = [
                worker.jobs.pop(study).done
                for worker in self._hung
                for study in worker.stalled(since)
            ]
            idle = [worker for worker in self._hung if not worker.jobs]
            self._hung = [worker for worker in self._hung if worker.jobs]
        for worker in idle:
            worker.end()
        for done in released:
            done.set_result(None)

    def _watch(self) -> None:
        while not self._closed.wait(STEP_LIMIT / 10):
            self.replace_hung()

    def _start(self) -> Worker:
        process = subprocess.Popen(
            COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            process_group=0,  # Ctrl-C is for the server, which ends this process
            env=self._environment,
        )
        worker = Worker(process, self._clock())
        threading.Thread(target=self._listen, args=(worker,), daemon=True).start()
        return worker

    def _send(self, study: str) -> "Future[None]":
        if self._worker.ended:  # killed; the log has everything
            self._worker = self._start()
        worker, job = self._worker, Job()
        if not worker.jobs:
            worker.heard = self._clock()
        worker.jobs[study] = job
        assert worker.process.stdin is not None  # noqa: S101
        try:
            worker.process.stdin.write(study + "\n")
            worker.process.stdin.flush()
        except BrokenPipeError:
            worker.jobs.pop(study).done.set_result(None)
        return job.done

    def _listen(self, worker: Worker) -> None:
        assert worker.process.stdout is not None  # noqa: S101
        for line in worker.process.stdout:
            study, goes_on, _ = line.rstrip("\n").partition("\t")
            with self._lock:
                worker.heard = self._clock()
                job = worker.jobs.get(study) if goes_on else worker.jobs.pop(study, None)
                if job is not None:
                    job.at = worker.heard
            if job is not None and not goes_on:
                job.done.set_result(None)
        with self._lock:  # the subprocess ended: release the waiting callers, they will ask again
            worker.ended = True
            left = [worker.jobs.pop(study) for study in list(worker.jobs)]
        for job in left:
            job.done.set_result(None)


def main() -> None:
    """Make plans until standard input ends; a slow plan does not delay other studies."""
    store, output = open_store(), threading.Lock()

    def say(*words: str) -> None:
        with output:
            print(*words, sep="\t", flush=True)

    def make(study: str) -> None:
        say(study, "")
        try:
            advance(store, study, tell=lambda step: say(study, step))
        except Exception:  # a failure of one study must not stop the others
            traceback.print_exc()
        say(study)

    with ThreadPoolExecutor(AT_ONCE) as plans:
        for line in sys.stdin:
            plans.submit(make, line.strip())
        plans.shutdown(wait=False, cancel_futures=True)
        # The server has gone, however it ended: do not wait for running plans and their solvers.
        if os.getpgrp() == os.getpid():
            os.killpg(0, signal.SIGKILL)
        os._exit(0)


if __name__ == "__main__":
    main()
