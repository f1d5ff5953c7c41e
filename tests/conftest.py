"""How many tests run at once."""

import os

import pytest


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: browsers, servers and databases are often waited for."""
    return len(os.sched_getaffinity(0)) + 1
