"""Draws from the posterior of all moves and of all strengths.

A mean and a standard deviation say how sure a single number is. Whether a list is worth more than
chance, or somebody belongs on it, depends on all numbers together, so these are drawn together.
"""

from collections.abc import Callable
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from dopl_core.learning.bandit import ACT, WAIT, FloatArray, IntArray
from dopl_core.learning.columns import Columns, category
from dopl_core.learning.log_space import logsumexp, softmax
from dopl_core.learning.preferences import Preferences
from dopl_core.learning.transitions.moves import Explanation, Gradual, explanations

SELECTION = "always helped"  # a column of who is always helped and who never
PATTERNS = 8  # of states that help makes no difference in; with three states, all there are


def moves(
    visits: IntArray,
    columns: Columns | None,
    count: int,
    rng: np.random.Generator,
    idle: float = 0.0,
) -> FloatArray:
    """Transitions [D, N, S, A, S'] drawn from the posterior that `moves.rows` sums up.

    Priors of rows are flat here, whether states are ordered or not: what help does is judged by
    the moves, not by the belief that it does good.

    idle: how likely it seems beforehand of each state that help makes no difference in it. The more
    likely, the less do moves that came by luck pass for what help does.
    """
    drawn, columns = [], with_selection(visits, columns)
    explained = cache(partial(_of_pattern, visits, columns))
    for still, some in _patterns(explained, visits.shape[1], count, rng, idle):
        of = _row_of(np.array(still))
        n, found = explained(still)
        of_each = rng.multinomial(some, softmax([one.evidence for one in found]))
        for one, few in zip(found, of_each.tolist(), strict=True):
            if few:
                drawn.append(one.draw(n.astype(float), few, rng)[:, :, of])
    return rng.permutation(np.concatenate(drawn)).reshape(count, *visits.shape)


def with_selection(visits: IntArray, columns: Columns | None) -> Columns | None:
    """The columns, and who is always helped and who never, where that is so for most arms.

    Help is not given at random: arms that are always helped may differ from those that never are.
    """
    waited, helped = (visits[:, :, action].any(axis=(1, 2)) for action in (WAIT, ACT))
    one_way = waited != helped
    if 2 * one_way.sum() <= (waited | helped).sum() or not (one_way & helped).any():
        return columns
    texts = np.where(one_way, np.where(helped, "always", "never"), "")
    others = () if columns is None else columns.each
    return Columns((*others, category(SELECTION, texts.tolist())), len(visits))


def _explained(n: IntArray, columns: Columns | None, still: NDArray[np.bool_]) -> list[Explanation]:
    """Every explanation of the moves n [N, r, s], where help makes no difference in `still` [S].

    If most arms are always or never helped, moves cannot tell what help does from who gets it. Then
    only the regression is honest: in it both kinds differ by a shift that all states share, and of
    which no more is known than its prior.
    """
    found = explanations(n, columns, actions=_actions_of(still))
    honest = [one for one in found if isinstance(one, Gradual) and SELECTION in one.columns]
    return list(honest or found)


Pattern = tuple[bool, ...]  # [S] whether help makes no difference in a state
Explained = tuple[IntArray, list[Explanation]]


def _of_pattern(visits: IntArray, columns: Columns | None, still: Pattern) -> Explained:
    """Moves [n, r, s] by the rows of a pattern, and every explanation of them."""
    n = _merged(visits, _row_of(np.array(still)))
    return n, _explained(n, columns, np.array(still))


def _patterns(
    explained: Callable[[Pattern], Explained],
    n_states: int,
    count: int,
    rng: np.random.Generator,
    idle: float,
) -> list[tuple[Pattern, int]]:
    """Patterns of states in which help makes no difference, and how many draws are of each.

    Of each state by itself, as likely as the moves make it; of many patterns the most common ones.
    """
    S, none = n_states, (False,) * n_states
    if not idle:
        return [(none, count)]
    each = [none, *(tuple(alone) for alone in np.eye(S, dtype=bool).tolist())]
    evidence = [logsumexp([one.evidence for one in explained(still)[1]]) for still in each]
    chance = expit(np.array(evidence[1:]) - evidence[0] + logit(idle))
    drawn, often = np.unique(rng.random((count, S)) < chance, axis=0, return_counts=True)
    most = np.argsort(-often, kind="stable")[:PATTERNS]
    share = rng.multinomial(count, often[most] / often[most].sum())
    return [
        (tuple(drawn[at].tolist()), int(some)) for at, some in zip(most, share, strict=True) if some
    ]


def _row_of(still: NDArray[np.bool_]) -> IntArray:
    """The row of each state and action [S * A], where a state that help leaves as it is has one."""
    own = np.ones((len(still), 2), dtype=np.int64)
    own[still, ACT] = 0
    return np.asarray(own.ravel().cumsum() - 1)


def _actions_of(still: NDArray[np.bool_]) -> IntArray:
    """The action of each row [r]; a row of both is one without help."""
    return np.array([a for alone in still for a in ((WAIT,) if alone else (WAIT, ACT))])


def _merged(visits: IntArray, of: IntArray) -> IntArray:
    """Moves [n, r, s] by row, those of rows that are one taken together."""
    N, S = visits.shape[:2]
    n = np.zeros((of[-1] + 1, N, S), dtype=visits.dtype)
    np.add.at(n, of, visits.reshape(N, -1, S).transpose(1, 0, 2))
    return np.ascontiguousarray(n.transpose(1, 0, 2))


def strengths(belief: Preferences, count: int, rng: np.random.Generator) -> FloatArray:
    """Strengths [D, N, S] drawn from the Gaussian that `belief` is; each by itself, where it has no
    covariance.
    """
    V = belief.covariance
    if V is None:
        return belief.mean + belief.sd * rng.standard_normal((count, *belief.mean.shape))
    known, basis = np.linalg.eigh(V)
    noise = rng.standard_normal((count, len(V))) * np.sqrt(np.maximum(known, 0))
    return belief.mean + (noise @ basis.T).reshape(count, *belief.mean.shape)
