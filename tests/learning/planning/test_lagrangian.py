import numpy as np
import pytest
from drawn import awkward, ordinary

from dopl_core.learning.planning import PlanningError, arms, lagrangian, plan
from dopl_core.learning.planning.chains import Policy
from dopl_core.learning.planning.lagrangian import Bracket
from dopl_core.learning.planning.problem import pose


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
def test_a_start_of_another_bandit_is_refused(start):
    with pytest.raises(PlanningError, match="20 arms with 3 states: 61 finite"):
        solve(ordinary(np.random.default_rng(1)), start=start)


def test_arms_that_earn_nothing_are_left_alone():
    drawn = ordinary(np.random.default_rng(1), 4)
    found = plan(np.zeros((4, 3)), drawn.low, drawn.high, 2, engine="lagrangian")
    assert found.value == 0
    assert not found.index.any()


def policy_with(pay, use):
    """Policies of arms with one state, that earn and act so much on average."""
    parts = np.zeros((6, 1, len(pay)))
    parts[3] = 1.0
    parts[4] = use
    return Policy(np.array([pay, use], dtype=float), parts)


def between(low, high, left, right):
    return Bracket(low, high, policy_with(*left), policy_with(*right))


def test_the_optimum_is_between_the_two_ends_of_a_bracket():
    for seed in range(20):
        drawn = ordinary(np.random.default_rng(seed), 12)
        each = arms.of(pose(*drawn.arguments(), "all"))
        truth = solve(drawn, engine="highs").multiplier
        for multiplier in (0.0, 0.1, 1.0):
            found = lagrangian.bracket(each, drawn.budget, multiplier, 0.01, np.zeros((3, 12)))
            assert found.low - 1e-9 <= truth <= found.high + 1e-9
            assert found.left.line[1].sum() > drawn.budget >= found.right.line[1].sum() - 1e-9


def test_where_the_budget_is_slack_there_is_nothing_to_bracket():
    drawn = ordinary(np.random.default_rng(0), 12, budget=12)
    each = arms.of(pose(*drawn.arguments(), "all"))
    found = lagrangian.bracket(each, 12.0, 1.0, 0.01, np.zeros((3, 12)))
    assert isinstance(found, lagrangian.Ample)
    assert found.multiplier == 0
    assert found.response.policy.gain(0.0).sum() == pytest.approx(solve(drawn).value)


def test_arms_change_over_where_their_tangents_cross_until_the_budget_is_met():
    found = between(0.0, 1.0, ([0.5, 0.2, 0.8], [1, 1, 1]), ([0, 0, 0], [0, 0, 0]))
    meeting = lagrangian.intersect(found, 1.5)
    assert meeting.multiplier == 0.5
    assert meeting.policy.line[1].tolist() == [1, 0, 1]  # arm 1 has changed over
    assert meeting.mixed.tolist() == [0]
    assert meeting.share == pytest.approx(0.5)
    assert meeting.open.tolist() == [1, 0, 2]


def test_arms_whose_tangents_are_one_are_not_open():
    found = between(0.0, 1.0, ([0.5, 0.2, 0.8], [1, 0.3, 1]), ([0, 0.2, 0], [0, 0.3, 0]))
    assert lagrangian.intersect(found, 1.5).open.tolist() == [0, 2]


def test_tangents_meet_at_the_lowest_point_of_their_sum():
    rng = np.random.default_rng(1)
    for _ in range(20):
        use = np.sort(rng.uniform(size=(2, 9)), axis=0)
        crossing = rng.uniform(size=9)
        right = rng.uniform(size=9), use[0]
        left = right[0] + crossing * (use[1] - use[0]), use[1]
        budget = rng.uniform(use[0].sum(), use[1].sum())
        meeting = lagrangian.intersect(between(0.0, 1.0, left, right), budget)

        def dual(multiplier, left=left, right=right, budget=budget):
            gains = np.maximum(left[0] - multiplier * left[1], right[0] - multiplier * right[1])
            return gains.sum() + multiplier * budget

        known = meeting.policy.gain(meeting.multiplier).sum() + meeting.multiplier * budget
        assert known == pytest.approx(dual(meeting.multiplier))
        assert known <= min(map(dual, np.linspace(0, 1, 201))) + 1e-12


def test_a_meeting_is_never_outside_its_bracket():
    tangents = ([0.5, 0.2, 0.8], [1, 1, 1]), ([0, 0, 0], [0, 0, 0])
    assert lagrangian.intersect(between(0.6, 0.9, *tangents), 1.5).multiplier == 0.6
    assert lagrangian.intersect(between(0.1, 0.4, *tangents), 1.5).multiplier == 0.4


def test_one_arm_follows_both_policies_in_part_to_meet_the_budget():
    found = between(0.0, 1.0, ([0.5, 0.2, 0.8], [1, 1, 1]), ([0, 0, 0], [0, 0, 0]))
    for budget in (0.3, 1.5, 2.0, 2.9):
        occupancy = lagrangian.mix(found, lagrangian.intersect(found, budget))
        assert occupancy.shape == (2, 1, 3)
        assert occupancy[1].sum() == pytest.approx(budget)
        assert occupancy.sum(axis=0) == pytest.approx(1)


def test_a_bracket_is_narrowed_to_the_part_that_holds_the_optimum():
    whole = between(0.0, 1.0, ([0.9, 0.9], [1, 1]), ([0, 0], [0, 0]))
    much, little = policy_with([0.9, 0.5], [1, 0.5]), policy_with([0.4, 0], [0.5, 0])
    assert whole.narrowed(0.5, much, 1.0) == Bracket(0.5, 1.0, much, whole.right)
    assert whole.narrowed(0.5, little, 1.0) == Bracket(0.0, 0.5, whole.left, little)


def test_a_multiplier_that_does_not_settle_is_an_error(monkeypatch):
    monkeypatch.setattr(lagrangian, "LIMIT", 0)
    with pytest.raises(PlanningError, match="did not settle between 0"):
        solve(ordinary(np.random.default_rng(1)))
