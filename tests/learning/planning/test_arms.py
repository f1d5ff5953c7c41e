import numpy as np
import pytest
from drawn import awkward, ordinary
from scipy.optimize import linprog

from dopl_core.learning.planning import arms, highs
from dopl_core.learning.planning.chains import guess
from dopl_core.learning.planning.problem import Problem, pose


def posed(drawn):
    return pose(*drawn.arguments(), drawn.pays)


def cold(problem):
    return guess(np.zeros(problem.pay.shape[1::-1]))


def best_gains(problem, multiplier):
    """[N] by LP: the value of each arm on its own with a budget that does not bind."""
    pay = problem.pay - multiplier * np.array([0.0, 1.0])
    free = Problem(pay, problem.low, problem.width, problem.room, budget=len(pay))
    return (highs.solve(free)[0] * pay).sum(axis=(1, 2))


@pytest.mark.parametrize("seed", range(20))
def test_optimistic_rows_are_the_best_of_their_boxes(seed):
    rng = np.random.default_rng(seed)
    drawn = ordinary(rng, 2, 4, rng.choice([0.0, 0.2, 1.0]))
    bias = rng.integers(0, 4, size=(4, 2)).astype(float)  # with ties
    rows = arms.optimistic(arms.of(posed(drawn)), bias)
    assert rows.sum(axis=2) == pytest.approx(1)
    for n, s, a in np.ndindex(2, 4, 2):
        row, low, high = rows[a, s, :, n], drawn.low[n, s, a], drawn.high[n, s, a]
        assert (row >= low - 1e-12).all()
        assert (row <= high + 1e-12).all()
        bounds = np.stack([low, high], axis=1)
        best = linprog(-bias[:, n], A_eq=np.ones((1, 4)), b_eq=[1], bounds=bounds)
        assert row @ bias[:, n] == pytest.approx(-best.fun)


@pytest.mark.parametrize("limit", [1, 2, arms.LIMIT])
def test_responses_are_optimal_by_policy_iteration_and_by_lp(limit, monkeypatch):
    monkeypatch.setattr(arms, "LIMIT", limit)  # 1: all by LP
    for seed in range(40):
        rng = np.random.default_rng(seed)
        problem = posed(awkward(rng))
        multiplier = rng.choice([0.0, rng.uniform()])
        answer = arms.respond(arms.of(problem), multiplier, cold(problem))
        expected = best_gains(problem, multiplier)
        assert answer.policy.gain(multiplier) == pytest.approx(expected, abs=1e-7)


def test_responses_do_not_depend_on_how_the_arms_are_divided(monkeypatch):
    problem = posed(ordinary(np.random.default_rng(3), 300))
    whole = arms.respond(arms.of(problem), 0.1, cold(problem))
    monkeypatch.setattr(arms, "FEW", 3)
    monkeypatch.setattr(arms, "BLOCK", 70)
    divided = arms.respond(arms.of(problem), 0.1, cold(problem))
    assert divided.policy.line == pytest.approx(whole.policy.line)
    assert divided.advantage == pytest.approx(whole.advantage)


def test_a_response_leaves_the_policy_it_started_from_alone():
    problem = posed(ordinary(np.random.default_rng(3), 300))
    first = arms.respond(arms.of(problem), 0.1, cold(problem)).policy
    line, parts = first.line.copy(), first.parts.copy()
    arms.respond(arms.of(problem), 0.11, first)
    assert (first.line == line).all()
    assert (first.parts == parts).all()


def test_classes_almost_equally_good_are_settled_by_lp(monkeypatch):
    """The best thing to do in one class leads to another that is worse by a hair."""
    calls = []
    by_lp = arms.by_lp
    monkeypatch.setattr(arms, "by_lp", lambda *a: calls.append(1) or by_lp(*a))
    stay, drift, end = [1.0, 0.0], [0.9, 0.1], [0.0, 1.0]
    rows = np.array([[[drift, stay], [end, end]]])
    problem = pose([[1.0, 0.5]], rows, rows, 1, "all")
    for multiplier in (0.5 - 1e-9, 0.5, 0.5 + 1e-9):
        answer = arms.respond(arms.of(problem), multiplier, cold(problem))
        assert answer.policy.gain(multiplier)[0] == pytest.approx(max(1 - multiplier, 0.5))
    assert calls


def test_policy_iteration_settles_all_but_very_few_arms(monkeypatch):
    by_lp, left_to_lp = arms.by_lp, []

    def counted(some, multiplier):
        left_to_lp.append(some.pay.shape[2])
        return by_lp(some, multiplier)

    monkeypatch.setattr(arms, "by_lp", counted)
    for seed in range(300):
        rng = np.random.default_rng(seed)
        problem = posed(awkward(rng))
        start = guess(rng.normal(size=problem.pay.shape[1::-1]))
        for multiplier in (0.5, 0.0, rng.uniform()):
            start = arms.respond(arms.of(problem), multiplier, start).policy
    assert sum(left_to_lp) <= 2


def test_another_multiplier_may_call_for_another_closed_class():
    """State 0 pays 1 while acted on, and is lost otherwise; state 1 pays 0.3 for nothing."""
    lost, held, second = [0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]
    rows = np.array([[[lost, held], [second, second], [lost, lost]]])
    problem = pose([[1.0, 0.3, 0.0]], rows, rows, 1, "all")
    policy = cold(problem)
    for multiplier, gain in ((0.0, 1.0), (0.9, 0.3), (0.5, 0.5), (2.0, 0.3), (0.6, 0.4)):
        policy = arms.respond(arms.of(problem), multiplier, policy).policy
        assert policy.gain(multiplier)[0] == pytest.approx(gain)


def test_ties_do_not_lead_policy_iteration_round_in_a_circle(monkeypatch):
    """At this multiplier acting in state 2 pays nothing, and many policies are equally good."""
    monkeypatch.setattr(arms, "by_lp", None)
    possible = [
        [[0, 1, 0, 1, 0], [1, 1, 1, 0, 0]],
        [[1, 1, 1, 1, 0], [1, 1, 1, 1, 0]],
        [[0, 1, 1, 0, 1], [1, 1, 0, 0, 1]],
        [[0, 0, 1, 1, 1], [0, 0, 0, 0, 1]],
        [[0, 1, 1, 1, 1], [1, 1, 1, 1, 0]],
    ]
    high = np.array([possible], dtype=float)
    problem = pose([[0, 0.25, 0.75, 0.5, 1]], 0 * high, high, 1, "active")
    answer = arms.respond(arms.of(problem), 0.75, cold(problem))
    assert answer.policy.gain(0.75) == pytest.approx(best_gains(problem, 0.75))


def test_the_best_action_is_known_in_classes_that_do_not_count_too():
    """State 0 is the best there is; an arm in 1 or 2 never gets there, but acting pays there."""
    best, bad, better = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]
    rows = np.array([[[best, best], [bad, [0.0, 0.5, 0.5]], [bad, better]]])
    problem = pose([[1.0, 0.0, 0.5]], rows, rows, 1, "all")
    answer = arms.respond(arms.of(problem), 0.1, cold(problem))
    assert answer.policy.gain(0.1) == pytest.approx(1)
    # Acting always gains 0.4 an epoch in state 2, and state 1 is 2 epochs of 0.5 behind it.
    assert answer.advantage[:, 0] == pytest.approx([-0.1, 0.4, 0.9], abs=1e-5)


def test_acting_costs_the_multiplier():
    problem = posed(ordinary(np.random.default_rng(1), 4))
    each = arms.of(problem)
    paid = each.pay.copy()
    net = arms.net_pay(each, 0.3)
    assert (net[0] == paid[0]).all()
    assert net[1] == pytest.approx(paid[1] - 0.3)
    assert (each.pay == paid).all()


def test_looking_ahead_from_the_best_policy_finds_its_gain_and_nothing_better():
    each = arms.of(posed(ordinary(np.random.default_rng(2), 10)))
    policy = arms.respond(each, 0.1, guess(np.zeros((3, 10)))).policy
    bias = policy.bias(0.1)
    rows, worth = arms.look_ahead(each, arms.net_pay(each, 0.1), policy, bias)
    assert (rows == arms.optimistic(each, bias)).all()
    best = worth.max(axis=0)
    assert best - bias == pytest.approx(np.broadcast_to(policy.gain(0.1), bias.shape))
    assert (worth[1] > worth[0]).astype(float) == pytest.approx(policy.act)
    assert not arms.improvable(best - bias - policy.gain(0.1), policy, rows, 1.0).any()


def test_nothing_is_better_by_less_than_a_bias_may_err():
    policy = guess(np.zeros((2, 2)))
    policy.time[:, 1] = 1e6  # epochs to the root of the second arm
    rows = np.full((2, 2, 2, 2), 0.5)
    slight = 2 * arms.TOLERANCE
    assert slight < 1e6 * arms.ROUNDING
    better = arms.improvable(np.array([[slight, slight], [0.0, 1e-6]]), policy, rows, 1.0)
    assert better.tolist() == [[True, False], [False, True]]


def test_any_action_is_better_than_those_of_an_unknown_policy():
    each = arms.of(posed(ordinary(np.random.default_rng(3), 5)))
    policy = guess(np.zeros((3, 5)))
    rows, worth = arms.look_ahead(each, each.pay, policy, policy.bias(0.0))
    gap = worth.max(axis=0) - policy.bias(0.0) - policy.gain(0.0)
    assert arms.improvable(gap, policy, rows, 1.0).all()
