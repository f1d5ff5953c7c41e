"""What the page says of a clinic whose truth is known: wrong claims, right ones, and intervals.

Twenty patients, help for eight, one place in eight by lot, 26 weeks from nothing; the page is read
every week. Help does nothing, or it has CPAP's effect; people are of CPAP's two kinds, or everybody
moves in their own way, or every clinic is another one. DOPL_RUNS: clinics of each kind (200).
"""

import os
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dopl_core import environments
from dopl_core.learning import draws
from dopl_core.learning.bandit import ACT, WAIT, Bandit, FloatArray, IntArray, actions
from dopl_core.learning.dopl import Dopl
from dopl_core.studies import believed, working
from dopl_core.studies.working import Estimate, Seen
from dopl_core.world import SimulatedWorld

WEEKS, TEMPERATURE, DRAWS = 26, 0.4, 600


class Run(NamedTuple):
    """One clinic: weeks in which the page claims [w], and whether intervals hold the truth.

    held: what an interval is of -> whether it does, or in which share of the states
    sure, right: [B] chances that those on the list belong there, and whether they do
    """

    claims: NDArray[np.bool_]
    held: dict[str, float]
    sure: FloatArray
    right: NDArray[np.bool_]


def main() -> None:
    """Print how often the page is right."""
    runs = int(os.environ.get("DOPL_RUNS", "200"))
    print(f"working: {runs} clinics of {WEEKS} weeks each, T={TEMPERATURE:g}, one lot in eight")
    for kind, (words, bar) in KINDS.items():
        found = [clinic(kind, seed) for seed in range(runs)]
        claims = np.array([run.claims for run in found])
        print(f"{words}: claimed in any week {claims.any(axis=1).mean():.3f} ({bar}), ", end="")
        print(f"in the last {claims[:, -1].mean():.3f}")
        print("  90 % intervals hold the truth (bar: 0.85 to 0.95)")
        for what in found[0].held:
            print(f"    {what}: {np.nanmean([run.held[what] for run in found]):.3f}")
        sure, right = (
            np.concatenate([getattr(r, name) for r in found]) for name in Run._fields[2:]
        )
        for low, high in ((0, 0.5), (0.5, 0.65), (0.65, 0.8), (0.8, 1.01)):
            some = (sure >= low) & (sure < high)
            if some.any():
                print(f"    said to belong {sure[some].mean():.2f}: {right[some].mean():.2f} do")


KINDS = {
    "nothing": ("help does nothing", "at most 0.05"),
    "own nothing": ("help does nothing, everybody moves in their own way", "at most 0.05"),
    "cpap": ("CPAP's effect", "at least 0.80"),
    "own": ("CPAP's effect, everybody moves in their own way", "no bar"),
    "drawn": ("another truth in every clinic", "no bar"),
}
OWN = 30  # moves of its own that an arm needs to outweigh its kind, where it has a way of its own


def truth(kind: str, seed: int) -> Bandit:
    """The clinic as it really is."""
    bandit, rng = environments.load("cpap"), np.random.default_rng([seed, 1])
    P = bandit.transitions.copy()
    if kind == "drawn":
        P = _any_truth(bandit, rng)
    if kind.startswith(("own", "drawn")):
        P = draws.dirichlet(OWN * P, rng)
    if kind.endswith("nothing"):
        P[:, :, ACT] = P[:, :, WAIT]
    return replace(bandit, transitions=P)


def _any_truth(bandit: Bandit, rng: np.random.Generator) -> FloatArray:
    """One to three kinds of arms, with any rows; help brings any share, up to half, to the top."""
    S, kinds = bandit.n_states, int(rng.integers(1, 4))
    alone = rng.dirichlet(np.ones(S), (kinds, S))
    share = rng.uniform(0, 0.5, (kinds, S, 1))
    rows = np.stack([alone, (1 - share) * alone + share * np.eye(S)[-1]], axis=2)
    return np.asarray(rows[rng.integers(0, kinds, bandit.n_arms)])


def clinic(kind: str, seed: int) -> Run:
    """One clinic, looked at every week."""
    bandit = truth(kind, seed)
    learner, weeks, claims = _learner(bandit, seed), [], []
    world = SimulatedWorld(bandit, seed, temperature=TEMPERATURE)
    moves = doubting = np.empty(0)
    found = working.NOTHING
    for week in range(1, WEEKS + 1):
        weeks.append(_week(learner, world))
        rng = np.random.default_rng([seed, week, 2])
        if week >= working.FIRST_WEEK:
            moves, doubting = (
                draws.moves(learner.visits, None, DRAWS, rng, idle) for idle in (0, believed.IDLE)
            )
            found = working.effect(working.gains(moves), learner.visits)
            doubted = working.effect(working.gains(doubting), learner.visits)
            claims.append(working.known_sign(found, doubted, week) > 0)
    seen = Seen(*np.array(weeks).transpose(1, 0, 2))
    held = {
        "effect of help": _holds(found, _true_effect(bandit, learner.visits)),
        "by state": _states(bandit, seen),
        "by lot": _lots(bandit, seen),
    }
    more, sure, right = _ahead(bandit, learner, moves, doubting, world.states, rng)
    return Run(np.array(claims), held | more, sure, right)


def _learner(bandit: Bandit, seed: int) -> Dopl:
    learner = Dopl(
        bandit.n_arms, bandit.n_states, bandit.budget, horizon=1, seed=seed, ordered=True
    )
    learner.by_lot = bandit.budget // 8
    return learner


def _week(learner: Dopl, world: SimulatedWorld) -> tuple[IntArray, ...]:
    """A list, its duels and its report: states, helped, next states, listed, by lot."""
    learner.replan()
    world.begin(learner.episode, 1)
    states = world.states
    chosen = learner.activate(states, 0)
    lots = learner.draw_lots(chosen, 0)
    arms = np.sort(np.concatenate([chosen, lots]))
    duels = learner.duels(states, arms, 0)
    learner.count_duels(duels, world.answer(duels))
    after, helped = world.step(arms), actions(arms, learner.n_arms)
    learner.count_moves(states, helped, after)
    return states, helped, after, helped, actions(lots, learner.n_arms)


def _holds(found: Estimate, truth: float) -> bool:
    return found.low <= truth <= found.high


def _true_effect(bandit: Bandit, visits: IntArray) -> float:
    return working.effect(working.gains(bandit.transitions[None]), visits).mean


def _states(bandit: Bandit, seen: Seen) -> float:
    """In which share of the states the interval holds the mean gain of those it compares."""
    found = working.with_themselves(seen, bandit.n_states)
    moves = np.zeros((2, bandit.n_arms, bandit.n_states))
    arms = np.broadcast_to(np.arange(bandit.n_arms), seen.states.shape)
    np.add.at(moves, (seen.helped, arms, seen.states), 1)
    w = moves.prod(axis=0) / np.maximum(moves.sum(axis=0), 1)
    truth = (w * working.gains(bandit.transitions[None])[0]).sum(axis=0) / np.maximum(
        w.sum(axis=0), 1e-9
    )
    held = (found.low <= truth) & (truth <= found.high)
    return float(held[~np.isnan(found.gain)].mean())


def _lots(bandit: Bandit, seen: Seen) -> bool:
    """Whether the interval holds the mean gain of all who could have been drawn."""
    gain = working.gains(bandit.transitions[None])[0][np.arange(bandit.n_arms), seen.states]
    could = (seen.listed == 0) | (seen.by_lot == 1)
    return _holds(working.by_lot(seen, bandit.n_states).effect, float(gain[could].mean()))


def _ahead(
    bandit: Bandit,
    learner: Dopl,
    moves: FloatArray,
    doubting: FloatArray,
    states: IntArray,
    rng: np.random.Generator,
) -> tuple[dict[str, float], FloatArray, NDArray[np.bool_]]:
    """Whether worth and who belongs on the next list are as they are said to be."""
    learner.replan()
    half = np.tile(working.better_half(bandit.n_states).astype(float), (bandit.n_arms, 1))
    given = (half, learner.priority, states, bandit.budget, rng)
    worth = believed.worth(believed.ahead(doubting, *given, times=10))
    truth = believed.ahead(bandit.transitions[None], *given, times=1000)[0]
    held: dict[str, float] = {
        "worth of the list": _holds(worth.by_list, truth[0]),
        "worth of chance": _holds(worth.by_chance, truth[1]),
        "the list over chance": _holds(worth.over_chance, truth[0] - truth[1]),
    }
    listed = learner.activate(states, 0)
    strengths = draws.strengths(learner.belief(), 60, rng)
    sure = believed.chance(believed.belonging(moves[:60], strengths, states, bandit.budget))
    really = believed.belonging(
        bandit.transitions[None], bandit.rewards[None] / TEMPERATURE, states, bandit.budget
    )[0, listed]
    if (bandit.transitions[:, :, ACT] == bandit.transitions[:, :, WAIT]).all():
        return held, np.empty(0), np.empty(0, dtype=bool)  # nobody belongs where help does nothing
    many = believed.how_many(sure[listed])
    held["how many belong on the list"] = _holds(many, float(really.sum()))
    return held, sure[listed], really


if __name__ == "__main__":
    main()
