"""What planning costs: each engine against the plain way, against the others, and with N.

Processor time, that of CBC included, so that whatever else the machine is doing counts for
little. Each comparison takes turns on the same problems, whose numbers change every time.
"""

import resource
import warnings
from collections.abc import Callable
from time import process_time

import numpy as np
import pulp
from numpy.typing import NDArray

from dopl_core.learning.planning import Plan, plan

Problem = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], float]


def main() -> None:
    """Print each ratio beside its bar, and the times it is made of."""
    rng = np.random.default_rng(0)
    print("planning: CBC against the plain way of writing the same LP in PuLP, N=20 S=3")
    for name, half_width, bar in (
        ("known rows (half-width 0)", 0.0, ""),
        ("tight boxes (half-width 0.05)", 0.05, "bar: at most 0.60"),
        ("half-width 0.5", 0.5, ""),
        ("wide boxes (half-width 1)", 1.0, "bar: at most 0.40"),
    ):
        problems = [_problem(rng, 20, 3, half_width, 4) for _ in range(30)]
        ours, plain = _times(problems, _cbc, _plain)
        print(f"  {name}: {ours:.1f} of {plain:.1f} ms, {ours / plain:.2f} ({bar or 'no bar'})")

    print("planning: lagrangian against the others, half-width 0.05, budget binding")
    ours, cbc = _times(_drift(rng, 60), _warm(), _cbc)
    _against("CBC, N=20 S=3, warm", ours, cbc, 10)
    problems = [_problem(rng, 1000, 3, 0.05, 150) for _ in range(10)]
    [thousand] = _times(problems, _lagrangian)
    [highs] = _times(problems[:1], _highs)
    _against("HiGHS, N=1000 S=3", thousand, highs, 50)
    problems = [_problem(rng, 100, 16, 0.05, 10) for _ in range(5)]
    [ours] = _times(problems, _lagrangian)
    [highs] = _times(problems[:1], _highs)
    _against("HiGHS, N=100 S=16", ours, highs, 20)
    problems = [_problem(rng, 100_000, 3, 0.05, 15_000) for _ in range(3)]
    [hundred_thousand] = _times(problems, _lagrangian)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"  N=1,000 to N=100,000: {thousand:.1f} to {hundred_thousand:.0f} ms, "
        f"{hundred_thousand / thousand:.0f}x (bar: at most 130x), peak memory {peak:.2f} GB "
        "(bar: 4 GB)"
    )


def _against(name: str, ours: float, theirs: float, bar: int) -> None:
    print(f"  {name}: {ours:.2f} of {theirs:.1f} ms, {theirs / ours:.0f}x (bar: at least {bar}x)")


def _problem(
    rng: np.random.Generator, n_arms: int, n_states: int, half_width: float, budget: float
) -> Problem:
    rows = rng.dirichlet(np.ones(n_states), size=(n_arms, n_states, 2))
    reward = np.sort(rng.uniform(size=(n_arms, n_states)), axis=1)
    return reward, np.clip(rows - half_width, 0, 1), np.clip(rows + half_width, 0, 1), budget


def _drift(rng: np.random.Generator, length: int) -> list[Problem]:
    """The same bandit as it is learned: rows that move by a few percent from plan to plan."""
    reward, low, high, budget = _problem(rng, 20, 3, 0.05, 4)
    problems = []
    for _ in range(length):
        other = _problem(rng, 20, 3, 0.05, 4)
        low, high = 0.98 * low + 0.02 * other[1], 0.98 * high + 0.02 * other[2]
        problems.append((reward, low, high, budget))
    return problems


def _warm() -> Callable[[Problem], float]:
    """Plans that each start from the one before."""
    start: NDArray[np.float64] | None = None

    def solve(problem: Problem) -> float:
        nonlocal start
        found = plan(*problem, engine="lagrangian", start=start)
        start = found.start
        return _binding(found)

    return solve


def _lagrangian(problem: Problem) -> float:
    return _binding(plan(*problem, engine="lagrangian"))


def _highs(problem: Problem) -> float:
    return _binding(plan(*problem, engine="highs"))


def _cbc(problem: Problem) -> float:
    return plan(*problem).value


def _binding(found: Plan) -> float:
    if found.multiplier <= 0:
        raise AssertionError("the budget does not bind: the comparison would flatter")
    return found.value


def _plain(problem: Problem) -> float:
    """The same LP as one would write it down: errata 10, term by term."""
    reward, low, high, budget = problem
    arms, states, actions = range(len(reward)), range(reward.shape[1]), range(2)
    places = [(n, s, a, y) for n in arms for s in states for a in actions for y in states]
    program = pulp.LpProblem("elp", pulp.LpMaximize)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        w = pulp.LpVariable.dicts("w", places, lowBound=0)
        solver = pulp.PULP_CBC_CMD(msg=False)
    program += pulp.lpSum(reward[n, s] * w[n, s, a, y] for n, s, a, y in places)
    program += pulp.lpSum(w[n, s, 1, y] for n in arms for s in states for y in states) <= budget
    for n in arms:
        program += pulp.lpSum(w[n, s, a, y] for s in states for a in actions for y in states) == 1
        for s in states:
            leave = pulp.lpSum(w[n, s, a, y] for a in actions for y in states)
            enter = pulp.lpSum(w[n, y, a, s] for a in actions for y in states)
            program += leave == enter
            for a in actions:
                visits = pulp.lpSum(w[n, s, a, y] for y in states)
                for y in states:
                    program += w[n, s, a, y] <= high[n, s, a, y] * visits
                    program += w[n, s, a, y] >= low[n, s, a, y] * visits
    program.solve(solver)
    return float(pulp.value(program.objective))


def _times(problems: list[Problem], *ways: Callable[[Problem], float]) -> list[float]:
    """Milliseconds of processor time that each way takes for a problem, in the median."""
    times: list[list[float]] = [[] for _ in ways]
    for problem in problems:
        values = []
        for way, spent in zip(ways, times, strict=True):
            started = _processor_time()
            values.append(way(problem))
            spent.append(1e3 * (_processor_time() - started))
        if max(values) - min(values) > 1e-5:
            raise AssertionError(f"the ways disagree about the value: {values}")
    return [float(np.median(spent)) for spent in times]


def _processor_time() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return process_time() + children.ru_utime + children.ru_stime
