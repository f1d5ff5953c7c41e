"""Worlds that the learner was not tuned to: columns that act gradually, after Liang et al.

Liang et al., "A Bayesian Approach to Online Learning for Contextual Restless Bandits" (AAAI 2025),
sec. 5.2. Two states; state 1 pays 1, waiting and acting alike. Rewards are known to all learners.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dopl_core.experiments.worlds import WEEKS, covariates
from dopl_core.learning.columns import Column, category, standardised
from dopl_core.learning.dopl import Dopl
from dopl_core.learning.planning import plan
from dopl_core.learning.preferences import Preferences

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
REWARDS = np.array([0.0, 1.0])


def noise(n_arms: int, seed: int) -> tuple[Column, ...]:
    """Five columns that say nothing: categories of 2, 2, 3 and 4 values, and a number."""
    rng = np.random.default_rng([seed, 77])
    drawn = [rng.integers(values, size=n_arms) for values in (2, 2, 3, 4)]
    each = (category(f"noise {i + 1}", [str(x) for x in own]) for i, own in enumerate(drawn))
    return (*each, Column("noise 5", "number", standardised(rng.normal(size=n_arms))))


class KnowsRewards(Dopl):
    """The learner where rewards are known, so that only moves are learnt."""

    def _estimate_preferences(self) -> Preferences:
        mean = np.tile(REWARDS, (self.n_arms, 1))
        return Preferences(mean, 0 * mean, mean, None)


def play(n_arms: int, budget: int, seed: int, policy: str) -> Floats:
    """The share of arms in state 1 at the end of each week [T].

    policy: "dopl", "no columns", "worst first", "oracle" (each week's true chances) or "chance"
    """
    columns, P = covariates(n_arms, seed)
    rng = np.random.default_rng([seed, n_arms, 99])
    states, luck = rng.integers(2, size=n_arms), rng.random((WEEKS, n_arms))
    lots = rng.random((WEEKS, n_arms))
    known = columns if policy == "dopl" else None
    learner = KnowsRewards(n_arms, 2, budget, horizon=1, seed=seed, ordered=True, columns=known)
    arms = np.arange(n_arms)
    shares = []
    for week in range(WEEKS):
        score = _SCORES.get(policy, _learnt)(learner, states, P[week], lots[week])
        helped = np.zeros(n_arms, dtype=np.int64)
        helped[np.argsort(-score, kind="stable")[:budget]] = 1
        then = (luck[week] < P[week, arms, states, helped, 1]).astype(np.int64)
        learner.count_moves(states, helped, then)
        states = then
        shares.append(states.mean())
    return np.array(shares)


def _learnt(learner: Dopl, states: Ints, P: Floats, lots: Floats) -> Floats:
    learner.replan()
    chosen = np.zeros(len(states))
    chosen[learner.activate(states, 0)] = 1
    return chosen


def _oracle(learner: Dopl, states: Ints, P: Floats, lots: Floats) -> Floats:
    known = plan(np.tile(REWARDS, (len(P), 1)), P, P, learner.budget, engine="lagrangian")
    return np.asarray(known.advantage[np.arange(len(P)), states])


_SCORES: dict[str, Callable[[Dopl, Ints, Floats, Floats], Floats]] = {
    "worst first": lambda learner, states, P, lots: lots - states,
    "oracle": _oracle,
    "chance": lambda learner, states, P, lots: lots,
}
