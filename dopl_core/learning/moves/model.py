"""One model of moves: everybody's rows, tilted by columns and persons, and each person's own rows.

What the recent weeks say of a season, or of help that wears off, is a tilt of what comes next.
Axes: D draws, n people, r rows (row 2 s + a), t next states.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dopl_core.learning.bandit import ACT, WAIT, FloatArray, IntArray, better_states
from dopl_core.learning.columns import Columns, category
from dopl_core.learning.effects import HelpKind
from dopl_core.learning.log_space import softmax
from dopl_core.learning.moves import everybody, own_rows, tilts, weeks
from dopl_core.learning.moves.dynamics import Dynamics
from dopl_core.learning.moves.everybody import Everybody
from dopl_core.learning.moves.tilts import Tilts
from dopl_core.learning.moves.weeks import Recent

MOST_AT_ONCE = 2_000  # people; more of them tell no more of what people share
OPTIMISM = 1.0  # standard deviations that a box reaches to either side where states have no order
ROUNDS = 2  # of everybody's rows and tilts in turn
SIZE_ERROR = 0.15  # of a size: where people differ, simulated ones came out a tenth too small
NO_DIFFERENCE = 10_000.0  # q of rows with help that are those without


@dataclass(frozen=True, eq=False)
class Model:
    """What was learnt of everybody, from all people or from some of many.

    some: the people it was learnt from;  tilts: theirs
    """

    ordered: bool
    everybody: Everybody
    some: IntArray
    tilts: Tilts

    def tilts_of(self, counts: FloatArray, people: IntArray) -> Tilts:
        """The tilts of people, from their moves [n, r, t]."""
        if people is self.some:
            return self.tilts
        return tilts.of_people(self.tilts.shared, counts, _flat(self.everybody.rows), people)


def learn(
    visits: IntArray,
    columns: Columns | None,
    rng: np.random.Generator,
    *,
    ordered: bool = True,
    kind: HelpKind = "other",
) -> Model:
    """The model from all moves [N, S, A, S'].

    columns: what else is known of the people
    rng: which people it is learnt from, where there are many
    """
    N, S = visits.shape[:2]
    moves, some = visits.sum(axis=0).astype(float), _some(visits, rng)
    found = everybody.learnt(moves, kind, ordered=ordered)
    known = () if columns is None else columns.each
    counts = visits[some].reshape(len(some), 2 * S, S).astype(float)
    x = None if ordered else tilts.learnt_scores(counts, _flat(found.rows))
    tilt = tilts.start(counts, _flat(found.rows), known, some, N, x)
    for _ in range(ROUNDS if tilt.features.shape[1] else 0):
        # Of those who were helped: how they would have moved, were their columns like all others'.
        tilt = tilts.fit(tilt, counts, _flat(found.rows), rounds=2)
        alike = moves / tilts.as_columns_say(tilt, counts, _flat(found.rows)).reshape(moves.shape)
        lost = moves.sum(axis=2, keepdims=True) / np.maximum(
            alike.sum(axis=2, keepdims=True), 1e-12
        )
        found = everybody.learnt(alike * lost, kind, ordered=ordered)
    return Model(ordered, found, some, tilts.fit(tilt, counts, _flat(found.rows)))


def estimate(
    visits: IntArray,
    columns: Columns | None,
    recent: Recent,
    rng: np.random.Generator,
    *,
    ordered: bool = True,
    kind: HelpKind = "other",
) -> Dynamics:
    """What is believed of everybody's rows in the next week, from all moves [N, S, A, S']."""
    N, S = visits.shape[:2]
    model = learn(visits, columns, rng, ordered=ordered, kind=kind)
    counts = visits.reshape(N, 2 * S, S)
    mean, variance = np.empty(counts.shape), np.empty(counts.shape)
    alike = None
    for people in _blocks(N, model.some):
        mean[people], variance[people], alike = _rows_of(model, counts[people], people, alike)
    if ordered and len(recent) > 1:
        recent = weeks.of_arms(recent, N)
        left = weeks.left_over(recent, mean)
        season = weeks.season(left, len(recent), 2 * S)
        mean = tilts.tilted(mean, season + weeks.wearing_off(recent, left, 2 * S))
    rows, sd = mean.reshape(visits.shape), np.sqrt(variance).reshape(visits.shape)
    half = 0.0 if ordered else OPTIMISM * sd
    effect = model.everybody.effect() if ordered else ()
    return Dynamics(rows, sd, np.clip(rows - half, 0, 1), np.clip(rows + half, 0, 1), *effect)


def _rows_of(
    model: Model, counts: IntArray, people: IntArray, alike: FloatArray | None = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The rows of people in all weeks alike: mean and variance [n, r, t].

    alike: how much people are alike (own_rows.concentrations), if that is known; it comes last
    """
    own, base = counts.astype(float), _flat(model.everybody.rows)
    spread, tilt = _flat(model.everybody.variance()), model.tilts_of(own, people)
    x = tilt.scores()
    expected = tilts.tilted(base, tilt.eta, x)
    slope = expected * (x - (expected @ x)[..., None])
    unsure = spread * (expected / base) ** 2 + slope**2 * tilt.variance()[..., None]
    if alike is None:
        alike = own_rows.concentrations(own, expected)
    return *own_rows.drawn_in(own, expected, unsure, alike), alike


def draw(
    visits: IntArray,
    columns: Columns | None,
    count: int,
    rng: np.random.Generator,
    idle: float = 0.0,
    *,
    ordered: bool = True,
    kind: HelpKind = "other",
) -> FloatArray:
    """Rows [D, N, S, A, S'] drawn from the posterior.

    idle: prior probability, for each state, that help makes no difference in it
    """
    N, S = visits.shape[:2]
    model = learn(visits, with_selection(visits, columns), rng, ordered=ordered, kind=kind)
    base, still = _draw_everybody(model.everybody, visits.sum(axis=0), count, rng, idle)
    some = visits[model.some].reshape(len(model.some), 2 * S, S).astype(float)
    shared = tilts.rows_unknown(model.tilts, some, _flat(model.everybody.rows))
    off, x = shared.draw_off(count, rng), model.tilts.scores()
    drawn = np.empty((count, N, 2 * S, S))
    k = None
    for people in _blocks(N, model.some):
        own = visits[people].reshape(len(people), 2 * S, S).astype(float)
        tilt = model.tilts_of(own, people)
        drawn_tilt = tilt.draw(off, rng)
        if k is None:  # rows are known of those who were seen: as their tilts rise, base falls
            total = own.sum(axis=2)
            rise = np.einsum("nr,Dnr->Dr", total, drawn_tilt - tilt.eta)
            base = tilts.tilted(base, -rise / (total.sum(axis=0) + tilts.ROW_WORTH), x)
        expected = tilts.tilted(base[:, None], drawn_tilt, x)
        if k is None:
            alike = own_rows.concentrations(own, expected.mean(axis=0))
            k = np.stack([rng.choice(own_rows.CONCENTRATIONS, count, p=p) for p in alike.T], axis=1)
            k = np.tile(k, S)[:, None, :, None]
        seen = np.broadcast_to(own, (count, *own.shape)).copy()
        both = own[:, 0::2] + own[:, 1::2]
        seen[:, :, 0::2] = np.where(still[:, None, :, None], both, seen[:, :, 0::2])
        drawn[:, people] = dirichlet(k * expected + seen, rng)
    rows = drawn.reshape(count, *visits.shape)
    rows[:, :, :, ACT] = np.where(still[:, None, :, None], rows[:, :, :, WAIT], rows[:, :, :, ACT])
    return rows


def which_columns(model: Model) -> dict[str, float]:
    """The posterior probability that each column tells how people move."""
    return tilts.matters(model.tilts.shared)


class Size(NamedTuple):
    """How much likelier people are better off next week than the average person.

    Better off is in a better state, or still in the best one. All are averages over states, by the
    moves seen from each: mean and standard error [3] without help, with help, and of what help adds
    column, label: of the people; label is "" for one standard deviation more of a number
    moves: [2] seen of them, without help and with help
    """

    column: str
    label: str
    moves: IntArray
    mean: FloatArray
    error: FloatArray


def column_sizes(model: Model, visits: IntArray) -> list[Size]:
    """What each label of the columns changes; visits: all moves [N, S, A, S']."""
    if not model.ordered or not visits.any():
        return []
    share = visits.sum(axis=(0, 2, 3)) / visits.sum()
    alone = np.outer(share, [1, 0]).ravel()
    helped = np.outer(share, [0, 1]).ravel()
    weights, rows = np.stack([alone, helped, helped - alone]), _flat(model.everybody.rows)
    sizes = []
    for one in tilts.added(model.tilts.shared):
        seen = visits[one.people].sum(axis=(0, 1, 3))
        change = better_off_more(rows, one.tilt, one.covariance, weights)
        sizes.append(Size(one.column, one.label, seen, *change))
    return sizes


def season_size(model: Model, visits: IntArray, recent: Recent) -> tuple[float, float] | None:
    """How much likelier people are better off next week than in all weeks: mean, standard error.

    An average over rows by the moves seen. None without an order of states, or of less than 2 weeks
    """
    if not model.ordered or len(recent) < 2 or not visits.any():
        return None
    people, S = model.some, visits.shape[1]
    own, _, _ = _rows_of(model, visits[people].reshape(len(people), 2 * S, S), people)
    known = people < recent.shape[2]
    left = weeks.left_over(recent[:, :, people[known]], own[known])
    weights = visits.sum(axis=(0, 3)).reshape(1, 2 * S) / visits.sum()
    found = weeks.next_season(left, len(recent), 2 * S)
    mean, error = better_off_more(_flat(model.everybody.rows), *found, weights)
    return float(mean[0]), float(error[0])


def better_off_more(
    rows: FloatArray, tilt: FloatArray, covariance: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """By how much a tilt raises the chance to be better off: means and standard errors [q].

    rows: [r, t];  tilt: [r];  covariance: [r, r] of the tilt;  weights: [q, r] of the average
    The error is that of a linear function, the chance rises with the tilt as at its mean, and the
    model's own, SIZE_ERROR.
    """
    up, there = np.repeat(better_states(rows.shape[1]), 2, axis=0), tilts.tilted(rows, tilt)
    change = ((there - rows) * up).sum(axis=1)
    slope = weights * tilts.slopes(there, up)
    mean, variance = weights @ change, ((slope @ covariance) * slope).sum(axis=1)
    return mean, np.sqrt(variance + (SIZE_ERROR * mean) ** 2)


def with_selection(visits: IntArray, columns: Columns | None) -> Columns | None:
    """The columns, and who is always helped and who never, where that is so for most people.

    Help is not given at random: people who are always helped may differ from those who never are,
    and nobody knows how much. So this column has a variance that is not learnt (tilts.FIXED).
    """
    waited, helped = (visits[:, :, action].any(axis=(1, 2)) for action in (WAIT, ACT))
    one_way = waited != helped
    if 2 * one_way.sum() <= (waited | helped).sum() or not (one_way & helped).any():
        return columns
    texts = np.where(one_way, np.where(helped, "always", "never"), "")
    others = () if columns is None else columns.each
    return Columns((*others, category(tilts.FIXED, texts.tolist())), len(visits))


def dirichlet(alpha: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Rows [..., t] drawn from Dirichlet distributions with parameters of the same shape."""
    gamma = rng.standard_gamma(alpha) + 1e-300  # parameters near 0 may give nothing but zeros
    return gamma / gamma.sum(axis=-1, keepdims=True)


def _draw_everybody(
    known: Everybody, moves: IntArray, count: int, rng: np.random.Generator, idle: float
) -> tuple[FloatArray, np.ndarray]:
    """Everybody's rows [D, r, t], and the states [D, s] in which help makes no difference."""
    S = len(moves)
    rows = np.empty((count, S, 2, S))
    still = rng.random((count, S)) < no_difference(known, moves, idle)
    merged = known.waiting_alone + moves[:, ACT]
    for s in range(S):
        g = rng.choice(len(known.chance), count, p=known.chance[:, s])
        for action, of, weight in (
            (WAIT, known.waiting, known.waiting_weight),
            (ACT, known.helped, known.helped_weight),
        ):
            rows[:, s, action] = dirichlet(of[g, s] * weight[g, s, None], rng)
        rows[still[:, s], s, WAIT] = dirichlet(np.tile(merged[s], (int(still[:, s].sum()), 1)), rng)
    return rows.reshape(count, 2 * S, S), still


def no_difference(known: Everybody, moves: IntArray, idle: float) -> FloatArray:
    """The posterior probability [s] that help makes no difference in a state."""
    if not idle:
        return np.zeros(len(moves))
    helped, row = moves[:, ACT].astype(float), everybody.normalised(known.waiting_alone)
    row = everybody.normalised(known.waiting_alone + helped) if helped.any() else row
    centre = NO_DIFFERENCE * np.maximum(row, 1e-4)
    none = everybody.dirichlet_multinomial(helped, centre)
    none += (known.waiting_alone * np.log(np.maximum(row, 1e-12))).sum(axis=1)
    log = np.stack([np.log(idle) + none, np.log1p(-idle) + known.log_evidence])
    return softmax(log, axis=0)[0]


def _flat(rows: FloatArray) -> FloatArray:
    """Rows [s, a, t] as [r, t]."""
    return rows.reshape(-1, rows.shape[-1])


def _some(visits: IntArray, rng: np.random.Generator) -> IntArray:
    """The people a model is learnt from: all, or of many some who were seen moving."""
    if len(visits) <= MOST_AT_ONCE:
        return np.arange(len(visits))
    moved = np.flatnonzero(visits.any(axis=(1, 2, 3)))
    if len(moved) <= MOST_AT_ONCE:
        return moved if len(moved) else np.arange(MOST_AT_ONCE)
    return np.sort(rng.choice(moved, MOST_AT_ONCE, replace=False))


def _blocks(n_people: int, some: IntArray) -> list[IntArray]:
    """All people, in blocks; the first are those that the model was learnt from."""
    others = np.setdiff1d(np.arange(n_people), some)
    if not len(others):
        return [some]
    return [some, *np.array_split(others, 1 + len(others) // MOST_AT_ONCE)]
