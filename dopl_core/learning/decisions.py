"""Which strengths the decisions of a plan depend on, and how much evidence the best state needs.

The advantage of helping an arm in a state depends on the arm's own strengths alone, once the plan
is fixed: with h the relative values of the arm's states under the plan's policy,
    advantage = (P_act - P_wait) h,   h = (I - P_policy + 1 w')^-1 strengths.
A level that all states of an arm share changes nothing. So questions are chosen by what their
answers tell of advantages that are near the cut, each as often as its state is visited. While the
effect of help is unknown, any difference within an arm may matter.
"""

import numpy as np

from dopl_core.learning.bandit import FloatArray, IntArray, Pays
from dopl_core.learning.planning import Plan
from dopl_core.learning.preferences import OPTIMISM, Preferences
from dopl_core.learning.transitions.class_rows import WEIGHT
from dopl_core.learning.transitions.dynamics import Dynamics

CAUTION = 1.0  # standard errors by which people in the best state must gain more than others
SURE = 2.0  # standard errors of the effect of help there beyond which no margin is needed
BEFOREHAND = 1.0  # moves of each row, so that the standard error of an unseen row is finite


def caution(plan: Plan, P: FloatArray, seen: IntArray | None) -> FloatArray:
    """How much more than in a worse state help must gain in each state [S], to come before it.

    People in the best state cannot rise, and a handful of moves easily seems to say that help keeps
    them there. So they come before others only if their gain is credible: by CAUTION standard
    errors of the effect of help in this state, estimated from the moves that were seen in it. As
    the mean effect rises to SURE standard errors, the margin shrinks to 0. Of the effect, only the
    share that is due to moves counts, and not what was believed before them (class_rows.py).
    P: [N, S, A, S'];  seen: [S, A] moves of all arms; None for no caution
    """
    S = plan.index.shape[1]
    needed = np.zeros(S)
    if seen is None:
        return needed
    values = plan.start[1:].reshape(-1, 1, S)
    there = plan.occupancy.sum(axis=(1, 2))  # 0 for absent arms
    rows = P[:, -1]  # [N, A, S'] of the best state
    of_values = (rows * values**2).sum(axis=2) - (rows * values).sum(axis=2) ** 2
    there = there / max(float(there.sum()), 1e-300)
    error = np.sqrt((there @ of_values / (BEFOREHAND + seen[-1])).sum())
    effect = there @ ((rows[:, 1] - rows[:, 0]) * values[:, 0]).sum(axis=1)
    effect *= seen[-1].min() / (seen[-1].min() + WEIGHT)
    needed[-1] = np.clip(SURE * error - effect, 0, CAUTION * error)
    return needed


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
