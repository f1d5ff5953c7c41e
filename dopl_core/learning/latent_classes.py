"""Arms come in kinds that nobody named: rows of moves, pooled over latent classes of arms.

The row p of an arm for one (state, action) is drawn about its class's row m, that about the row m0
of all arms, and m0 from the flat Dirichlet:  p ~ Dir(k m),  m ~ Dir(j m0),  m0 ~ Dir(1, ..., 1).
The strengths k and j and the number of classes are not known: every combination of a grid is
weighed by its marginal likelihood, as Cheeseman and Stutz (1996) approximate it.

Axes: j strengths of classes, k strengths of arms, n arms, c classes, r rows (one for each state
and action), s next states. C is the number of classes, and so on.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import digamma, entr, gammaln, logsumexp, softmax

from dopl_core.learning.bandit import FloatArray, IntArray
from dopl_core.learning.streams import Stream, generator

MOST_CLASSES = 4
# Strengths are in moves: how many moves of its own an arm needs to outweigh its class. At the least
# an arm says nearly nothing of the others; at the most a study hardly tells arms of a class apart.
STRENGTHS = np.array([2.0, 8.0, 32.0, 128.0, 512.0])
CLASS_STRENGTHS = np.array([4.0, 32.0, 256.0])  # the same for classes about the row of all arms
ALONE = 0.5  # the chance that a row has a strength of its own, not the one that rows share
SORTING = 12  # rounds of sorting arms into classes; each is two small matrix products
MEDIAN = len(STRENGTHS) // 2  # where the median strength stands
MOST_AT_ONCE = 2_000  # arms; more of them tell no more of the classes' rows
UNLIKELY = 1e-6  # numbers of classes that many arms are not looked at with


class Classes(NamedTuple):
    """What one number of classes is found to be, so that any arm's rows follow from its moves.

    alpha: [k, c, r, s] from which rows an arm's are drawn;  sorting: [r, k], size: [c] what sorts
    arms into classes;  mean, variance: of the rows of classes, [k, c, r, s];  strengths: [k, r]
    """

    alpha: FloatArray
    sorting: FloatArray
    size: FloatArray
    mean: FloatArray
    variance: FloatArray
    strengths: FloatArray


def rows(
    visits: IntArray,
    groups: tuple[str, ...] | None = None,
    rng: np.random.Generator | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Posterior mean and variance of every transition row, both [N, S, A, S'], from visits.

    groups: kinds of arms that an owner names [N]; one more starting point, not the last word
    rng: which arms the classes are found from, where there are many
    """
    N, S = visits.shape[:2]
    n = visits.reshape(N, -1, S)
    found, shares, evidence = fits(n, groups, rng)
    weight = softmax(evidence, axis=-1)
    if len(shares[0]) == N:
        moves = n.astype(float)
        parts = [of_arms(moves, *one) for one in zip(shares, found, strict=True)]
        mean, variance = mix(weight, *_stacked(parts))
    else:
        mean, variance = in_blocks(n, weight, found)
    return mean.reshape(visits.shape), variance.reshape(visits.shape)


def fits(
    n: IntArray, groups: tuple[str, ...] | None, rng: np.random.Generator | None = None
) -> tuple[tuple[Classes, ...], tuple[FloatArray, ...], FloatArray]:
    """Each number of classes that there may be, its shares, and its log evidence.

    Found from moves n [n, r, s] of all arms, or of some if there are many: shares are of these.
    """
    few = sample(n, rng)
    some = n[few].astype(float)
    worth = independent_worth(some)
    named = None if groups is None else tuple(groups[arm] for arm in few.tolist())
    every = [fit(some, worth, share) for share in sortings(worth[MEDIAN], named)]
    found, shares, evidence = zip(*every, strict=True)
    return found, shares, np.array(evidence)


def in_blocks(
    n: IntArray, weight: FloatArray, found: tuple[Classes, ...]
) -> tuple[FloatArray, FloatArray]:
    """Mean and variance [n, r, s] of the rows of very many arms, some of them at a time."""
    likely = np.flatnonzero(weight > UNLIKELY)  # many moves make plain how many classes there are
    weight = weight[likely] / weight[likely].sum()
    mean, variance = np.empty(n.shape), np.empty(n.shape)
    moved = n.any(axis=(1, 2))
    still = np.flatnonzero(~moved)  # of these all the same is known
    for block in (still[:1], *np.array_split(np.flatnonzero(moved), 1 + len(n) // MOST_AT_ONCE)):
        moves = n[block].astype(float)
        parts = [of_arms(moves, shares_of(moves, found[c]), found[c]) for c in likely]
        mean[block], variance[block] = mix(weight, *_stacked(parts))
    mean[still], variance[still] = mean[still[:1]], variance[still[:1]]
    return mean, variance


def shares_of(n: FloatArray, classes: Classes) -> FloatArray:
    """Shares [n, c] in classes of arms that these were not found from."""
    likelihood = log_likelihood(n, classes.alpha)
    return resorted(likelihood, classes.sorting, classes.size)


def of_arms(n: FloatArray, share: FloatArray, found: Classes) -> tuple[FloatArray, FloatArray]:
    """Mean and variance [n, r, s] of the rows of arms with the moves n and the shares [n, c]."""
    return arm_rows(n, found.strengths, share, found.mean, found.variance)


def _stacked(parts: list[tuple[FloatArray, FloatArray]]) -> tuple[FloatArray, FloatArray]:
    means, variances = zip(*parts, strict=True)
    return np.array(means), np.array(variances)


def sample(n: IntArray, rng: np.random.Generator | None) -> IntArray:
    """The arms that classes are found from: all, or of many some that have been seen moving."""
    if len(n) <= MOST_AT_ONCE:
        return np.arange(len(n))
    moved = np.flatnonzero(n.any(axis=(1, 2)))
    if len(moved) <= MOST_AT_ONCE:
        return moved if len(moved) else np.arange(MOST_AT_ONCE)
    rng = rng or generator(Stream.CLASSES, 0)
    return np.sort(rng.choice(moved, MOST_AT_ONCE, replace=False))


def mix(w: FloatArray, mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and variance [...] of a mixture with weights w [G] of parts [G, ...]."""
    mixed = np.einsum("g,g...->...", w, mean)
    return mixed, np.einsum("g,g...->...", w, variance + (mean - mixed) ** 2)


def independent_worth(n: FloatArray) -> FloatArray:
    """How many draws from its class's row an arm's moves n [n, r, s] are worth, [k, n, r, s].

    An arm's moves tell the less of its class the more the arms of a class differ: the variance of
    the shares of Z moves (a Dirichlet-multinomial) is that of Z (1 + k) / (k + Z) draws.
    """
    k = STRENGTHS[:, None, None, None]
    Z = n.sum(axis=2, keepdims=True)
    return n * ((1 + k) / (k + np.maximum(Z, 1)))


# Where the classes start: a quick sort of the arms by the multinomial likelihood of their moves.


def sortings(counts: FloatArray, groups: tuple[str, ...] | None) -> list[FloatArray]:
    """Shares [n, c] of the arms in 1, 2, ... classes, from counts [n, r, s]: where `fit` starts.

    Each further class starts at the arm that the classes so far explain worst.
    """
    N, _, S = counts.shape
    pooled = _normalised(counts.sum(axis=0) + 1.0)
    prior = S * pooled
    own = _normalised(counts + prior)
    flat = counts.reshape(N, -1)
    alone = (flat * np.log(own).reshape(N, -1)).sum(axis=1)
    found = [np.ones((N, 1))]
    m = pooled[None]
    for _ in range(2, min(MOST_CLASSES, N) + 1):
        odd = (alone - multinomial(flat, m).max(axis=1)).argmax()
        share, m = sort(flat, np.concatenate([m, own[[odd]]]), prior)
        found.append(share)
    if groups is not None and len(set(groups)) > 1:
        named = (np.array(groups)[:, None] == np.unique(groups)).astype(float)
        found.append(sort(flat, rows_of_classes(flat, named, prior), prior)[0])
    return found


def sort(flat: FloatArray, m: FloatArray, prior: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Classes by expectation and maximisation, from rows m [c, r, s]: shares [n, c] and rows.

    flat: [n, r * s] counts; prior: [r, s] what every class has been seen doing beforehand
    """
    size = np.ones(len(m))
    for _ in range(SORTING):
        share = softmax(multinomial(flat, m) + np.log(size), axis=-1)
        m = rows_of_classes(flat, share, prior)
        size = share.sum(axis=0) + 1
    return share, m


def multinomial(flat: FloatArray, m: FloatArray) -> FloatArray:
    """Log-likelihood [n, c] of each arm's counts [n, r * s] under the rows m [c, r, s]."""
    return flat @ np.log(m).reshape(len(m), -1).T


def rows_of_classes(flat: FloatArray, share: FloatArray, prior: FloatArray) -> FloatArray:
    """Rows [c, r, s] of classes whose arms have the counts [n, r * s], with a prior [r, s]."""
    return _normalised((share.T @ flat).reshape(-1, *prior.shape) + prior)


# One number of classes: the posterior of all rows, and its evidence.


def fit(n: FloatArray, worth: FloatArray, share: FloatArray) -> tuple[Classes, FloatArray, float]:
    """The classes, their shares [n, c] and their log evidence, from starting shares.

    n: [n, r, s] moves; worth: [k, n, r, s] what they are worth (`independent_worth`)
    """
    m = starting_rows(worth, share)
    alpha = STRENGTHS[:, None, None, None] * m  # an arm's row is drawn from Dir(alpha)
    likelihood = log_likelihood(n, alpha)
    sorts = sorting(share, likelihood)
    if share.shape[1] > 1:
        share = resorted(likelihood, *sorts)
    tables = expected_tables(n, alpha, share)
    mean, variance, of_tables = class_rows(tables)
    strengths, evidence = row_strengths(row_evidence(likelihood, share, m, tables, of_tables))
    evidence = evidence + entr(share).sum() + sorting_evidence(share)
    return Classes(alpha, *sorts, mean, variance, strengths), share, float(evidence)


def starting_rows(worth: FloatArray, share: FloatArray) -> FloatArray:
    """Rows m [k, c, r, s] of classes, where arms' moves are worth [k, n, r, s] draws from them."""
    draws = np.einsum("nc,knrs->kcrs", share, worth)
    pooled = _normalised(draws.sum(axis=(0, 1)) + 1)
    return _normalised(draws + pooled.shape[1] * pooled)


def log_likelihood(n: FloatArray, alpha: FloatArray) -> FloatArray:
    """Log-likelihood [k, n, c, r] of each arm's moves n [n, r, s] if it were of each class.

    The Dirichlet-multinomial with the parameters alpha = k m [k, c, r, s], one sequence of moves.
    """
    k = STRENGTHS[:, None, None]
    prior = alpha[:, None]
    by_next_state = gammaln(n[:, None] + prior)  # [k, n, c, r, s]
    by_next_state -= gammaln(prior)
    likelihood = by_next_state.sum(axis=4)
    likelihood += (gammaln(k) - gammaln(k + n.sum(axis=2)))[:, :, None]
    return likelihood


def sorting(share: FloatArray, likelihood: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What shares [n, c] so far tell of the strengths [r, k], and of the classes' sizes [c]."""
    strengths = softmax(np.einsum("nc,kncr->rk", share, likelihood), axis=-1)
    return strengths, digamma(share.sum(axis=0) + 1)


def resorted(likelihood: FloatArray, strengths: FloatArray, size: FloatArray) -> FloatArray:
    """Shares [n, c] anew, from a likelihood [k, n, c, r] and what `sorting` tells."""
    return softmax(np.einsum("rk,kncr->nc", strengths, likelihood) + size, axis=-1)


def expected_tables(n: FloatArray, alpha: FloatArray, share: FloatArray) -> FloatArray:
    """How many draws from their class's row the moves n [n, r, s] of its arms are, [k, c, r, s].

    Where `independent_worth` goes by the variance, this is exact at given alpha [k, c, r, s]: the
    expected number of tables of a Chinese restaurant. Each move is a guest, who sits down with
    others or opens a table; only the opening of a table is a draw from the class's row.
    """
    prior = alpha[:, None]
    tables = digamma(n[:, None] + prior)  # [k, n, c, r, s]
    tables -= digamma(prior)
    tables *= prior
    return np.einsum("nc,kncrs->kcrs", share, tables)


def row_evidence(
    likelihood: FloatArray,
    share: FloatArray,
    m: FloatArray,
    tables: FloatArray,
    of_tables: FloatArray,
) -> FloatArray:
    """Log evidence [k, r] of the moves in each row, as Cheeseman and Stutz approximate it.

    That of the tables [k, c, r, s], as if they had been seen (of_tables: [k, r]), corrected by how
    much more likely than the tables the moves are (likelihood: [k, n, c, r]), both at the rows
    m [k, c, r, s].
    """
    moves = np.einsum("nc,kncr->kr", share, likelihood)
    return moves - (tables * np.log(m)).sum(axis=(1, 3)) + of_tables


def sorting_evidence(share: FloatArray) -> float:
    """Log-probability of the arms' classes, for shares [n, c], if all class sizes are as likely.

    The C! ways to number the same classes count as one sorting.
    """
    N, C = share.shape
    members = share.sum(axis=0)
    return float(gammaln(members + 1).sum() + gammaln(C) - gammaln(N + C) + gammaln(C + 1))


def row_strengths(log_evidence: FloatArray) -> tuple[FloatArray, float]:
    """How likely each strength is for each row [k, r], and the log evidence of all rows together.

    Rows have a strength in common, but any of them may have one of its own (ALONE).
    """
    n_strengths = len(log_evidence)
    top = log_evidence.max(axis=0)
    e = np.exp(log_evidence - top)
    own = ALONE * e.mean(axis=0)
    each = np.log((1 - ALONE) * e + own + 1e-300)  # [common strength, row]
    together = each.sum(axis=1)
    common = softmax(together)
    # p(k, r) = sum over common g of p(g) [(1-ALONE) [k = g] + ALONE / K] e(k, r) / exp(each(g, r))
    per = common[:, None] / np.exp(each)
    w = e * ((1 - ALONE) * per + ALONE / n_strengths * per.sum(axis=0))
    return w, float(logsumexp(together) - np.log(n_strengths) + top.sum())


def arm_rows(
    n: FloatArray,
    strengths: FloatArray,
    share: FloatArray,
    class_mean: FloatArray,
    class_variance: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Mean and variance [n, r, s] of the rows of arms, over their strengths and classes.

    n: [n, r, s] moves; strengths: [k, r] and share: [n, c] how likely each is
    class_mean, class_variance: [k, c, r, s]
    """
    k = STRENGTHS[:, None, None, None]
    total = k + n.sum(axis=2)[..., None]  # [k, n, r, 1]
    weight = (k / total)[:, :, None]
    mu = weight * class_mean[:, None]  # [k, n, c, r, s]
    mu += (n / total)[:, :, None]
    square = mu * (1 - mu)  # variance of p, and in the end the mean of p^2
    square /= total[:, :, None] + 1
    square += weight**2 * class_variance[:, None]
    square += mu**2
    joint = strengths[:, None, None, :] * share[:, :, None]  # [k, n, c, r]
    mean = np.einsum("kncr,kncrs->nrs", joint, mu)
    return mean, np.einsum("kncr,kncrs->nrs", joint, square) - mean**2


# The rows of classes about the row of all arms, for each strength j of classes.


def class_rows(tables: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean and variance of class rows [k, c, r, s] and log evidence [k, r], for their tables.

    tables: [k, c, r, s] how many independent draws from the class's row its arms' moves are worth
    """
    m0, draws = row_of_all(tables)
    evidence = class_evidence(tables, m0, draws)
    means, variances = class_rows_by_strength(tables, draws)
    log_total = logsumexp(evidence, axis=0)
    w = np.exp(evidence - log_total)
    mean = np.einsum("jkr,jkcrs->kcrs", w, means)
    variance = np.einsum("jkr,jkcrs->kcrs", w, variances + (means - mean) ** 2)
    return mean, variance, log_total - np.log(len(CLASS_STRENGTHS))


def row_of_all(tables: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The row m0 of all arms and the draws from it that tables [k, c, r, s] are worth.

    Both [j, k, 1, r, s]. Again the expected number of tables of a Chinese restaurant, whose
    guests are the tables of the arms; it depends on m0 and m0 on it, so it is found in two rounds.
    """
    j = CLASS_STRENGTHS[:, None, None, None, None]
    draws = tables[None].sum(axis=2, keepdims=True)
    for _ in range(2):
        m0 = (1 + draws) / _flat_total(draws)
        alpha = j * m0
        draws = (alpha * (digamma(tables + alpha) - digamma(alpha))).sum(axis=2, keepdims=True)
    return m0, draws


def class_evidence(tables: FloatArray, m0: FloatArray, draws: FloatArray) -> FloatArray:
    """Log evidence [j, k, r] of tables [k, c, r, s], after Cheeseman and Stutz as in `fit`.

    The evidence of the draws [j, k, 1, r, s] under the flat Dirichlet, corrected by how much more
    likely than the draws the tables are, both at the row m0 [j, k, 1, r, s].
    """
    S = tables.shape[-1]
    j = CLASS_STRENGTHS[:, None, None, None, None]
    alpha = j * m0
    total = tables[None].sum(axis=-1, keepdims=True)
    return (
        (gammaln(tables + alpha) - gammaln(alpha)).sum(axis=(2, 4))
        + (gammaln(j) - gammaln(j + total)).sum(axis=(2, 4))
        - (draws * np.log(m0)).sum(axis=(2, 4))
        + gammaln(1 + draws).sum(axis=(2, 4))
        + (gammaln(S) - gammaln(S + draws.sum(axis=-1))).sum(axis=2)
    )


def class_rows_by_strength(tables: FloatArray, draws: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and variance [j, k, c, r, s] of class rows about that of all arms.

    tables: [k, c, r, s] draws from the class's row; draws: [j, k, 1, r, s] from the row of all
    """
    j = CLASS_STRENGTHS[:, None, None, None, None]
    of_all = _flat_total(draws)
    m0 = (1 + draws) / of_all
    v0 = m0 * (1 - m0) / (of_all + 1)
    total = j + tables[None].sum(axis=-1, keepdims=True)
    mean = (j * m0 + tables) / total
    return mean, mean * (1 - mean) / (total + 1) + (j / total) ** 2 * v0


def _flat_total(draws: FloatArray) -> FloatArray:
    """The sum [..., 1] of the parameters of the posterior Dir(1 + draws [..., s])."""
    return draws.shape[-1] + draws.sum(axis=-1, keepdims=True)


def _normalised(x: FloatArray) -> FloatArray:
    """Rows [..., s] that sum to 1."""
    return x / x.sum(axis=-1, keepdims=True)
