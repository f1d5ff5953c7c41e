"""The promised analysis of a trial where the truth is known: false claims, intervals and power.

The clinics of `dopl bench working`, with looks after LOOKS weeks. Either the learner makes the
lists, or a quick rule whose lists depend on earlier draws even more: people come first who were
better off more often with help than without. Redraws take lists as given: this is the hard case.

DOPL_RUNS: clinics of each kind with quick lists (1000);  DOPL_LEARNT: with the learner's (20)
DOPL_LOTS: places by lot, of 8 (1,2);  DOPL_SEED: the first of the seeds (0);  DOPL_KINDS: some of
the kinds, with commas between them (all);  DOPL_JOBS: processes (2).
"""

import os
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed

from dopl_core.learning.bandit import Bandit, actions
from dopl_core.learning.places import lot_trial
from dopl_core.learning.places.lot_trial import LISTED, OTHERS
from dopl_core.learning.places.lots import exchange
from dopl_core.learning.places.reported_weeks import ReportedWeeks, better_off
from dopl_core.studies import effect_of_help
from dopl_core.world import SimulatedWorld

sys.path.insert(0, str(Path(__file__).parent))
import working
from working import KINDS, TEMPERATURE, WEEKS, in_season, mean_and_error, truth

LOOKS = (8, 13, 20, 26)
REDRAWS = 1_999


class Run(NamedTuple):
    """One clinic: what was claimed at each look, and whether the last intervals hold the truth."""

    claims: list[int]
    effect: bool
    gain: bool
    error: float


def main() -> None:
    """Print false claims, power and coverage for all kinds of clinics."""
    given = os.environ.get
    runs = {"quick": int(given("DOPL_RUNS", "1000")), "learnt": int(given("DOPL_LEARNT", "20"))}
    jobs, first = int(given("DOPL_JOBS", "2")), int(given("DOPL_SEED", "0"))
    print(f"trial: looks after {', '.join(map(str, LOOKS))} weeks, 5 % over all of them, 2-sided")
    for kind in given("DOPL_KINDS", ",".join(KINDS)).split(","):
        for how, count in runs.items():
            for lots in map(int, given("DOPL_LOTS", "1,2").split(",")):
                seeds = range(first, first + count)
                work = (delayed(clinic)(kind, seed, lots, how) for seed in seeds)
                if found := Parallel(n_jobs=jobs)(work):
                    show(f"{KINDS[kind][0]}; {how} lists, {lots} by lot", found)


def show(words: str, found: list[Run]) -> None:
    """Print what was claimed in all clinics of one kind."""
    claims = np.array([run.claims for run in found])
    works, harms = (mean_and_error((sign * claims > 0).any(axis=1)) for sign in (1, -1))
    both = mean_and_error((claims != 0).any(axis=1))
    print(f"{words}, {len(found)} clinics: claims at any look {both} (help {works}, harm {harms})")
    of_help, of_list = (mean_and_error(x) for x in list(zip(*found, strict=True))[1:3])
    error = mean_and_error([run.error for run in found])
    print(f"  last intervals hold the effect {of_help}, of the list {of_list}; error {error}")
    sys.stdout.flush()


def clinic(kind: str, seed: int, lots: int, how: str) -> Run:
    """One clinic, analysed at each look."""
    bandit = truth(kind, seed)
    weeks = (_learnt if how == "learnt" else _quick)(bandit, kind, seed, lots)
    looks = lot_trial.analyse(weeks, bandit.n_states, LOOKS, seed=[seed, 4], redraws=REDRAWS)
    effect, gain = _true_effects(bandit, weeks, lots)
    last = looks[-1]
    return Run(
        [look.claim for look in looks],
        _holds(last.effect, effect),
        _holds(last.list_gain, gain),
        np.nan if last.effect.effect is None else last.effect.effect - effect,
    )


def _holds(found: lot_trial.Interval, true: float) -> bool:
    return bool(found.low - 1e-9 <= true <= found.high + 1e-9)


def _learnt(bandit: Bandit, kind: str, seed: int, lots: int) -> ReportedWeeks:
    """Weeks with the lists of the learner."""
    learner = working._learner(bandit, seed)
    learner.adapt(learner.present, bandit.budget, by_lot=lots)
    weeks, states = [], None
    for week in range(1, WEEKS + 1):
        world = SimulatedWorld(in_season(bandit, kind, week), seed, temperature=TEMPERATURE)
        world.states = world.states if states is None else states
        weeks.append(working.play_week(learner, world))
        states = world.states
    return ReportedWeeks(*np.array(weeks).transpose(1, 0, 2))


def _quick(bandit: Bandit, kind: str, seed: int, lots: int) -> ReportedWeeks:
    """Weeks with lists that depend on earlier draws as much as lists can."""
    rng = np.random.default_rng([seed, lots, 5])
    N, S = bandit.n_arms, bandit.n_states
    states, weeks = rng.integers(0, S, N), []
    better, seen = np.zeros((2, N)), np.full((2, N), 1.0)
    for week in range(1, WEEKS + 1):
        score = better[1] / seen[1] - better[0] / seen[0] + 0.1 * rng.standard_normal(N)
        order = np.argsort(-score)
        listed, others = np.sort(order[: bandit.budget]), np.sort(order[bandit.budget :])
        waiting, drawn = exchange(listed, others, lots, rng)
        helped = actions(np.union1d(np.setdiff1d(listed, waiting), drawn), N)
        by_lot = actions(np.union1d(waiting, drawn), N)
        rows = in_season(bandit, kind, week).transitions[np.arange(N), states, helped]
        after = (rng.random((N, 1)) > rows.cumsum(axis=1)).sum(axis=1).clip(max=S - 1)
        weeks.append((states, helped, after, helped, by_lot))
        seen[helped, np.arange(N)] += 1
        better[helped, np.arange(N)] += better_off(states, after, S)
        states = after
    return ReportedWeeks(*np.array(weeks).transpose(1, 0, 2))


def _true_effects(bandit: Bandit, weeks: ReportedWeeks, lots: int) -> tuple[float, float]:
    """The mean gain of help as the lotteries weigh people, and that on the list less that off it.

    In expectation over draws, a person of a state that n of N in a lottery share weighs
    k / N (1 - (1 + (n - 1) (k - 1) / (N - 1)) / n), with k drawn.
    """
    gains = effect_of_help.gains(bandit.transitions[None])[0]
    sums = np.zeros((2, 2))
    before = weeks.listed ^ weeks.by_lot
    for states, on in zip(weeks.states, before, strict=True):
        for kind in (OTHERS, LISTED):
            pool = np.flatnonzero(on == kind)
            N, same = len(pool), np.bincount(states[pool], minlength=bandit.n_states)
            n = same[states[pool]]
            weight = lots / N * (1 - (1 + (n - 1) * (lots - 1) / (N - 1)) / n)
            sums[kind] += (weight * gains[pool, states[pool]]).sum(), weight.sum()
    each = sums[:, 0] / sums[:, 1]
    return sums[:, 0].sum() / sums[:, 1].sum(), each[LISTED] - each[OTHERS]


if __name__ == "__main__":
    main()
