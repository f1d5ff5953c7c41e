"""One contract for all engines: the same value, a feasible plan, duals that fit it."""

import numpy as np
import pytest
from drawn import awkward, distance_to_feasible, ordinary
from hypothesis import given, settings
from hypothesis import strategies as st

from dopl_core.learning.planning import ENGINES, plan

seeds = st.integers(0, 2**32 - 1)
in_process = [engine for engine in ENGINES if engine != "cbc"]


def solve(drawn, engine, **options):
    return plan(*drawn.arguments(), engine=engine, pays=drawn.pays, **options)


def check_plan(drawn, found):
    """A distribution for each arm, in balance, within budget, worth its value."""
    occupancy = found.occupancy
    assert (occupancy >= 0).all()
    assert occupancy.sum(axis=(1, 2)) == pytest.approx(1, abs=1e-6)
    assert occupancy[..., 1].sum() <= drawn.budget + 1e-6
    paid = occupancy[..., 1] if drawn.pays == "active" else occupancy.sum(axis=2)
    assert found.value == pytest.approx((paid * drawn.reward).sum(), abs=1e-6)
    assert found.multiplier >= 0
    if occupancy[..., 1].sum() < drawn.budget - 1e-6:
        assert found.multiplier == pytest.approx(0, abs=1e-6)


def check_index(found, tolerance=1e-6):
    """Complementary slackness: act where it is no worse, wait where it is no better."""
    visits = found.occupancy.sum(axis=2)
    assert not found.index[visits < 1e-10].any()
    index, advantage = (x[visits > 1e-5] for x in (found.index, found.advantage))
    assert (advantage[index > 1 - 1e-6] >= -tolerance).all()
    assert (advantage[index < 1e-6] <= tolerance).all()
    assert (np.abs(advantage[(index >= 1e-6) & (index <= 1 - 1e-6)]) <= tolerance).all()


@pytest.mark.parametrize("block", range(10))
def test_all_engines_agree_on_awkward_problems(block):
    for seed in range(20 * block, 20 * block + 20):
        drawn = awkward(np.random.default_rng(seed))
        found = {engine: solve(drawn, engine) for engine in ENGINES}
        for engine, one in found.items():
            assert one.value == pytest.approx(found["cbc"].value, abs=1e-6), (seed, engine)
            check_plan(drawn, one)


@pytest.mark.parametrize("block", range(5))
def test_engines_in_process_agree_on_more_of_them(block):
    for seed in range(1000 + 60 * block, 1060 + 60 * block):
        drawn = awkward(np.random.default_rng(seed))
        highs, lagrangian = (solve(drawn, engine) for engine in in_process)
        assert lagrangian.value == pytest.approx(highs.value, abs=1e-8), seed
        check_plan(drawn, lagrangian)


@pytest.mark.parametrize("engine", ENGINES)
def test_advantages_fit_the_plan(engine):
    for seed in range(25 if engine == "cbc" else 60):
        drawn = awkward(np.random.default_rng(seed), zeros=False)
        check_index(solve(drawn, engine))


@pytest.mark.parametrize("engine", ENGINES)
def test_multiplier_and_advantage_are_the_same_where_unique(engine):
    rng = np.random.default_rng(7)
    for _ in range(10):
        n_arms = int(rng.integers(5, 25))
        budget = rng.uniform(0.1, 0.3) * n_arms  # no whole number: some arm is mixed
        drawn = ordinary(rng, n_arms, int(rng.integers(2, 6)), rng.choice([0, 0.1]), budget)
        truth, found = solve(drawn, "highs"), solve(drawn, engine)
        assert found.multiplier == pytest.approx(truth.multiplier, abs=1e-7)
        assert found.advantage == pytest.approx(truth.advantage, abs=1e-6)
        assert found.occupancy == pytest.approx(truth.occupancy, abs=1e-5)
        assert ((found.index > 1e-6) & (found.index < 1 - 1e-6)).sum() <= 1


@pytest.mark.parametrize("engine", in_process)
@settings(max_examples=40, deadline=None)
@given(seed=seeds)
def test_rows_in_the_boxes_reproduce_the_occupancy(engine, seed):
    drawn = awkward(np.random.default_rng(seed))
    if drawn.reward.shape[1] > 5:
        return
    assert distance_to_feasible(drawn, solve(drawn, engine).occupancy) < 1e-6


@pytest.mark.parametrize("seed", range(10))
def test_rows_in_the_boxes_reproduce_the_occupancy_of_cbc(seed):
    drawn = ordinary(np.random.default_rng(seed), 4, 3, [0.0, 0.05, 1.0][seed % 3])
    assert distance_to_feasible(drawn, solve(drawn, "cbc").occupancy) < 1e-5


@settings(max_examples=60, deadline=None)
@given(seed=seeds, factor=st.floats(0.1, 1))
def test_value_does_not_fall_with_the_budget(seed, factor):
    drawn = awkward(np.random.default_rng(seed))
    reward, low, high, budget = drawn.arguments()
    whole = solve(drawn, "lagrangian")
    less = plan(reward, low, high, budget * factor, engine="lagrangian", pays=drawn.pays)
    assert less.value <= whole.value + 1e-9
    # The multiplier is the slope of the value, which is concave in the budget.
    assert less.value <= whole.value - whole.multiplier * budget * (1 - factor) + 1e-8


@settings(max_examples=60, deadline=None)
@given(seed=seeds, factor=st.floats(0, 1))
def test_value_does_not_fall_with_the_width_of_the_boxes(seed, factor):
    drawn = awkward(np.random.default_rng(seed))
    found = solve(drawn, "lagrangian")
    reward, low, high, budget = drawn.arguments()
    width = high - low
    room = 1 - low.sum(axis=-1, keepdims=True)
    total = width.sum(axis=-1, keepdims=True)
    inside = low + width * np.divide(room, total, out=np.zeros_like(total), where=total > 0)
    low, high = inside + factor * (low - inside), inside + factor * (high - inside)
    narrow = plan(reward, low, high, budget, engine="lagrangian", pays=drawn.pays)
    assert narrow.value <= found.value + 1e-7


@settings(max_examples=60, deadline=None)
@given(seed=seeds)
def test_the_order_of_the_arms_makes_no_difference(seed):
    rng = np.random.default_rng(seed)
    drawn = awkward(rng)
    order = rng.permutation(len(drawn.reward))
    reward, low, high, budget = drawn.arguments()
    found = solve(drawn, "lagrangian")
    moved = plan(
        reward[order], low[order], high[order], budget, engine="lagrangian", pays=drawn.pays
    )
    assert moved.value == pytest.approx(found.value, abs=1e-9)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("pays", ["all", "active"])
def test_with_full_boxes_every_arm_sits_in_its_best_state(engine, pays):
    reward = np.random.default_rng(1).uniform(size=(6, 4))
    low, high = np.zeros((6, 4, 2, 4)), np.ones((6, 4, 2, 4))
    found = plan(reward, low, high, 2, engine=engine, pays=pays)
    best = np.sort(reward.max(axis=1))
    expected = best.sum() if pays == "all" else best[-2:].sum()
    assert found.value == pytest.approx(expected, abs=1e-7)
    if pays == "all":
        assert found.occupancy.sum(axis=2).argmax(axis=1) == pytest.approx(reward.argmax(axis=1))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_budget_for_all_has_no_price(engine):
    drawn = ordinary(np.random.default_rng(2), 5, 3, budget=5)
    found = solve(drawn, engine)
    assert found.multiplier == pytest.approx(0, abs=1e-7)
    check_index(found)


def transitions(*kinds):
    """[N, S, A, S] of kinds (arms, rows waiting, rows acting)."""
    return np.concatenate(
        [np.repeat(np.stack([wait, act], axis=1)[None], n, axis=0) for n, wait, act in kinds]
    )


# Appendix F.
CPAP = transitions(
    (
        10,
        np.array([[0.1385, 0.1, 0.7615], [0.1, 0.1, 0.8], [0.1257, 0.1245, 0.7498]]),
        np.array([[0.1, 0.1, 0.8]] * 3),
    ),
    (
        10,
        np.array([[0.7427, 0.0741, 0.1832], [0.3399, 0.1634, 0.4967], [0.2323, 0.102, 0.6657]]),
        np.array([[0.1427, 0.3741, 0.4832], [0.1399, 0.1, 0.7601], [0.1323, 0.1, 0.7677]]),
    ),
)
APP = transitions(
    (
        10,
        np.array([[7, 1, 1, 1], [5, 3, 1, 1], [2, 4, 3, 1], [1, 2, 2, 5]]) / 10,
        np.array([[2, 2, 14, 2], [2, 2, 2, 14], [2, 2, 2, 14], [1, 1, 1, 17]]) / 20,
    )
)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("rows", "states", "budget", "bound"),
    [
        (CPAP, [0, 0.5, 1], 8, 15.9004),
        (APP, [0, 1 / 3, 2 / 3, 1], 4, 6.8000),
        (APP, [0, 0.33, 0.66, 1], 4, 6.782),
    ],
)
def test_lp_bounds_of_the_paper(engine, rows, states, budget, bound):
    reward = np.tile(states, (len(rows), 1))
    digits = 5e-5 if bound != 6.782 else 5e-4
    assert plan(reward, rows, rows, budget, engine=engine).value == pytest.approx(bound, abs=digits)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_advantage_of_a_state_never_visited_tells_what_acting_is_worth(engine):
    """Nobody who is well falls ill, so the plan visits no ill state; but an ill arm needs help."""
    well, ill = [1.0, 0.0], [0.0, 1.0]
    rows = np.array([[[well, well], [ill, [0.5, 0.5]]]])
    found = plan([[1.0, 0.0]], rows, rows, 1, engine=engine)
    assert found.value == pytest.approx(1)
    assert found.index[0, 1] == 0
    # Ill, an arm that is helped loses 1 an epoch for 2 epochs; waiting puts that off by one more.
    assert found.advantage[0, 1] == pytest.approx(1)
