"""The rows of everybody: how people move without help, and what help does, state by state.

Help is a kernel on what would have happened: with probability e it changes an outcome into a
better one. Where people in state s would move by the row w, those who are helped move by the row
w K, with K = (1 - e) I + e M. Neither M nor e is known, nor how far the row of the helped may lie
from w K, which it is drawn about: h ~ Dir(q w K). Every combination is an explanation, weighed by
its evidence. Beforehand, e is what trials of such help found. Help that does much in one state
often does so in others: the sizes in all states lie about one level, which is learnt too.

Axes: z levels, g explanations, s states, u outcomes without help, t outcomes.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from dopl_core.learning import effects
from dopl_core.learning.bandit import ACT, WAIT, FloatArray
from dopl_core.learning.effects import HelpKind
from dopl_core.learning.log_space import logsumexp, softmax

SIZES = np.array([0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7])  # of e
UNSEEN = np.array([0.3, 0.15, 0.15, 0.15, 0.12, 0.08, 0.05])  # of each size, before any trial
TRIALS_OF_UNSEEN = 4.0  # what UNSEEN counts for, in trials
BLUR = 0.1  # by how much help may differ from one place to the next, beside a trial's own error
ALIKE = 1.5  # standard deviation of sizes about the level, in steps of SIZES
SCALINGS = 200  # of the joint prior of sizes and levels
ABOUT = np.array([20.0, 100.0, 1000.0])  # q, in moves
STAYING = ((0.0, 0.3), (0.3, 0.3), (0.6, 0.25), (0.85, 0.15))  # shares who stay, and their chances
DECAYS = (0.0, 0.7)  # how much rarer a move is for each state further away, in logs
PRIOR_MOVES = (3.0, 10.0)  # what the prior of a row without help counts for
ROUNDS = 4  # of expectation and maximisation


class Everybody(NamedTuple):
    """What is known of the rows of everybody.

    rows: [s, a, t] their means;  chance: [g, s] of each explanation;  log_evidence: [s] of all
    waiting, helped: [g, s, t] rows by explanation; their weights [g, s] are in moves
    waiting_alone: [s, t] moves without help, and the prior of them
    """

    rows: FloatArray
    chance: FloatArray
    waiting: FloatArray
    helped: FloatArray
    waiting_weight: FloatArray
    helped_weight: FloatArray
    waiting_alone: FloatArray
    log_evidence: FloatArray

    def effect(self) -> tuple[FloatArray, FloatArray]:
        """What help changes in each row: mean [s, t] and covariance [s, t, t]."""
        change = self.helped - self.waiting
        mean = self.rows[:, ACT] - self.rows[:, WAIT]
        off = change - mean
        within = dirichlet_covariance(self.waiting, self.waiting_weight)
        within += dirichlet_covariance(self.helped, self.helped_weight)
        both = within + off[..., :, None] * off[..., None, :]
        return mean, np.einsum("gs,gstu->stu", self.chance, both)

    def variance(self) -> FloatArray:
        """The variance [s, a, t] of the rows."""
        parts = []
        for action, rows, weight in (
            (WAIT, self.waiting, self.waiting_weight),
            (ACT, self.helped, self.helped_weight),
        ):
            each = rows * (1 - rows) / (weight[..., None] + 1) + (rows - self.rows[:, action]) ** 2
            parts.append(np.einsum("gs,gst->st", self.chance, each))
        return np.stack(parts, axis=1)


def learnt(moves: FloatArray, kind: HelpKind = "other", *, ordered: bool = True) -> Everybody:
    """The rows of everybody from all moves [s, a, t].

    ordered: states go from worst to best; if not, help may do anything and is expected to do
    nothing
    """
    S = moves.shape[0]
    kernels, about, level, prior = explanations(S, kind) if ordered else no_effect(S)
    alone, helped = moves[:, WAIT].astype(float), moves[:, ACT].astype(float)
    alpha = prior_of_waiting(alone, ordered=ordered)
    # Of people who are helped, the moves that help did not cause tell how people move anyway. Moves
    # drawn about a row tell less of it than draws from it would.
    seen = helped.sum(axis=1)
    worth = helped * ((1 + about) / (about + np.maximum(seen, 1)[:, None]))  # [g, s, t]
    anyway = np.zeros(1)
    waiting = normalised(alone + alpha)[None]
    for _ in range(ROUNDS):
        # w_u <- prior and moves seen + sum_t moves_t P(u | t), with P(u | t) ~ w_u K[u, t]
        expected = np.einsum("gsu,gsut->gst", np.broadcast_to(waiting, worth.shape), kernels)
        anyway = waiting * np.einsum("gsut,gst->gsu", kernels, worth / np.maximum(expected, 1e-12))
        waiting = normalised(alone + alpha + anyway)
    centre = about * np.maximum(np.einsum("gsu,gsut->gst", waiting, kernels), 1e-4)
    evidence = dirichlet_multinomial(helped, centre)
    evidence += ((alone + alpha) * np.log(np.maximum(waiting, 1e-12))).sum(axis=2)
    each = evidence + prior  # [z, g, s]
    by_level = logsumexp(each, axis=1)
    levels = softmax(level + by_level.sum(axis=1))
    chance = np.einsum("z,zgs->gs", levels, softmax(each, axis=1))
    acting = normalised(centre + helped)
    means = [np.einsum("gs,gst->st", chance, rows) for rows in (waiting, acting)]
    weights = (alone + alpha + anyway).sum(axis=2), (centre + helped).sum(axis=2)
    known = alone + alpha, logsumexp(level[:, None] + by_level, axis=0)
    rows = normalised(np.stack(means, axis=1))
    return Everybody(rows, chance, waiting, acting, *weights, *known)


def prior_of_waiting(alone: FloatArray, *, ordered: bool) -> FloatArray:
    """What is believed of the rows without help [s, t], in moves, given all such moves [s, t].

    How many stay where they are, and whether neighbouring states are likelier, is learnt from all
    states at once.
    """
    candidates, chance = _prior_rows(len(alone), ordered)
    evidence = np.log(chance) + dirichlet_multinomial(alone, candidates).sum(axis=1)
    return np.asarray(np.einsum("h,hst->st", softmax(evidence), candidates))


@cache
def _prior_rows(n_states: int, ordered: bool) -> tuple[FloatArray, FloatArray]:
    """Candidates for the prior of all rows without help [h, s, t], and their chances [h]."""
    away = np.abs(np.subtract.outer(np.arange(n_states), np.arange(n_states)))
    rows, chances = [], []
    for stay, chance in STAYING:
        for decay in DECAYS if ordered else DECAYS[:1]:
            row = stay * np.eye(n_states) + (1 - stay) * normalised(np.exp(-decay * away))
            rows += [count * np.maximum(row, 0.002) for count in PRIOR_MOVES]
            chances += [chance] * len(PRIOR_MOVES)
    return np.array(rows), np.array(chances)


@cache
def explanations(n_states: int, kind: HelpKind) -> tuple[FloatArray, ...]:
    """All explanations: kernels [g, s, u, t] and concentrations q [g, 1, 1]; then the log prior of
    levels [z], and of explanations given a level [z, g, s].
    """
    S = n_states
    here = np.arange(S)
    # Of people in state s who would be in u: to the best state, at least one up from s, one up
    # from u, or no lower than s.
    goals = (
        np.full((S, S), S - 1),
        np.maximum(np.minimum(here + 1, S - 1)[:, None], here),
        np.tile(np.minimum(here + 1, S - 1), (S, 1)),
        np.maximum(here[:, None], here),
    )
    kernels, about, size = [], [], []
    for goal in goals:
        for number, e in enumerate(SIZES):
            for q in ABOUT:
                kernels.append((1 - e) * np.eye(S) + e * np.eye(S)[goal])
                about.append(q)
                size.append(number)
    # Sizes near the level are likelier. All states share levels, and each keeps its prior of sizes:
    # their joint distribution is scaled to both in turns.
    sizes, steps = size_prior(S, kind), np.arange(len(SIZES))
    near = np.exp(-0.5 * (np.subtract.outer(steps, steps) / ALIKE) ** 2)  # [z, e]
    level = (normalised(near).T @ sizes).mean(axis=1)
    joint = np.repeat(near[:, :, None], S, axis=2)  # [z, e, s]
    for _ in range(SCALINGS):
        joint *= (level[:, None] / joint.sum(axis=1))[:, None]
        joint *= sizes / joint.sum(axis=0)
    given = joint / joint.sum(axis=1, keepdims=True)
    prior = np.log(given[:, size] / (len(goals) * len(ABOUT)))
    return np.array(kernels), np.array(about)[:, None, None], np.log(level), prior


def no_effect(n_states: int) -> tuple[FloatArray, ...]:
    """The explanations where states have no order: rows with help lie about those without."""
    S, about = n_states, np.array([2.0, 8.0, 32.0, 128.0])
    kernels = np.broadcast_to(np.eye(S), (len(about), S, S, S))
    return kernels, about[:, None, None], np.zeros(1), np.zeros((1, len(about), S))


@cache
def size_prior(n_states: int, kind: HelpKind) -> FloatArray:
    """The prior [sizes, s] of e: UNSEEN, and what each trial of this kind of help found.

    A trial counts as one, spread over SIZES by its error and BLUR; of "other" all trials count.
    """
    found = [one for one in effects.trials() if kind in ("other", one.help)]
    of_state = {"worst": [UNSEEN], "middle": [UNSEEN], "best": [UNSEEN]}
    weights = {state: [TRIALS_OF_UNSEEN] for state in of_state}
    width = np.gradient(SIZES)
    for one in found:
        spread = np.hypot(one.error or BLUR, BLUR)
        near = width * np.exp(-0.5 * ((SIZES - max(one.effect, 0.0)) / spread) ** 2)
        of_state[one.state].append(near / near.sum())
        weights[one.state].append(1.0)
    where = ["worst", *["middle"] * (n_states - 2), "best"]
    columns = [np.average(of_state[state], axis=0, weights=weights[state]) for state in where]
    return np.stack(columns, axis=1)


def normalised(rows: FloatArray) -> FloatArray:
    """Rows [..., t] that sum to 1."""
    return np.asarray(rows / rows.sum(axis=-1, keepdims=True))


def dirichlet_multinomial(counts: FloatArray, alpha: FloatArray) -> FloatArray:
    """The log probability [...] of moves `counts` [..., t] whose row is drawn from Dir(alpha)."""
    total = alpha.sum(axis=-1)
    each = (gammaln(alpha + counts) - gammaln(alpha)).sum(axis=-1)
    return np.asarray(each + gammaln(total) - gammaln(total + counts.sum(axis=-1)))


def dirichlet_covariance(rows: FloatArray, weight: FloatArray) -> FloatArray:
    """The covariance [..., t, t] of Dirichlet rows [..., t] with this total weight [...]."""
    diagonal = rows[..., None] * np.eye(rows.shape[-1])
    outer = rows[..., :, None] * rows[..., None, :]
    return np.asarray((diagonal - outer) / (weight[..., None, None] + 1))
