"""Direct Online Preference Learning: with the paper's confidence or a calibrated one."""

import copy
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dopl_core.learning import annotators, decisions, preferences
from dopl_core.learning import columns as columns_of
from dopl_core.learning.bandit import (
    UNKNOWN,
    FloatArray,
    IntArray,
    Pays,
    check_choice,
    check_places,
    in_states,
    state_chances,
)
from dopl_core.learning.columns import Columns
from dopl_core.learning.counts import Counts
from dopl_core.learning.effects import KINDS, HelpKind
from dopl_core.learning.estimates import Estimates, Rows
from dopl_core.learning.learner import Learner, Moves
from dopl_core.learning.moves import dynamics, model, weeks
from dopl_core.learning.moves.dynamics import Dynamics
from dopl_core.learning.moves.model import Model, Size
from dopl_core.learning.pairs import informative_pairs, pair_designs
from dopl_core.learning.pairs.pair_designs import DESIGNS
from dopl_core.learning.places import finding_out
from dopl_core.learning.planning import Engine, Plan, among_all, even_floors, plan
from dopl_core.learning.preferences import Preferences
from dopl_core.learning.state_arrays import pack, unpack
from dopl_core.learning.streams import Stream, generator

Confidence = Literal["calibrated", "paper"]
Reference = Literal["fixed", "most-compared"]
_NONE = np.empty((0, 4), dtype=np.int64)  # no duels


class Dopl(Learner):
    """Direct Online Preference Learning (Algorithm 2).

    Parameters
    ----------
    n_arms, n_states, budget, **flow
        As for `Learner`.
    confidence : {"calibrated", "paper"}
        Posteriors that hold at human scale, or the paper's Hoeffding widths.
    engine, pays, epsilon
        As for `plan`; the paper's confidence parameter.
    reference : {"fixed", "most-compared"}
        The arm-state that strengths are measured against: kept, or chosen anew (errata 13).
    groups, columns : tuple of str of length N, Columns
        Kinds of arms in the owner's words, and what else is known of them.
    answers : int
        Wanted in an epoch; those beyond B-1 are about the most informative pairs of any arms.
    ordered : bool
        Whether states are given from worst to best.
    help_kind : {"message", "call", "visit", "treatment", "money", "other"}
        Trials of this kind of help are what is believed of it at first (effects.py).
    find_out : int or None
        Most places of a list to find out what help does, less those by lot; None for the default.

    Examples
    --------
    >>> learner = Dopl(n_arms=6, n_states=3, budget=2, horizon=5)
    >>> learner.replan()
    >>> learner.activate(states=np.array([0, 1, 2, 0, 1, 2]), epoch=0).shape
    (2,)
    """

    weigh_annotators = True
    counts_episodes = True

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
        columns: Columns | None = None,
        help_kind: HelpKind = "other",
        find_out: int | None = None,
        **flow: Any,
    ) -> None:
        super().__init__(n_arms, n_states, budget, **flow)
        check_choice("confidence", confidence, get_args(Confidence))
        check_choice("reference", reference, get_args(Reference))
        check_choice("help_kind", help_kind, KINDS)
        check_places(self.present, n_arms, budget, None, find_out)
        if not 0 < epsilon < 1:
            raise ValueError(f"epsilon is {epsilon}: it must be between 0 and 1")
        self.confidence, self.engine, self.pays, self.epsilon = confidence, engine, pays, epsilon
        self.reference, self.groups = reference, groups
        self.answers, self.ordered, self.columns = answers, ordered, columns
        self.help_kind, self.find_out = help_kind, find_out
        self.recent = weeks.nothing_yet(n_arms)

    _before: Preferences | None = None  # the strengths of the plan before

    @property
    def has_posterior(self) -> bool:
        return self.confidence == "calibrated" and self.preferences is not None

    def _check_support(self, present: NDArray[np.bool_], budget: int, *_: bool | None) -> None:
        """It can follow all settings."""

    def make_plan(self) -> Plan:
        """Boxes (sec. 4.1), overestimates (Alg. 3), then the ELP (appendix C.1)."""
        self.tell("moves")
        self.dynamics = self._estimate_dynamics()
        self.tell("strengths")
        self._before = self.preferences
        self.preferences = self._estimate_preferences()
        self.tell("plan")
        return self._solve(self.dynamics)

    def without_new_answers(self) -> "Dopl | None":
        """This learner with the plan that it would have made without the newest answers.

        The moves are the same; the strengths are those of the last plan, or of no answers at all.
        """
        other = copy.copy(self)
        other.preferences = self._before
        if self._before is None:
            other.counts = Counts(self.counts.size)
            other.preferences = other._estimate_preferences()
        elif self._before.mean.shape != (self.n_arms, self.n_states):
            return None  # people have joined since
        other._begin(other._solve(self.known_dynamics()), self.episode)
        return other

    def _solve(self, moves: Dynamics) -> Plan:
        """The ELP with the present strengths."""
        rewards, low, high = self.rewards(), moves.low, moves.high
        settings: dict[str, Any] = {"engine": self.engine, "pays": self.pays}
        settings |= self._limits(rewards, low, high)
        start = self._start()
        if self.present.all():
            return plan(rewards, low, high, self.budget, start=start, **settings)
        here = np.flatnonzero(self.present)
        if start is not None:
            biases = start[1:].reshape(self.n_arms, -1)[here]
            start = np.concatenate([start[:1], biases.ravel()])
        made = plan(rewards[here], low[here], high[here], self.budget, start=start, **settings)
        return among_all(made, here, self.n_arms)

    def _limits(self, rewards: FloatArray, low: FloatArray, high: FloatArray) -> dict[str, Any]:
        """The floors and caps of the present arms; to even out, the floors are found here."""
        here, shares = self.present, self.ledger
        found: dict[str, Any] = {} if self.caps is None else {"caps": self.caps[here]}
        if shares is None or shares.floors is None:
            return found
        codes, floors = shares.sharing.codes[here], shares.floors
        if shares.sharing.shares is None:
            problem = (rewards[here], low[here], high[here], self.budget)
            floors = even_floors(*problem, codes, pays=self.pays, **found)
            floors = np.pad(floors, (0, len(shares.floors) - len(floors)))
            self.ledger = replace(shares, floors=floors)
        return found | {"groups": codes, "floors": floors}

    def _start(self) -> FloatArray | None:
        """The warm start from the last plan, with zeros for arms that are new since."""
        if self.plan is None:
            return None
        new = 1 + self.n_arms * self.n_states - len(self.plan.start)
        return np.pad(self.plan.start, (0, new)) if new else self.plan.start

    def state(self) -> dict[str, NDArray[Any]]:
        beliefs = pack("preferences", self.preferences) | pack("dynamics", self.dynamics)
        recent = {"recent": self.recent.copy()} if self.ordered else {}
        return super().state() | beliefs | recent

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        self.preferences = unpack(Preferences, "preferences", state)
        self.dynamics = unpack(Dynamics, "dynamics", state)
        super().restore(state)
        self.recent = state.get("recent", weeks.nothing_yet(self.n_arms)).copy()

    def forget_plan(self) -> None:
        super().forget_plan()
        self.preferences = self.dynamics = None

    def _merits(self, plan: Plan) -> tuple[FloatArray, ...]:
        """If states are ordered, somebody better off needs a credible gain, and ties go to the
        worse off. So while nothing is known of what help does, it goes to the worst off.
        """
        (merit,) = super()._merits(plan)
        if not self.ordered or self.preferences is None:
            return (merit,)
        if (effect := self._effect(plan)) is not None:
            merit = merit - decisions.margin(effect)
        return merit, -self.preferences.mean

    def _effect(self, plan: Plan) -> decisions.Effect | None:
        """What help is worth in each state; None where the decision does not depend on it."""
        if self.dynamics is None or self.ties != "advantage":
            return None
        return decisions.effect_of_help(plan, self.dynamics)

    def activate(
        self,
        states: IntArray,
        epoch: int,
        where: FloatArray | None = None,
        eligible: NDArray[np.bool_] | None = None,
        lists: Sequence[IntArray] = (),
    ) -> IntArray:
        """The arms to help in an epoch of this episode, in order; ties are broken at random.

        If states are ordered, arms in the best state have few places until their gain is credible,
        and a few places find out what help does where that is not known (finding_out.py).
        """
        listed = super().activate(states, epoch, where, eligible, lists)
        plan, may = self.planned(), self._may(eligible)
        effect = self._effect(plan) if self.ordered else None
        if effect is None or len(may) <= len(listed):
            return listed
        chances = state_chances(states, self.n_states, where, self.present)
        score = self.standing(states, where) + self.tie_keys[epoch]
        return finding_out.choose(
            listed,
            may[np.argsort(-score[may], kind="stable")],
            finding_out.Hope(
                state=np.where(states == UNKNOWN, UNKNOWN, states),
                gain=(chances * plan.advantage).sum(axis=1),
                error=effect.error,
            ),
            best_credible=effect.is_credible_in_best,
            places=self.places_to_find_out,
            codes=None if self.ledger is None else self.ledger.sharing.codes,
        )

    @property
    def places_to_find_out(self) -> int:
        """How many places of a list may find out what help does; places by lot find out too."""
        usual = finding_out.usual(self.budget, self.episode)
        most = usual if self.find_out is None else self.find_out
        return max(0, most - self.by_lot) if self.ordered else 0

    def finds_out(
        self, states: IntArray, listed: IntArray, where: FloatArray | None = None
    ) -> IntArray:
        """Which of the listed arms others would precede, if it were not to find out."""
        plan = self.planned()
        if not self.ordered or self._effect(plan) is None:
            return np.empty(0, dtype=np.int64)
        urgency = self.standing(states, where)
        off = np.setdiff1d(np.flatnonzero(self.present), listed)
        first = urgency[off].max(initial=-np.inf)
        behind = listed[urgency[listed] < first]
        order = np.argsort(urgency[behind], kind="stable")
        return np.sort(behind[order[: self.places_to_find_out]])

    def rewards(self) -> FloatArray:
        """The rewards [N, S, A] of the plan: Q~ for acting, and Q^ for waiting.

        If only activated arms are asked about, waiting in an unknown state teaches nothing, so only
        acting earns the bonus for what is not yet known. If any arm may be asked about, acting and
        waiting teach the same, so neither earns it; nor where states are ordered, so that the order
        decides and not what is unknown. The paper's widths give it to both.
        """
        belief = self._believed()
        acting, waiting = belief.overestimate, belief.mean
        if self.confidence == "paper":
            waiting = acting
        elif self.ordered or self.answers >= self.budget:
            acting = waiting
        return np.stack([waiting, acting], axis=2)

    def _estimate_dynamics(self) -> Dynamics:
        if self.confidence == "paper":
            return dynamics.paper(self.visits, self.episode * self.horizon, self.epsilon)
        known, rng = self._known(), generator(Stream.CLASSES, self.seed, self.episode)
        return model.estimate(self.visits, known, self.recent, rng, **self._beliefs_of_moves())

    def _beliefs_of_moves(self) -> dict[str, Any]:
        """What the model of moves is told beside the moves."""
        return {"ordered": self.ordered, "kind": self.help_kind}

    def count_moves(
        self, states: IntArray, helped: IntArray, next_states: IntArray, times: int = 1
    ) -> None:
        super().count_moves(states, helped, next_states, times)
        if self.ordered and times > 0:
            self.recent = weeks.remembered(self.recent, states, helped, next_states)

    def revise_moves(self, ago: int, wrong: Moves, right: Moves) -> None:
        kept = self.recent
        super().revise_moves(ago, wrong, right)
        self.recent = weeks.revised(kept, ago, *right)

    def forget_moves(self, arm: int) -> None:
        super().forget_moves(arm)
        self.recent[:, 0, arm : arm + 1] = UNKNOWN

    def _known(self) -> Columns | None:
        """The columns of all arms; groups are one of them."""
        return columns_of.together(self.columns, self.groups, self.n_arms)

    def which_columns(self) -> dict[str, float]:
        """The posterior probability that each column tells how arms move."""
        known = self._known()
        if known is None or self.confidence == "paper":
            return {}
        return dict.fromkeys(known.names, 0.0) | model.which_columns(self._model_of_moves())

    def column_sizes(self) -> list[Size]:
        """How much likelier arms with each label of the columns are better off than others."""
        if self._known() is None or self.confidence == "paper":
            return []
        return model.column_sizes(self._model_of_moves(), self.visits)

    def season_size(self) -> tuple[float, float] | None:
        """How much likelier arms are better off next week than in all weeks: mean, error."""
        if not self.ordered or self.confidence == "paper":
            return None
        return model.season_size(self._model_of_moves(), self.visits, self.recent)

    def _model_of_moves(self) -> Model:
        rng = generator(Stream.CLASSES, self.seed, self.episode)
        return model.learn(self.visits, self._known(), rng, **self._beliefs_of_moves())

    def _estimate_preferences(self) -> Preferences:
        # Errata 13: the reference is chosen by the first plan that has answers, then it stays.
        before = None if self.preferences is None else self.preferences.reference
        keep = self.reference == "fixed" and before is not None
        reference = before if keep else preferences.most_compared(self.counts)
        if self.confidence == "paper":
            epochs = self.episode * self.horizon
            wins = self.counts.wins()
            return preferences.paper(wins, self.n_states, reference, epochs, self.epsilon)
        belief = self._strengths(reference)
        further = self.answers >= self.budget or self.judged is not None
        needed = further or DESIGNS[self.design].choose is not None
        return belief if needed else replace(belief, covariance=None, common=None)

    def _believed(self) -> Preferences:
        if self.preferences is None:
            raise ValueError("there are no beliefs yet: call replan() to begin the first episode")
        return self.preferences

    def belief(self) -> Preferences:
        """The strengths that the present plan was made with, with their covariance."""
        known = self._believed()
        if not self.has_posterior:
            self._cannot('give a posterior of strengths with confidence="paper"')
        return known if known.covariance is not None else self._strengths(known.reference)

    def draw_moves(self, count: int, rng: np.random.Generator, idle: float = 0.0) -> FloatArray:
        """Transitions [count, N, S, A, S'] drawn from the posterior."""
        told = self._beliefs_of_moves()
        return model.draw(self.visits, self._known(), count, rng, idle, **told)

    def draw_strengths(self, count: int, rng: np.random.Generator) -> FloatArray:
        """Strengths [count, N, S] drawn from the posterior; independently if there are many."""
        few = self.counts.size <= preferences.MOST_EXACT
        return preferences.draw(self.belief() if few else self._believed(), count, rng)

    def _strengths(self, reference: int | None) -> Preferences:
        warm = None if self.preferences is None else dict(self.preferences.warm)
        if warm:
            theta = warm["theta"]
            warm["theta"] = np.pad(theta, (0, self.counts.size - len(theta)))

        def fit(sureness: FloatArray | None) -> Preferences:
            rng = generator(Stream.STRENGTHS, self.seed, self.episode)
            settings: dict[str, Any] = {"ordered": self.ordered, "sureness": sureness, "rng": rng}
            return preferences.calibrated(self.counts, self.n_states, reference, warm, **settings)

        return annotators.weighed(self.counts, fit)[0] if self.weigh_annotators else fit(None)

    def sureness(self) -> FloatArray:
        """How sure each annotator is [W], given the present strengths; 1 is usual."""
        if self.preferences is None or not self.has_posterior:
            return np.empty(0)
        return annotators.of_people(self.counts, self.preferences)

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

    def first_round(self, states: IntArray, count: int) -> IntArray:
        """The most informative duels [count, 4] before the first plan."""
        rng = generator(Stream.SITTING, self.seed)
        belief = self._strengths(None)
        matters = self.present[:, None, None] * np.eye(self.n_states)
        choose = partial(self._most_informative, belief, matters, states, rng)
        return informative_pairs.for_each(choose, self.judged, _NONE, count)

    def duels(self, states: IntArray, arms: IntArray, epoch: int) -> IntArray:
        """What to ask about `arms`, then, if more answers are wanted, about any arms: [D, 4]."""
        tree = super().duels(states, arms, epoch)
        wanted = max(len(tree), self.answers if self.answers >= self.budget else 0)
        tree = informative_pairs.judgeable(tree, self.judged)
        if wanted == len(tree) or self.preferences is None:
            return tree
        rng = generator(Stream.FURTHER, self.seed, self.episode, epoch)
        matters = self._importance(self.preferences)
        choose = partial(self._most_informative, self.preferences, matters, states, rng)
        more = informative_pairs.for_each(choose, self.judged, tree, wanted - len(tree))
        return np.concatenate([tree, more])

    def informative_duels(self, states: IntArray, count: int, rng: np.random.Generator) -> IntArray:
        """The duels [count, 4] whose answers would tell the plan most now."""
        belief = self.belief()
        return self._most_informative(belief, self._importance(belief), states, rng, _NONE, count)

    def _importance(self, belief: Preferences) -> FloatArray:
        """How much the decisions of the present plan depend on strengths: [N, S, S]."""
        return decisions.importance(self.planned(), self.known_dynamics(), belief, self.pays)

    def _most_informative(
        self,
        belief: Preferences,
        matters: FloatArray,
        states: IntArray,
        rng: np.random.Generator,
        asked: IntArray,
        count: int,
        judged: NDArray[np.bool_] | None = None,
    ) -> IntArray:
        """The most informative duels [count, 4] of present arms whose states are known.

        matters: [N, S, S] how much strengths matter (decisions.py)
        asked: [D, 4] duels that are asked in any case
        judged: [N] the arms of a limited annotator, who is asked about no pair of them twice
        """
        here = self.present & (states != UNKNOWN)
        if judged is not None:
            here &= judged
            asked, count = informative_pairs.within(here, asked, count)
        arms = np.flatnonzero(here)
        if len(arms) < 2 or (belief.covariance is None and belief.common is None):
            return _NONE
        codes = arms * self.n_states + states[arms]
        before = np.searchsorted(arms, asked[:, ::2])
        keys, once = rng.random(len(arms) + count), judged is not None
        pairs = informative_pairs.most_informative(belief, matters, codes, before, keys, once=once)
        return in_states(arms[pairs], states)

    def _positions(self, states: IntArray, arms: IntArray, epoch: int) -> IntArray:
        belief, planned, choose = self.preferences, self.plan, DESIGNS[self.design].choose
        if belief is None or planned is None or choose is None:
            return super()._positions(states, arms, epoch)
        if belief.covariance is None and belief.common is None:
            return super()._positions(states, arms, epoch)
        matters, keys = self._importance(belief), self._duel_keys[epoch]
        keys = keys[: pair_designs.keys_needed(len(arms))]
        codes = arms * self.n_states + states[arms]
        pairs = informative_pairs.informative_tree(belief, matters, codes, choose, keys)
        return pair_designs.shuffle_sides(pairs, keys)
