"""How many tests run at once, and where their files are."""

import os
import sys

import hypothesis
import pytest
from memory import folder_in_memory

import dopl_core  # noqa: F401  linear algebra in one thread: before any test imports NumPy

# Tests start hundreds of processes: let these compile the modules once, not each anew.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

hypothesis.settings.register_profile("dopl", deadline=None)  # a busy machine is no failure
hypothesis.settings.load_profile("dopl")

if memory := folder_in_memory():
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(memory))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: browsers, servers and databases are often waited for."""
    return len(os.sched_getaffinity(0)) + 1


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A file with our tables, to copy: making them takes longer than most tests."""
    from dopl_core import studies

    file = tmp_path_factory.mktemp("template") / "dopl.db"
    studies.open_store(f"sqlite:///{file}").close()
    return str(file)
