"""What all visitors share: the database, the planner's process, and commands in the background."""

import gc
import subprocess
import sys
import threading
from functools import cache

from dopl_core import studies
from dopl_core.paths import ROOT

# Not in Streamlit's cache, which can be emptied while the app runs.
_making = threading.Lock()


@cache
def store() -> studies.Store:
    """The database of all studies."""
    with _making:
        return _opened()


@cache
def planner() -> studies.Planner:
    """The process that makes plans, so that no click waits for one."""
    with _making:
        return _started()


@cache
def _opened() -> studies.Store:
    _freeze()
    return studies.open_store()


@cache
def _started() -> studies.Planner:
    return studies.Planner()


_MADE = (store, planner, _opened, _started)


def forget() -> None:
    """Forget database and planner, as a new process does."""
    for made in _MADE:
        made.cache_clear()


def _freeze() -> None:
    """Exclude imported modules, which stay for ever, from garbage collection.

    A full collection would delay every click by 100 ms.
    """
    gc.collect()
    gc.freeze()


def run_in_background(*command: object) -> None:
    """Run a dopl command in a process of its own."""
    words = [sys.executable, "-m", "dopl_core.cli", *map(str, command)]
    subprocess.Popen(words, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
