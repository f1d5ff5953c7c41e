"""What may be said of help in a state: shares of observed moves, and nothing that nobody observed.

Lists, their CSV and sheets, and Insights all use it, so they show the same figures. Past records
count like reports. Somebody is better off after a week if they are in a better state than before,
or still in the best one.
"""

from typing import NamedTuple

import numpy as np

from dopl_core.learning.bandit import ACT, WAIT, IntArray, better_states
from dopl_core.studies.model.owner_words import people_first, the_next_week
from dopl_core.wording import _, format_number, format_percent, ngettext


class KnownEffect(NamedTuple):
    """How many moves from a state were seen with help and without, to a better state and a worse.

    better: also those who stayed in the best state;  worse: 0 in lists of older versions
    """

    seen_with_help: int
    better_with_help: int
    seen_without: int
    better_without: int
    worse_with_help: int = 0
    worse_without: int = 0

    @property
    def seen(self) -> int:
        """How many moves were seen, with help or without."""
        return self.seen_with_help + self.seen_without

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

    @property
    def fewer_worse(self) -> bool:
        """Whether the share worse off was smaller with help than without."""
        with_help, without = (
            self.worse_with_help * self.seen_without,
            self.worse_without * self.seen_with_help,
        )
        return self.seen_both_ways and with_help < without


def known_effects(visits: IntArray) -> list[KnownEffect]:
    """What was seen of help in each state [s], over all arms; visits: [n, s, a, s']."""
    moves = visits.sum(axis=0)
    seen = moves.sum(axis=2)
    better = (moves * better_states(visits.shape[1])[:, None]).sum(axis=2)
    worse = np.tril(moves.transpose(1, 0, 2), -1).sum(axis=2).T
    counts = seen[:, ACT], better[:, ACT], seen[:, WAIT], better[:, WAIT]
    by_state = np.stack([*counts, worse[:, ACT], worse[:, WAIT]], axis=1)
    return [KnownEffect(*own) for own in by_state.tolist()]


class Words(NamedTuple):
    """The owner's words for a person and for a week, and the label of the best state."""

    noun: str
    week: str
    best: str


def effect_text(known: KnownEffect, state: str, words: Words, name: str = "") -> str:
    """What was seen of help in a state: shares with their base, or that nobody was seen.

    Where people fell, it says how often: help that prevents a fall is a reason, too.
    name: of the state in the reader's language, if it is another one
    """
    is_best, state = state == words.best, name or state
    if not known.seen:
        unknown = _('What help does in "{state}" is not known yet.')
        return unknown.format(state=state)
    text = _('{people} in "{state}" were better off {the_next_week} {shares}.')
    if is_best:
        text = _('{people} in "{state}" were still there {the_next_week} {shares}.')
    elif known.worse_with_help + known.worse_without:
        text += " " + _("They were worse off {falls}.")
    if not known.seen_without:
        text += " " + _('Nobody in "{state}" has been seen without help yet.')
    elif not known.seen_with_help:
        text += " " + _('Nobody in "{state}" has been seen with help yet.')
    return text.format(
        state=state,
        people=people_first(words.noun),
        the_next_week=the_next_week(words.week),
        shares=_shares(known, known.better_with_help, known.better_without),
        falls=_shares(known, known.worse_with_help, known.worse_without),
    )


def _shares(known: KnownEffect, times_with_help: int, times_without: int) -> str:
    """How often something was seen with help, and without; only one of them if nobody was seen."""
    with_help = ngettext(
        "{better} of {seen} time with help ({share})",
        "{better} of {seen} times with help ({share})",
        known.seen_with_help,
    )
    without = ngettext(
        "{better} of {seen} time without help ({share})",
        "{better} of {seen} times without help ({share})",
        known.seen_without,
    )
    with_help = _share(with_help, times_with_help, known.seen_with_help)
    without = _share(without, times_without, known.seen_without)
    if not known.seen_both_ways:
        return with_help if known.seen_with_help else without
    return _("{with_help} and {without}").format(with_help=with_help, without=without)


def _share(words: str, better: int, seen: int) -> str:
    share = format_percent(better / max(1, seen))
    return words.format(better=format_number(better), seen=format_number(seen), share=share)
