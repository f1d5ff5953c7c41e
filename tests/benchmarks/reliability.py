"""Reliability of answers: against published values, and whether the advice to stop is sound.

`dopl bench reliability FOLDER` compares scale separation and split halves with the values in
FOLDER/reliability.csv (session, ssr, split_half), for the answers of `dopl bench answers`. Then it
takes in the answers of each session as if they came live, in the order of the file (often one judge
after the other) and in random order, until the advice is to stop. How reliable they are is told by
the answers that are left: their errors lower the correlation r of the two sets of strengths, so the
reliability is r^2 over that of the answers left, for which their SSR is taken. SSR takes no account
of judges who differ: it is rather too high, and the reliability found rather too low. A session in
which most answers left are about items compared too rarely counts as told without a figure.

Simulated studies differ in people, states, spread of strengths, annotators and how sure each is; in
some, one annotator answers at random, or each has an own view of everybody. The learner chooses the
duels: 100 in the first round, then 50 a week, while people move. There the reliability is known: it
is the squared correlation of the strengths with the true ones (test theory's definition: the share
of the variance of what is measured that is variance of the truth). As in the product, it is about
people in states in which they were compared three times; the one with all others is given beside.
The true strengths are those of all annotators there could be, not of those in the study. Then the
reliability that was expected from 50 and 200 more answers is compared with the one that came.

DOPL_SEEDS sets how many studies (100), DOPL_ITEMS the most items of a session (400).
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit

from dopl_core.learning.bandit import FloatArray, IntArray
from dopl_core.learning.bradley_terry import reliability
from dopl_core.learning.bradley_terry.reliability import Measure
from dopl_core.learning.dopl import Dopl
from dopl_core.studies import reliability as advice

sys.path.insert(0, str(Path(__file__).parent))
from answers import Session, read

SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)  # of a session that are taken in
FIRST, EACH, WEEKS = 100, 50, 24  # answers of a simulated study, after each of which is a look


class Told(NamedTuple):
    """Where the advice was to stop: comparisons a person, and the reliability reached.

    with_rare: the reliability with items that were compared less than three times, if it is known
    """

    comparisons: float
    reliability: float
    with_rare: float = np.nan


class Expected(NamedTuple):
    """The reliability expected from `more` answers after the first `answers`, and what came."""

    answers: int
    more: int
    expected: float
    came: float


def main(folder: str = "") -> None:
    """Print what was published and what is found, and how sound the advice to stop is."""
    if folder:
        _print_published(Path(folder))
    else:
        print("reliability: give a folder of answers to compare with published values")
    seeds = int(os.environ.get("DOPL_SEEDS", "100"))
    if seeds:
        played = [_simulated(seed) for seed in range(seeds)]
        _print_advice("simulated studies", [told for told, _ in played])
        _print_expected([one for _, expected in played for one in expected])


def _print_published(folder: Path) -> None:
    most = int(os.environ.get("DOPL_ITEMS", "400"))
    sessions = [session for session in read(folder) if session.items <= most]
    known = pd.read_csv(folder / "reliability.csv").set_index("session")
    heads = "".join(f"{head:>8}" for head in ("SSR", "publ.", "halves", "publ.", "filed", "random"))
    print(f"{'session':10}{'items':>6}{heads}")
    gaps, every = [], []
    for session in sessions:
        rng, published = np.random.default_rng(0), known.loc[session.name]
        ssr = reliability.scale_separation(session.chosen, session.other, session.items)
        halves = reliability.split_halves(session.chosen, session.other, session.judge, rng).value
        gaps.append((abs(ssr - published.ssr), abs(halves - published.split_half)))
        count = len(session.judge)
        orders = np.arange(count), np.random.default_rng(1).permutation(count)
        every.append([_stopped(session, order) for order in orders])
        print(f"{session.name:10}{session.items:6}{ssr:8.4f}{published.ssr:8.4f}", end="")
        print(f"{halves:8.3f}{published.split_half:8.3f}", end="")
        ends = ["     ---" if told is None else f"{told.reliability:8.2f}" for told in every[-1]]
        print("".join(ends), flush=True)
    close = (np.array(gaps) <= (0.01, 0.05)).mean(axis=0)
    print(f"SSR within .01 of the published value in {close[0]:.0%} of {len(gaps)} (bar 100 %), ")
    print(f"split halves within .05 in {close[1]:.0%} (bar 80 %)")
    for what, stops in zip(("as filed", "in random order"), zip(*every, strict=True), strict=True):
        _print_advice(f"sessions {what}", stops)


def _print_advice(what: str, stops: Sequence[Told | None]) -> None:
    told = [one for one in stops if one is not None]
    print(f"{what}: {len(told)} of {len(stops)} told to stop", end="")
    if told:
        comparisons, reached, with_rare = np.array(told).T
        low, middle, high = np.quantile(comparisons, [0.1, 0.5, 0.9])
        print(f", after {middle:.0f} comparisons a person (80 % {low:.0f} to {high:.0f}); ", end="")
        known = reached[~np.isnan(reached)]
        good = int((known >= reliability.ENOUGH).sum())
        print(f"reliable by .8 in {good} of {len(known)} (bar 90 %), ", end="")
        print(f"mean {known.mean():.3f}", end="")
        if not np.isnan(with_rare).all():
            good = int((with_rare >= reliability.ENOUGH).sum())
            print(f"; with those compared rarely in {good}, mean {with_rare.mean():.3f}", end="")
    print(flush=True)


def _print_expected(every: list[Expected]) -> None:
    """How far off what was expected from more answers is: mean and standard deviation."""
    for more in advice.MORE:
        some = [one for one in every if one.more == more]
        for low, high in ((0, 300), (300, 2000)):
            off = np.array([x.came - x.expected for x in some if low <= x.answers < high])
            if len(off):
                print(
                    f"{more} more answers, at {low} to {high}: came less expected "
                    f"{off.mean():+.3f}, standard deviation {off.std():.3f} ({len(off)} looks)"
                )


def _judged(every: IntArray, n_states: int = 1) -> advice.Judgements:
    """Judgements of winners, losers, annotators [D, 3]; items are arms in one of the states."""
    winners, losers, annotators = every.T
    names = [str(number) for number in range(int(annotators.max()) + 1)]
    people = len(np.unique(every[:, :2] // n_states))
    return advice.Judgements(winners, losers, annotators, names, people)


def _separation(judged: advice.Judgements) -> float:
    """The SSR that a look at these answers shows; NaN if they are too few."""
    kept = reliability.often_compared(judged.winners, judged.losers, advice.MIN_DUELS)
    if kept.sum() < advice.MIN_ANSWERS:
        return np.nan
    items = int(max(judged.winners.max(), judged.losers.max())) + 1
    return reliability.scale_separation(judged.winners[kept], judged.losers[kept], items)


def _told(judged: advice.Judgements, ssr: float) -> bool:
    """Whether the advice is to stop; what is slower to compute comes later."""
    if not ssr >= advice.SURE:
        return False
    kept = reliability.often_compared(judged.winners, judged.losers, advice.MIN_DUELS)
    items = int(max(judged.winners.max(), judged.losers.max())) + 1
    rng = np.random.default_rng(len(judged.winners))  # as the product does
    pair = judged.winners[kept], judged.losers[kept]
    if not reliability.separation_interval(*pair, items, rng).low >= advice.SURE:
        return False
    found = advice.measure(judged)
    return found is not None and found.is_enough


def _stopped(session: Session, order: IntArray) -> Told | None:
    """Where the advice is to stop, if answers come in this order; None if never."""
    for share in SHARES:
        taken, left = (session.some(at) for at in np.split(order, [round(share * len(order))]))
        judged = _judged(np.column_stack([taken.chosen, taken.other, taken.judge]))
        if 2 * len(order) * share < advice.MIN_COMPARISONS * judged.people:
            continue  # saves the intervals
        if _told(judged, _separation(judged)):
            return Told(2 * len(taken.judge) / judged.people, _told_by_others(taken, left))
    return None


def _told_by_others(taken: Session, left: Session) -> float:
    """The reliability of the answers taken in, by those left; NaN if these are too few."""
    items = max(taken.items, left.items)
    pair = [
        some.some(
            np.flatnonzero(reliability.often_compared(some.chosen, some.other, advice.MIN_DUELS))
        )
        for some in (taken, left)
    ]
    if len(pair[1].judge) < len(left.judge) / 2:
        return np.nan
    one, other = (reliability.fit(some.chosen, some.other, items)[0] for some in pair)
    both = ~np.isnan(one + other)
    if both.sum() < 3:
        return np.nan
    rest = reliability.scale_separation(pair[1].chosen, pair[1].other, items)
    return float(np.corrcoef(one[both], other[both])[0, 1] ** 2 / rest)


class Clinic:
    """Simulated people who move, and annotators who compare them.

    truth: [N, S] strengths;  own: [people, N, S] those by which each annotator answers
    """

    def __init__(self, seed: int) -> None:
        self.rng = rng = np.random.default_rng(seed)
        N, S = int(rng.choice([8, 15, 25, 40])), int(rng.choice([2, 3, 4]))
        people, spread = int(rng.choice([1, 2, 3, 5, 8])), rng.uniform(0.3, 2)
        self.truth = np.linspace(0, 1, S) * rng.uniform(0, 4) + rng.normal(0, spread, (N, 1))
        view = rng.normal(0, rng.choice([0, 0.3, 0.6]) * spread, (people, N, 1))
        sureness = np.exp(rng.normal(0, 0.3, people))
        if people > 1 and rng.random() < 0.3:
            sureness[0] = 0  # answers at random
        self.own = (self.truth + view) * sureness[:, None, None]

    def answer(self, duels: IntArray) -> tuple[FloatArray, IntArray]:
        """Whether the left side won [D], and who answered [D]."""
        who = self.rng.integers(len(self.own), size=len(duels))
        left, right = (self.own[who, duels[:, at], duels[:, at + 1]] for at in (0, 2))
        return (self.rng.random(len(duels)) < expit(left - right)).astype(float), who

    def moved(self, states: IntArray) -> IntArray:
        """Where people are a week later [N]."""
        N, S = self.truth.shape
        stays = self.rng.random(N) < 0.7
        return np.where(stays, states, self.rng.integers(S, size=N))


def _simulated(seed: int) -> tuple[Told | None, list[Expected]]:
    """Play a study: where the advice was to stop, and what was expected of more answers."""
    clinic = Clinic(seed)
    rng, (N, S) = clinic.rng, clinic.truth.shape
    ordered = bool(rng.integers(2))
    learner = Dopl(N, S, max(2, N // 4), horizon=1, seed=seed, answers=EACH, ordered=ordered)
    states, every = rng.integers(S, size=N), np.empty((0, 3), dtype=np.int64)
    looks, told, last = list[advice.Reliability](), None, WEEKS
    for week in range(WEEKS):
        if week > last:  # what was expected when told has come, too
            break
        duels, helped = learner.first_round(states, FIRST), np.zeros(N, dtype=np.int64)
        if week:
            learner.replan()
            helped[arms := learner.activate(states, 0)] = 1
            duels = learner.duels(states, arms, 0)
        won, who = clinic.answer(duels)
        learner.count_duels(duels, won, who=who)
        left, right = (duels[:, at] * S + duels[:, at + 1] for at in (0, 2))
        sides = np.where(won, left, right), np.where(won, right, left)
        every = np.concatenate([every, np.column_stack([*sides, who])])
        judged = _judged(every, S)
        looks.append(_look(judged))
        if told is None and _told(judged, looks[-1].separation.value):
            kept = reliability.often_compared(*every.T[:2], advice.MIN_DUELS)
            known = [_known(some, clinic.truth) for some in (every[kept], every)]
            told, last = (
                Told(2 * len(every) / judged.people, *known),
                week + max(advice.MORE) // EACH,
            )
        if week:
            after = clinic.moved(states)
            learner.count_moves(states, helped, after)
            states = after
    return told, _expected(looks)


def _known(every: IntArray, truth: FloatArray) -> float:
    """The reliability of answers [D, 3] about people whose strengths [N, S] are known."""
    strengths = reliability.fit(every[:, 0], every[:, 1], truth.size)[0]
    there = ~np.isnan(strengths)
    return float(np.corrcoef(strengths[there], truth.ravel()[there])[0, 1] ** 2)


def _look(judged: advice.Judgements) -> advice.Reliability:
    """What a look shows of the SSR, without intervals."""
    items = len(np.unique([judged.winners, judged.losers]))
    separation, halves = Measure(_separation(judged)), Measure(np.nan)
    return advice.Reliability(len(judged.winners), judged.people, items, separation, halves, {})


def _expected(looks: list[advice.Reliability]) -> list[Expected]:
    """The SSR that each look expected, and the one when these answers had come."""
    came = {look.answers: look.separation.value for look in looks}
    return [
        Expected(look.answers, more, look.with_more(more), came[look.answers + more])
        for look in looks
        for more in advice.MORE
        if look.separation.value > 0 and not np.isnan(came.get(look.answers + more, np.nan))
    ]


if __name__ == "__main__":
    main(*sys.argv[1:])
