"""Learners: they say whom to activate and what to ask, are told answers and moves, and plan.

A learner never asks anybody anything, so a click in a browser and a simulated answer take the same
road. Everything random in epoch h of episode k is a function of (seed, k, h): any epoch can be
rebuilt, and a learner is its counts and its last plan.
"""

from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dopl_core.learning import dynamics, pair_designs, preferences
from dopl_core.learning.bandit import (
    FloatArray,
    IntArray,
    Pays,
    check_budget,
    check_choice,
    check_states,
)
from dopl_core.learning.dynamics import Dynamics
from dopl_core.learning.pair_designs import DESIGNS
from dopl_core.learning.planning import Engine, Plan, plan
from dopl_core.learning.preferences import Preferences
from dopl_core.learning.streams import EDITION, Stream, generator

Confidence = Literal["calibrated", "paper"]
Ties = Literal["advantage", "paper"]
Reference = Literal["fixed", "most-compared"]


@dataclass(frozen=True, eq=False)
class Estimates:
    """What a learner holds to be true, for comparing with the truth; None where it holds nothing.

    transitions: [N, S, A, S'];  preferences: F [M, M];  rewards: [N, S], less that of `reference`
    where there is one;  ranks_by: which index its order of arm-states is to be compared with
    """

    transitions: FloatArray | None = None
    preferences: FloatArray | None = None
    rewards: FloatArray | None = None
    reference: int | None = None
    ranks_by: Literal["lp", "whittle"] = "lp"


class Learner:
    """The flow of Algorithm 1 and the counts it gathers; how to plan is each learner's own.

    A learner is told things in two ways only: `count_duels` and `count_moves`.

    visits: [N, S, A, S'] moves seen;  wins: [M, M] duels won by row over column, ties half each
    priority: [N, S] rank of each arm-state in the present plan; equal ranks are equal
    tie_keys: [H, N] the lot of each arm in each epoch of this episode
    edition: of the random streams (streams.py)
    """

    plan: Plan | None = None

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
        self.episode = 0
        self.visits = np.zeros((n_arms, n_states, 2, n_states), dtype=np.int64)
        self.wins = np.zeros((n_arms * n_states,) * 2)
        self._arms = np.arange(n_arms)

    def make_plan(self) -> Plan:
        """The plan for the next episode, from the counts so far."""
        raise NotImplementedError

    def replan(self) -> None:
        """Begin the next episode: plan, and draw its luck."""
        self._begin(self.make_plan(), self.episode + 1)

    def _begin(self, plan: Plan, episode: int) -> None:
        self.plan, self.episode = plan, episode
        self.priority = rank(plan.index, plan.advantage if self.ties == "advantage" else None)
        self.tie_keys = self._draw(Stream.TIES, self.n_arms)
        keys = self._duel_keys = self._draw(Stream.DUELS, pair_designs.keys_needed(self.budget))
        self._pairs = pair_designs.shuffle_sides(DESIGNS[self.design].draw(keys), keys)

    def _draw(self, stream: Stream, width: int) -> FloatArray:
        """Uniform numbers [H, width] for the epochs of this episode."""
        rng = generator(stream, self.seed, self.episode, edition=self.edition)
        return rng.random((self.horizon, width))

    def activate(self, states: IntArray, epoch: int) -> IntArray:
        """The B arms [B] to help in an epoch of this episode: best index, then advantage, then lot.

        states: [N] where all arms are;  epoch: from 0
        """
        states = check_states(states, self.n_arms, self.n_states)
        self._check_epoch(epoch)
        score = self.priority[self._arms, states] + self.tie_keys[epoch]
        chosen = score.argpartition(self.n_arms - self.budget)[self.n_arms - self.budget :]
        chosen.sort()
        return chosen

    def duels(self, states: IntArray, arms: IntArray, epoch: int) -> IntArray:
        """What to ask about `arms`: [B-1, 4] left arm, left state, right arm, right state."""
        pairs = arms[self._positions(states, arms, epoch)]
        duels = np.empty((self.budget - 1, 4), dtype=np.int64)
        duels[:, ::2] = pairs
        duels[:, 1::2] = states[pairs]
        return duels

    def _positions(self, states: IntArray, arms: IntArray, epoch: int) -> IntArray:
        """Which of `arms` meet, as positions [B-1, 2], left and right."""
        return self._pairs[epoch]

    def count_duels(self, duels: ArrayLike, credit: ArrayLike, times: ArrayLike = 1.0) -> None:
        """Count answers to duels [D, 4].

        credit: [D] 1 where the left has won, 0 where the right has, 0.5 for a tie
        times: [D] or one for all: how often, and -1 to take an answer back
        """
        duels, credit = np.asarray(duels, dtype=np.int64).reshape(-1, 4), np.asarray(credit)
        self._check_duels(duels, credit)
        left, right = (duels[:, ::2] * self.n_states + duels[:, 1::2]).T
        np.add.at(self.wins, (left, right), times * credit)
        np.add.at(self.wins, (right, left), times * (1 - credit))

    def count_moves(self, states: IntArray, helped: IntArray, next_states: IntArray) -> None:
        """Count the moves of all arms in an epoch: states, 1 where helped, next states, all [N].

        Or of many epochs at once, all [E, N].
        """
        states = check_states(states, self.n_arms, self.n_states)
        next_states = check_states(next_states, self.n_arms, self.n_states, "next states")
        moves = (self._arms, states, helped, next_states)
        if states.ndim == 1:
            self.visits[moves] += 1
        else:
            np.add.at(self.visits, moves, 1)

    def estimates(self) -> Estimates:
        """What the present plan was made from."""
        return Estimates()

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything the learner is, as plain arrays: restored, it goes on to the bit."""
        counts = {
            "episode": np.array(self.episode),
            "visits": self.visits.copy(),
            "wins": self.wins.copy(),
        }
        return counts | _pack("plan", self.plan)

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Become the learner that gave `state`."""
        self.visits, self.wins = state["visits"].copy(), state["wins"].copy()
        plan = _unpack(Plan, "plan", state)
        if plan is not None:
            self._begin(plan, int(state["episode"]))

    def _check_epoch(self, epoch: int) -> None:
        if self.episode == 0:
            raise ValueError("there is no plan yet: call replan() to begin the first episode")
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


class Dopl(Learner):
    """Direct Online Preference Learning (Algorithm 2)."""

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
        confidence: Confidence = "calibrated",
        engine: Engine = "lagrangian",
        pays: Pays = "all",
        epsilon: float = 1e-5,
        reference: Reference = "fixed",
        groups: tuple[str, ...] | None = None,
    ) -> None:
        super().__init__(
            n_arms,
            n_states,
            budget,
            horizon=horizon,
            seed=seed,
            design=design,
            ties=ties,
            edition=edition,
        )
        check_choice("confidence", confidence, get_args(Confidence))
        check_choice("reference", reference, get_args(Reference))
        if not 0 < epsilon < 1:
            raise ValueError(f"epsilon is {epsilon}: it must be between 0 and 1")
        self.confidence, self.engine, self.pays, self.epsilon = confidence, engine, pays, epsilon
        self.reference, self.groups = reference, groups
        self.preferences: Preferences | None = None
        self.dynamics: Dynamics | None = None

    def make_plan(self) -> Plan:
        """Boxes (sec. 4.1), overestimates (Alg. 3), then the ELP (appendix C.1)."""
        self.dynamics, self.preferences = self._estimate_dynamics(), self._estimate_preferences()
        return plan(
            self.rewards(self.preferences),
            self.dynamics.low,
            self.dynamics.high,
            self.budget,
            engine=self.engine,
            pays=self.pays,
            start=None if self.plan is None else self.plan.start,
        )

    def state(self) -> dict[str, NDArray[Any]]:
        beliefs = _pack("preferences", self.preferences) | _pack("dynamics", self.dynamics)
        return super().state() | beliefs

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        super().restore(state)
        self.preferences = _unpack(Preferences, "preferences", state)
        self.dynamics = _unpack(Dynamics, "dynamics", state)

    def rewards(self, belief: Preferences) -> FloatArray:
        """What the plan is made with [N, S, A]: Q~, and for waiting what is known.

        Only activated arms are asked about. So where widths are honest, only acting is credited
        with what is not yet known; waiting in an unknown state would teach nothing.
        """
        acting = belief.overestimate
        waiting = acting if self.confidence == "paper" else np.clip(belief.mean, -1, 1)
        return np.stack([waiting, acting], axis=2)

    def _estimate_dynamics(self) -> Dynamics:
        if self.confidence == "paper":
            return dynamics.paper(self.visits, self.episode * self.horizon, self.epsilon)
        return dynamics.calibrated(self.visits, self.groups)

    def _estimate_preferences(self) -> Preferences:
        # Errata 13: chosen when the learner first plans with answers, then it stays.
        before = None if self.preferences is None else self.preferences.reference
        keep = self.reference == "fixed" and before is not None
        reference = before if keep else preferences.most_compared(self.wins)
        if self.confidence == "paper":
            epochs = self.episode * self.horizon
            return preferences.paper(self.wins, self.n_states, reference, epochs, self.epsilon)
        warm = None if self.preferences is None else self.preferences.warm
        belief = preferences.calibrated(self.wins, self.n_states, reference, warm)
        chooses = DESIGNS[self.design].choose is not None
        return belief if chooses else replace(belief, covariance=None)

    def estimates(self) -> Estimates:
        if self.preferences is None or self.dynamics is None:
            return Estimates()
        known, belief = self.dynamics.mean, self.preferences
        F = preferences.win_chances(belief.mean)
        if belief.reference is None:
            return Estimates(known, F)
        if self.confidence == "paper":  # counted, and inferred against the reference
            column = F[:, belief.reference]
            F = np.clip(preferences.empirical(self.wins)[0], preferences.F_LOW, preferences.F_HIGH)
            F[:, belief.reference], F[belief.reference] = column, 1 - column
        return Estimates(known, F, belief.overestimate, belief.reference)

    def _positions(self, states: IntArray, arms: IntArray, epoch: int) -> IntArray:
        belief, planned, choose = self.preferences, self.plan, DESIGNS[self.design].choose
        if belief is None or planned is None or belief.covariance is None or choose is None:
            return super()._positions(states, arms, epoch)
        # The plan depends on a strength as often as it visits the arm-state.
        V, codes = belief.covariance, arms * self.n_states + states[arms]
        towards = V[:, codes] * np.sqrt(planned.occupancy.sum(axis=2).reshape(-1, 1))
        strengths, keys = belief.mean.ravel()[codes], self._duel_keys[epoch]
        pairs = choose(towards, V[np.ix_(codes, codes)], strengths, keys)
        return pair_designs.shuffle_sides(pairs, keys)


def rank(index: FloatArray, advantage: FloatArray | None) -> FloatArray:
    """Dense ranks [N, S] by index, then advantage; equal up to solver noise is equal.

    A vertex of the ELP has at most one fractional index, so the advantage decides nearly always;
    None is the paper's own rule, where equal indices are equal.
    """
    first = np.round(index, 7).ravel()
    second = np.zeros_like(first) if advantage is None else np.round(advantage, 7).ravel()
    order = np.lexsort((second, first))
    rises = np.zeros(order.size)
    rises[1:] = (np.diff(first[order]) != 0) | (np.diff(second[order]) != 0)
    ranks = np.empty(order.size)
    ranks[order] = rises.cumsum()
    return ranks.reshape(index.shape)


def _pack(name: str, value: Any) -> dict[str, NDArray[Any]]:
    """A frozen dataclass as arrays: `name.field`, and `name.warm.key`; None fields are left out."""
    packed: dict[str, NDArray[Any]] = {}
    for field in fields(value) if value is not None else ():
        content = getattr(value, field.name)
        for key, item in content.items() if isinstance(content, dict) else ((None, content),):
            if item is not None:
                packed[f"{name}.{field.name}" + (f".{key}" if key else "")] = np.array(item)
    return packed


def _unpack(kind: Any, name: str, state: dict[str, NDArray[Any]]) -> Any:
    """The dataclass that `_pack` took apart, or None where there was none."""
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
        if field.name in ("reference", "covariance", "start")
    }
    return kind(**(missing | values))
