"""Learners: they say whom to activate and what to ask, are told answers and moves, and plan.

A learner never asks anybody anything, so a click in a browser and a simulated answer take the same
road. Everything random in epoch h of episode k is a function of (seed, k, h): any epoch can be
rebuilt, and a learner is its counts and its last plan.
"""

from dataclasses import fields, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dopl_core.learning import dynamics, preferences
from dopl_core.learning import pair_designs as designs
from dopl_core.learning.bandit import FloatArray, IntArray, Pays, check_budget, check_states
from dopl_core.learning.dynamics import Dynamics
from dopl_core.learning.pair_designs import Design
from dopl_core.learning.planning import Engine, Plan, plan
from dopl_core.learning.preferences import Preferences
from dopl_core.world import TIE

Confidence = Literal["calibrated", "paper"]
Ties = Literal["advantage", "paper"]

_TIES, _DUELS = 0, 1  # streams of a seed; the world uses 2 and up


class Learner:
    """The flow of Algorithm 1 and the counts it gathers; how to plan is each learner's own.

    visits: [N, S, A, S'] moves seen;  wins: [M, M] duels won by row over column, ties half each
    priority: [N, S] rank of each arm-state in the present plan; equal ranks are equal
    tie_keys: [H, N] the lot of each arm in each epoch of this episode
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
        design: Design = "star",
        ties: Ties = "advantage",
    ) -> None:
        check_budget(budget, n_arms)
        if horizon < 1:
            raise ValueError(f"horizon is {horizon}: an episode has at least 1 epoch")
        _check_choice("design", design, ("star", "tree", "informative"))
        _check_choice("ties", ties, ("advantage", "paper"))
        self.n_arms, self.n_states, self.budget = n_arms, n_states, budget
        self.horizon, self.seed, self.design, self.ties = horizon, seed, design, ties
        self.episode = self.epoch = 0
        self.visits = np.zeros((n_arms, n_states, 2, n_states), dtype=np.int64)
        self.wins = np.zeros((n_arms * n_states,) * 2)
        self._arms = np.arange(n_arms)

    def make_plan(self) -> Plan:
        """The plan for the next episode, from the counts so far."""
        raise NotImplementedError

    def replan(self) -> None:
        """Begin the next episode: plan, and draw its luck."""
        self._begin(self.make_plan(), self.episode + 1)

    def _begin(self, plan: Plan, episode: int, epoch: int = 0) -> None:
        self.plan, self.episode, self.epoch = plan, episode, epoch
        self.priority = rank(plan.index, plan.advantage if self.ties == "advantage" else None)
        self.tie_keys = self._draw(_TIES, self.n_arms)
        keys = self._duel_keys = self._draw(_DUELS, designs.keys_needed(self.budget))
        pairs = designs.tree(keys) if self.design == "tree" else designs.star(keys)
        self._pairs = designs.shuffle_sides(pairs, keys)

    def _draw(self, stream: int, width: int) -> FloatArray:
        rng = np.random.default_rng([self.seed, self.episode, stream])
        return rng.random((self.horizon, width))

    def activate(self, states: IntArray) -> IntArray:
        """The B arms [B] to help now, in order: best index, then advantage, then by lot."""
        states = check_states(states, self.n_arms, self.n_states)
        self._check_running()
        score = self.priority[self._arms, states] + self.tie_keys[self.epoch]
        chosen = score.argpartition(self.n_arms - self.budget)[self.n_arms - self.budget :]
        chosen.sort()
        return chosen

    def duels(self, states: IntArray, arms: IntArray) -> IntArray:
        """What to ask about `arms`: [B-1, 4] left arm, left state, right arm, right state."""
        pairs = arms[self._positions(states, arms)]
        duels = np.empty((self.budget - 1, 4), dtype=np.int64)
        duels[:, ::2] = pairs
        duels[:, 1::2] = states[pairs]
        return duels

    def _positions(self, states: IntArray, arms: IntArray) -> IntArray:
        """Which of `arms` meet, as positions [B-1, 2], left and right."""
        return self._pairs[self.epoch]

    def record(self, duels: IntArray, winners: IntArray) -> None:
        """Count answers: duels [D, 4] and the arm number of each winner, or TIE."""
        self._count(duels, winners, 1.0)

    def forget(self, duels: IntArray, winners: IntArray) -> None:
        """Undo a `record`: the learner is as if it had never seen these answers."""
        self._count(duels, winners, -1.0)

    def _count(self, duels: IntArray, winners: IntArray, times: float) -> None:
        # A handful of duels at a time: a loop over numbers is faster than arrays of seven.
        N, S = self.n_arms, self.n_states
        credits: list[tuple[int, int, float]] = []
        for duel, winner in zip(
            np.asarray(duels).tolist(), np.asarray(winners).tolist(), strict=True
        ):
            a, s, b, t = duel
            if not (0 <= a < N and 0 <= b < N and 0 <= s < S and 0 <= t < S) or a == b:
                raise ValueError(
                    f"duel {duel}: left arm and state, right arm and state needed, two different "
                    f"arms of {N} and states of {S}"
                )
            if winner not in (a, b, TIE):
                raise ValueError(
                    f"duel {duel}: arm {winner} was not asked about; it was arm {a} against arm {b}"
                )
            credit = 1.0 if winner == a else 0.0 if winner == b else 0.5
            credits.append((a * S + s, b * S + t, credit))
        for i, j, credit in credits:
            self.wins[i, j] += times * credit
            self.wins[j, i] += times * (1 - credit)

    def observe(self, states: IntArray, arms: IntArray, next_states: IntArray) -> None:
        """Count the moves of all N arms in this epoch, of which `arms` were activated."""
        states = check_states(states, self.n_arms, self.n_states)
        next_states = check_states(next_states, self.n_arms, self.n_states, "next states")
        self._check_running()
        active = np.zeros(self.n_arms, dtype=np.int64)
        active[arms] = 1
        self.visits[self._arms, states, active, next_states] += 1
        self.epoch += 1

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything the learner is, as plain arrays: restored, it goes on to the bit."""
        counts = {
            "episode": np.array(self.episode),
            "epoch": np.array(self.epoch),
            "visits": self.visits.copy(),
            "wins": self.wins.copy(),
        }
        return counts | _pack("plan", self.plan)

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Become the learner that gave `state`."""
        self.visits, self.wins = state["visits"].copy(), state["wins"].copy()
        plan = _unpack(Plan, "plan", state)
        if plan is not None:
            self._begin(plan, int(state["episode"]), int(state["epoch"]))

    def _check_running(self) -> None:
        if self.episode == 0:
            raise ValueError("there is no plan yet: call replan() to begin the first episode")
        if self.epoch >= self.horizon:
            raise ValueError(
                f"episode {self.episode} is over after {self.horizon} epochs: call replan()"
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
        design: Design = "star",
        ties: Ties = "advantage",
        confidence: Confidence = "calibrated",
        engine: Engine = "lagrangian",
        pays: Pays = "all",
        epsilon: float = 1e-5,
        reference: Literal["fixed", "most-compared"] = "fixed",
        groups: tuple[str, ...] | None = None,
    ) -> None:
        super().__init__(
            n_arms, n_states, budget, horizon=horizon, seed=seed, design=design, ties=ties
        )
        _check_choice("confidence", confidence, ("calibrated", "paper"))
        _check_choice("reference", reference, ("fixed", "most-compared"))
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
        return belief if self.design == "informative" else replace(belief, covariance=None)

    def _positions(self, states: IntArray, arms: IntArray) -> IntArray:
        belief, planned = self.preferences, self.plan
        if belief is None or planned is None or belief.covariance is None:
            return super()._positions(states, arms)
        # The plan depends on a strength as often as it visits the arm-state.
        V, codes = belief.covariance, arms * self.n_states + states[arms]
        towards = V[:, codes] * np.sqrt(planned.occupancy.sum(axis=2).reshape(-1, 1))
        strengths, keys = belief.mean.ravel()[codes], self._duel_keys[self.epoch]
        pairs = designs.informative(towards, V[np.ix_(codes, codes)], strengths, keys)
        return designs.shuffle_sides(pairs, keys)


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


def _check_choice(what: str, given: str, allowed: tuple[str, ...]) -> None:
    if given not in allowed:
        raise ValueError(f'{what} is "{given}": it must be one of {", ".join(allowed)}')
