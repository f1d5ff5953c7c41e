"""What may be said of help in a state: shares of observed moves, and nothing that nobody observed.

Lists, their CSV and sheets, and Insights all use it, so they show the same figures. Past records
count like reports. Somebody is better off after a week if they are in a better state than before,
or still in the best one.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dopl_core.learning.bandit import ACT, WAIT, IntArray
from dopl_core.studies.model.plurals import plural


class KnownEffect(NamedTuple):
    """How many moves from a state were seen with help and without, and how many were better off."""

    seen_with_help: int
    better_with_help: int
    seen_without: int
    better_without: int

    @property
    def seen_both_ways(self) -> bool:
        """Whether the two shares can be compared."""
        return self.seen_with_help > 0 and self.seen_without > 0

    @property
    def in_favour(self) -> bool:
        """Whether the share better off was larger with help than without."""
        with_help, without = (
            self.better_with_help * self.seen_without,
            self.better_without * self.seen_with_help,
        )
        return self.seen_both_ways and with_help > without


def better_states(n_states: int) -> NDArray[np.bool_]:
    """Whether somebody who moves from state s to s' is better off [s, s']."""
    states = np.arange(n_states)
    return np.asarray(states >= np.minimum(states + 1, n_states - 1)[:, None])


def known_effects(visits: IntArray) -> list[KnownEffect]:
    """What was seen of help in each state [s], over all arms; visits: [n, s, a, s']."""
    moves = visits.sum(axis=0)
    seen = moves.sum(axis=2)
    better = (moves * better_states(visits.shape[1])[:, None]).sum(axis=2)
    columns = seen[:, ACT], better[:, ACT], seen[:, WAIT], better[:, WAIT]
    return [KnownEffect(*counts) for counts in np.stack(columns, axis=1).tolist()]


class Words(NamedTuple):
    """The owner's words for a person and for a week, and the label of the best state."""

    noun: str
    week: str
    best: str


def effect_text(known: KnownEffect, state: str, words: Words) -> str:
    """What was seen of help in a state: shares with their base, or that nobody was seen."""
    times = []
    if known.seen_with_help:
        times.append(_share(known.better_with_help, known.seen_with_help, "with help"))
    if known.seen_without:
        times.append(_share(known.better_without, known.seen_without, "without help"))
    if not times:
        return f'Nobody in "{state}" has been seen with or without help yet.'
    then = "still there" if state == words.best else "better off"
    nouns = plural(words.noun)
    nouns = nouns[:1].upper() + nouns[1:]
    text = f'{nouns} in "{state}" were {then} the next {words.week} {" and ".join(times)}.'
    if known.seen_both_ways:
        return text
    missing = "without" if known.seen_with_help else "with"
    return f'{text} Nobody in "{state}" has been seen {missing} help yet.'


def _share(better: int, seen: int, how: str) -> str:
    times = "time" if seen == 1 else "times"
    return f"{better:,} of {seen:,} {times} {how} ({100 * better / seen:.0f} %)"
