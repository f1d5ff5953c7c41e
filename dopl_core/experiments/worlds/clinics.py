"""Clinics and programmes: worlds after Liang et al., seasons, wrong reports, and three groups."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import ndtr

from dopl_core import environments
from dopl_core.experiments.worlds.drawn import Drawn
from dopl_core.learning.bandit import Bandit, FloatArray
from dopl_core.learning.columns import Column, Columns, category, standardised

WEEKS = 50  # of a world after Liang et al.; its last week lasts for ever
SEASON = 26  # weeks of a clinic
OWN_WAY = 30  # moves of its own that an arm needs to outweigh its kind, where it has its own way


def liang(name: str, n_arms: int, budget: int) -> Callable[[int], Drawn]:
    """Two states, the second pays 1; four columns say how people move, and seasons change it."""

    def drawn(seed: int) -> Drawn:
        columns, weeks = covariates(n_arms, seed)
        texts = {
            one.name: tuple(
                one.labels[int(x)] if one.kind == "category" else f"{x:.6f}" for x in one.values
            )
            for one in columns.each
        }
        rewards = np.tile([0.0, 1.0], (n_arms, 1))
        settings: dict[str, Any] = {"columns": texts, "episodes": WEEKS, "horizon": 1}
        return Drawn(Bandit(weeks.mean(axis=0), rewards, budget, name=name, **settings), weeks)

    return drawn


def covariates(n_arms: int, seed: int) -> tuple[Columns, FloatArray]:
    """Columns of the arms, and transitions [T, N, S, A, S'] of all weeks, after Liang et al."""
    rng = np.random.default_rng([seed, n_arms, 4242])
    age = standardised(np.round(rng.normal(22, 2, n_arms)))
    normal, coin = rng.normal(size=(n_arms, 2)), rng.integers(2, size=n_arms)
    x = np.column_stack([normal, coin, age])
    coefficients = rng.normal(0, 0.3, 4) + rng.normal(0, 0.1, (2, 2, 4))
    own = np.zeros((n_arms, 2, 2))
    shared = rng.normal(0, 0.1, 2)
    own[:, :, 0] = rng.normal(0, 0.1, (n_arms, 2))
    own[:, :, 1] = (own[:, :, 0] @ shared)[:, None] + rng.normal(0, 0.1, (n_arms, 2))
    powers = np.arange(WEEKS)[:, None] ** np.array([1.0, 2.0, 3.0])
    powers = (powers - powers.mean(axis=0)) / powers.std(axis=0)
    season = np.einsum("tp,sap->tsa", powers, rng.normal(0, 0.15, (2, 2, 3)))
    up = ndtr(np.einsum("nd,sad->nsa", x, coefficients) + own + season[:, None])
    columns = (
        *(Column(f"normal {i + 1}", "number", normal[:, i]) for i in range(2)),
        category("coin", [str(side) for side in coin]),
        Column("age", "number", age),
    )
    return Columns(columns, n_arms), np.stack([1 - up, up], axis=-1)


def idle(kind: str, *, own_way: bool = False) -> Callable[[int], Drawn]:
    """Help does nothing; in week t, from 1, a share of all goes to the best or the worst state.

    own_way: rows are drawn for each arm from a Dirichlet distribution about those of CPAP
    """

    def drawn(seed: int) -> Drawn:
        cpap = environments.load("cpap", seed)
        alone = cpap.transitions[:, :, :1]
        if own_way:
            drawn = np.random.default_rng([seed, 20, 3030]).standard_gamma(OWN_WAY * alone)
            alone = drawn / drawn.sum(axis=3, keepdims=True)
        alone = alone.repeat(2, axis=2)  # with help as without
        week = np.arange(1, SEASON + 1)
        wave = np.sin(2 * np.pi * week / 13)
        share = 0.4 * np.abs(wave) if kind == "wave" else 0.45 * week / SEASON
        up = wave >= 0 if kind == "wave" else np.full(SEASON, kind == "rise")
        goal = np.eye(cpap.n_states)[np.where(up, cpap.n_states - 1, 0)]
        share, goal = share.reshape(-1, 1, 1, 1, 1), goal[:, None, None, None]
        weeks = (1 - share) * alone + share * goal
        name = f"idle_own_{kind}" if own_way else f"idle_{kind}"
        settings: dict[str, Any] = {"name": name, "episodes": SEASON, "horizon": 1}
        return Drawn(Bandit(weeks.mean(axis=0), cpap.rewards, cpap.budget, **settings), weeks)

    return drawn


def reports(name: str, *, late: bool = False, misread: float = 0.0) -> Callable[[int], Drawn]:
    """CPAP, where a learner is told the states late, or some of them wrong."""

    def drawn(seed: int) -> Drawn:
        clinic = replace(environments.load("cpap", seed), name=name, episodes=SEASON, horizon=1)
        return Drawn(clinic, late=late, misread=misread)

    return drawn


def three_groups(seed: int) -> Drawn:
    """Ten people each who are well off, who respond to help, and who are badly off.

    States are poor, fair and good. The gain from help is 0.15 to 0.25, 0.35 to 0.45 and 0.2 to 0.3
    of the chance to move up, so that a plan without floors leaves the third group out.
    """
    rng = np.random.default_rng([seed, 30, 1717])
    stays = np.repeat([0.3, 0.5, 0.75], 10) + rng.uniform(-0.05, 0.05, 30)  # in a poor state
    gain = np.repeat([0.2, 0.4, 0.25], 10) + rng.uniform(-0.05, 0.05, 30)
    rows = np.empty((30, 3, 2, 3))
    for action in range(2):
        up = 1 - stays + action * np.minimum(gain, 0.95 - (1 - stays))
        rows[:, 0, action] = np.stack([1 - up, up, 0 * up], axis=1)
        rows[:, 1, action] = np.stack([(1 - up) / 2, 0.5 + 0 * up, up / 2], axis=1)
        rows[:, 2, action] = np.stack([0 * up, (1 - up) * 0.8, 1 - (1 - up) * 0.8], axis=1)
    groups = tuple(np.repeat(["well off", "responsive", "badly off"], 10).tolist())
    rewards = np.tile([0.0, 0.5, 1.0], (30, 1))
    settings: dict[str, Any] = {"groups": groups, "columns": {"group": groups}, "horizon": 1}
    return Drawn(Bandit(rows, rewards, 6, name="three_groups", episodes=WEEKS, **settings))


CLINICS: dict[str, Callable[[int], Drawn]] = {
    "liang": liang("liang", 100, 20),
    "liang_400": liang("liang_400", 400, 10),
    **{f"idle_{kind}": idle(kind) for kind in ("rise", "fall", "wave")},
    **{f"idle_own_{kind}": idle(kind, own_way=True) for kind in ("rise", "fall", "wave")},
    "late_reports": reports("late_reports", late=True),
    "misread_reports": reports("misread_reports", misread=0.1),
    "three_groups": three_groups,
}
