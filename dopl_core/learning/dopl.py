"""Direct Online Preference Learning: the paper's learner, and its calibrated sister."""

from dataclasses import replace
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dopl_core.learning import (
    annotators,
    dynamics,
    first_edition,
    many_pairs,
    pair_designs,
    preferences,
)
from dopl_core.learning.bandit import UNKNOWN, FloatArray, IntArray, Pays, check_choice
from dopl_core.learning.dynamics import Dynamics
from dopl_core.learning.learner import Estimates, Learner, Rows, in_states, pack, unpack
from dopl_core.learning.pair_designs import DESIGNS
from dopl_core.learning.planning import Engine, Plan, plan
from dopl_core.learning.preferences import Preferences
from dopl_core.learning.streams import Stream, generator

Confidence = Literal["calibrated", "paper"]
Reference = Literal["fixed", "most-compared"]


class Dopl(Learner):
    """Direct Online Preference Learning (Algorithm 2).

    groups: [N] kinds of arms that an owner names;  ordered: states are given from worst to best
    answers: wanted in an epoch, at least B-1; the further ones are about the most telling pairs
    """

    def __init__(
        self,
        n_arms: int,
        n_states: int,
        budget: int,
        *,
        confidence: Confidence = "calibrated",
        engine: Engine = "lagrangian",
        pays: Pays = "all",
        epsilon: float = 1e-5,
        reference: Reference = "fixed",
        groups: tuple[str, ...] | None = None,
        answers: int = 0,
        ordered: bool = False,
        **flow: Any,
    ) -> None:
        super().__init__(n_arms, n_states, budget, **flow)
        check_choice("confidence", confidence, get_args(Confidence))
        check_choice("reference", reference, get_args(Reference))
        if not 0 < epsilon < 1:
            raise ValueError(f"epsilon is {epsilon}: it must be between 0 and 1")
        self.confidence, self.engine, self.pays, self.epsilon = confidence, engine, pays, epsilon
        self.reference, self.groups = reference, groups
        self.weigh_people = True  # by how sure they are, where several have answered
        self.answers, self.ordered = answers, ordered
        self.preferences: Preferences | None = None
        self.dynamics: Dynamics | None = None

    def make_plan(self) -> Plan:
        """Boxes (sec. 4.1), overestimates (Alg. 3), then the ELP (appendix C.1)."""
        self.tell("moves")
        self.dynamics = self._estimate_dynamics()
        self.tell("strengths")
        self.preferences = self._estimate_preferences()
        self.tell("plan")
        rewards, low, high = self.rewards(self.preferences), self.dynamics.low, self.dynamics.high
        settings: dict[str, Any] = {"engine": self.engine, "pays": self.pays}
        start = self._start()
        if self.present.all():
            return plan(rewards, low, high, self.budget, start=start, **settings)
        here = np.flatnonzero(self.present)
        if start is not None:
            biases = start[1:].reshape(self.n_arms, -1)[here]
            start = np.concatenate([start[:1], biases.ravel()])
        made = plan(rewards[here], low[here], high[here], self.budget, start=start, **settings)
        return _spread(made, here, self.n_arms)

    def _start(self) -> FloatArray | None:
        """What the last plan ended with, zeros for arms that are new since."""
        if self.plan is None:
            return None
        new = 1 + self.n_arms * self.n_states - len(self.plan.start)
        return np.pad(self.plan.start, (0, new))

    def state(self) -> dict[str, NDArray[Any]]:
        beliefs = pack("preferences", self.preferences) | pack("dynamics", self.dynamics)
        return super().state() | beliefs

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        self.preferences = unpack(Preferences, "preferences", state)
        self.dynamics = unpack(Dynamics, "dynamics", state)
        super().restore(state)

    def _merits(self, plan: Plan) -> tuple[FloatArray, ...]:
        """Where the owner says which states are worse, these come first among equals.

        So before anything is known of what help does, it goes to the badly off.
        """
        merits = super()._merits(plan)
        if not self.ordered or self.preferences is None:
            return merits
        return (*merits, -self.preferences.mean)

    def rewards(self, belief: Preferences) -> FloatArray:
        """What the plan is made with [N, S, A]: Q~, and for waiting what is known.

        Where only activated arms are asked about and widths are honest, only acting is credited
        with what is not yet known: waiting in an unknown state would teach nothing. Where any arm
        may be asked about, both teach the same, and neither is.
        """
        acting, waiting = belief.overestimate, belief.mean
        if self.confidence == "paper":
            waiting = acting
        elif self.edition == 1:
            waiting = np.clip(waiting, -1, 1)
        elif self.answers >= self.budget:
            acting = waiting
        return np.stack([waiting, acting], axis=2)

    def _estimate_dynamics(self) -> Dynamics:
        if self.confidence == "paper":
            return dynamics.paper(self.visits, self.episode * self.horizon, self.epsilon)
        rng = generator(Stream.CLASSES, self.seed, self.episode, edition=self.edition)
        return dynamics.calibrated(self.visits, self.groups, rng)

    def _estimate_preferences(self) -> Preferences:
        # Errata 13: chosen when the learner first plans with answers, then it stays.
        before = None if self.preferences is None else self.preferences.reference
        keep = self.reference == "fixed" and before is not None
        reference = before if keep else preferences.most_compared(self.counts)
        if self.confidence == "paper":
            epochs = self.episode * self.horizon
            wins = self.counts.wins()
            return preferences.paper(wins, self.n_states, reference, epochs, self.epsilon)
        belief = self._strengths(reference)
        needed = self.answers >= self.budget or DESIGNS[self.design].choose is not None
        return belief if needed else replace(belief, covariance=None, common=None)

    def belief(self) -> Preferences:
        """What the last plan was made with of the strengths, with their covariance."""
        if self.preferences is None or self.confidence == "paper":
            raise ValueError("strengths can be drawn from calibrated beliefs only, after a plan")
        known = self.preferences
        return known if known.covariance is not None else self._strengths(known.reference)

    def _strengths(self, reference: int | None) -> Preferences:
        warm = None if self.preferences is None else dict(self.preferences.warm)
        if warm:
            theta = warm["theta"]
            warm["theta"] = np.pad(theta, (0, self.counts.size - len(theta)))
        if self.edition == 1:
            return first_edition.calibrated(self.counts.wins(), self.n_states, reference, warm)

        def fit(sureness: FloatArray | None) -> Preferences:
            rng = generator(Stream.STRENGTHS, self.seed, self.episode, edition=self.edition)
            settings: dict[str, Any] = {"ordered": self.ordered, "sureness": sureness, "rng": rng}
            settings["careful"] = self.edition > 2
            return preferences.calibrated(self.counts, self.n_states, reference, warm, **settings)

        return annotators.weighed(self.counts, fit)[0] if self.weigh_people else fit(None)

    def sureness(self) -> FloatArray:
        """How sure each person is [W], by the strengths as they are believed now; 1 is usual."""
        if self.preferences is None or self.confidence == "paper" or self.edition == 1:
            return np.empty(0)
        return annotators.of_people(self.counts.table(), self.preferences)

    def estimates(self) -> Estimates:
        if self.preferences is None or self.dynamics is None:
            return Estimates()
        known, belief = self.dynamics.mean, self.preferences
        F: Rows = partial(preferences.win_chances, belief.mean)
        if belief.reference is None:
            return Estimates(known, F)
        if self.confidence == "paper":
            F = preferences.counted_chances(self.counts.wins(), belief).__getitem__
        return Estimates(known, F, belief.overestimate, belief.reference)

    # --- what to ask

    def sitting(self, states: IntArray, count: int) -> IntArray:
        """What to ask before the first plan, about any arms in their states: [count, 4]."""
        rng = generator(Stream.SITTING, self.seed, edition=self.edition)
        matters = np.repeat(self.present, self.n_states).astype(float)
        return self._most_telling(self._strengths(None), matters, states, None, count, rng)

    def duels(self, states: IntArray, arms: IntArray, epoch: int) -> IntArray:
        """What to ask about `arms`, then, if more answers are wanted, about any: [D, 4]."""
        tree = super().duels(states, arms, epoch)
        further = self.answers - len(tree)
        if self.answers < self.budget or further <= 0 or self.preferences is None:
            return tree
        rng = generator(Stream.FURTHER, self.seed, self.episode, epoch, edition=self.edition)
        # The plan depends on a strength as often as it visits the arm-state.
        matters = self._planned().occupancy.sum(axis=2).ravel()
        more = self._most_telling(self.preferences, matters, states, tree, further, rng)
        return np.concatenate([tree, more])

    def telling(self, states: IntArray, count: int, rng: np.random.Generator) -> IntArray:
        """What would be asked if so many more answers were to come: [count, 4]."""
        matters = self._planned().occupancy.sum(axis=2).ravel()
        return self._most_telling(self.belief(), matters, states, None, count, rng)

    def _most_telling(
        self,
        belief: Preferences,
        matters: FloatArray,
        states: IntArray,
        asked: IntArray | None,
        count: int,
        rng: np.random.Generator,
    ) -> IntArray:
        """Duels [count, 4] of present arms whose states are known.

        matters: [M] how much is made of each arm-state;  asked: [D, 4] what is asked anyway
        """
        arms = np.flatnonzero(self.present & (states != UNKNOWN))
        if len(arms) < 2 or (belief.covariance is None and belief.common is None):
            return np.empty((0, 4), dtype=np.int64)
        codes = arms * self.n_states + states[arms]
        before = np.empty((0, 2), dtype=np.int64)
        if asked is not None:
            before = np.searchsorted(arms, asked[:, ::2])
        keys = rng.random(len(arms) + count)
        if belief.common is not None:
            about = many_pairs.unknown(*_little_known(belief), matters, codes)
            pairs = many_pairs.most_telling(about, before, keys)
        else:
            pairs = pair_designs.most_telling(*_about(belief, matters, codes), before, keys)
        return in_states(arms[pairs], states)

    def _positions(self, states: IntArray, arms: IntArray, epoch: int) -> IntArray:
        belief, planned, choose = self.preferences, self.plan, DESIGNS[self.design].choose
        if belief is None or planned is None or choose is None:
            return super()._positions(states, arms, epoch)
        if belief.covariance is None and belief.common is None:
            return super()._positions(states, arms, epoch)
        matters, keys = planned.occupancy.sum(axis=2).ravel(), self._duel_keys[epoch]
        keys = keys[: pair_designs.keys_needed(len(arms))]
        codes = arms * self.n_states + states[arms]
        V = belief.covariance
        if belief.common is not None:
            about = many_pairs.unknown(*_little_known(belief), matters, codes)
            pairs = many_pairs.informative_tree(about, keys)
        elif self.edition == 1:
            assert V is not None  # noqa: S101
            towards = V[:, codes] * np.sqrt(matters[:, None])
            strengths = belief.mean.ravel()[codes]
            pairs = first_edition.informative(towards, V[np.ix_(codes, codes)], strengths, keys)
        else:
            pairs = choose(*_about(belief, matters, codes), keys)
        return pair_designs.shuffle_sides(pairs, keys)


def _about(
    belief: Preferences, matters: FloatArray, codes: IntArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """What designs need to know of the arm-states `codes`: see pair_designs.most_telling."""
    V = belief.covariance
    assert V is not None  # noqa: S101
    towards = V[:, codes] * np.sqrt(matters)[:, None]
    return towards.T @ towards, V[np.ix_(codes, codes)], belief.mean.ravel()[codes]


def _little_known(belief: Preferences) -> tuple[FloatArray, FloatArray, FloatArray]:
    """What many_pairs.unknown needs to know of all arm-states."""
    assert belief.common is not None  # noqa: S101
    sd = (belief.overestimate - belief.mean) / preferences.OPTIMISM
    return belief.common, sd.ravel() ** 2, belief.mean.ravel()


def _spread(made: Plan, here: IntArray, n_arms: int) -> Plan:
    """The plan of the arms `here` as one of all arms: those elsewhere are never visited."""

    def among_all(part: FloatArray) -> FloatArray:
        whole = np.zeros((n_arms, *part.shape[1:]))
        whole[here] = part
        return whole

    biases = among_all(made.start[1:].reshape(len(here), -1))
    return replace(
        made,
        occupancy=among_all(made.occupancy),
        index=among_all(made.index),
        advantage=among_all(made.advantage),
        start=np.concatenate([made.start[:1], biases.ravel()]),
    )
