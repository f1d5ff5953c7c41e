"""Learners: they say whom to activate and what to ask, are told answers and moves, and plan.

A learner never asks anybody anything, so a click in a browser and a simulated answer take the same
road. Everything random in epoch h of episode k is a function of (seed, k, h): any epoch can be
rebuilt, and a learner is its counts and its last plan.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dopl_core.learning import pair_designs
from dopl_core.learning.bandit import (
    UNKNOWN,
    FloatArray,
    IntArray,
    check_budget,
    check_choice,
    check_states,
)
from dopl_core.learning.counts import Counts
from dopl_core.learning.pair_designs import DESIGNS
from dopl_core.learning.planning import Plan
from dopl_core.learning.streams import EDITION, Stream, generator

Rows = Callable[[slice], FloatArray]  # gives those of a matrix
Ties = Literal["advantage", "paper"]


@dataclass(frozen=True, eq=False)
class Estimates:
    """What a learner holds to be true, for comparing with the truth; None where it holds nothing.

    transitions: [N, S, A, S'];  preferences: gives rows of F, [., M];  rewards: [N, S], less that
    of `reference` where there is one;  ranks_by: which index its order is to be compared with
    """

    transitions: FloatArray | None = None
    preferences: Rows | None = None
    rewards: FloatArray | None = None
    reference: int | None = None
    ranks_by: Literal["lp", "whittle"] = "lp"


class Learner:
    """The flow of Algorithm 1 and the counts it gathers; how to plan is each learner's own.

    A learner is told things in two ways only: `count_duels` and `count_moves`.

    visits: [N, S, A, S'] moves seen;  counts: of duels between the M arm-states
    priority: [N, S] rank of each arm-state in the present plan; equal ranks are equal
    tie_keys: [H, N] the lot of each arm in each epoch of this episode
    present: [N] whom plans, lists and duels are about; estimates are about all arms there ever were
    edition: of the random streams and the maths (streams.py)
    """

    plan: Plan | None = None
    tell: Callable[[str], None] = staticmethod(lambda step: None)  # how far a plan is

    def __init__(
        self,
        n_arms: int,
        n_states: int,
        budget: int,
        *,
        horizon: int,
        seed: int = 0,
        design: str = "star",
        ties: Ties = "advantage",
        edition: int = EDITION,
    ) -> None:
        check_budget(budget, n_arms)
        if horizon < 1:
            raise ValueError(f"horizon is {horizon}: an episode has at least 1 epoch")
        check_choice("design", design, DESIGNS)
        check_choice("ties", ties, get_args(Ties))
        self.n_arms, self.n_states, self.budget = n_arms, n_states, budget
        self.horizon, self.seed, self.design, self.ties = horizon, seed, design, ties
        self.edition = edition
        self.answers = 0  # wanted in an epoch, where that is more than B-1
        self.by_lot = 0  # of the B places, those that `draw_lots` fills
        self.episode = 0
        self.visits = np.zeros((n_arms, n_states, 2, n_states), dtype=np.int64)
        self.counts = Counts(n_arms * n_states)
        self.present = np.ones(n_arms, dtype=bool)
        self._adapted = edition > 1
        self._arms = np.arange(n_arms)

    def adapt(self, present: NDArray[np.bool_], budget: int) -> None:
        """From the next plan on: who is present [N'], and how many can be helped.

        Arms that are new come last. Arms keep their numbers, whether they are there or not.
        """
        check_budget(budget, int(present.sum()))
        if len(present) < self.n_arms:
            raise ValueError(f"{len(present)} arms given: {self.n_arms} are known, and stay known")
        changes = budget != self.budget or not np.array_equal(present, self.present)
        self._adapted = self._adapted or changes
        self._grow(len(present))
        self.present, self.budget = present.copy(), budget

    def _grow(self, n_arms: int) -> None:
        N, S, new = self.n_arms, self.n_states, n_arms - self.n_arms
        if new == 0:
            return
        self.visits = np.concatenate([self.visits, np.zeros((new, S, 2, S), dtype=np.int64)])
        self.counts.grow(n_arms * S)
        self.n_arms, self._arms = N + new, np.arange(N + new)

    def make_plan(self) -> Plan:
        """The plan for the next episode, from the counts so far."""
        raise NotImplementedError

    def replan(self) -> None:
        """Begin the next episode: plan, and draw its luck."""
        self._begin(self.make_plan(), self.episode + 1)

    def _begin(self, plan: Plan, episode: int) -> None:
        self.plan, self.episode = plan, episode
        self.priority = rank(*self._merits(plan))
        self.tie_keys = self._draw(Stream.TIES, self.n_arms)
        keys = self._duel_keys = self._draw(Stream.DUELS, pair_designs.keys_needed(self.budget))
        self._pairs = pair_designs.shuffle_sides(DESIGNS[self.design].draw(keys), keys)

    def _draw(self, stream: Stream, width: int) -> FloatArray:
        """Uniform numbers [H, width] for the epochs of this episode."""
        rng = generator(stream, self.seed, self.episode, edition=self.edition)
        return rng.random((self.horizon, width))

    def _merits(self, plan: Plan) -> tuple[FloatArray, ...]:
        """What decides [N, S], and what decides among equals, before the lot does.

        Where acting and waiting are worth the same, a vertex of the ELP acts in some states and
        waits in others just like them; so since edition 2 the advantage alone is asked.
        """
        if self.ties == "paper":
            return (plan.index,)
        return (plan.advantage,) if self.edition > 1 else (plan.index, plan.advantage)

    def activate(self, states: IntArray, epoch: int, where: FloatArray | None = None) -> IntArray:
        """The arms to help in an epoch of this episode, in order; among equals by lot.

        B of them, less those whose places are drawn by lot (`draw_lots`).
        states: [N] where all arms are, UNKNOWN where that is not known;  epoch: from 0
        where: [N, S] the chances of where each of them is; needed if some are unknown
        """
        self._check_epoch(epoch)
        if where is None and self.present.all():
            states = check_states(states, self.n_arms, self.n_states)
            priority = self.priority[self._arms, states]
        else:
            priority = self.standing(states, where)
        score = priority + self.tie_keys[epoch]
        others = self.n_arms - self.budget + self.by_lot
        chosen = score.argpartition(others)[others:]
        chosen.sort()
        return chosen

    def draw_lots(self, chosen: IntArray, epoch: int) -> IntArray:
        """Who gets the places drawn by lot, in order: any who are present and not `chosen`.

        Where they are, or whether that is known, makes no difference, so that those drawn and those
        not drawn differ by chance alone.
        """
        if not self.by_lot:
            return np.empty(0, dtype=np.int64)
        rng = generator(Stream.LOTS, self.seed, self.episode, epoch, edition=self.edition)
        others = np.setdiff1d(np.flatnonzero(self.present), chosen)
        return np.sort(rng.choice(others, self.by_lot, replace=False))

    def standing(self, states: IntArray, where: FloatArray | None = None) -> FloatArray:
        """How urgent help is [N] before any lot is drawn, by expectation; the absent come last."""
        states = check_states(states, self.n_arms, self.n_states, unknown=True)
        unknown = states == UNKNOWN
        if where is None:
            if (unknown & self.present).any():
                raise ValueError("some states are unknown: say where these arms may be")
            where = np.zeros((self.n_arms, self.n_states))
        where = np.where(unknown[:, None], where, states[:, None] == np.arange(self.n_states))
        merits = [(where * merit).sum(axis=1) for merit in self._merits(self._planned())]
        return np.where(self.present, rank(*merits), -np.inf)

    def duels(self, states: IntArray, arms: IntArray, epoch: int) -> IntArray:
        """What to ask about `arms`: [D, 4] left arm, left state, right arm, right state.

        Pairs that connect all of them whose state is known: B-1 if it is known of all.
        """
        known = arms[states[arms] != UNKNOWN]
        if len(known) < 2:
            return np.empty((0, 4), dtype=np.int64)
        return in_states(known[self._positions(states, known, epoch)], states)

    def sitting(self, states: IntArray, count: int) -> IntArray:
        """What to ask before the first plan: [count, 4], pairs by lot of arms in their states."""
        rng = generator(Stream.SITTING, self.seed, edition=self.edition)
        arms = np.flatnonzero(self.present & (states != UNKNOWN))
        pairs = [rng.choice(arms, 2, replace=False) for _ in range(count if len(arms) > 1 else 0)]
        return in_states(np.array(pairs, dtype=np.int64).reshape(-1, 2), states)

    def _positions(self, states: IntArray, arms: IntArray, epoch: int) -> IntArray:
        """Which of `arms` meet, as positions [D, 2], left and right."""
        if len(arms) == self.budget:
            return self._pairs[epoch]
        keys = self._duel_keys[epoch : epoch + 1, : pair_designs.keys_needed(len(arms))]
        return pair_designs.shuffle_sides(DESIGNS[self.design].draw(keys), keys)[0]

    def count_duels(
        self, duels: ArrayLike, credit: ArrayLike, times: ArrayLike = 1.0, who: ArrayLike = 0
    ) -> None:
        """Count answers to duels [D, 4].

        credit: [D] 1 where the left has won, 0 where the right has, 0.5 for a tie
        times: [D] or one for all: how often, and -1 to take an answer back
        who: [D] or one for all: who said so, by number
        """
        duels, credit = np.asarray(duels, dtype=np.int64).reshape(-1, 4), np.asarray(credit)
        self._check_duels(duels, credit)
        left, right = (duels[:, ::2] * self.n_states + duels[:, 1::2]).T
        won, lost = credit > 0, credit < 1
        winner, loser = np.where(won, left, right), np.where(won, right, left)
        share = np.where(won, credit, 1.0)
        self.counts.add(winner, loser, times * share, who)
        tied = won & lost
        if tied.any():
            times, who = (np.broadcast_to(x, tied.shape)[tied] for x in (times, who))
            self.counts.add(right[tied], left[tied], times * (1 - credit[tied]), who)

    def count_moves(
        self, states: IntArray, helped: IntArray, next_states: IntArray, times: int = 1
    ) -> None:
        """Count the moves of all arms in an epoch: states, 1 where helped, next states, all [N].

        Or of many epochs at once, all [E, N]. Where a state is UNKNOWN, no move is counted.
        times: -1 to take moves back that were counted wrongly
        """
        sizes = self.n_arms, self.n_states
        states = check_states(states, *sizes, unknown=True)
        next_states = check_states(next_states, *sizes, "next states", unknown=True)
        arms = np.broadcast_to(self._arms, states.shape)
        known = (states != UNKNOWN) & (next_states != UNKNOWN)
        if known.all():
            moves = (arms, states, helped, next_states)
        else:
            moves = (arms[known], states[known], np.asarray(helped)[known], next_states[known])
        if states.ndim == 1:
            self.visits[moves] += times
        else:
            np.add.at(self.visits, moves, times)

    def estimates(self) -> Estimates:
        """What the present plan was made from."""
        return Estimates()

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything the learner is, as plain arrays: restored, it goes on to the bit."""
        counts = {
            "episode": np.array(self.episode),
            "visits": self.visits.copy(),
        }
        counts |= self.counts.state()
        if self._adapted:
            counts |= {"present": self.present.copy(), "budget": np.array(self.budget)}
        return counts | pack("plan", self.plan)

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Become the learner that gave `state`."""
        self.visits = state["visits"].copy()
        self.n_arms = len(self.visits)
        self.counts = Counts(self.n_arms * self.n_states)
        self.counts.restore(state)
        self._arms = np.arange(self.n_arms)
        if "present" in state:
            self.present, self.budget = state["present"].astype(bool), int(state["budget"])
            self._adapted = True
        plan = unpack(Plan, "plan", state)
        if plan is not None:
            self._begin(plan, int(state["episode"]))

    def _planned(self) -> Plan:
        if self.plan is None:
            raise ValueError("there is no plan yet: call replan() to begin the first episode")
        return self.plan

    def _check_epoch(self, epoch: int) -> None:
        self._planned()
        if not 0 <= epoch < self.horizon:
            raise ValueError(
                f"epoch {epoch}: episode {self.episode} is over after {self.horizon} epochs, "
                "counted from 0: call replan()"
            )

    def _check_duels(self, duels: IntArray, credit: NDArray[Any]) -> None:
        arms, states = duels[:, ::2], duels[:, 1::2]
        known = (arms >= 0) & (arms < self.n_arms) & (states >= 0) & (states < self.n_states)
        bad = ~known.all(axis=1) | (arms[:, 0] == arms[:, 1])
        if bad.any():
            raise ValueError(
                f"duel {duels[bad][0].tolist()}: left arm and state, right arm and state needed, "
                f"two different arms of {self.n_arms} and states of {self.n_states}"
            )
        if credit.shape != (len(duels),) or not ((credit >= 0) & (credit <= 1)).all():
            raise ValueError(
                f"credit {credit.tolist()} of {len(duels)} duels: for each 1 where the left has "
                "won, 0 where the right has, 0.5 for a tie"
            )


def in_states(pairs: IntArray, states: IntArray) -> IntArray:
    """Duels [D, 4] of pairs of arms [D, 2] in their states [N]."""
    return np.stack([pairs, states[pairs]], axis=2).reshape(-1, 4)


def rank(*merits: FloatArray) -> FloatArray:
    """Dense ranks by the first merit, then by the next; equal up to solver noise is equal.

    A vertex of the ELP has at most one fractional index: ranked by it alone, nearly all are equal.
    """
    keys = [np.round(merit, 7).ravel() for merit in merits]
    order = np.lexsort(keys[::-1])
    rises = np.zeros(order.size)
    rises[1:] = np.any([np.diff(key[order]) != 0 for key in keys], axis=0)
    ranks = np.empty(order.size)
    ranks[order] = rises.cumsum()
    return ranks.reshape(merits[0].shape)


def pack(name: str, value: Any) -> dict[str, NDArray[Any]]:
    """A frozen dataclass as arrays: `name.field`, and `name.warm.key`; None fields are left out."""
    packed: dict[str, NDArray[Any]] = {}
    for field in fields(value) if value is not None else ():
        content = getattr(value, field.name)
        for key, item in content.items() if isinstance(content, dict) else ((None, content),):
            if item is not None:
                packed[f"{name}.{field.name}" + (f".{key}" if key else "")] = np.array(item)
    return packed


def unpack(kind: Any, name: str, state: dict[str, NDArray[Any]]) -> Any:
    """The dataclass that `pack` took apart, or None where there was none."""
    values: dict[str, Any] = {}
    for path, array in state.items():
        head, _, rest = path.partition(".")
        if head == name:
            field, _, key = rest.partition(".")
            item = array.item() if array.ndim == 0 else array
            if key:
                values.setdefault(field, {})[key] = item
            else:
                values[field] = item
    if not values:
        return None
    missing = {
        field.name: None
        for field in fields(kind)
        if field.name in ("reference", "covariance", "common", "start")
    }
    return kind(**(missing | values))
