import numpy as np
import pytest
from drawn import awkward, ordinary

from dopl_core.learning.planning import PlanningError, arms, lagrangian, plan


def solve(drawn, **options):
    options = {"engine": "lagrangian", "pays": drawn.pays, **options}
    return plan(*drawn.arguments(), **options)


@pytest.mark.parametrize("pays", ["all", "active"])
@pytest.mark.parametrize(("n_arms", "n_states"), [(100, 3), (200, 2), (70, 5)])
def test_many_arms_are_planned_as_highs_plans_them(n_arms, n_states, pays):
    drawn = ordinary(np.random.default_rng(n_arms), n_arms, n_states, pays=pays)
    found, truth = solve(drawn), solve(drawn, engine="highs")
    assert found.value == pytest.approx(truth.value, abs=1e-8)
    assert found.multiplier == pytest.approx(truth.multiplier, abs=1e-8)
    assert found.advantage == pytest.approx(truth.advantage, abs=1e-6)


def test_the_budget_is_met_exactly_by_mixing_one_arm():
    for seed in range(30):
        drawn = ordinary(np.random.default_rng(seed), 30, 3, 0.1, budget=4.5)
        found = solve(drawn)
        assert found.multiplier > 0
        assert found.occupancy[..., 1].sum() == pytest.approx(4.5, abs=1e-10)
        assert ((found.index > 0) & (found.index < 1)).any(axis=1).sum() <= 1


def test_identical_arms_are_told_apart_by_no_more_than_the_budget_asks():
    one = ordinary(np.random.default_rng(5), 1, 3, 0.0)
    n_arms = 40
    reward, low, high = (np.repeat(x, n_arms, axis=0) for x in one.arguments()[:3])
    alone = plan(reward[:1], low[:1], high[:1], 1, engine="lagrangian").occupancy[..., 1].sum()
    found = plan(reward, low, high, 0.3 * alone * n_arms, engine="lagrangian")
    assert len(np.unique(found.occupancy.round(9), axis=0)) <= 3
    assert found.occupancy[..., 1].sum() == pytest.approx(0.3 * alone * n_arms)


@pytest.mark.parametrize("few", [1, 3])
@pytest.mark.parametrize("block", [2, 5])
def test_dividing_the_arms_changes_nothing(few, block, monkeypatch):
    problems = [awkward(np.random.default_rng(seed)) for seed in range(30)]
    whole = [solve(drawn).value for drawn in problems]
    monkeypatch.setattr(arms, "FEW", few)
    monkeypatch.setattr(lagrangian, "FEW", few)
    monkeypatch.setattr(arms, "BLOCK", block)
    monkeypatch.setattr(lagrangian, "SAMPLE", 2)
    assert [solve(drawn).value for drawn in problems] == pytest.approx(whole, abs=1e-9)


def test_any_start_leads_to_the_same_plan():
    rng = np.random.default_rng(0)
    for _ in range(60):
        drawn = awkward(rng)
        found = solve(drawn)
        for start in (found.start, rng.exponential(10 ** rng.uniform(-3, 1), found.start.size)):
            assert solve(drawn, start=start).value == pytest.approx(found.value, abs=1e-9)


def test_plans_of_all_engines_start_the_next():
    drawn = ordinary(np.random.default_rng(1))
    starts = [solve(drawn, engine=engine).start for engine in ("cbc", "highs", "lagrangian")]
    assert starts[0] == pytest.approx(starts[2], abs=1e-5)
    assert starts[1] == pytest.approx(starts[2], abs=1e-8)
    assert solve(drawn, start=starts[0]).value == pytest.approx(solve(drawn).value)


def test_the_same_start_gives_the_same_plan_bit_for_bit():
    drawn = ordinary(np.random.default_rng(1))
    start = solve(drawn).start
    one, other = solve(drawn, start=start), solve(drawn, start=start.copy())
    assert (one.occupancy == other.occupancy).all()
    assert (one.advantage == other.advantage).all()
    assert (one.start == other.start).all()


@pytest.mark.parametrize("start", [np.zeros(60), np.full(61, np.nan), -np.ones(61)])
def test_a_start_of_something_else_is_refused(start):
    with pytest.raises(PlanningError, match="20 arms with 3 states: 61 finite"):
        solve(ordinary(np.random.default_rng(1)), start=start)


def test_arms_that_earn_nothing_are_left_alone():
    drawn = ordinary(np.random.default_rng(1), 4)
    found = plan(np.zeros((4, 3)), drawn.low, drawn.high, 2, engine="lagrangian")
    assert found.value == 0
    assert not found.index.any()
