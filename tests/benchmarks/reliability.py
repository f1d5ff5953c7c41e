"""Reliability of answers: against published values, and whether the advice to stop is sound.

`dopl bench reliability FOLDER` compares scale separation and split halves with the values in
FOLDER/reliability.csv (session, ssr, split_half), for the answers of `dopl bench answers`. Then
answers of each session are taken in until the advice is to stop. How reliable they are is told by
the others: the squared correlation of the strengths, over the reliability of the others.

In simulated studies, the learner chooses 60 duels a week for four annotators, people move, and the
strengths at the advice to stop are compared with the true ones. DOPL_SEEDS sets how many studies
(100), DOPL_ITEMS the most items of a session (400).
"""

import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit

from dopl_core import studies
from dopl_core.learning import reliability
from dopl_core.learning.dopl import Dopl

sys.path.insert(0, str(Path(__file__).parent))
from answers import Session, read

STATES = 3
STEPS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)  # shares of a session that are taken in
MOST = 1500  # answers of a simulated study
EACH = 60  # answers between two looks


def main(folder: str = "") -> None:
    """Print what was published and what is found, and how sound the advice to stop is."""
    if folder:
        _print_published(Path(folder))
    else:
        print("reliability: give a folder of answers to compare with published values")
    found = [_simulated(seed) for seed in range(int(os.environ.get("DOPL_SEEDS", "100")))]
    _print_advice("simulated studies", found)


def _print_published(folder: Path) -> None:
    most = int(os.environ.get("DOPL_ITEMS", "400"))
    sessions = [session for session in read(folder) if session.items <= most]
    known = pd.read_csv(folder / "reliability.csv").set_index("session")
    print(f"{'session':10}{'items':>6}{'SSR':>8}{'publ.':>8}{'halves':>8}{'publ.':>8}{'stop':>8}")
    gaps, stops = [], []
    for session in sessions:
        rng, published = np.random.default_rng(0), known.loc[session.name]
        ssr = reliability.scale_separation(session.chosen, session.other, session.items)
        halves = reliability.split_halves(session.chosen, session.other, session.judge, rng).value
        gaps.append((abs(ssr - published.ssr), abs(halves - published.split_half)))
        stops.append(_stopped(session))
        print(f"{session.name:10}{session.items:6}{ssr:8.4f}{published.ssr:8.4f}", end="")
        print(f"{halves:8.3f}{published.split_half:8.3f}", end="")
        print("     ---" if stops[-1] is None else f"{stops[-1]:8.2f}", flush=True)
    close = (np.array(gaps) <= (0.01, 0.05)).mean(axis=0)
    print(f"SSR within .01 of the published value in {close[0]:.0%} of {len(gaps)} (bar 100 %), ")
    print(f"split halves within .05 in {close[1]:.0%} (bar 80 %)")
    _print_advice("sessions", stops)


def _print_advice(what: str, stops: list[float | None]) -> None:
    told = np.array([one for one in stops if one is not None])
    share = f"{(told >= reliability.ENOUGH).mean():.0%}" if len(told) else "none"
    print(f"{what}: {len(told)} of {len(stops)} told to stop; reliable by .8 in {share} (bar 90 %)")


def _stopped(session: Session) -> float | None:
    """The reliability of the first answers at which the advice is to stop; None if never.

    The others tell it: correlations are lowered by the errors of both.
    """
    order = np.random.default_rng(1).permutation(len(session.judge))
    for share in STEPS:
        taken, others = (session.some(at) for at in np.split(order, [round(share * len(order))]))
        names = [str(judge) for judge in range(int(taken.judge.max()) + 1)]
        judged = studies.reliability.Judgements(
            taken.chosen, taken.other, taken.judge, names, session.items
        )
        found = studies.reliability.measure(judged)
        if found is not None and found.is_enough:
            fits = (
                reliability.fit(some.chosen, some.other, session.items)[0]
                for some in (taken, others)
            )
            one, other = fits
            both = ~np.isnan(one + other)
            rest = reliability.scale_separation(others.chosen, others.other, session.items)
            return float(np.corrcoef(one[both], other[both])[0, 1] ** 2 / rest)
    return None


def _simulated(seed: int) -> float | None:
    """The reliability of the answers of a simulated study at the advice to stop; None if never."""
    rng = np.random.default_rng(seed)
    N, B = int(rng.choice([10, 20, 30])), 5
    truth = np.linspace(0, 1, STATES) * rng.uniform(0, 4) + rng.normal(
        0, rng.choice([1, 2]), (N, 1)
    )
    learner = Dopl(N, STATES, B, horizon=1, seed=seed)
    states, every = rng.integers(STATES, size=N), np.empty((0, 3), dtype=np.int64)
    for _ in range(MOST // EACH):
        learner.replan()
        duels = learner.telling_duels(states, EACH, rng)
        left, right = (duels[:, at] * STATES + duels[:, at + 1] for at in (0, 2))
        won = rng.random(len(duels)) < expit(truth.flat[left] - truth.flat[right])
        learner.count_duels(duels, won.astype(float))
        answers = (np.where(won, left, right), np.where(won, right, left))
        every = np.concatenate([every, np.column_stack([*answers, rng.integers(4, size=len(won))])])
        if reliability.scale_separation(every[:, 0], every[:, 1], truth.size) < reliability.ENOUGH:
            found = None  # saves the intervals
        else:
            judged = studies.reliability.Judgements(*every.T, ["a", "b", "c", "d"], N)
            found = studies.reliability.measure(judged)
        if found is not None and found.is_enough:
            strengths = reliability.fit(every[:, 0], every[:, 1], truth.size)[0]
            there = ~np.isnan(strengths)
            return float(np.corrcoef(strengths[there], truth.ravel()[there])[0, 1] ** 2)
        moved = rng.integers(STATES, size=N)
        stays = rng.random(N) < 0.7
        learner.count_moves(states, (np.arange(N) < B).astype(int), np.where(stays, states, moved))
        states = np.where(stays, states, moved)
    return None


if __name__ == "__main__":
    main(*sys.argv[1:])
