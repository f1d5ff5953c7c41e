"""The power of a trial before it begins: how likely its analysis is to show an effect of help.

Clinics like the owner's are simulated: their people, budget and past records, a list each week, and
places by lot. What people do without help is drawn from the posterior of the past records; without
records, from the learner's prior. With help, `effect` more people are better off, in every state as
far as there is room.

A claim is a coin toss; counting claims would need thousands of clinics. So the expected statistic
of each clinic and its variance are computed week by week, and a clinic's power by a normal
approximation with the boundaries of the analysis (lot_trial.py). One simulation of the longest
trial serves all shorter ones. `dopl bench power` compares with clinics that are played in full.

States are unknown as often as in the records, at random. Not simulated: people who join or leave,
and rules that share places among groups.
Axes: d clinics, n people, s states, w weeks, l looks, r random walks.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dopl_core.learning.bandit import ACT, UNKNOWN, WAIT, FloatArray, IntArray, better_states
from dopl_core.learning.moves.everybody import prior_of_waiting
from dopl_core.learning.moves.model import dirichlet
from dopl_core.learning.places import lot_trial
from dopl_core.learning.places.reported_weeks import better_off
from dopl_core.studies.model.errors import StudyError
from dopl_core.studies.model.past_records import Records, sightings
from dopl_core.studies.model.protocol import (
    MOST_LOOKS,
    MOST_WEEKS,
    Protocol,
    check_size,
    make_protocol,
)
from dopl_core.studies.model.study_config import StudyConfig
from dopl_core.studies.operate.lifecycle import learner_with_past
from dopl_core.studies.replay.known_states import first_states

ENOUGH = 0.8  # the usual power of a trial
WEEKS = (8, 13, 26, 39, 52)
CLINICS, WALKS = 200, 10_000
PEOPLE_ALIKE = 32.0  # concentration of people's own rows about those of all, without records
_MOST_NUMBERS = 4_000_000  # of all people's rows in all clinics


class Weekly(NamedTuple):
    """What weeks add to the statistic of the analysis, all [d, w].

    drift: expected, given who could be drawn
    statistic: as it came;  variance: of the statistic, if help did nothing
    """

    drift: FloatArray
    statistic: FloatArray
    variance: FloatArray


class Power(NamedTuple):
    """The power of one design.

    error: standard error of the simulation
    low, high: nine in ten of the simulated clinics lie between; they differ in what people do
        without help, which is only known from past records
    unknown: share of states that nobody reports
    """

    by_lot: int
    weeks: int
    looks: tuple[int, ...]
    power: float
    error: float
    low: float
    high: float
    unknown: float = 0.0


Tell = Callable[[float], None]


def _silent(share: float) -> None:
    """Tell nobody how far it is."""


def compute(
    config: StudyConfig,
    history: Records | None = None,
    *,
    effect: float = 0.2,
    weeks: Sequence[int] = (),
    by_lot: Sequence[int] = (),
    looks: int = 2,
    level: float = 0.05,
    clinics: int | None = None,
    seed: int = 0,
    tell: Tell = _silent,
) -> list[Power]:
    """The power of each design: places by lot, then weeks.

    weeks: without any, usual_weeks;  by_lot: without any, up to half of the budget
    looks: how many analyses, evenly spaced;  tell: is told how far it is, from 0 to 1
    """
    lots, weeks = tuple(by_lot) or usual_lots(config), weeks or usual_weeks(looks)
    _check(config, effect, weeks, lots, looks)
    rng = np.random.default_rng([seed, 0])
    rows, states, priority = clinics_like(config, history, clinics or CLINICS, rng)
    both, unknown = with_effect(rows, effect), unknown_share(config, history)
    found = []
    for number, places in enumerate(lots):
        own = np.random.default_rng([seed, places])
        size = config.budget, places, max(weeks)
        share = partial(_tell_part, tell, number, len(lots))
        trial = simulate(both, states, priority, *size, own, share, unknown)
        found += [_power(trial, places, even_looks(last, looks), level, own) for last in weeks]
    return [one._replace(unknown=unknown) for one in found]


def _tell_part(tell: Tell, number: int, parts: int, share: float) -> None:
    tell((number + share) / parts)


def _check(
    config: StudyConfig, effect: float, weeks: Sequence[int], by_lot: Sequence[int], looks: int
) -> None:
    """Refuse a trial that cannot be."""
    if config.world != "observed":
        raise StudyError("power is computed for a study of real people, not of a simulated world")
    people, budget = int(config.present.sum()), config.budget
    for places in by_lot or (1,):
        check_size(people, budget, places)
    if not 0 < effect <= 1:
        raise StudyError(f"effect is {effect:g}: a share above 0 and at most 1 needed, such as 0.2")
    if not 1 <= looks <= MOST_LOOKS:
        raise StudyError(f"looks is {looks}: a whole number from 1 to {MOST_LOOKS} needed")
    for last in weeks:
        if not looks <= last <= MOST_WEEKS:
            raise StudyError(f"weeks is {last}: a whole number from {looks} to {MOST_WEEKS} needed")


def usual_lots(config: StudyConfig) -> tuple[int, ...]:
    """Places by lot to choose from: one, and shares of the budget up to a half."""
    most = min(config.budget - 1, int(config.present.sum()) - config.budget)
    parts = (0, 1 / 32, 1 / 8, 1 / 4, 1 / 2)
    some = {min(max(round(config.budget * part), 1), most) for part in parts}
    return tuple(sorted(places for places in some if places > 0))


def usual_weeks(looks: int) -> tuple[int, ...]:
    """Durations to choose from that have a week for each look."""
    return tuple(weeks for weeks in WEEKS if weeks >= looks)


def even_looks(weeks: int, count: int) -> tuple[int, ...]:
    """`count` weeks of analyses, evenly spaced; the last is the end."""
    return tuple(round(weeks * (j + 1) / count) for j in range(count))


def recommended(found: Sequence[Power], weeks: int | None = None) -> Power | None:
    """The design with enough power that draws the fewest people by lot; None if there is none.

    weeks: how long the trial may last; longer designs count only if no other has enough power
    """
    good = [one for one in found if one.power >= ENOUGH]
    short = [one for one in good if weeks is None or one.weeks <= weeks]
    return min(short or good, key=lambda one: (one.by_lot * one.weeks, one.weeks), default=None)


def protocol_of(chosen: Power, config: StudyConfig, question: str, effect: float) -> Protocol:
    """The protocol of a design; its power may be NaN, unknown."""
    return make_protocol(
        question=question,
        people=config.n_arms,
        budget=config.budget,
        by_lot=chosen.by_lot,
        weeks=chosen.weeks,
        looks=chosen.looks,
        effect=effect,
        power=None if np.isnan(chosen.power) else round(chosen.power, 3),
    )


# --- clinics like the owner's


def clinics_like(
    config: StudyConfig, history: Records | None, count: int, rng: np.random.Generator
) -> tuple[FloatArray, IntArray, FloatArray]:
    """Rows without help [d, n, s, s'], states at the start [d, n], and the list's priority [n, s].

    Unknown states are drawn from those that are known.
    """
    now, learner = learner_with_past(config, history)
    here = np.flatnonzero(now.present)
    N, S = len(here), config.n_states
    D = int(np.clip(_MOST_NUMBERS // (N * S * S * 2), 4, count))
    if learner.visits[:, :, WAIT].any():
        rows = learner.draw_moves(D, rng)[:, here][:, :, :, WAIT]
    else:
        rows = prior_rows(D, N, S, rng)
    learner.replan()
    states = np.tile(first_states(now)[here], (D, 1))
    unknown = states == UNKNOWN
    if unknown.all():
        states = rng.integers(0, S, states.shape)
    elif unknown.any():
        states[unknown] = rng.choice(states[~unknown], int(unknown.sum()))
    return rows, states, learner.priority[here]


def unknown_share(config: StudyConfig, history: Records | None) -> float:
    """The share of past records whose state is unknown; 0 without records."""
    if history is None:
        return 0.0
    seen, _ = sightings(history.text, config)
    return float(np.mean([state == UNKNOWN for of_one in seen.values() for _, state in of_one]))


def prior_rows(count: int, people: int, n_states: int, rng: np.random.Generator) -> FloatArray:
    """Rows without help [d, n, s, s'] by the learner's prior: most people stay where they are."""
    prior = prior_of_waiting(np.zeros((n_states, n_states)), ordered=True)  # in moves
    of_all = dirichlet(np.tile(prior, (count, 1, 1, 1)), rng)
    return dirichlet(np.repeat(PEOPLE_ALIKE * of_all, people, axis=1), rng)


def with_effect(rows: FloatArray, effect: float) -> FloatArray:
    """Rows without and with help [..., s, a, s'], from rows without help [..., s, s'].

    With help, `effect` more people are better off, or all of them. To which of the better states
    they move, and from which of the others they come, is as without help. If nobody gets better
    without help, they move up by one state.
    """
    S = rows.shape[-1]
    up = rows * better_states(S)
    p = up.sum(axis=-1, keepdims=True)
    one_up = np.eye(S)[np.minimum(np.arange(S) + 1, S - 1)]
    to = np.divide(up, p, out=np.broadcast_to(one_up, rows.shape).copy(), where=p > 0)
    gain = np.minimum(effect, 1 - p)
    left = np.divide(1 - p - gain, 1 - p, out=np.zeros(p.shape), where=p < 1)
    helped = (p + gain) * to + left * (rows - up)
    return np.stack([rows, helped], axis=-2)


# --- the trial in each of them


def simulate(
    transitions: FloatArray,
    states: IntArray,
    priority: FloatArray,
    budget: int,
    by_lot: int,
    weeks: int,
    rng: np.random.Generator,
    tell: Tell = _silent,
    unknown: float = 0.0,
) -> Weekly:
    """Play a trial in each clinic, week by week.

    transitions: [d, n, s, a, s'];  states: [d, n] at the start
    priority: [n, s] whole numbers, the highest are listed, ties broken at random
    unknown: share of states that nobody reports
    """
    D, N, S = transitions.shape[:3]
    clinic, arm = np.arange(D)[:, None], np.arange(N)
    up_to = transitions.cumsum(axis=-1)[..., :-1]
    chance = (transitions * better_states(S)[:, None]).sum(axis=-1)  # [d, n, s, a] to be better off
    gain = chance[..., ACT] - chance[..., WAIT]
    found = Weekly(*(np.zeros((D, weeks)) for _ in Weekly._fields))
    seen = rng.random((D, N)) >= unknown if unknown else None
    for week in range(weeks):
        listed = _first(budget, rng.random((D, N)) - priority[arm, states])
        lots = rng.random((D, N))
        drawn = _first(by_lot, lots + listed) | _first(by_lot, lots + ~listed)
        action = (listed ^ drawn).astype(np.int64)
        luck = rng.random((D, N, 1))
        after = (luck >= up_to[clinic, arm, states, action]).sum(axis=-1)
        y = better_off(states, after, S)
        before = seen
        if seen is not None:
            seen = rng.random((D, N)) >= unknown
        known = None if before is None or seen is None else before & seen
        sums = week_sums(states, listed, drawn, y, gain[clinic, arm, states], S, known)
        for part, new in zip(found, sums, strict=True):
            part[:, week] = new
        states = after
        tell((week + 1) / weeks)
    return found


def _first(count: int, keys: FloatArray) -> NDArray[np.bool_]:
    """Mark the `count` smallest keys of each row [d, n]; keys: [d, n]"""
    chosen = np.zeros(keys.shape, dtype=bool)
    at = np.argpartition(keys, count - 1, axis=1)[:, :count]
    np.put_along_axis(chosen, at, values=True, axis=1)
    return chosen


def week_sums(
    states: IntArray,
    listed: NDArray[np.bool_],
    drawn: NDArray[np.bool_],
    y: FloatArray,
    gain: FloatArray,
    n_states: int,
    known: NDArray[np.bool_] | None = None,
) -> Weekly:
    """What a week adds, all [d]; all arguments [d, n].

    known: whose states before and after are known, the others leave their lottery; None: all

    As in lot_trial.lottery_sums: outcomes less the mean of all in the same lottery and state. With
    k of n drawn, a pair of people is treated differently with the probability 2 q, where
    q = k (n - k) / (n (n - 1)). In a state with m people of a lottery, the expected sum over those
    drawn is the sum of their gains times q (m - 1) / m.
    """
    D = len(states)
    lottery = listed.astype(np.int64) if known is None else np.where(known, listed, 2)
    pool = 3 * np.arange(D)[:, None] + lottery  # [d, n] clinic and lottery
    cell = pool * n_states + states

    def sums(of: IntArray, size: int, x: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(of.ravel(), x.ravel(), size), dtype=float)

    m = np.bincount(cell.ravel(), minlength=3 * D * n_states)
    centred = y - (sums(cell, len(m), y) / np.maximum(m, 1))[cell]
    n = np.bincount(pool.ravel(), minlength=3 * D)
    k = sums(pool, 3 * D, drawn.astype(float))
    q = k * (n - k) / np.maximum(n * (n - 1), 1)
    drift = q * sums(pool, 3 * D, gain * (1 - 1 / m[cell]))
    sign = np.where(listed, -1.0, 1.0)
    statistic = sums(pool, 3 * D, sign * drawn * centred)
    variance = q * sums(pool, 3 * D, centred**2)
    each = (drift, statistic, variance)
    return Weekly(*(x.reshape(D, 3)[:, :2].sum(axis=1) for x in each))


def _power(
    trial: Weekly, by_lot: int, looks: tuple[int, ...], level: float, rng: np.random.Generator
) -> Power:
    """The power after the weeks in `looks`, averaged over clinics."""
    at = np.array(looks) - 1
    drift, variance = (x.cumsum(axis=1)[:, at] for x in (trial.drift, trial.variance))
    # With help that works, the statistic varies a little more or less than without.
    excess = ((trial.statistic - trial.drift) ** 2).sum() / max(trial.variance.sum(), 1e-12)
    each = crossing(drift, variance, float(excess), lot_trial.spent(looks, level), rng)
    power = float(each.mean())
    error = np.sqrt(each.var() / len(each) + power * (1 - power) / WALKS)
    low, high = np.quantile(each, (0.05, 0.95))
    return Power(by_lot, looks[-1], looks, power, float(error), float(low), float(high))


def crossing(
    drift: FloatArray,
    variance: FloatArray,
    excess: float,
    error: FloatArray,
    rng: np.random.Generator,
) -> FloatArray:
    """The probability [d] that a random walk crosses the upper boundary at one of the looks.

    drift, variance: [d, l] of the walk up to each look;  error: [l] that the looks may spend
    excess: the true variance, as a multiple of the one that the analysis assumes
    """
    known = np.maximum(variance, 1e-12)
    steps = np.diff(known.mean(axis=0), prepend=0.0)
    walks = (rng.standard_normal((WALKS, len(steps))) * np.sqrt(steps)).cumsum(axis=1)
    walks = walks / np.sqrt(known.mean(axis=0))
    bounds, _ = lot_trial.boundaries(walks, error)
    ahead = drift / np.sqrt(known)
    claims = [((one + np.sqrt(excess) * walks) > bounds).any(axis=1).mean() for one in ahead]
    return np.array(claims)
