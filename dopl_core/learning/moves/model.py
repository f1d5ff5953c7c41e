"""One model of moves: everybody's rows, tilted by columns and persons, and each person's own rows.

What the recent weeks say of a season, or of help that wears off, is a tilt of what comes next.
Axes: D draws, n people, r rows (row 2 s + a), t next states.
"""

from dataclasses import dataclass

import numpy as np

from dopl_core.learning.bandit import ACT, WAIT, FloatArray, IntArray
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
PRIOR_MOVES = 10.0  # what is believed of a row before any move counts for
ROUNDS = 2  # of everybody's rows and tilts in turn
NO_DIFFERENCE = 10_000.0  # q of rows with help that are those without


@dataclass(frozen=True, eq=False)
class Model:
    """What was learnt of everybody, from all people or from some of many.

    some: the people it was learnt from;  tilts: theirs, None where states have no order
    """

    ordered: bool
    everybody: Everybody
    some: IntArray
    tilts: Tilts | None

    def tilts_of(self, counts: FloatArray, people: IntArray) -> Tilts | None:
        """The tilts of people, from their moves [n, r, t]."""
        if self.tilts is None or people is self.some:
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
    if not ordered:
        return Model(ordered, found, some, None)
    known = () if columns is None else columns.each
    counts = visits[some].reshape(len(some), 2 * S, S).astype(float)
    tilt = tilts.start(counts, _flat(found.rows), known, some, N)
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
    counts, base = visits.reshape(N, 2 * S, S), _flat(model.everybody.rows)
    spread = _flat(model.everybody.variance())
    mean, variance = np.empty(counts.shape), np.empty(counts.shape)
    alike = None
    for people in _blocks(N, model.some):
        own = counts[people].astype(float)
        tilt = model.tilts_of(own, people)
        expected = np.tile(base, (len(people), 1, 1))
        unsure = np.tile(spread, (len(people), 1, 1))
        if tilt is not None:
            expected = tilts.tilted(base, tilt.eta)
            x = tilts.scores(S)
            slope = expected * (x - (expected @ x)[..., None])
            unsure = spread * (expected / base) ** 2 + slope**2 * tilt.variance()[..., None]
        if alike is None:
            alike = own_rows.concentrations(own, expected)
        mean[people], variance[people] = own_rows.drawn_in(own, expected, unsure, alike)
    if ordered and len(recent) > 1:
        left = weeks.left_over(recent, mean)
        mean = tilts.tilted(mean, weeks.season(left, len(recent), 2 * S))
    rows, sd = mean.reshape(visits.shape), np.sqrt(variance).reshape(visits.shape)
    half = 0.0 if ordered else OPTIMISM * sd
    effect = model.everybody.effect() if ordered else ()
    return Dynamics(rows, sd, np.clip(rows - half, 0, 1), np.clip(rows + half, 0, 1), *effect)


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
    off = None if model.tilts is None else model.tilts.shared.draw_off(count, rng)
    drawn = np.empty((count, N, 2 * S, S))
    k = None
    for people in _blocks(N, model.some):
        own = visits[people].reshape(len(people), 2 * S, S).astype(float)
        tilt = model.tilts_of(own, people)
        expected = np.broadcast_to(base[:, None], (count, *own.shape))
        if tilt is not None and off is not None:
            drawn_tilt = tilt.draw(off, rng)
            if k is None:  # rows are known of those who were seen: as their tilts rise, base falls
                total = own.sum(axis=2)
                rise = np.einsum("nr,Dnr->Dr", total, drawn_tilt - tilt.eta)
                base = tilts.tilted(base, -rise / (total.sum(axis=0) + PRIOR_MOVES))
            expected = tilts.tilted(base[:, None], drawn_tilt)
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
    return {} if model.tilts is None else tilts.matters(model.tilts.shared)


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
