"""Chains: states in order, at most one state a week, and help that lifts by one state.

30 to 100 people in 3 to 6 states, help for a tenth to a third of them. Values rise evenly from 0
to 1. A week without help lowers somebody with a chance of 0.1 to 0.4 and lifts them with 0.05 to
0.25, each person's own. Help adds to the chance to rise and takes from the chance to fall.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from dopl_core.experiments.worlds.drawn import Drawn, remembering
from dopl_core.learning.bandit import ACT, WAIT, Bandit, FloatArray

Effect = Literal["even", "worst", "middle", "keeping"]
EFFECTS: tuple[Effect, ...] = get_args(Effect)
WEEKS = 50
PERIOD = 13  # weeks of a wave
OWN_MOVES = 20  # that one's own rows are worth, where everybody has their own
WEARING = 4  # weeks of help that wear it


class People(NamedTuple):
    """Chances to rise and to fall by one state in a week: [N, S], 0 where no state is left."""

    rise: FloatArray
    fall: FloatArray

    def rows(self) -> FloatArray:
        """The rows [N, S, S'] of their moves."""
        S = self.rise.shape[1]
        up, down, stay = np.eye(S, k=1), np.eye(S, k=-1), np.eye(S)
        stays = 1 - self.rise - self.fall
        return self.rise[:, :, None] * up + self.fall[:, :, None] * down + stays[:, :, None] * stay


def shape(effect: Effect, n_states: int) -> FloatArray:
    """How much of its full size help has in each state [S]; of "keeping", which falls it hinders.

    even: the same in all states but the best
    worst: most in the worst state, nothing above the middle
    middle: a twentieth in the worst and the best state, all between
    keeping: in the best and the second state
    """
    states = np.arange(n_states)
    if effect == "even":
        found = states < n_states - 1
    elif effect == "worst":
        found = (1 - states / ((n_states - 1) // 2 + 1)).clip(min=0)
    elif effect == "middle":
        found = np.where((states == 0) | (states == n_states - 1), 0.05, 1.0)
    else:
        found = states >= n_states - 2
    return np.asarray(found, dtype=float)


def draw_people(rng: np.random.Generator, n_arms: int, n_states: int) -> People:
    """People without help: each has their own chances, the same in all states."""
    rise = np.repeat(rng.uniform(0.05, 0.25, (n_arms, 1)), n_states, axis=1)
    fall = np.repeat(rng.uniform(0.1, 0.4, (n_arms, 1)), n_states, axis=1)
    rise[:, -1] = fall[:, 0] = 0.0
    return People(rise, fall)


def with_help(people: People, effect: Effect, rng: np.random.Generator) -> People:
    """The same people with help, which works in each to another degree.

    "keeping" makes falls rarer by a third to a half; the others change chances by 0.1 to 0.3.
    """
    (N, S), where = people.rise.shape, shape(effect, people.rise.shape[1])
    if effect == "keeping":
        rarer = rng.uniform(1 / 3, 1 / 2, (N, 1)) * where
        return People(people.rise, people.fall * (1 - rarer))
    size = rng.uniform(0.1, 0.3, (N, 1)) * where
    rise = np.where(np.arange(S) < S - 1, people.rise + size, 0.0)
    return People(rise, (people.fall - size).clip(min=0))


class Chain(NamedTuple):
    """A chain: its moves [N, S, A, S'], values [N, S] and budget, and the numbers to go on with."""

    moves: FloatArray
    values: FloatArray
    budget: int
    rng: np.random.Generator

    def bandit(self, name: str, moves: FloatArray | None = None) -> Bandit:
        """The bandit of this chain, or with other moves."""
        settings: dict[str, Any] = {"name": name, "episodes": WEEKS, "horizon": 1}
        return Bandit(self.moves if moves is None else moves, self.values, self.budget, **settings)


def draw_chain(
    name: str, seed: int, effects: Sequence[Effect] = EFFECTS, *, size: float = 1.0, most: int = 6
) -> Chain:
    """One of `effects` in people drawn anew, at a share `size` of its full size.

    most: states at most
    """
    rng = np.random.default_rng([seed, *name.encode()])
    S, N = int(rng.integers(3, most + 1)), int(rng.integers(30, 101))
    budget = round(N * rng.uniform(1 / 10, 1 / 3))
    people = draw_people(rng, N, S)
    helped = with_help(people, effects[int(rng.integers(len(effects)))], rng)
    wait, act = people.rows(), helped.rows()
    moves = np.stack([wait, wait + size * (act - wait)], axis=2)
    return Chain(moves, np.tile(np.linspace(0, 1, S), (N, 1)), budget, rng)


# --- worlds


def plain(
    name: str, *effects: Effect, size: float = 1.0, values_differ: bool = False
) -> Callable[[int], Drawn]:
    """Chains where help has one of `effects`; values may differ by a factor of 0.1 to 1."""

    def drawn(seed: int) -> Drawn:
        chain = draw_chain(name, seed, effects or EFFECTS, size=size)
        if values_differ:
            factor = chain.rng.uniform(0.1, 1, (len(chain.values), 1))
            chain = chain._replace(values=chain.values * factor)
        return Drawn(chain.bandit(name))

    return drawn


def late(name: str) -> Callable[[int], Drawn]:
    """Help that works in the week after, and not in its own. The bandit has it at once."""

    def drawn(seed: int) -> Drawn:
        chain = draw_chain(name, seed)
        rows = chain.moves.swapaxes(1, 2)[:, :, :, None]  # by help in the week before
        bandit = chain.bandit(name)
        return Drawn(bandit, hidden=remembering(bandit, rows.repeat(2, axis=3)))

    return drawn


def wearing(name: str) -> Callable[[int], Drawn]:
    """Help whose effect halves with each time helped in the last four weeks.

    The bandit has help that was never given before. At most four states: with six, the plan of the
    hidden bandit takes seconds.
    """

    def drawn(seed: int) -> Drawn:
        chain = draw_chain(name, seed, most=4)
        wait, act = chain.moves[:, None, :, WAIT], chain.moves[:, None, :, ACT]
        times = np.array([past.bit_count() for past in range(2**WEARING)])
        worn = wait + 0.5 ** times[:, None, None] * (act - wait)
        rows = np.stack([np.broadcast_to(wait, worn.shape), worn], axis=3)
        bandit = chain.bandit(name)
        return Drawn(bandit, hidden=remembering(bandit, rows))

    return drawn


def wave(name: str) -> Callable[[int], Drawn]:
    """A wave that repeats, together with one misread report in ten.

    In week t of a period a share 0.4 |sin(2 pi t / 13)| of all people rise by one state instead of
    moving in their own way, in the second half of a period they fall by one.
    """

    def drawn(seed: int) -> Drawn:
        chain = draw_chain(name, seed)
        S = chain.values.shape[1]
        sine = np.sin(2 * np.pi * np.arange(1, PERIOD + 1) / PERIOD)
        ups = np.eye(S)[np.minimum(np.arange(S) + 1, S - 1)]
        downs = np.eye(S)[np.maximum(np.arange(S) - 1, 0)]
        goal = np.where((sine >= 0)[:, None, None], ups, downs)[:, None, :, None]
        share = 0.4 * np.abs(sine).reshape(-1, 1, 1, 1, 1)
        weeks = (1 - share) * chain.moves + share * goal
        bandit = chain.bandit(name, weeks.mean(axis=0))
        return Drawn(bandit, weeks, misread=0.1, repeats=True)

    return drawn


def own_ways(seed: int) -> Drawn:
    """Everybody's rows are their own: drawn about those of one person, as after 20 moves."""
    chain = draw_chain("own_ways", seed)
    return Drawn(chain.bandit("own_ways", scattered(chain.moves[0], len(chain.values), chain.rng)))


def scattered(rows: FloatArray, n_arms: int, rng: np.random.Generator) -> FloatArray:
    """Rows [N, S, A, S'] of a Dirichlet distribution about `rows` [S, A, S'], worth 20 moves."""
    gammas = rng.standard_gamma(OWN_MOVES * np.broadcast_to(rows, (n_arms, *rows.shape)))
    return gammas / gammas.sum(axis=3, keepdims=True)


CHAINS: dict[str, Callable[[int], Drawn]] = {
    **{f"chain_{effect}": plain(f"chain_{effect}", effect) for effect in EFFECTS},
    "chain_small": plain("chain_small", size=0.1),
    "chain_none": plain("chain_none", size=0.0),
    "chain_values": plain("chain_values", "even", "middle", values_differ=True),
    "chain_late": late("chain_late"),
    "chain_wearing": wearing("chain_wearing"),
    "chain_wave": wave("chain_wave"),
    "own_ways": own_ways,
}
