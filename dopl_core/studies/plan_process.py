"""A process of its own that makes the plans of studies, so that no click waits for one.

It is told a study's id on a line and says it back when the plan is made; it ends when the server
that started it does. `python -m dopl_core.studies.plan_process` is that process.
"""

import os
import signal
import subprocess
import sys
import threading
import traceback
from concurrent.futures import Future, ThreadPoolExecutor, wait

from dopl_core.places import ROOT
from dopl_core.studies.running import advance
from dopl_core.studies.store import open_store

AT_ONCE = 4  # plans of different studies


class Planner:
    """Makes the plans that are due, each once, whoever asks for it.

    url: of the database, as `open_store` takes it
    """

    def __init__(self, url: str | None = None) -> None:
        self._environment = os.environ | ({"DOPL_DATABASE_URL": url} if url else {})
        self._lock = threading.Lock()
        self._jobs: dict[str, Future[None]] = {}
        self._process = self._begin()

    def ask(self, study: str) -> Future[None]:
        """The making of this study's plan, which may be under way already."""
        with self._lock:
            job = self._jobs.get(study)
            if job is None:
                job = self._jobs[study] = Future()
                self._tell(study)
            return job

    def wait(self, study: str, seconds: float) -> None:
        """Ask, and wait until the plan is made, but no longer than this."""
        wait([self.ask(study)], timeout=seconds)

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()

    def _begin(self) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-m", "dopl_core.studies.plan_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=self._environment,
        )
        threading.Thread(target=self._listen, args=(process,), daemon=True).start()
        return process

    def _tell(self, study: str) -> None:
        if self._process.poll() is not None:  # killed; nothing is lost, the log has everything
            self._process = self._begin()
        assert self._process.stdin is not None  # noqa: S101
        try:
            self._process.stdin.write(study + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            self._jobs.pop(study).set_result(None)

    def _listen(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None  # noqa: S101
        for line in process.stdout:
            with self._lock:
                job = self._jobs.pop(line.strip(), None)
            if job is not None:
                job.set_result(None)
        with self._lock:  # it has ended: whoever waits looks again, and asks again
            left = list(self._jobs.values()) if process is self._process else []
            self._jobs = {} if left else self._jobs
        for job in left:
            job.set_result(None)


def main() -> None:
    """Make plans until nobody asks any more; a long one does not hold up other studies."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server; its end ends this
    store, mouth = open_store(), threading.Lock()

    def make(study: str) -> None:
        try:
            advance(store, study)
        except Exception:  # one study's trouble is not the others'
            traceback.print_exc()
        with mouth:
            print(study, flush=True)

    with ThreadPoolExecutor(AT_ONCE) as plans:
        for line in sys.stdin:
            plans.submit(make, line.strip())
        plans.shutdown(wait=False, cancel_futures=True)
        os._exit(0)  # nobody is left who waits


if __name__ == "__main__":
    main()
