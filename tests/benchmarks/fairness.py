"""What the clinic's rules cost and do: floors of groups, and limits on how often.

Floors: on CPAP's two kinds of patients, and on rosters of three wards of which one responds little
to help. Costs are a share of what help gains, by the best plan for known transitions. Times are
processor time.
Limits: simulated clinics whose list obeys "at most once in k weeks", planned with and without it.
"""

from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dopl_core import environments
from dopl_core.learning.bandit import ACT, WAIT
from dopl_core.learning.planning import Plan, even_floors, plan
from dopl_core.learning.planning.ranking import rank

Floats = NDArray[np.float64]
SIZES = (20, 100, 1_000, 10_000, 100_000)


def main() -> None:
    """Print costs, effects and times."""
    bandit = environments.load("cpap")
    kinds = sorted(set(bandit.groups))
    groups = np.array([kinds.index(kind) for kind in bandit.groups])
    rows, rewards = np.asarray(bandit.transitions), np.asarray(bandit.rewards)
    print(f"fairness: CPAP, 20 patients of two kinds, budget {bandit.budget}")
    _floors(rewards, rows, bandit.budget, groups)
    print("fairness: three wards (60, 30 and 10 % of the roster), the last responds least to help")
    for size in SIZES:
        rewards, rows, groups = _wards(size)
        budget = size // 5
        print(f" N={size:,}, budget {budget:,}")
        _floors(rewards, rows, budget, groups)
    _times()
    _spread()


def _floors(rewards: Floats, rows: Floats, budget: int, groups: NDArray[np.int64]) -> None:
    """Who gets how much with and without each rule, and what it costs."""
    free = _plan(rewards, rows, budget)
    nothing = _plan(rewards, rows[:, :, [WAIT, WAIT]], budget).value
    size = np.bincount(groups)
    share = budget * size / size.sum()
    even = even_floors(rewards, rows, rows, budget, groups)
    print(f"  no rule: places {_places(free, groups)}, mean reward {_means(free, rewards, groups)}")
    for name, floors in (("share of the roster", share), ("evened out", even)):
        found = _plan(rewards, rows, budget, groups=groups, floors=floors * (1 - 1e-12))
        cost = (free.value - found.value) / (free.value - nothing)
        print(
            f"  {name}: places {_places(found, groups)}, mean reward "
            f"{_means(found, rewards, groups)}, costs {100 * cost:.1f} %"
        )


def _plan(rewards: Floats, rows: Floats, budget: int, **limits: Any) -> Plan:
    return plan(rewards, rows, rows, budget, engine="lagrangian", **limits)


def _places(found: Plan, groups: NDArray[np.int64]) -> str:
    use = np.bincount(groups, weights=found.occupancy[..., ACT].sum(axis=1))
    return " / ".join(f"{x:,.1f}" for x in use)


def _means(found: Plan, rewards: Floats, groups: NDArray[np.int64]) -> str:
    pay = np.bincount(groups, weights=(found.occupancy.sum(axis=2) * rewards).sum(axis=1))
    return " / ".join(f"{x:.3f}" for x in pay / np.bincount(groups))


def _wards(size: int, seed: int = 0) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Rewards [N, 3] and transitions [N, 3, 2, 3] of wards that respond well, less, and little."""
    rng = np.random.default_rng(seed)
    groups = np.sort(rng.permutation(np.arange(size) % 10))
    groups = np.select([groups < 6, groups < 9], [0, 1], 2)
    wait = rng.dirichlet([4.0, 2.0, 1.0], size=(size, 3))
    effect = np.array([0.6, 0.4, 0.15])[groups] * rng.uniform(0.5, 1, size)
    better = np.array([0.05, 0.15, 0.8])
    act = wait + effect[:, None, None] * (better - wait)
    rewards = np.tile([0.0, 0.5, 1.0], (size, 1))
    return rewards, np.stack([wait, act], axis=2), groups.astype(np.int64)


def _times() -> None:
    """Milliseconds of the lagrangian engine without limits, with floors, and with caps too."""
    print("fairness: the lagrangian engine without limits, with floors, with floors and caps (ms)")
    for size in SIZES:
        rewards, rows, groups = _wards(size)
        low, high = np.clip(rows - 0.05, 0, 1), np.clip(rows + 0.05, 0, 1)
        budget = size // 5
        floors = budget * np.bincount(groups) / size * (1 - 1e-12)
        limits = {"groups": groups, "floors": floors}
        ways = ({}, limits, limits | {"caps": np.full(size, 0.5)})
        took = []
        for way in ways:
            times = []
            for _ in range(3 if size < 50_000 else 1):
                started = process_time()
                plan(rewards, low, high, budget, engine="lagrangian", **way)
                times.append(1e3 * (process_time() - started))
            took.append(float(np.median(times)))
        none, floor, both = took
        print(
            f"  N={size:,}: {none:.1f}, {floor:.1f} ({floor / none:.1f}x), {both:.1f} "
            f"({both / none:.1f}x); {1e3 * floor / size:.1f} microseconds an arm with floors"
        )


def _spread() -> None:
    """What clinics do under "at most once in k weeks", if the plan knows the rule or not."""
    print('fairness: "at most once in k weeks", N=30, budget 3, 20 clinics of 100 weeks')
    for k in (3, 6, 9):
        found = np.array([_clinic(k, seed) for seed in range(20)])  # [20, way, 3]
        (blind, ran, few), (_, runs, many), (nothing, _, _) = found.mean(axis=0)
        difference = found[:, 1, 0] - found[:, 0, 0]
        of = (blind - nothing) / 100
        gain, error = difference.mean() / of, difference.std() / np.sqrt(20) / of
        print(
            f"  k={k}: the plan helps {few:.0f} people, {many:.0f} if it knows the rule; barred "
            f"among the 3 most urgent {100 * ran:.0f} %, {100 * runs:.0f} %; reward {gain:+.1f} % "
            f"(standard error {error:.1f} %)"
        )


def _patients(seed: int) -> Floats:
    """Transitions of 30 patients; 8 respond well in any state, all respond best in the lowest."""
    rng = np.random.default_rng(seed)
    wait = np.array([[0.8, 0.15, 0.05], [0.3, 0.6, 0.1], [0.05, 0.15, 0.8]])
    effect = np.where(np.arange(30)[:, None] < 8, [0.9, 0.6, 0.5], [0.3, 0.1, 0.0])
    effect = effect * rng.uniform(0.8, 1.0, (30, 1))
    act = wait + effect[..., None] * (np.array([0.0, 0.1, 0.9]) - wait)
    return np.stack([np.broadcast_to(wait, act.shape), act], axis=2)


def _clinic(k: int, seed: int, weeks: int = 100) -> list[tuple[float, float, float]]:
    """Mean reward, share of the most urgent who are barred, people whom the plan helps.

    Three ways: the list of a plan that ignores the rule, of one that knows it, and no help.
    """
    arms, rows, rewards = np.arange(30), _patients(seed), np.tile([0.0, 0.5, 1.0], (30, 1))
    plans = [_plan(rewards, rows, 3), _plan(rewards, rows, 3, caps=np.full(30, 1 / k))]
    totals = []
    for found in (*plans, None):
        rng = np.random.default_rng([seed, k])
        states, last, earned, barred = np.zeros(30, dtype=int), np.full(30, -k), 0.0, 0
        for week in range(weeks):
            acted, (ties, luck) = np.zeros(30, dtype=int), rng.random((2, 30))
            if found is not None:
                order = np.argsort(-rank(found.advantage)[arms, states] - ties)
                may = week - last[order] >= k
                barred += 3 - int(may[:3].sum())
                chosen = order[may][:3]
                acted[chosen], last[chosen] = 1, week
            chances = rows[arms, states, acted].cumsum(axis=1)
            states = np.minimum((luck[:, None] >= chances).sum(axis=1), 2)
            earned += rewards[arms, states].sum()
        use = np.zeros(30) if found is None else found.occupancy[..., ACT].sum(axis=1)
        totals.append((earned / weeks, barred / (3 * weeks), float((use > 0.01).sum())))
    return totals
