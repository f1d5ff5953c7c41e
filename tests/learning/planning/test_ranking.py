"""Ranks of arm-states: by the first merit, ties by the next, solver noise ignored."""

import numpy as np

from dopl_core.learning.planning.ranking import rank


def test_ranks_are_by_index_then_advantage_and_solver_noise_makes_no_difference():
    index = np.array([[1.0, 0.0], [1.0 - 1e-9, 0.5]])
    advantage = np.array([[0.2, -1.0], [0.3, 0.0]])
    assert rank(index, advantage).tolist() == [[2, 0], [3, 1]]
    assert rank(index).tolist() == [[2, 0], [2, 1]]
