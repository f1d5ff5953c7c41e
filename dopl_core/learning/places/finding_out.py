"""Places of a list to find out what help does, where that is not known yet.

A list of the highest expected gains alone may never learn what help does in states that it does not
reach. So the last places of a list are given anew, to the arms that could gain most: by their gain
and HOPE standard errors of the effect of help in their state. An arm may keep its place. Places are
spread over states: the error counts for less, the more arms in the state are on the list already.

Until help is known to do something in the best state, at most a quarter of a list goes there,
beyond the places that the worse off leave free.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dopl_core.learning.bandit import UNKNOWN, FloatArray, IntArray

HOPE = 0.8  # standard errors
ONE_IN = 8  # one place in eight finds out
BEST_SHARE = 0.25  # of a list, for people in the best state, while their gain is not credible


class Hope(NamedTuple):
    """What each arm could gain: its state and gain [N]; the error of gains in each state [S]."""

    state: IntArray
    gain: FloatArray
    error: FloatArray


def usual(budget: int, episode: int) -> int:
    """How many places of a list may find out, unless the owner says otherwise.

    One in ONE_IN over the episodes, from 1: of 4 places, one in every other episode.
    """
    return episode * budget // ONE_IN - (episode - 1) * budget // ONE_IN


def choose(
    listed: IntArray,
    order: IntArray,
    hope: Hope,
    *,
    best_credible: bool,
    places: int,
    codes: IntArray | None = None,
) -> IntArray:
    """The arms of a list after the best state is limited, and places find out; by number.

    listed: by urgency alone;  order: all arms that may be listed, the most urgent first
    codes: [N] groups that places are shared out among; each place stays in its group
    """
    on = np.zeros(len(hope.state), dtype=bool)
    on[listed] = True
    best = hope.state == len(hope.error) - 1
    most = len(listed)
    if not best_credible:
        most = int(BEST_SHARE * len(listed)) + max(0, len(listed) - int((~best[order]).sum()))
        _limit(on, order, best, most, codes)
    _find_out(on, order, hope, best, most, places, codes)
    return np.flatnonzero(on)


def _limit(
    on: NDArray[np.bool_],
    order: IntArray,
    best: NDArray[np.bool_],
    most: int,
    codes: IntArray | None,
) -> None:
    """Exchange arms in the best state beyond the first `most` for the most urgent others."""
    for arm in order[(on & best)[order]][most:].tolist():
        others = order[(~on & ~best)[order]]
        others = others if codes is None else others[codes[others] == codes[arm]]
        if len(others):
            on[[arm, others[0]]] = False, True


def _find_out(
    on: NDArray[np.bool_],
    order: IntArray,
    hope: Hope,
    best: NDArray[np.bool_],
    most: int,
    places: int,
    codes: IntArray | None,
) -> None:
    """Exchange the last `places` arms of the list for those who could gain most."""
    for arm in order[on[order]][::-1][:places].tolist():
        on[arm] = False
        known = ~on & (hope.state != UNKNOWN)
        if (on & best).sum() >= most:
            known &= ~best
        others = order[known[order]]
        others = others if codes is None else others[codes[others] == codes[arm]]
        listed = np.bincount(hope.state[on & (hope.state != UNKNOWN)], minlength=len(hope.error))
        could = hope.gain + HOPE * (hope.error / np.sqrt(1 + listed))[hope.state]
        hopeful = others[np.argsort(-could[others], kind="stable")[:1]]
        pays = len(hopeful) and could[hopeful[0]] > hope.gain[arm]
        on[hopeful[0] if pays else arm] = True
