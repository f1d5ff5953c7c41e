"""The most informative pairs by the present beliefs, for each annotator where some are limited."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dopl_core.learning import preferences
from dopl_core.learning.bandit import FloatArray, IntArray
from dopl_core.learning.pairs import many_pairs, pair_designs
from dopl_core.learning.preferences import Preferences

Mask = NDArray[np.bool_]
Tree = Callable[[FloatArray, FloatArray, FloatArray, FloatArray], IntArray]


def most_informative(
    belief: Preferences,
    matters: FloatArray,
    codes: IntArray,
    asked: IntArray,
    keys: FloatArray,
    *,
    once: bool = False,
) -> IntArray:
    """Pairs [D, 2] of positions among the arm-states `codes` [n], the most informative first.

    matters: [N, S, S] how much strengths matter (decisions.py)
    asked, keys, once: as for pair_designs.most_informative
    """
    if belief.common is not None:
        about = many_pairs.unknown(*_little_known(belief), matters, codes)
        return many_pairs.most_informative(about, asked, keys, once=once)
    return pair_designs.most_informative(*_about(belief, matters, codes), asked, keys, once=once)


def informative_tree(
    belief: Preferences, matters: FloatArray, codes: IntArray, choose: Tree, keys: FloatArray
) -> IntArray:
    """A tree [n - 1, 2] of the arm-states `codes` [n] that tells much; choose: of a Design."""
    if belief.common is not None:
        about = many_pairs.unknown(*_little_known(belief), matters, codes)
        return many_pairs.informative_tree(about, keys)
    return choose(*_about(belief, matters, codes), keys)


def _about(
    belief: Preferences, matters: FloatArray, codes: IntArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The arguments of pair_designs.most_informative for the arm-states `codes`."""
    V = belief.covariance
    assert V is not None  # noqa: S101
    N, S, _ = matters.shape
    towards = V[:, codes]
    weighted = (matters @ towards.reshape(N, S, -1)).reshape(N * S, -1)
    return towards.T @ weighted, V[np.ix_(codes, codes)], belief.mean.ravel()[codes]


def _little_known(belief: Preferences) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The arguments of many_pairs.unknown for all arm-states."""
    assert belief.common is not None  # noqa: S101
    sd = (belief.overestimate - belief.mean) / preferences.OPTIMISM
    return belief.common, sd.ravel() ** 2, belief.mean.ravel()


# --- where annotators are limited


def judgeable(duels: IntArray, judged: Mask | None) -> IntArray:
    """Those of duels [D, 4] that some limited annotator may judge.

    judged: [K, N] the arms that each of them judges; None or K = 0 if any pair may be asked
    """
    if judged is None or not len(judged):
        return duels
    return duels[(judged[:, duels[:, 0]] & judged[:, duels[:, 2]]).any(axis=0)]


def within(arms: Mask, asked: IntArray, count: int) -> tuple[IntArray, int]:
    """Of different duels `asked` [D, 4], those between `arms` [N]; and how many can be added."""
    inside = asked[arms[asked[:, 0]] & arms[asked[:, 2]]]
    n = int(arms.sum())
    return inside, min(count, n * (n - 1) // 2 - len(inside))


def for_each(
    choose: Callable[[IntArray, int, Mask | None], IntArray],
    judged: Mask | None,
    asked: IntArray,
    count: int,
) -> IntArray:
    """Up to `count` duels [D, 4] beside those `asked`, shared evenly among limited annotators.

    choose: the duels for one of them, given all before, how many, and whom they judge
    judged: as for `judgeable`; those who judge few come first, and others get what they leave
    """
    if judged is None or not len(judged):
        return choose(asked, count, None)
    found = asked
    for done, arms in enumerate(judged):
        missing = len(asked) + count - len(found)
        share = -(-missing // (len(judged) - done))
        found = np.concatenate([found, choose(found, share, arms)])
    return found[len(asked) :]
