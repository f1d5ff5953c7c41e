"""Sums and shares in log space are those of scipy."""

import numpy as np
import pytest
from scipy import special

from dopl_core.learning import log_space


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2)])
def test_sums_and_shares_are_those_of_scipy(axis):
    log = 300 * np.random.default_rng(0).normal(size=(3, 4, 5))
    log[0, 1] = -np.inf
    log[:, 1, 2] = 700.0
    ours, theirs = log_space.softmax(log, axis), special.softmax(log, axis=axis)
    assert ours == pytest.approx(theirs, rel=1e-12, abs=1e-300)
    log[0, 1, 0] = 0.0  # one of each sum is finite
    assert log_space.logsumexp(log, axis) == pytest.approx(special.logsumexp(log, axis=axis))
