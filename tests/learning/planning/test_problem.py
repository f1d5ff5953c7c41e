import numpy as np
import pytest
from drawn import ordinary

from dopl_core.learning.planning import PlanningError, plan
from dopl_core.learning.planning.problem import pose, slack_form


@pytest.fixture
def drawn():
    return ordinary(np.random.default_rng(0), n_arms=4)


def changed(array, place, value):
    array = array.copy()
    array[place] = value
    return array


def refuses(message, drawn, engine="cbc", **changes):
    reward, low, high, budget = drawn.arguments()
    arguments = {"reward": reward, "low": low, "high": high, "budget": budget, **changes}
    with pytest.raises(PlanningError, match=message):
        plan(**arguments, engine=engine)


def test_a_reward_without_states_is_refused(drawn):
    refuses(r"reward must have shape \[arms, states\]", drawn, reward=np.ones(4))


def test_bounds_of_another_shape_are_refused(drawn):
    refuses(r"low must have shape \[4, 3, 2, 3\], not \[4, 3, 2\]", drawn, low=drawn.low[..., 0])
    refuses(r"high must have shape", drawn, high=drawn.high[:3])


def test_a_reward_that_is_not_a_number_is_named(drawn):
    refuses("reward of arm 2, state 1 is", drawn, reward=changed(drawn.reward, (2, 1), np.nan))


def test_a_bound_that_is_not_a_number_is_named(drawn):
    place = (1, 2, 0, 1)
    message = "arm 1, state 2, action 0, next state 1"
    refuses(message, drawn, low=changed(drawn.low, place, np.nan))
    refuses(message, drawn, high=changed(drawn.high, place, np.nan))


def test_a_box_with_low_above_high_is_named(drawn):
    low = changed(drawn.low, (3, 0, 1, 2), drawn.high[3, 0, 1, 2] + 0.01)
    refuses("low exceeds high, .* arm 3, state 0, action 1, next state 2", drawn, low=low)


def test_a_row_whose_box_holds_no_distribution_is_named(drawn):
    high = changed(drawn.high, (2, 1, 0), [0.3, 0.3, 0.3])
    low = np.minimum(drawn.low, high)
    refuses("upper .* less than 1 .* arm 2, state 1, action 0", drawn, low=low, high=high)
    low = changed(drawn.low, (2, 1, 0), [0.4, 0.4, 0.4])
    high = np.maximum(drawn.high, low)
    refuses("lower .* more than 1 .* arm 2, state 1, action 0", drawn, low=low, high=high)


@pytest.mark.parametrize("budget", [0, -1, 4.001, np.nan])
def test_a_budget_of_0_or_more_than_all_arms_is_refused(drawn, budget):
    refuses("budget must be above 0 and at most 4 arms", drawn, budget=budget)


def test_an_unknown_engine_and_an_unknown_value_of_pays_are_refused(drawn):
    refuses("engine must be one of cbc, highs, lagrangian, not 'simplex'", drawn, "simplex")
    refuses('pays must be "all" or "active", not \'none\'', drawn, pays="none")


def test_bounds_beyond_0_and_1_are_cut(drawn):
    reward, low, high, budget = drawn.arguments()
    beyond = plan(reward, low - (low == 0), high + (high == 1), budget, engine="highs")
    assert beyond.value == pytest.approx(plan(reward, low, high, budget, engine="highs").value)


def test_rows_that_miss_1_by_rounding_have_no_width(drawn):
    rows = (drawn.low + drawn.high) / 2
    rows /= rows.sum(axis=-1, keepdims=True)
    for error in (-1e-11, 0.0, 1e-11):
        problem = pose(drawn.reward, rows + error, rows + error, drawn.budget, "all")
        assert not problem.room.any()
        assert not problem.width.any()
        assert problem.low.sum(axis=-1) == pytest.approx(1, abs=1e-15)


def test_nothing_that_is_passed_in_is_changed(drawn):
    before = [array.copy() for array in (drawn.reward, drawn.low, drawn.high)]
    plan(*drawn.arguments(), engine="lagrangian")
    for array, copy in zip((drawn.reward, drawn.low, drawn.high), before, strict=True):
        assert (array == copy).all()


def test_transitions_with_negligible_probability_are_impossible(drawn):
    low, high = drawn.low.copy(), drawn.high.copy()
    low[0, 0, 0], high[0, 0, 0] = [1e-12, 0.2, 0.2], [1e-11, 0.9, 0.9]
    problem = pose(drawn.reward, low, high, drawn.budget, "all")
    assert problem.low[0, 0, 0].tolist() == [0, 0.2, 0.2]
    assert problem.width[0, 0, 0, 0] == 0


def test_rows_of_a_box_are_its_low_and_a_fill_of_at_most_its_width(drawn):
    low, width, room = slack_form(drawn.low, drawn.high)
    assert room == pytest.approx(1 - drawn.low.sum(axis=-1))
    assert (low == drawn.low).all()
    assert (width <= room[..., None]).all()
    fitting = width < room[..., None]
    assert (low + width)[fitting] == pytest.approx(drawn.high[fitting])
    assert (width.sum(axis=-1) >= room).all()  # so that some fill sums to the room


def test_only_acting_pays_if_pays_is_active(drawn):
    every, active = (
        pose(drawn.reward, drawn.low, drawn.high, drawn.budget, pays) for pays in ("all", "active")
    )
    assert (every.pay == drawn.reward[:, :, None]).all()
    assert (active.pay[..., 1] == drawn.reward).all()
    assert not active.pay[..., 0].any()
