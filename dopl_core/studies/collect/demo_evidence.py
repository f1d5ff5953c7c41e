"""Made-up evidence for cards of simulated worlds: it fits the state that a card is about."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dopl_core.learning.streams import Stream
from dopl_core.studies.collect.views import Chart, Evidence, Fact

NIGHTS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


@dataclass(frozen=True)
class Demo:
    """Demo evidence of one environment.

    environment, states: its name and the labels of its states in order. Both must match, so that a
        changed copy of the environment gets no evidence that contradicts its states
    make: evidence that fits a state, given by its number
    """

    environment: str
    states: tuple[str, ...]
    make: Callable[[int, np.random.Generator], Evidence]


def demo_evidence(
    environment: str,
    states: Sequence[str],
    state: int,
    *,
    seed: int = 0,
    arm: int = 0,
    episode: int = 1,
    epoch: int = 0,
) -> Evidence:
    """Made-up evidence that fits an arm's state; empty for environments without a demo.

    It depends on the arguments only, so that everybody sees the same evidence in an epoch.
    """
    for demo in _DEMOS:
        if (demo.environment, demo.states) == (environment, tuple(states)):
            rng = np.random.default_rng([Stream.CARDS, seed, episode, epoch, arm])
            return demo.make(state, rng)
    return Evidence()


def _cpap(state: int, rng: np.random.Generator) -> Evidence:
    """Hours of seven nights: few and short, most but often too short, or all above the target."""
    used = [int(rng.integers(1, 4)), int(rng.integers(5, 7)), 7][state]
    long = [0, int(rng.integers(2, 4)), 7][state]
    short = rng.uniform(0.4, 2.6, 7) if state == 0 else rng.uniform(1.5, 3.8, 7)
    hours = np.where(np.arange(7) < long, rng.uniform(4.2, 8.2, 7), short)
    hours[used:] = 0.0
    nights = tuple(float(h) for h in rng.permutation(hours).round(1))
    return Evidence(
        charts=(Chart("Hours of CPAP, last seven nights", nights, NIGHTS, "h", 9.0, 4.0),)
    )


def _app(state: int, rng: np.random.Generator) -> Evidence:
    """Minutes in the app on seven days, when it was last opened, and features used."""
    active = [0, 0, int(rng.integers(2, 5)), 7][state]
    minutes = rng.integers(3, 16, 7) if state == 2 else rng.integers(14, 46, 7)
    minutes[active:] = 0
    minutes = rng.permutation(minutes)
    days = [int(rng.integers(32, 61)), int(rng.integers(8, 29)), 0, 0][state]
    if state == 2:
        days = 6 - int(np.flatnonzero(minutes).max())
    ago = {0: "today", 1: "yesterday"}.get(days, f"{days} days ago")
    features = [0, 0, int(rng.integers(1, 4)), int(rng.integers(4, 9))][state]
    week = tuple(float(m) for m in minutes)
    return Evidence(
        (Fact("Last opened", ago), Fact("Features used this week", str(features))),
        (Chart("Minutes in the app, last seven days", week, NIGHTS, "min", 50.0),),
    )


def _calls(state: int, rng: np.random.Generator) -> Evidence:
    """Share of each of the last eight calls that was listened to."""
    share = [
        rng.uniform(45, 98, 8),
        np.where(rng.random(8) < 0.2, 0.0, rng.uniform(8, 58, 8)),
        np.where(rng.random(8) < 0.7, 0.0, rng.uniform(1, 9, 8)),
    ][state].round()
    calls = tuple(str(i) for i in range(1, 9))
    listened = tuple(float(s) for s in share)
    return Evidence(
        (Fact("Listened to on average", f"{share.mean():.0f} %"),),
        (Chart("Share of each call listened to, last eight calls", listened, calls, "%", 110.0),),
    )


# The four conditions of a player: the word if it holds, and if it does not. The number of a
# state has one bit for each condition, set if it does not hold.
_CONDITIONS = (("Slept", "Tired"), ("fed", "underfed"), ("sharp", "dull"), ("fast", "slow"))


def _sports(state: int, rng: np.random.Generator) -> Evidence:
    """One measurement with its target for each of the four conditions."""
    rested, fed, sharp, fast = (not state >> bit & 1 for bit in range(4))
    sleep = rng.uniform(8.0, 9.3) if rested else rng.uniform(5.2, 7.8)
    calories = rng.uniform(100, 112) if fed else rng.uniform(72, 97)
    attention = rng.uniform(76, 97) if sharp else rng.uniform(38, 68)
    sprint = rng.uniform(90, 100) if fast else rng.uniform(77, 89)
    return Evidence(
        (
            Fact("Sleep (8 h)", f"{sleep:.1f} h", rested),
            Fact("Calories (100 % of target)", f"{calories:.0f} %", fed),
            Fact("Attention test (70 points)", f"{attention:.0f}", sharp),
            Fact("Sprint (90 % of best)", f"{sprint:.0f} %", fast),
        )
    )


_DEMOS = (
    Demo("cpap", ("Low adherence", "Moderate adherence", "High adherence"), _cpap),
    Demo(
        "app_marketing",
        ("At risk of churn", "Low engagement", "Moderately engaged", "Highly engaged"),
        _app,
    ),
    Demo("armman", ("Self-motivated", "Persuadable", "Lost cause"), _calls),
    Demo(
        "sports",
        tuple(
            ", ".join(words[state >> bit & 1] for bit, words in enumerate(_CONDITIONS))
            for state in range(2 ** len(_CONDITIONS))
        ),
        _sports,
    ),
)
