import numpy as np
import pytest
from drawn import ordinary

from dopl_core.learning.planning import arms, cbc, highs
from dopl_core.learning.planning.chains import guess
from dopl_core.learning.planning.model import elp, number_rows, number_variables
from dopl_core.learning.planning.problem import pose


def size(half_width, n_arms=20, n_states=3):
    drawn = ordinary(np.random.default_rng(0), n_arms, n_states, half_width)
    model = elp(pose(*drawn.arguments(), "all"))
    return model.gain.size, model.limit.size


def test_known_rows_need_occupancies_and_flows_only():
    # A variable for each (n, s, a); a normalisation and S - 1 flows an arm; the budget.
    assert size(0.0) == (20 * 6, 20 * 3 + 1)


def test_rows_that_may_be_anything_share_a_pool():
    assert size(1.0) == (20 * (6 + 3), 20 * 4 + 1)


def test_tight_boxes_have_no_rows_for_their_lower_bounds():
    variables, rows = size(0.05)
    assert variables <= 20 * (6 + 18)
    assert rows <= 20 * (3 + 6 + 18) + 1


@pytest.mark.parametrize("half_width", [0.0, 0.05, 0.5, 1.0])
def test_no_row_is_empty_and_none_is_the_same_as_another(half_width):
    drawn = ordinary(np.random.default_rng(0), 3, 3, half_width)
    rows = elp(pose(*drawn.arguments(), "all")).rows.toarray()
    assert rows.any(axis=1).all()
    assert len(np.unique(rows.round(12), axis=0)) == len(rows)


@pytest.mark.parametrize("engine", [cbc, highs])
@pytest.mark.parametrize("half_width", [0.0, 0.1, 1.0])
def test_duals_of_the_flows_are_the_bias(engine, half_width):
    drawn = ordinary(np.random.default_rng(1), 8, 3, half_width)
    problem = pose(*drawn.arguments(), "all")
    occupancy, multiplier, _, duals = engine.solve(problem)
    bias = arms.respond(arms.of(problem), multiplier, guess(np.zeros((3, 8)))).bias
    visited = occupancy.sum(axis=2).T > 1e-6
    for dual, true, where in zip(duals.T, bias.T, visited.T, strict=True):
        steps = dual[where] - dual[where][0]
        assert steps == pytest.approx(true[where] - true[where][0], abs=1e-5)


def mixed_problem():
    """Three arms with two states: rows known, in tight boxes, and anything at all."""
    low, high = np.zeros((3, 2, 2, 2)), np.ones((3, 2, 2, 2))
    low[0] = high[0] = 0.5
    low[1], high[1] = 0.3, 0.6
    return pose(np.ones((3, 2)), low, high, 1, "all")


def test_only_rows_in_tight_boxes_have_fills_and_only_free_ones_a_pool():
    variables = number_variables(mixed_problem())
    assert variables.bounded.reshape(3, 4).all(axis=1).tolist() == [False, True, False]
    assert variables.pair.tolist() == [4, 4, 5, 5, 6, 6, 7, 7]
    assert variables.target.tolist() == [0, 1] * 4
    assert variables.fill.tolist() == list(range(12, 20))
    assert variables.pooled.tolist() == [2]
    assert variables.pool_arm.tolist() == [2, 2]
    assert variables.pool_state.tolist() == [0, 1]
    assert variables.pool.tolist() == [20, 21]


def test_a_fill_may_take_its_share_of_the_room():
    low, high = np.full((1, 2, 2, 2), 0.1), np.full((1, 2, 2, 2), 0.9)
    high[..., 0] = 0.3
    variables = number_variables(pose(np.ones((1, 2)), low, high, 1, "all"))
    assert variables.share == pytest.approx(np.tile([0.2 / 0.8, 1.0], 4))
    rows = number_rows(pose(np.ones((1, 2)), low, high, 1, "all"), variables)
    assert rows.capped.tolist() == [0, 2, 4, 6]  # the others are capped by the sum


def test_rows_are_numbered_without_gaps_and_the_last_flow_is_there_for_pools_only():
    problem = mixed_problem()
    rows = number_rows(problem, number_variables(problem))
    assert rows.flow.tolist() == [[3, -1], [4, -1], [5, 6]]
    assert rows.fills.tolist() == [-1] * 4 + [7, 8, 9, 10] + [-1] * 4
    assert rows.n_equal == 11
    assert rows.cap.tolist() == list(range(11, 11 + rows.capped.size))
    assert rows.budget == 11 + rows.capped.size
