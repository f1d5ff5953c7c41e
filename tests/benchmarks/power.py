"""The power that `dopl power` gives, against the share of simulated clinics that claim an effect.

Four rosters: CPAP's clinic of 20 with 26 weeks of past records; the same with a tenth of the states
unknown, in the records and in the analysis; a clinic of 60 whose people all move in their own way,
with 12 weeks of records; a class of 30 without records, whose truth is drawn from the prior for
each clinic. Clinics go on from the roster and the records that `dopl power` had. Each is played
with the real learner and analysed by permutation at both looks. The power with other records of the
same clinic shows how much depends on them.

DOPL_RUNS: clinics of each roster (400);  DOPL_SEED: the first of their seeds (0);  DOPL_ROSTERS:
some of them, with commas between them (all);  DOPL_JOBS: processes (2);  DOPL_ANSWERS: yes, if
annotators answer in the clinics (no: lists follow the order of the states).
"""

import os
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from dopl_core import environments, studies
from dopl_core.learning.bandit import UNKNOWN, WAIT, Bandit, FloatArray, IntArray
from dopl_core.learning.dopl import Dopl
from dopl_core.learning.moves.model import dirichlet
from dopl_core.learning.places import lot_trial
from dopl_core.learning.places.reported_weeks import ReportedWeeks
from dopl_core.studies import Arm, power
from dopl_core.world import SimulatedWorld

sys.path.insert(0, str(Path(__file__).parent))
from working import play_week

TEMPERATURE, RECORDS, REDRAWS = 0.4, 8, 1_999
ANSWERS = os.environ.get("DOPL_ANSWERS") == "yes"
STATES = ("Poor", "Fair", "Good")


class Roster(NamedTuple):
    """rows: without help [n, s, s'] of one clinic, from its seed; past: weeks of records.

    unknown: share of states that nobody reports
    """

    words: str
    budget: int
    by_lot: int
    weeks: int
    effect: float
    past: int
    rows: Callable[[int], FloatArray]
    unknown: float = 0.0


def _cpap(seed: int) -> FloatArray:
    return environments.load("cpap").transitions[:, :, WAIT]


def _own_ways(seed: int) -> FloatArray:
    kinds = environments.load("cpap").transitions[:, :, WAIT][[0, 10, 10]]
    return dirichlet(10 * np.repeat(kinds, 20, axis=0), np.random.default_rng(7))


def _class(seed: int) -> FloatArray:
    return power.prior_rows(1, 30, 3, np.random.default_rng([seed, 5]))[0]


ROSTERS = {
    "cpap": Roster("CPAP's clinic of 20, records of 26 weeks", 8, 2, 20, 0.15, 26, _cpap),
    "unknown": Roster("the same, a tenth unknown", 8, 2, 20, 0.15, 26, _cpap, 0.1),
    "sixty": Roster(
        "a clinic of 60, own ways, records of 12 weeks", 12, 2, 12, 0.15, 12, _own_ways
    ),
    "class": Roster("a class of 30 without records", 6, 2, 12, 0.2, 0, _class),
}


def main() -> None:
    """Print both for each roster."""
    runs, first = int(os.environ.get("DOPL_RUNS", "400")), int(os.environ.get("DOPL_SEED", "0"))
    jobs = int(os.environ.get("DOPL_JOBS", "2"))
    print(f"power: {runs} clinics of each roster")
    for name in os.environ.get("DOPL_ROSTERS", ",".join(ROSTERS)).split(","):
        one = ROSTERS[name]
        given = [computed(one, records) for records in range(RECORDS if one.past else 1)]
        seeds = range(first, first + runs)
        claims = Parallel(n_jobs=jobs)(delayed(claimed)(name, seed) for seed in seeds)
        print(f"{one.words}: {one.by_lot} of {one.budget} by lot, {one.weeks} weeks, ", end="")
        print(f"effect {one.effect}")
        others = " ".join(f"{each.power:.3f}" for each in given[1:])
        print(f"  dopl power {given[0].power:.3f} ± {given[0].error:.3f}, ", end="")
        print(f"nine in ten {given[0].low:.2f} to {given[0].high:.2f}; other records: {others}")
        share = float(np.mean(claims))
        error = np.sqrt(share * (1 - share) / runs)
        print(f"  clinics that claim {share:.3f} ± {error:.3f}; ", end="")
        print(f"difference {given[0].power - share:+.3f}", flush=True)


def computed(one: Roster, seed: int) -> power.Power:
    """What `dopl power` says of a roster."""
    seen = past_states(one, seed)
    told = _known(one, seen.shape, seed)
    rows = [
        f"p{i},{week},{STATES[s] if told[week, i] else ''},0"
        for week, now in enumerate(seen)
        for i, s in enumerate(now)
    ]
    arms = [Arm(f"p{i}", f"p{i}", "all", STATES[s]) for i, s in enumerate(seen[-1])]
    config = studies.from_roster(arms, STATES, title="T", budget=one.budget)
    text = "\n".join(["id,when,state,helped", *rows]).encode()
    past = studies.read_history(text, config) if one.past else None
    by = {"weeks": [one.weeks], "by_lot": [one.by_lot], "effect": one.effect}
    return power.compute(config, past, **by)[0]


def _known(one: Roster, shape: tuple[int, ...], seed: int) -> NDArray[np.bool_]:
    """Which states are reported; shape: [w, n]"""
    return np.random.default_rng([seed, 9]).random(shape) >= one.unknown


def past_states(one: Roster, seed: int) -> IntArray:
    """States without help before the trial [w, n]; the last ones are those of the roster."""
    rng = np.random.default_rng([seed, 3])
    rows = one.rows(seed)
    seen = [start(rows, rng)]
    for _ in range(one.past):
        seen.append(step(rows, seen[-1], rng))
    return np.array(seen)


def start(rows: FloatArray, rng: np.random.Generator, weeks: int = 20) -> IntArray:
    """States [n] after some weeks without help."""
    states = np.zeros(len(rows), dtype=np.int64)
    for _ in range(weeks):
        states = step(rows, states, rng)
    return states


def step(rows: FloatArray, states: IntArray, rng: np.random.Generator) -> IntArray:
    up_to = rows[np.arange(len(rows)), states].cumsum(axis=1)[:, :-1]
    return np.asarray((rng.random((len(rows), 1)) >= up_to).sum(axis=1))


def claimed(name: str, seed: int) -> bool:
    """Whether a clinic that is played in full claims that help works."""
    one = ROSTERS[name]
    bandit, seen = clinic(one, seed), past_states(one, 0)
    N, S = bandit.n_arms, bandit.n_states
    learner = Dopl(N, S, one.budget, horizon=1, seed=seed, ordered=True, engine="lagrangian")
    learner.adapt(learner.present, one.budget, by_lot=one.by_lot)
    for before, after in pairwise(seen):
        learner.count_moves(before, np.zeros(N, dtype=np.int64), after)
    world = SimulatedWorld(bandit, seed, temperature=TEMPERATURE)
    world.states = seen[-1]
    weeks = [play_week(learner, world, answers=ANSWERS) for _ in range(one.weeks)]
    states, helped, after, *lists = np.array(weeks).transpose(1, 0, 2)
    known = _known(one, (one.weeks + 1, N), seed)
    states, after = (
        np.where(some, x, UNKNOWN) for some, x in ((known[:-1], states), (known[1:], after))
    )
    reported = ReportedWeeks(states, helped, after, *lists)
    looks = power.even_looks(one.weeks, 2)
    found = lot_trial.analyse(reported, S, looks, seed=[seed], redraws=REDRAWS)
    return any(look.claim > 0 for look in found)


def clinic(one: Roster, seed: int) -> Bandit:
    """The clinic as it really is."""
    P = power.with_effect(one.rows(seed), one.effect)
    return Bandit(P, np.tile(np.linspace(0, 1, len(STATES)), (len(P), 1)), one.budget)


if __name__ == "__main__":
    main()
