"""Tilts: what columns and each person's own moves say of all their rows.

A person's rows are those of everybody, tilted towards better or worse states. The log-odds of the
next state t in row r (a state, with help or without) rise by x_t times the tilt
    eta[n, r] = b_n + a_r d_n + sum_k F[n, k] (T_r . beta_k),
with x_t from -1 (worst) to 1 (best); where states have no order, x is learnt. b_n is how well a
person does, d_n their own response to help; a column k has a term for all rows, one for help, and
smaller ones for each state and help in it.
All are normal about 0. How large they are is learnt: one variance for all b, one for all d, and one
for each column, so that a column that says nothing gets none.

Axes: n people, r rows (row 2 s + a), t next states, d personal terms (b, d), k features of columns,
j terms of a feature; c stands for both k and j.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from dopl_core.learning.bandit import FloatArray, IntArray
from dopl_core.learning.columns import Column

PERSONAL = np.array([0.04, 0.01])  # the variances of b and d before any data
PERSONAL_WORTH = 5.0  # what these count for, in people
COLUMN_START, COLUMN_PRIOR = 0.1, 0.01  # variance of a column: where the search starts; its prior
SHARES = (1.0, 1.0, 0.2, 0.2)  # of a column's variance: all rows, help, each state, help in it
MOST_TERMS = 300  # of columns
ROW_WORTH = 3.0  # what the prior of a row of everybody counts for, in moves
ROUNDS = 5
FIXED = "\0always helped"  # no column of a roster has this name; its variance is given, not learnt
FIXED_VARIANCE = 0.25


@dataclass(frozen=True, eq=False)
class Shared:
    """What all people's moves say of the terms of columns, and how large terms are.

    columns: those that are used, and their features [N, k] of all people;  of: [c] their columns
    beta: [c] and covariance [c, c];  prior: [c] variances, as learnt
    personal: [d] variances of the personal terms, as learnt
    x: [t] scores of next states where they have no order; None where they have
    """

    columns: tuple[Column, ...]
    features: FloatArray
    of: IntArray
    beta: FloatArray
    covariance: FloatArray
    prior: FloatArray
    personal: FloatArray
    x: FloatArray | None = None

    def draw_off(self, count: int, rng: np.random.Generator) -> FloatArray:
        """By how much the terms of columns may be off: draws [D, c]."""
        noise = rng.standard_normal((count, len(self.beta)))
        return np.asarray(noise @ _root(self.covariance).T)


@dataclass(frozen=True, eq=False)
class Tilts:
    """What is known of the tilts of some people: a Gaussian.

    eta: [n, r];  personal: [n, d] terms and their covariance given those of columns [n, d, d]
    cross: [n, d, c] by how much personal terms fall as those of columns rise;  features: [n, k]
    """

    shared: Shared
    eta: FloatArray
    personal: FloatArray
    covariance: FloatArray
    cross: FloatArray
    features: FloatArray

    def scores(self) -> FloatArray:
        """The scores [t] of next states."""
        found = self.shared.x
        return scores(self.eta.shape[1] // 2) if found is None else found

    def draw(self, off: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Draws [D, n, r] of the tilts, where the terms of columns are off by `off` [D, c]."""
        R, count = self.eta.shape[1], len(off)
        noise = rng.standard_normal((count, *self.personal.shape))
        personal = self.personal + np.einsum("nde,Dne->Dnd", _root(self.covariance), noise)
        personal -= np.einsum("ndc,Dc->Dnd", self.cross, off)
        columns = (self.shared.beta + off).reshape(count, self.features.shape[1], 2 + R)
        tilt = self.features @ (columns @ terms(R).T)
        return np.asarray(tilt + personal @ personal_terms(R).T)

    def variance(self) -> FloatArray:
        """The variance [n, r] of the tilts."""
        N, R = self.eta.shape
        Z = personal_terms(R)
        own = np.einsum("rd,nde,re->nr", Z, self.covariance, Z)
        if self.features.shape[1]:
            for r, (z, t) in enumerate(zip(Z, terms(R), strict=True)):
                of_row = (self.features[:, :, None] * t).reshape(N, -1)
                of_row = of_row - np.einsum("d,ndc->nc", z, self.cross)
                own[:, r] += ((of_row @ self.shared.covariance) * of_row).sum(axis=1)
        return own


class Added(NamedTuple):
    """What a label of a column, or one standard deviation more of a number, adds to the tilts.

    label: "" for a number;  people: [n] who have the label, or a number
    tilt: [r] beyond that of the average person;  covariance: [r, r]
    """

    column: str
    label: str
    people: NDArray[np.bool_]
    tilt: FloatArray
    covariance: FloatArray


def tilted(rows: FloatArray, tilt: FloatArray, x: FloatArray | None = None) -> FloatArray:
    """Rows [..., r, t], from rows that broadcast to them and tilts [..., r]; x: [t] own scores."""
    odds = rows * np.exp(tilt[..., None] * (scores(rows.shape[-1]) if x is None else x))
    return np.asarray(odds / odds.sum(axis=-1, keepdims=True))


def slopes(rows: FloatArray, good: NDArray[np.bool_]) -> FloatArray:
    """How fast the chance of the good next states rises with the tilt [...]; both: [..., t]."""
    x = scores(rows.shape[-1])
    return np.asarray((rows * good * (x - (rows @ x)[..., None])).sum(axis=-1))


def scores(n_states: int) -> FloatArray:
    """How good each next state is [t], from -1 (worst) to 1 (best)."""
    return np.linspace(-1.0, 1.0, n_states)


def personal_terms(n_rows: int) -> FloatArray:
    """What b and d add to the tilt of each row [r, d]."""
    return np.stack([np.ones(n_rows), np.arange(n_rows) % 2], axis=1)


def terms(n_rows: int) -> FloatArray:
    """What the terms of a feature add to the tilt of each row [r, j]."""
    act = (np.arange(n_rows) % 2).astype(float)[:, None]
    state = np.eye(n_rows // 2)[np.arange(n_rows) // 2]
    return np.concatenate([np.ones((n_rows, 1)), act, state, act * state], axis=1)


def features(columns: Sequence[Column]) -> tuple[FloatArray, IntArray]:
    """Columns as standardised numbers [n, k], 0 where they are missing, and the column of each."""
    parts: list[FloatArray] = []
    of: list[int] = []
    for number, column in enumerate(columns):
        if column.kind == "number":
            part = np.nan_to_num(column.values.astype(float))[:, None]
        else:
            part = (column.values[:, None] == np.arange(len(column.labels))).astype(float)
            part = part[:, 1:] if len(column.labels) == 2 else part
            known = column.values >= 0
            share = part[known].mean(axis=0) if known.any() else part.mean(axis=0)
            part = (part - share) / np.sqrt(np.maximum(share * (1 - share), 0.05))
            part[~known] = 0
        parts.append(part)
        of += [number] * part.shape[1]
    return np.concatenate(parts, axis=1), np.array(of)


def learnt_scores(counts: FloatArray, rows: FloatArray) -> FloatArray:
    """Scores [t] of states without an order: the direction in which people differ most.

    That of the largest variance, over people, of how much oftener than expected they reached each
    state, less what chance would give. counts: [n, r, t];  rows: [r, t] of everybody
    """
    total = counts.sum(axis=2)
    off = counts.sum(axis=1) - total @ rows
    chance = np.diag(total.sum(axis=0) @ rows) - np.einsum("nr,rt,ru->tu", total, rows, rows)
    beyond = off.T @ off - chance
    beyond -= 1 + np.abs(beyond).sum()  # equal scores of all states say nothing
    x = np.linalg.eigh(beyond)[1][:, -1]
    most = x[np.argmax(np.abs(x))]
    return x / most if len(x) > 1 else np.zeros(1)


def start(
    counts: FloatArray,
    rows: FloatArray,
    columns: Sequence[Column],
    people: IntArray,
    n_people: int,
    x: FloatArray | None = None,
) -> Tilts:
    """No tilts yet, of `people` with the moves `counts` [n, r, t], where all rows are [r, t].

    x: [t] scores of states without an order
    """
    N, R = counts.shape[:2]
    score = scores(rows.shape[1]) if x is None else x
    surplus = (counts @ score).sum(axis=1) - counts.sum(axis=2) @ (rows @ score)
    used, every, of = _used(columns, n_people, people, surplus, counts.sum(axis=(1, 2)), R)
    F = every[people]
    column = np.repeat(of, 2 + R)
    fixed = np.array([one.name == FIXED for one in used], dtype=bool)[column]
    prior = np.where(fixed, FIXED_VARIANCE, COLUMN_START) * _shares(R, F.shape[1])
    none = np.zeros((len(column), len(column)))
    shared = Shared(used, every, column, np.zeros(len(column)), none, prior, PERSONAL, x)
    cross = np.zeros((N, 2, len(column)))
    return Tilts(shared, np.zeros((N, R)), np.zeros((N, 2)), np.zeros((N, 2, 2)), cross, F)


def rows_unknown(now: Tilts, counts: FloatArray, rows: FloatArray) -> Shared:
    """What is known of the terms of columns where everybody's rows are not known for sure either.

    Moves in a row tell what a column does only as far as people who were seen in it differ in that
    column. With C the covariance of terms given the rows, G the information on a tilt of each row
    of everybody and B what the two share, it is C + C B' (G - B C B')^-1 B C.
    """
    R, C, x, Z = len(rows), now.shared.covariance, now.scores(), personal_terms(len(rows))
    if not len(C):
        return now.shared
    q = tilted(rows, now.eta, x)
    weight = counts.sum(axis=2) * np.maximum(q @ x**2 - (q @ x) ** 2, 1e-9)
    of_person = weight[:, :, None] * Z  # [n, r, d]
    B = ((weight.T @ now.features)[:, :, None] * terms(R)[:, None]).reshape(R, -1)  # [r, c]
    B -= np.einsum("nrd,ndc->rc", of_person, now.cross)
    G = np.diag(weight.sum(axis=0) + ROW_WORTH * (rows @ x**2 - (rows @ x) ** 2))
    G -= np.einsum("nrd,nde,nse->rs", of_person, now.covariance, of_person)
    BC = B @ C
    return replace(now.shared, covariance=C + BC.T @ np.linalg.solve(G - BC @ B.T, BC))


def fit(now: Tilts, counts: FloatArray, rows: FloatArray, rounds: int = ROUNDS) -> Tilts:
    """The tilts after some rounds of Newton's method, in turns with the variances of terms."""
    for _ in range(rounds):
        now = _with_variances(_newton(now, counts, rows))
    return _newton(now, counts, rows)  # so that covariances are those of the last variances


def as_columns_say(now: Tilts, counts: FloatArray, rows: FloatArray) -> FloatArray:
    """By their columns, how much oftener people who were seen in a row reach each next state [r, t]
    than everybody would. Those who are helped are not like all others.
    """
    moves, own = (
        counts.sum(axis=2),
        _eta(now.features, now.shared.beta, 0 * now.personal, len(rows)),
    )
    expected = np.einsum("nr,nrt->rt", moves, tilted(rows, own, now.shared.x))
    total = moves.sum(axis=0)[:, None]
    return np.where(total > 0, expected / np.maximum(total * rows, 1e-12), 1.0)


def _with_variances(now: Tilts) -> Tilts:
    """With variances learnt anew: MacKay's update for columns, expectation and maximisation for
    people.
    """
    shared, spread = now.shared, now.covariance[:, range(2), range(2)]
    prior, of = shared.prior, shared.of
    if len(of):
        meet = now.cross @ shared.covariance
        spread = spread + (meet * now.cross).sum(axis=2)
        share = _shares(now.eta.shape[1], now.features.shape[1])
        known = np.bincount(of, 1 - shared.covariance.diagonal() / prior)
        size = np.bincount(of, shared.beta**2 / share) + COLUMN_PRIOR
        fixed = np.array([one.name == FIXED for one in shared.columns], dtype=bool)
        v = np.where(fixed, FIXED_VARIANCE, size / (np.maximum(known, 1e-3) + 1))
        prior = v[of] * share
    size = (now.personal**2 + spread).sum(axis=0) + PERSONAL_WORTH * PERSONAL
    personal = size / (len(now.personal) + PERSONAL_WORTH)
    return replace(now, shared=replace(shared, prior=prior, personal=personal))


def _shares(n_rows: int, n_features: int) -> FloatArray:
    """The share of its column's variance that each term has [c]."""
    return np.tile(np.repeat(SHARES, [1, 1, n_rows // 2, n_rows // 2]), n_features)


def of_people(shared: Shared, counts: FloatArray, rows: FloatArray, people: IntArray) -> Tilts:
    """The tilts of further people [n], from their moves [n, r, t], where all else is known."""
    N, R = counts.shape[:2]
    F = shared.features[people]
    cross = np.zeros((N, 2, len(shared.beta)))
    now = Tilts(
        shared, _eta(F, shared.beta, np.zeros((N, 2)), R), np.zeros((N, 2)), cross, cross, F
    )
    for _ in range(ROUNDS):
        now = _newton(now, counts, rows, personal_only=True)
    return now


def _newton(
    now: Tilts, counts: FloatArray, rows: FloatArray, *, personal_only: bool = False
) -> Tilts:
    """One step for all terms; the personal ones meet only in those of columns: they are eliminated.

    In H = [[A, B'], [B, C]] of persons and columns, A consists of a 2 by 2 block for each person.
    """
    shared, F, R = now.shared, now.features, counts.shape[1]
    Z, T, x = personal_terms(R), terms(R), now.scores()
    N, (K, J) = len(counts), (F.shape[1], T.shape[1])
    total = counts.sum(axis=2)
    q = tilted(rows, now.eta, x)
    mean = q @ x
    weight = total * np.maximum(q @ x**2 - mean**2, 1e-9)
    uphill = counts @ x - total * mean
    own = _inverse(np.einsum("nr,rd,re->nde", weight, Z, Z) + np.diag(1 / shared.personal))
    slope = uphill @ Z - now.personal / shared.personal
    beta, cross = shared.beta, now.cross
    if K:
        meet = np.einsum("nr,rd,rj->ndj", weight, Z, T)
        both = (F[:, None, :, None] * meet[:, :, None]).reshape(N, 2, K * J)
        cross = own @ both
    if K and not personal_only:
        squares = weight @ (T[:, :, None] * T[:, None]).reshape(R, J * J)  # [n, ij]
        precision = (F[:, :, None] * F[:, None]).reshape(N, K * K).T @ squares  # [kl, ij]
        precision = precision.reshape(K, K, J, J).swapaxes(1, 2).reshape(K * J, K * J)
        precision += np.diag(1 / shared.prior)
        precision -= both.reshape(-1, K * J).T @ cross.reshape(-1, K * J)
        covariance = np.linalg.inv(precision)
        towards = (F.T @ (uphill @ T)).ravel() - beta / shared.prior
        change = (covariance @ (towards - np.einsum("ndc,nd->c", cross, slope))).clip(-1, 1)
        beta, slope = beta + change, slope - both @ change
        shared = replace(shared, beta=beta, covariance=covariance)
    personal = now.personal + np.einsum("nde,ne->nd", own, slope).clip(-1, 1)
    return Tilts(shared, _eta(F, beta, personal, R), personal, own, cross, F)


def _eta(F: FloatArray, beta: FloatArray, personal: FloatArray, n_rows: int) -> FloatArray:
    """The tilts [n, r]."""
    eta = personal @ personal_terms(n_rows).T
    if F.shape[1]:
        eta = eta + F @ beta.reshape(F.shape[1], -1) @ terms(n_rows).T
    return np.asarray(eta)


def _used(
    columns: Sequence[Column],
    n_people: int,
    people: IntArray,
    surplus: FloatArray,
    moves: FloatArray,
    n_rows: int,
) -> tuple[tuple[Column, ...], FloatArray, IntArray]:
    """The columns that say most, as many as fit into MOST_TERMS: their features, whose they are.

    A column is the likelier to matter the more the surplus of people [n], how much further up their
    moves [n] went than everybody's would, goes with it.
    """
    if not columns:
        return (), np.empty((n_people, 0)), np.empty(0, dtype=np.int64)
    F, of = features(columns)
    seen = F[people]
    goes_with = (seen.T @ surplus) ** 2 / np.maximum((seen**2).T @ moves, 1e-12)
    sizes = np.bincount(of)
    says = np.bincount(of, goes_with) / sizes
    says[[column.name == FIXED for column in columns]] = np.inf
    kept: list[int] = []
    for one in np.argsort(-says, kind="stable").tolist():
        if (sizes[kept].sum() + sizes[one]) * (2 + n_rows) <= MOST_TERMS:
            kept.append(one)
    inside = np.isin(of, kept)
    numbers = np.unique(of[inside], return_inverse=True)[1]
    return tuple(columns[at] for at in sorted(kept)), F[:, inside], numbers


def matters(shared: Shared) -> dict[str, float]:
    """The posterior probability that each column has any terms; beforehand it is a half.

    With J the information that the moves hold on its terms and b their pull, the evidence for terms
    of variance V against none is b (J + 1/V)^-1 b / 2 - ln|1 + V J| / 2.
    """
    chances = {}
    n_features = shared.features.shape[1]
    V_of_all = COLUMN_START * _shares(len(shared.of) // max(1, n_features) - 2, n_features)
    for number, column in enumerate(shared.columns):
        at = shared.of == number
        precision = np.linalg.inv(shared.covariance[np.ix_(at, at)])
        information = precision - np.diag(1 / shared.prior[at])
        pull, V = precision @ shared.beta[at], V_of_all[at]
        evidence = pull @ np.linalg.solve(information + np.diag(1 / V), pull)
        evidence -= np.linalg.slogdet(np.eye(len(V)) + V[:, None] * information)[1]
        chances[column.name] = float(expit(evidence / 2))
    return chances


def added(shared: Shared) -> list[Added]:
    """What each label of each column, or one standard deviation more of a number, adds to tilts."""
    found = []
    for number, column in enumerate(shared.columns):
        at = shared.of == number
        n_terms = len(shared.of) // shared.features.shape[1]
        F = shared.features[:, at[::n_terms]]
        for label, people, own in _labels(column, F):
            X = (own[:, None] * terms(n_terms - 2)[:, None]).reshape(n_terms - 2, -1)  # [r, c]
            covariance = X @ shared.covariance[np.ix_(at, at)] @ X.T
            found.append(Added(column.name, label, people, X @ shared.beta[at], covariance))
    return found


def _labels(column: Column, F: FloatArray) -> Iterator[tuple[str, NDArray[np.bool_], FloatArray]]:
    """The labels of a column, who has them [n], and their features [k]; F: [n, k] of all people."""
    if column.kind == "number":
        yield "", ~np.isnan(column.values), np.ones(1)
        return
    for code, label in enumerate(column.labels):
        people = column.values == code
        if people.any():
            yield label, people, F[people.argmax()]


def _inverse(blocks: FloatArray) -> FloatArray:
    """The inverses of symmetric 2 by 2 matrices [n, 2, 2]."""
    a, b, c = blocks[:, 0, 0], blocks[:, 0, 1], blocks[:, 1, 1]
    turned = np.stack([np.stack([c, -b], axis=1), np.stack([-b, a], axis=1)], axis=1)
    return np.asarray(turned / (a * c - b * b)[:, None, None])


def _root(covariance: FloatArray) -> FloatArray:
    """A matrix [..., i, i] whose square is the covariance."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0))[..., None, :])
