"""The interface of a learner: everything that a study, a page or a simulation asks of one.

A learner never asks anybody anything, so a click in a browser and a simulated answer are handled
by the same code. Everything random in epoch h of episode k is a function of (seed, k, h). So any
epoch can be rebuilt, and the state of a learner is its counts and its last plan.
"""

from collections.abc import Callable, Sequence
from types import EllipsisType
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dopl_core.learning.bandit import (
    UNKNOWN,
    Arrays,
    FloatArray,
    IntArray,
    Pays,
    check_budget,
    check_choice,
    check_duels,
    check_epoch,
    check_places,
    check_states,
    in_states,
    state_chances,
)
from dopl_core.learning.beliefs import Beliefs
from dopl_core.learning.columns import Columns
from dopl_core.learning.counts import COUNTED, Counts, add_moves
from dopl_core.learning.effects import KINDS, HelpKind
from dopl_core.learning.pairs import pair_designs
from dopl_core.learning.pairs.pair_designs import DESIGNS
from dopl_core.learning.places.lots import exchange
from dopl_core.learning.places.sharing import Ledger, Sharing, ledger, pick
from dopl_core.learning.planning import Plan
from dopl_core.learning.planning.ranking import rank
from dopl_core.learning.state_arrays import pack, unpack
from dopl_core.learning.streams import Stream, generator

Ties = Literal["advantage", "paper"]

Moves = tuple[IntArray, IntArray, IntArray]  # states, 1 if helped, next states
_COUNTS = ("visits", "recent", *COUNTED)  # the part of a state that was counted


class Learner(Beliefs):
    """The flow of Algorithm 1 and the counts that it gathers. A learner implements `make_plan`.

    The flow: `first_round` before the first plan; `replan` begins an episode; then in each epoch
    `activate`, `draw_lots` and `duels`. `standing` and `informative_duels` change nothing.
    It is told things by `count_duels`, `count_moves`, `revise_moves`, `forget_moves` and `adapt`.
    `state` and `restore` save and continue it. What it cannot do raises UnsupportedError.

    Parameters
    ----------
    n_arms, n_states, budget : int
        N, S, and B, how many arms are helped in an epoch.
    horizon, seed : int
        H, the epochs of an episode; the seed of everything random in it.
    design : {"star", "tree", "informative"}
        Which pairs of the helped arms are asked about.
    ties : {"advantage", "paper"}
        What breaks ties between arm-states of a plan.

    Attributes
    ----------
    episode : int
        The present one, 0 before any plan.
    visits : ndarray of int, shape (N, S, 2, S)
        Moves seen, by state, action (0 waits, 1 acts) and next state.
    counts : Counts
        Of duels between the M = N * S arm-states; ``counts.wins()`` has shape (M, M).
    present : ndarray of bool, shape (N,)
        The arms that plans, lists and duels are about; estimates cover all arms ever known.
    priority : ndarray, shape (N, S)
        Rank of each arm-state in the present plan; equal ranks are tied.
    tie_keys : ndarray, shape (H, N)
        Random keys that break ties in each epoch of this episode.
    explores : ndarray of bool, shape (H,)
        Epochs of this episode that help B random arms; None if there are none.
    pays : {"all", "active"}
        Who earns the reward of a state.
    answers, by_lot, find_out : int
        Answers wanted in an epoch, if more than B-1; places of the B that are drawn by lot, and
        that may go to arms to find out what help does, less those by lot (None: by default).
    ledger, caps : Ledger, ndarray of shape (N,)
        Places shared out among groups; largest share of epochs with help.
    groups, columns, help_kind : tuple of str of length N, Columns, str
        The kind of each arm in the owner's words, what else is known of it; the kind of help.
    counts_episodes, weigh_annotators : bool
        Whether an own `count_moves` takes many epochs at once; whether annotators have weights.
    judged : ndarray of bool, shape (K, N)
        The arms that each of K limited annotators judges; None if any pair may be asked about.
    tell : callable
        Called with the name of each step while a plan is made.

    Examples
    --------
    A learner that helps the arms that lost most of their duels:

    >>> from dopl_core.experiments.baselines import index_plan
    >>> class LosersFirst(Learner):
    ...     def make_plan(self):
    ...         wins = self.counts.wins()  # [M, M]
    ...         score = (wins - wins.T).sum(axis=1)
    ...         return index_plan(-score.reshape(self.n_arms, self.n_states))
    >>> learner = LosersFirst(4, 1, budget=2, horizon=3)
    >>> learner.count_duels([[0, 0, 1, 0], [2, 0, 3, 0]], [1, 1])
    >>> learner.replan()
    >>> learner.activate(states=np.zeros(4, dtype=int), epoch=0)
    array([1, 3])
    """

    pays: Pays = "all"
    explores: NDArray[np.bool_] | None = None
    counts_episodes = weigh_annotators = False
    answers = by_lot = 0
    find_out: int | None = None
    help_kind: HelpKind = "other"
    ledger: Ledger | None = None
    caps: FloatArray | None = None
    groups: tuple[str, ...] | None = None
    columns: Columns | None = None
    judged: NDArray[np.bool_] | None = None
    tell: Callable[[str], None] = staticmethod(lambda step: None)

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
    ) -> None:
        check_budget(budget, n_arms)
        if horizon < 1:
            raise ValueError(f"horizon is {horizon}: an episode has at least 1 epoch")
        check_choice("design", design, DESIGNS)
        check_choice("ties", ties, get_args(Ties))
        self.n_arms, self.n_states, self.budget = n_arms, n_states, budget
        self.horizon, self.seed, self.design, self.ties = horizon, seed, design, ties
        self.episode = 0
        self.visits = np.zeros((n_arms, n_states, 2, n_states), dtype=np.int64)
        self.counts = Counts(n_arms * n_states)
        self.present = np.ones(n_arms, dtype=bool)
        self._arms = np.arange(n_arms)

    # --- what a learner is told

    def adapt(
        self,
        present: NDArray[np.bool_],
        budget: int,
        *,
        answers: int | None = None,
        by_lot: int | None = None,
        find_out: int | EllipsisType | None = ...,
        help_kind: HelpKind | None = None,
        weigh_annotators: bool | None = None,
        groups: tuple[str, ...] | None = None,
        columns: Columns | None = None,
        sharing: Sharing | None = None,
        caps: FloatArray | None = None,
        lists: Sequence[IntArray] = (),
    ) -> None:
        """Change what holds from the next plan on; a setting that is None stays as it is.

        present: [N'] which arms are there; new arms come last, and every arm keeps its number
        sharing, caps: None for no floors, no limits;  lists: of the episode that ends
        groups, columns: [N'] a learner may ignore them;  find_out: ... stays, None is the default
        """
        find_out = self.find_out if find_out is ... else find_out
        check_places(present, self.n_arms, budget, by_lot, find_out)
        check_choice("help_kind", help_kind or self.help_kind, KINDS)
        self._check_support(present, budget, (answers or 0) >= budget, weigh_annotators)
        groups = groups or self.groups
        if groups is not None and len(groups) != len(present):
            raise ValueError(f"groups: {len(groups)} given, one for each of {len(present)} arms")
        self._grow(len(present))
        self.ledger = ledger(sharing, self.ledger and self.ledger.after(lists, self.budget))
        self.present, self.budget = present.copy(), budget
        self.caps, self.find_out = caps, find_out
        given: dict[str, Any] = {"answers": answers, "by_lot": by_lot, "help_kind": help_kind}
        given |= {"groups": groups, "columns": columns, "weigh_annotators": weigh_annotators}
        vars(self).update({name: new for name, new in given.items() if new is not None})

    def _check_support(
        self, present: NDArray[np.bool_], budget: int, further: bool, weigh_annotators: bool | None
    ) -> None:
        """Refuse settings that this learner cannot follow; further: more than B-1 answers."""
        if further:
            self._cannot(f"ask for more than {budget - 1} answers in an epoch, the budget less 1")
        if weigh_annotators:
            self._cannot("weight answers by annotator")

    def _grow(self, n_arms: int) -> None:
        N, S, new = self.n_arms, self.n_states, n_arms - self.n_arms
        if new == 0:
            return
        self.visits = np.concatenate([self.visits, np.zeros((new, S, 2, S), dtype=np.int64)])
        self.counts.grow(n_arms * S)
        self.n_arms, self._arms = N + new, np.arange(N + new)

    # --- the flow

    def make_plan(self) -> Plan:
        """The plan for the next episode, from the counts so far."""
        raise NotImplementedError

    def replan(self) -> None:
        """Begin the next episode: plan, and draw its random numbers."""
        self.ledger = self.ledger and self.ledger.planned(self.budget, self.present, self.caps)
        self._begin(self.make_plan(), self.episode + 1)

    def without_new_answers(self) -> "Learner | None":
        """With the plan that it would have made without the newest answers; None if not known."""

    def _begin(self, plan: Plan, episode: int) -> None:
        self.plan, self.episode = plan, episode
        self.priority = rank(*self._merits(plan))
        self.tie_keys = self._draw(Stream.TIES, self.n_arms)
        keys = self._duel_keys = self._draw(Stream.DUELS, pair_designs.keys_needed(self.budget))
        self._pairs = pair_designs.shuffle_sides(DESIGNS[self.design].draw(keys), keys)

    def _draw(self, stream: Stream, width: int) -> FloatArray:
        """Uniform numbers [H, width] for the epochs of this episode."""
        return generator(stream, self.seed, self.episode).random((self.horizon, width))

    def _merits(self, plan: Plan) -> tuple[FloatArray, ...]:
        """What arm-states are ranked by [N, S], then what breaks ties; the rest is by lot.

        Where acting and waiting are worth the same, a vertex of the ELP acts in some states and
        waits in others just like them. So the advantage alone decides, unless ties="paper".
        """
        return (plan.index if self.ties == "paper" else plan.advantage,)

    def activate(
        self,
        states: IntArray,
        epoch: int,
        where: FloatArray | None = None,
        eligible: NDArray[np.bool_] | None = None,
        lists: Sequence[IntArray] = (),
    ) -> IntArray:
        """The arms to help in an epoch of this episode, in order; ties are broken at random.

        B of them, before places are drawn by lot (`draw_lots`); all, if fewer are eligible.
        states: [N] of all arms;  epoch: from 0;  where: [N, S] probability of each state; needed
        if some states are UNKNOWN;  eligible: [N], None for all;  lists: of this episode so far
        """
        self.planned()
        check_epoch(epoch, self.episode, self.horizon)
        if where is None and self.present.all():
            states = check_states(states, self.n_arms, self.n_states)
            priority = self.priority[self._arms, states]
        else:
            priority = self.standing(states, where)
        score = priority + self.tie_keys[epoch]
        if self.explores is not None and self.explores[epoch]:
            score = self.tie_keys[epoch]
        if eligible is not None or self.ledger is not None:
            return pick(score, self._may(eligible), self.ledger, lists, self.budget)
        others = self.n_arms - self.budget
        return np.sort(score.argpartition(others)[others:])

    def _may(self, eligible: NDArray[np.bool_] | None) -> IntArray:
        """The arms that are present and eligible."""
        return np.flatnonzero(self.present if eligible is None else self.present & eligible)

    def draw_lots(
        self, listed: IntArray, epoch: int, eligible: NDArray[np.bool_] | None = None
    ) -> tuple[IntArray, IntArray]:
        """Who of `listed` waits by lot, and which eligible others get their places (lots.py).

        Where places are shared out among groups, each place by lot stays in its group.
        """
        rng = generator(Stream.LOTS, self.seed, self.episode, epoch)
        others = np.setdiff1d(self._may(eligible), listed)
        codes = None if self.ledger is None else self.ledger.sharing.codes
        return exchange(listed, others, self.by_lot, rng, codes)

    def finds_out(
        self, states: IntArray, listed: IntArray, where: FloatArray | None = None
    ) -> IntArray:
        """Which of the listed arms are there to find out what help does in their state.

        listed: as `activate` gave them;  states, where: as for it
        """
        return np.empty(0, dtype=np.int64)

    def standing(self, states: IntArray, where: FloatArray | None = None) -> FloatArray:
        """The expected urgency of help [N], before ties are broken; absent arms come last."""
        states = check_states(states, self.n_arms, self.n_states, unknown=True)
        where = state_chances(states, self.n_states, where, self.present)
        merits = [(where * merit).sum(axis=1) for merit in self._merits(self.planned())]
        return np.where(self.present, rank(*merits), -np.inf)

    def duels(self, states: IntArray, arms: IntArray, epoch: int) -> IntArray:
        """What to ask about `arms`: [D, 4] left arm, left state, right arm, right state.

        The pairs connect all arms whose state is known: B-1 pairs if all are.
        """
        known = arms[states[arms] != UNKNOWN]
        if len(known) < 2:
            return np.empty((0, 4), dtype=np.int64)
        return in_states(known[self._positions(states, known, epoch)], states)

    def drawn_duels(self, states: IntArray, arms: IntArray) -> IntArray:
        """The duels [H, B-1, 4] of all epochs, where pairs are drawn when an episode begins.

        states, arms: [H, N] and [H, B] of each epoch
        """
        epochs = np.arange(len(arms))[:, None, None]
        pairs = arms[epochs, self._pairs]
        return np.stack([pairs, states[epochs, pairs]], axis=3).reshape(len(arms), -1, 4)

    def first_round(self, states: IntArray, count: int) -> IntArray:
        """What to ask before the first plan: [count, 4], random pairs of arms in their states."""
        rng = generator(Stream.SITTING, self.seed)
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

        credit: [D] 1 if the left side won, 0 if the right side won, 0.5 for a tie
        times, who: [D] or one for all: how often (-1 takes back), the number of the annotator
        """
        duels, credit = np.asarray(duels, dtype=np.int64).reshape(-1, 4), np.asarray(credit)
        check_duels(duels, credit, self.n_arms, self.n_states)
        left, right = (duels[:, ::2] * self.n_states + duels[:, 1::2]).T
        self.counts.add_answers(left, right, credit, times, who)

    def count_moves(
        self, states: IntArray, helped: IntArray, next_states: IntArray, times: int = 1
    ) -> None:
        """Count the moves of all arms in an epoch: states, 1 if helped, next states, all [N].

        Or of many epochs at once, all [E, N]. If a state is UNKNOWN, no move is counted.
        times: -1 takes back moves that were wrong
        """
        sizes = self.n_arms, self.n_states
        states = check_states(states, *sizes, unknown=True)
        next_states = check_states(next_states, *sizes, "next states", unknown=True)
        add_moves(self.visits, states, helped, next_states, times)

    def revise_moves(self, ago: int, wrong: Moves, right: Moves) -> None:
        """Replace the moves of one epoch, counted `ago` epochs before the last, by others."""
        self.count_moves(*wrong, -1)
        self.count_moves(*right)

    def forget_moves(self, arm: int) -> None:
        """Forget all moves of an arm; one that is not known yet has none."""
        self.visits[arm : arm + 1] = 0

    # --- saving and continuing

    def state(self) -> dict[str, NDArray[Any]]:
        """The whole learner as plain arrays: a restored learner continues to the bit."""
        counts = {"episode": np.array(self.episode), "visits": self.visits.copy()}
        settings = {"present": self.present.copy(), "budget": np.array(self.budget)}
        settings |= {} if self.ledger is None else self.ledger.state()
        return counts | self.counts.state() | settings | pack("plan", self.plan)

    def plan_state(self) -> Arrays:
        """What the learner holds beside its counts: its last plan and the beliefs behind it."""
        return {name: array for name, array in self.state().items() if name not in _COUNTS}

    def forget_plan(self) -> None:
        """Make the next plan as if there had been none before: nothing starts from its numbers."""
        self.plan = None
        self.ledger = self.ledger and ledger(self.ledger.sharing)

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Become the learner that returned `state`."""
        self.visits = state["visits"].copy()
        self.n_arms = len(self.visits)
        self.counts = Counts(self.n_arms * self.n_states)
        self.counts.restore(state)
        self._arms = np.arange(self.n_arms)
        self.present, self.budget = state["present"].astype(bool), int(state["budget"])
        self.ledger = self.ledger and self.ledger.restored(state)
        if (plan := unpack(Plan, "plan", state)) is not None:
            self._begin(plan, int(state["episode"]))
