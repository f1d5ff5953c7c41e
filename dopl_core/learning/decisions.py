"""Which gains of help count as equal, and which strengths the decisions of a plan depend on.

Among equals the worst off come first. Somebody better off comes before them as their gain becomes
credible: by a margin of standard errors of what help is worth in each state.

The advantage of helping an arm in a state depends on the arm's own strengths alone, once the plan
is fixed: with h the relative values of the arm's states under the plan's policy,
    advantage = (P_act - P_wait) h,   h = (I - P_policy + 1 w')^-1 strengths.
A level that all states of an arm share changes nothing. So questions are chosen by what their
answers tell of advantages that are near the cut, each as often as its state is visited. While the
effect of help is unknown, any difference within an arm may matter.
"""

from typing import NamedTuple

import numpy as np

from dopl_core.learning.bandit import FloatArray, Pays
from dopl_core.learning.moves.dynamics import Dynamics
from dopl_core.learning.planning import Plan
from dopl_core.learning.preferences import OPTIMISM, Preferences

MARGIN = 0.5  # standard errors by which the best off must gain more than the worst off
CREDIBLE = 1.28  # standard errors: a gain has a posterior probability of 90 %


class Effect(NamedTuple):
    """What help is worth in each state, on average of those in it: gain and its error [S]."""

    gain: FloatArray
    error: FloatArray

    @property
    def is_credible_in_best(self) -> bool:
        """Whether people in the best state gain anything, by CREDIBLE standard errors."""
        return bool(self.gain[-1] >= CREDIBLE * self.error[-1])


def effect_of_help(plan: Plan, moves: Dynamics) -> Effect | None:
    """What help is worth in each state, by the values of the plan; None if not estimated."""
    if moves.effect is None or moves.effect_covariance is None:
        return None
    S = plan.index.shape[1]
    there = plan.occupancy.sum(axis=2)  # 0 for absent arms
    there = there / np.maximum(there.sum(axis=0), 1e-300)
    values = there.T @ plan.start[1:].reshape(-1, S)  # [S, S'] relative values of those in a state
    gain = (moves.effect * values).sum(axis=1)
    variance = np.einsum("st,stu,su->s", values, moves.effect_covariance, values)
    return Effect(gain, np.sqrt(np.maximum(variance, 0)))


def margin(effect: Effect) -> FloatArray:
    """How much more than in the worst state help must gain in each state [S], to come before it.

    It grows from the worst state to the best, and shrinks as it becomes known what help does.
    """
    square = effect.error**2
    rank = np.linspace(0, 1, len(square))
    return MARGIN * np.sqrt(square + square.mean()) * rank


def importance(plan: Plan, moves: Dynamics, belief: Preferences, pays: Pays) -> FloatArray:
    """How much each arm's strengths matter: quadratic forms [N, S, S].

    The expected variance of the advantages, weighted by visits and by how near the cut they are, is
    the trace of the form times the covariance of the arm's strengths.
    """
    relative, J = advantages_of(plan, moves.mean, pays)
    turned = relative.transpose(0, 2, 1)
    effect = uncertain_effect(moves)
    values = (relative @ belief.mean[:, :, None])[:, None]  # [N, 1, S, 1]
    variance = np.einsum("nij,njk,nik->ni", J, own_covariance(belief), J)
    variance += (values.transpose(0, 1, 3, 2) @ effect @ values)[:, :, 0, 0]
    visits = plan.occupancy.sum(axis=2)
    usual = (visits * plan.advantage**2).sum() / max(float(visits.sum()), 1e-300)
    weight = visits * np.exp(-0.5 * plan.advantage**2 / (variance + usual / 4 + 1e-300))
    known = J.transpose(0, 2, 1) @ (weight[:, :, None] * J)
    return np.asarray(known + turned @ np.einsum("ns,nsij->nij", weight, effect) @ relative)


def advantages_of(plan: Plan, P: FloatArray, pays: Pays) -> tuple[FloatArray, FloatArray]:
    """How relative values h and advantages of an arm's states change with its strengths.

    P: [N, S, A, S'];  both [N, S, S]
    """
    S = plan.index.shape[1]
    acts = plan.index[:, :, None]
    policy = (1 - acts) * P[:, :, 0] + acts * P[:, :, 1]
    visits = plan.occupancy.sum(axis=2)
    visits = np.where(visits.any(axis=1)[:, None], visits, 1 / S)  # absent arms visit nothing
    # The small extra keeps the inverse finite where a policy has several closed sets of states.
    relative = np.linalg.inv((1 + 1e-6) * np.eye(S) - policy + visits[:, None])
    if pays == "active":
        relative = relative * plan.index[:, None]
    J = (P[:, :, 1] - P[:, :, 0]) @ relative
    return relative, J if pays == "all" else np.eye(S) + J


def uncertain_effect(moves: Dynamics) -> FloatArray:
    """Covariances [N, S, S', S'] of what help changes in a row; a row of changes sums to 0."""
    v = (moves.sd**2).sum(axis=2)
    total = np.maximum(v.sum(axis=2), 1e-300)[..., None, None]
    return np.asarray(v[..., None] * np.eye(v.shape[2]) - v[..., None] * v[:, :, None] / total)


def own_covariance(belief: Preferences) -> FloatArray:
    """The covariance of the strengths of each arm: [N, S, S]."""
    N, S = belief.mean.shape
    arms = np.arange(N)
    if belief.covariance is not None:
        return np.asarray(belief.covariance.reshape(N, S, N, S)[arms, :, arms])
    own = np.zeros((N, S, S))
    if belief.common is not None:
        parts = belief.common.reshape(N, S, S + 1)
        own = parts @ parts.transpose(0, 2, 1)
    variance = ((belief.overestimate - belief.mean) / OPTIMISM) ** 2
    own[:, np.arange(S), np.arange(S)] = variance
    return own
