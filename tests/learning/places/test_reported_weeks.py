"""Who was better off after a week."""

import numpy as np

from dopl_core.learning.bandit import UNKNOWN
from dopl_core.learning.places.reported_weeks import better_off


def test_better_off_is_a_better_state_or_still_the_best_one():
    states, after = np.array([0, 1, 2, 2, 1, UNKNOWN, 0]), np.array([1, 1, 2, 1, 0, 2, UNKNOWN])
    found = better_off(states, after, 3)
    assert found.tolist()[:5] == [1, 0, 1, 0, 0]
    assert np.isnan(found[5:]).all()
