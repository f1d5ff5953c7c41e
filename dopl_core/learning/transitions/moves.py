"""How arms move: explanations of all moves, averaged by their evidence.

Arms may be alike in latent classes (latent_classes.py), by the values of a column or of two, or
gradually by all columns (row_regression.py). Each is an explanation with an evidence; columns that
are known need not be sorted, so their evidence does not pay for it. Half of the prior is for
explanations without columns.

Axes: k concentrations, n arms, c classes, r rows (row 2 s + a), s next states, D draws.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dopl_core.learning.bandit import FloatArray, IntArray
from dopl_core.learning.columns import Column, Columns
from dopl_core.learning.log_space import logsumexp, softmax
from dopl_core.learning.streams import Stream, generator
from dopl_core.learning.transitions import latent_classes, row_regression
from dopl_core.learning.transitions.latent_classes import CONCENTRATIONS, MEDIAN, Classes
from dopl_core.learning.transitions.row_regression import Regression

MOST_AT_ONCE = 2_000  # arms; more of them tell no more of the explanations
UNLIKELY = 1e-6  # explanations of many arms that are not looked at
NO_COLUMN = 0.5  # prior probability that no column matters
GRADUALLY = 1 / 3  # prior probability that columns act gradually, if any does
MOST_CELLS = 24  # classes that two columns make together
MOST_STEPS = 4  # values of a number that are classes; with more, its halves are
GRADUAL = slice(1, None)  # concentrations of arms that the regression is fitted with


@dataclass(frozen=True, eq=False)
class Sorting:
    """Arms are alike in classes: latent, or those of the labels [N] that columns give.

    evidence: log, its prior included;  share: [n, c] of the arms that latent classes were found
    from, in these classes
    """

    columns: tuple[str, ...]
    evidence: float
    classes: Classes
    labels: IntArray | None = None
    share: FloatArray | None = None

    def shares(self, n: FloatArray, arms: IntArray) -> FloatArray:
        """Shares [n, c] in the classes, of `arms` with the moves n [n, r, s]."""
        if self.labels is not None:
            return np.asarray(np.eye(self.classes.mean.shape[1])[self.labels[arms]])
        if self.share is not None and len(self.share) == len(arms):
            return self.share
        found = self.classes
        likelihood = latent_classes.log_likelihood(n, found.alpha)
        return latent_classes.resorted(likelihood, found.sorting, found.size)

    def rows(self, n: FloatArray, arms: IntArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance [n, r, s] of the rows of `arms`, from their moves n."""
        found, mean, variance = self.classes, np.empty(n.shape), np.empty(n.shape)
        if self.labels is None:
            share = self.shares(n, arms)
            return latent_classes.arm_rows(
                n, found.strengths, share, found.mean[:, None], found.variance[:, None]
            )
        for c in np.unique(self.labels[arms]):
            own, sure = self.labels[arms] == c, np.ones((1, 1))
            centre = found.mean[:, None, [c]], found.variance[:, None, [c]]
            mean[own], variance[own] = latent_classes.arm_rows(
                n[own], found.strengths, sure, *centre
            )
        return mean, variance

    def draw(self, n: FloatArray, count: int, rng: np.random.Generator) -> FloatArray:
        """Rows [D, n, r, s] of all arms: first those of their classes, then their own."""
        found = self.classes
        k = pick(found.strengths.T, count, rng)  # [D, r]
        of_class = draw_centres(found, k, rng)  # [c, D, r, s]
        c = pick(self.shares(n, np.arange(len(n))), count, rng)  # [D, n]
        mine = of_class[c, np.arange(count)[:, None]]
        return dirichlet(CONCENTRATIONS[k][:, None, :, None] * mine + n, rng)


@dataclass(frozen=True, eq=False)
class Gradual:
    """Arms differ gradually by the features x [N, d] of their columns.

    alike: the rows of all arms;  weight: [g] how likely each concentration and spread is
    of: [d] which column each feature is of;  actions: [r] of which action each row is
    """

    columns: tuple[str, ...]
    evidence: float
    regression: Regression
    alike: Classes
    x: FloatArray
    weight: FloatArray
    of: IntArray
    actions: IntArray

    def matters(self, name: str) -> float:
        """How likely a column is to matter, if columns act gradually."""
        its = self.of == self.columns.index(name)
        return row_regression.matters(self.regression, its, self.weight, self.actions)

    def rows(self, n: FloatArray, arms: IntArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance [n, r, s] of the rows of `arms`, from their moves n."""
        mean, square, x = np.zeros(n.shape), np.zeros(n.shape), self.x[arms]
        likely = self.weight * (self.weight > UNLIKELY)
        likely = likely / likely.sum()
        for g in np.flatnonzero(likely).tolist():
            one = row_regression.only(self.regression, g)
            m = row_regression.centres(x, one.mean, one.centre, one.scores)
            unsure = row_regression.variances(x, one, m)
            unsure += self.alike.variance[GRADUAL, 0][one.strength][:, None]
            k = CONCENTRATIONS[GRADUAL][one.strength]
            known = np.ones((1, n.shape[1])), np.ones((1, 1)), m[:, :, None], unsure[:, :, None]
            mu, variance = latent_classes.arm_rows(n, *known, k)
            mean += likely[g] * mu
            square += likely[g] * (variance + mu**2)
        return mean, square - mean**2

    def draw(self, n: FloatArray, count: int, rng: np.random.Generator) -> FloatArray:
        """Rows [D, n, r, s] of all arms: coefficients and the row of all, then their own."""
        drawn = []
        for g, some in enumerate(rng.multinomial(count, self.weight / self.weight.sum())):
            if some:
                one = row_regression.only(self.regression, g)
                at = np.full((some, n.shape[1]), GRADUAL.start + one.strength[0])
                centre = draw_centres(self.alike, at, rng)[0]
                b = row_regression.draw(one, some, rng)
                m = row_regression.centres(self.x, b, centre, one.scores)
                drawn.append(dirichlet(CONCENTRATIONS[at[0, 0]] * m + n, rng))
        return np.concatenate(drawn)


Explanation = Sorting | Gradual


def rows(
    visits: IntArray,
    columns: Columns | None = None,
    *,
    ordered: bool = False,
    rng: np.random.Generator | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Posterior mean and variance of every transition row, both [N, S, A, S'], from visits.

    columns: what else is known of the arms
    ordered: states go from worst to best, and help is an effect on how arms move anyway
    rng: which arms the explanations are found from, where there are many
    """
    N, S = visits.shape[:2]
    n = visits.reshape(N, -1, S)
    found = explanations(n, columns, ordered=ordered, tied=ordered, rng=rng)
    weight = softmax([one.evidence for one in found])
    if N <= MOST_AT_ONCE:
        moves, arms = n.astype(float), np.arange(N)
        mean, variance = mixture(found, weight, moves, arms)
    else:
        mean, variance = in_blocks(found, weight, n)
    return mean.reshape(visits.shape), variance.reshape(visits.shape)


def which_columns(
    visits: IntArray,
    columns: Columns,
    *,
    ordered: bool = False,
    rng: np.random.Generator | None = None,
) -> dict[str, float]:
    """The posterior probability that each column tells how arms move."""
    n = visits.reshape(*visits.shape[:1], -1, visits.shape[1])
    found = explanations(n, columns, ordered=ordered, tied=ordered, rng=rng)
    matters = dict.fromkeys(columns.names, 0.0)
    for one, weight in zip(found, softmax([one.evidence for one in found]), strict=True):
        for name in one.columns:
            if_so = one.matters(name) if isinstance(one, Gradual) else 1.0
            matters[name] += float(weight) * if_so
    return matters


def explanations(
    n: IntArray,
    columns: Columns | None,
    *,
    ordered: bool = False,
    tied: bool = False,
    actions: IntArray | None = None,
    rng: np.random.Generator | None = None,
) -> list[Explanation]:
    """Every explanation of the moves n [N, r, s], from all arms or from some of many.

    ordered: states go from worst to best;  tied: rows with help are tied to those without
    actions: [r] of which action each row is; by default they take turns
    """
    few = sample(n, rng)
    some = n[few].astype(float)
    worth = latent_classes.independent_worth(some)
    shares = latent_classes.sortings(worth[MEDIAN])
    prior = np.log((NO_COLUMN if columns and columns.each else 1.0) / len(shares))
    found: list[Explanation] = []
    for start in shares:
        classes, share, evidence = latent_classes.fit(some, worth, start, tied)
        found.append(Sorting((), evidence + prior, classes, None, share))
    if columns is None or not columns.each:
        return found
    sorted_by = by_columns(some, worth, columns, few, tied)
    every = np.arange(n.shape[1]) % 2 if actions is None else actions
    alike = found[0].classes  # type: ignore[union-attr]
    best = sorted(range(len(columns.each)), key=lambda at: -sorted_by[at].evidence)
    chosen = [columns.each[at] for at in best]
    return [*found, *sorted_by, gradually(some, worth, chosen, few, alike, every, ordered)]


def by_columns(
    n: FloatArray, worth: FloatArray, columns: Columns, few: IntArray, tied: bool
) -> list[Sorting]:
    """Arms sorted by each column, in order, then by the best column and each other one."""

    def sorted_by(names: tuple[str, ...], labels: IntArray, prior: float) -> Sorting:
        known, inside = np.unique(labels[few], return_inverse=True)
        at = np.searchsorted(known, labels).clip(max=len(known) - 1)
        # A value that none of the arms here has tells nothing: such arms go with the first class.
        every = np.where(known[at] == labels, at, 0)
        classes, evidence = latent_classes.fit_labels(n, worth, inside, tied)
        return Sorting(names, evidence + prior, classes, every)

    K = len(columns.each)
    some = np.log((1 - NO_COLUMN) * (1 - GRADUALLY) / (2 if K > 1 else 1))
    labels = [labels_of(column) for column in columns.each]
    single = [
        sorted_by((column.name,), own, some - np.log(K))
        for column, own in zip(columns.each, labels, strict=True)
    ]
    best = int(np.argmax([one.evidence for one in single]))
    pairs = []
    for other in range(K):
        both = labels[best] * (labels[other].max() + 1) + labels[other]
        if other != best and len(np.unique(both)) <= MOST_CELLS:
            names = (columns.each[best].name, columns.each[other].name)
            pairs.append(sorted_by(names, both, some - np.log(K - 1)))
    return single + pairs


def gradually(
    n: FloatArray,
    worth: FloatArray,
    chosen: Sequence[Column],
    few: IntArray,
    alike: Classes,
    actions: IntArray,
    ordered: bool,
) -> Gradual:
    """Rows that change gradually with the chosen columns, the likeliest first."""
    scores = row_regression.scores(n.shape[2], ordered)
    most = row_regression.MOST_COEFFICIENTS // (n.shape[1] * scores.shape[1])
    x, of = row_regression.features(chosen, max(1, min(row_regression.MOST_FEATURES, most)))
    k, centre = CONCENTRATIONS[GRADUAL], alike.mean[GRADUAL, 0]
    found = row_regression.fit(n, worth[GRADUAL], x[few], centre, k, scores, actions)
    by_pair = alike.by_row[GRADUAL].sum(axis=1)[found.strength] + found.gain
    weight = softmax(by_pair)
    evidence = logsumexp(by_pair) - np.log(len(by_pair)) + np.log((1 - NO_COLUMN) * GRADUALLY)
    names = tuple(column.name for column in chosen[: of.max() + 1])
    return Gradual(names, float(evidence), found, alike, x, weight, of, actions)


def labels_of(column: Column) -> IntArray:
    """The classes [N] that a column makes, from 0; arms where it is missing are one of them."""
    if column.kind == "category":
        return np.asarray(column.values + 1, dtype=np.int64)
    known = ~np.isnan(column.values)
    values = np.unique(column.values[known])
    edges = values[1:] if len(values) <= MOST_STEPS else [np.median(column.values[known])]
    return np.where(known, 1 + np.searchsorted(edges, column.values, side="right"), 0)


def mixture(
    found: Sequence[Explanation], weight: FloatArray, n: FloatArray, arms: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Mean and variance [n, r, s] of the rows of `arms`, over all explanations."""
    likely = np.flatnonzero(weight > UNLIKELY).tolist()
    parts = [found[at].rows(n, arms) for at in likely]
    means, variances = (np.array(part) for part in zip(*parts, strict=True))
    return latent_classes.mix(weight[likely] / weight[likely].sum(), means, variances)


def in_blocks(
    found: Sequence[Explanation], weight: FloatArray, n: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Mean and variance [n, r, s] of the rows of very many arms, some of them at a time."""
    mean, variance = np.empty(n.shape), np.empty(n.shape)
    for block in np.array_split(np.arange(len(n)), 1 + len(n) // MOST_AT_ONCE):
        mean[block], variance[block] = mixture(found, weight, n[block].astype(float), block)
    return mean, variance


def sample(n: IntArray, rng: np.random.Generator | None) -> IntArray:
    """The arms that explanations are found from: all, or of many some that were seen moving."""
    if len(n) <= MOST_AT_ONCE:
        return np.arange(len(n))
    moved = np.flatnonzero(n.any(axis=(1, 2)))
    if len(moved) <= MOST_AT_ONCE:
        return moved if len(moved) else np.arange(MOST_AT_ONCE)
    rng = rng or generator(Stream.CLASSES, 0)
    return np.sort(rng.choice(moved, MOST_AT_ONCE, replace=False))


# Draws.


def draw_centres(found: Classes, k: IntArray, rng: np.random.Generator) -> FloatArray:
    """Rows of classes [c, D, r, s], where arms have the concentrations k [D, r]."""
    rows = np.arange(k.shape[1])
    mean, variance = (
        part[k, :, rows].transpose(2, 0, 1, 3) for part in (found.mean, found.variance)
    )
    # The Dirichlet of the same mean and the same variance in all.
    total = (mean * (1 - mean)).sum(axis=-1) / np.maximum(variance.sum(axis=-1), 1e-12) - 1
    return dirichlet(mean * np.maximum(total, 1e-3)[..., None], rng)


def pick(chances: FloatArray, count: int, rng: np.random.Generator) -> IntArray:
    """Numbers [count, ...] drawn with chances [..., K] that sum to 1."""
    up_to = chances.cumsum(axis=-1)[..., :-1]
    return np.asarray((rng.random((count, *chances.shape[:-1], 1)) >= up_to).sum(axis=-1))


def dirichlet(alpha: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Rows [..., s] drawn from Dirichlet distributions with parameters of the same shape."""
    gamma = rng.standard_gamma(alpha) + 1e-300  # parameters near 0 may give nothing but zeros
    return gamma / gamma.sum(axis=-1, keepdims=True)
