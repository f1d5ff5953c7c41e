"""What all visitors share: the store, the plan process, and commands that run beside the server."""

import gc
import subprocess
import sys

import streamlit as st

from dopl_core.places import ROOT
from dopl_core.studies import service
from dopl_core.studies.plan_process import Planner


@st.cache_resource(show_spinner=False)
def store() -> service.Store:
    """The database of all studies.

    What is imported by now stays for ever: left out of collections, of which a full one would hold
    up every click for 100 ms.
    """
    gc.collect()
    gc.freeze()
    return service.open_store()


@st.cache_resource(show_spinner=False)
def planner() -> Planner:
    """The process that makes plans, so that no click waits for one."""
    return Planner()


def run_beside(*command: object) -> None:
    """Run a dopl command in a process of its own."""
    words = [sys.executable, "-m", "dopl_core.cli", *map(str, command)]
    subprocess.Popen(words, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
