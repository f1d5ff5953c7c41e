"""Floors of groups and caps of arms: one contract for all engines."""

import numpy as np
import pytest
from drawn import awkward, limited, ordinary
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from dopl_core.learning.planning import ENGINES, PlanningError, even_floors, plan
from dopl_core.learning.planning.model import elp
from dopl_core.learning.planning.problem import pose

seeds = st.integers(0, 2**32 - 1)


def draw(seed, **kind):
    rng = np.random.default_rng(seed)
    drawn = awkward(rng, **kind)
    return drawn, limited(rng, drawn)


def solve(drawn, limits, engine="lagrangian"):
    return plan(*drawn.arguments(), engine=engine, pays=drawn.pays, **limits)


def use_of(found, groups):
    return np.bincount(groups, weights=found.occupancy[..., 1].sum(axis=1))


def check_limits(drawn, limits, found):
    """Within budget and caps, no group below its floor, worth its value."""
    use = found.occupancy[..., 1].sum(axis=1)
    assert found.occupancy.min() >= 0
    assert found.occupancy.sum(axis=(1, 2)) == pytest.approx(1, abs=1e-6)
    assert use.sum() <= drawn.budget + 1e-6
    helped = np.bincount(limits["groups"], weights=use, minlength=len(limits["floors"]))
    assert (helped >= limits["floors"] - 1e-6).all()
    assert limits["caps"] is None or (use <= limits["caps"] + 1e-6).all()


def check_prices(limits, found):
    """A price below the multiplier only if the floor binds, and above it only if the cap binds."""
    use = found.occupancy[..., 1].sum(axis=1)
    groups, floors = limits["groups"], limits["floors"]
    caps = np.ones(use.size) if limits["caps"] is None else limits["caps"]
    spare = np.bincount(groups, weights=use, minlength=len(floors)) - floors
    free = (spare[groups] > 1e-5) & (use < caps - 1e-5)
    assert found.prices[free] == pytest.approx(found.multiplier, abs=1e-6)
    assert (found.prices[use < caps - 1e-5] <= found.multiplier + 1e-6).all()
    assert (found.prices[spare[groups] > 1e-5] >= found.multiplier - 1e-6).all()


def check_index(found, tolerance=1e-6):
    """At their own prices arms act where it is no worse, and wait where it is no better."""
    visits = found.occupancy.sum(axis=2)
    scale = 1 + np.abs(found.prices)[:, None] * np.ones(visits.shape)
    seen = visits > 1e-5
    index, advantage = found.index[seen], (found.advantage / scale)[seen]
    assert (advantage[index > 1e-6] >= -tolerance).all()
    assert (advantage[index < 1 - 1e-6] <= tolerance).all()


@pytest.mark.parametrize("block", range(4))
def test_all_engines_agree_with_floors_and_caps(block):
    for seed in range(12 * block, 12 * block + 12):
        drawn, limits = draw(seed)
        found = {engine: solve(drawn, limits, engine) for engine in ENGINES}
        for engine, one in found.items():
            assert one.value == pytest.approx(found["cbc"].value, abs=1e-6), (seed, engine)
            check_limits(drawn, limits, one)


@settings(max_examples=40, deadline=None)
@given(seed=seeds)
@example(seed=591756)  # here the search for the price of a cap ends above it
def test_engines_in_process_agree_on_any_problem(seed):
    drawn, limits = draw(seed)
    highs, lagrangian = (solve(drawn, limits, engine) for engine in ("highs", "lagrangian"))
    assert lagrangian.value == pytest.approx(highs.value, abs=1e-6)
    check_limits(drawn, limits, lagrangian)


@pytest.mark.parametrize("half_width", [0.0, 0.05, 1.0])
@pytest.mark.parametrize("pays", ["all", "active"])
def test_engines_agree_with_full_boxes_tight_boxes_and_known_rows(half_width, pays):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        drawn = ordinary(rng, 9, 3, half_width, budget=3, pays=pays)
        limits = limited(rng, drawn)
        values = [solve(drawn, limits, engine).value for engine in ENGINES]
        assert max(values) - min(values) < 1e-6


def test_engines_agree_on_twins_of_which_some_group_must_get_its_share():
    one = ordinary(np.random.default_rng(5), 1, 3, 0.0)
    reward, low, high = (np.repeat(x, 12, axis=0) for x in one.arguments()[:3])
    groups = np.arange(12) % 3
    for floors in ([1, 1, 1], [0, 3, 0], [0.7, 0.1, 1.9], [4, 0, 0]):
        found = [
            plan(reward, low, high, 4, engine=engine, groups=groups, floors=floors)
            for engine in ENGINES
        ]
        assert max(x.value for x in found) - min(x.value for x in found) < 1e-6
        for one in found:
            assert (use_of(one, groups) >= np.array(floors) - 1e-6).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_prices_and_advantages_fit_the_plan(engine):
    for seed in range(12 if engine == "cbc" else 50):
        drawn, limits = draw(seed, zeros=False)
        found = solve(drawn, limits, engine)
        check_prices(limits, found)
        check_index(found)


def test_many_arms_are_planned_as_highs_plans_them():
    for n_arms, seed in ((80, 1), (200, 2)):
        rng = np.random.default_rng(seed)
        drawn = ordinary(rng, n_arms, 3, 0.05)
        limits = limited(rng, drawn)
        found, truth = solve(drawn, limits), solve(drawn, limits, "highs")
        assert found.value == pytest.approx(truth.value, abs=1e-8)


def test_floors_that_do_not_bind_change_nothing():
    drawn = ordinary(np.random.default_rng(3), 30, 3, 0.05)
    groups = np.arange(30) % 2
    free = plan(*drawn.arguments(), engine="lagrangian")
    floors = 0.9 * use_of(free, groups)
    found = plan(*drawn.arguments(), engine="lagrangian", groups=groups, floors=floors)
    assert (found.advantage == free.advantage).all()
    assert (found.prices == free.multiplier).all()
    assert free.prices is None


def test_a_group_below_its_floor_has_a_lower_price_and_gets_its_floor_exactly():
    drawn = ordinary(np.random.default_rng(3), 30, 3, 0.05)
    groups = np.arange(30) % 2
    free = plan(*drawn.arguments(), engine="lagrangian")
    floors = use_of(free, groups) + np.array([0.5, -3])
    found = plan(*drawn.arguments(), engine="lagrangian", groups=groups, floors=floors)
    assert use_of(found, groups)[0] == pytest.approx(floors[0])
    assert found.value < free.value
    assert found.prices[groups == 0].max() < found.multiplier
    assert found.prices[groups == 1] == pytest.approx(found.multiplier)


def test_a_warm_start_leads_to_the_same_plan_with_limits():
    for seed in range(15):
        drawn, limits = draw(seed)
        found = solve(drawn, limits)
        again = solve(drawn, limits | {"start": found.start})
        assert again.value == pytest.approx(found.value, abs=1e-9)


@pytest.mark.parametrize(
    ("message", "limits"),
    [
        ("groups and floors belong together", {"floors": [1.0]}),
        ("the floors sum to 5, but the budget is 4: lower", {"floors": [3, 2]}),
        ("the floor of group 1 is 3, but it has 2 arms: lower", {"floors": [0, 3]}),
        ("floors must be a list of numbers from 0", {"floors": [[1.0]]}),
        ("floors must be a list of numbers from 0", {"floors": [-1, 1]}),
        ("floors must be a list of numbers from 0", {"floors": [np.nan, 1]}),
        ("groups must be 20 whole numbers from 0 to 0", {"floors": [1]}),
        ("groups must be 20 whole numbers", {"floors": [1, 1], "groups": [0, 1]}),
        ("groups must be 20 whole numbers", {"floors": [1, 1], "groups": [0.5] * 20}),
        ("groups must be 20 whole numbers", {"floors": [1, 1], "groups": [-1] * 20}),
        ("caps must be 20 shares from 0 to 1", {"floors": [1, 1], "caps": [2.0] * 20}),
        ("caps must be 20 shares from 0 to 1", {"floors": [1, 1], "caps": [0.5]}),
        ("caps of its arms allow 0.2: lower", {"floors": [0, 1], "caps": [0.1] * 20}),
    ],
)
@pytest.mark.parametrize("engine", ENGINES)
def test_limits_that_cannot_be_met_are_refused_in_words(engine, message, limits):
    drawn = ordinary(np.random.default_rng(0))
    groups = {} if message.startswith("groups and") else {"groups": [0] * 18 + [1] * 2}
    with pytest.raises(PlanningError, match=message):
        plan(*drawn.arguments(), engine=engine, **(groups | limits))


@pytest.mark.parametrize("seed", range(8))
def test_evening_out_raises_the_worst_off_group_as_far_as_an_lp_does(seed):
    rng = np.random.default_rng(seed)
    drawn = ordinary(rng, 12, 3, 0.0, budget=3)
    groups = np.arange(12) % 3
    floors = even_floors(*drawn.arguments(), groups)
    assert floors.sum() <= drawn.budget + 1e-9
    found = plan(*drawn.arguments(), engine="lagrangian", groups=groups, floors=floors)
    pay = (found.occupancy.sum(axis=2) * drawn.reward).sum(axis=1)
    worst = (np.bincount(groups, weights=pay) / 4).min()
    assert worst == pytest.approx(_best_worst(drawn, groups), abs=0.01)


def _best_worst(drawn, groups):
    """The highest mean pay that all groups of 4 can reach: the ELP with the lowest mean as pay."""
    model = elp(pose(*drawn.arguments(), "all"))
    rows = model.rows.toarray()
    pairs = np.repeat(groups, 6)
    means = [np.where(pairs == group, -model.gain, 0) / 4 for group in range(3)]
    upper = np.column_stack([np.vstack([rows[model.n_equal :], means]), [0, 1, 1, 1]])
    equal = np.pad(rows[: model.n_equal], ((0, 0), (0, 1)))
    limits = model.limit[: model.n_equal], np.append(model.limit[model.n_equal :], [0, 0, 0])
    return -linprog(-np.eye(len(upper.T))[-1], upper, limits[1], equal, limits[0]).fun
