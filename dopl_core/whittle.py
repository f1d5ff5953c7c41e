"""Whittle indices: of arms that are known, and learned by Q-learning with rewards from duels."""

import numpy as np

from dopl_core.bandit import FloatArray, Pays

_SINGULAR, _NOISE = 1e-10, 1e-9


def indices(transitions: FloatArray, rewards: FloatArray, pays: Pays = "all") -> FloatArray:
    """Whittle indices [N, S] of arms with transitions [N, S, A, S'] and rewards [N, S].

    The index of a state is the subsidy for waiting at which acting and waiting are worth the same
    (average reward). Subsidies rise from minus infinity, where all states act; under a policy
    every advantage is linear in the subsidy, so the next state to stop acting is known exactly.
    NaN for an arm that is not indexable or falls apart into chains under one of these policies.
    """
    N, S = rewards.shape
    arms = np.arange(N)
    wait, act = transitions[:, :, 0], transitions[:, :, 1]
    pay = np.zeros_like(rewards) if pays == "active" else rewards
    acts = np.ones((N, S), dtype=bool)
    index = np.empty((N, S))
    subsidy = np.full(N, -np.inf)
    sound = np.ones(N, dtype=bool)
    for _ in range(S):
        # Poisson's equation, gain in place of the first bias: once for pay, once for subsidy.
        system = np.eye(S) - np.where(acts[..., None], act, wait)
        system[:, :, 0] = 1.0
        sound &= np.abs(np.linalg.det(system)) > _SINGULAR
        system[~sound] = np.eye(S)
        earned = np.stack([np.where(acts, rewards, pay), ~acts], axis=2)
        bias = np.linalg.solve(system, earned)
        bias[:, 0] = 0.0
        fixed, slope = np.moveaxis((act - wait) @ bias, 2, 0)  # advantage = fixed + slope * subsidy
        fixed, slope = fixed + rewards - pay, slope - 1.0
        falls = acts & (slope < 0)
        root = np.divide(-fixed, slope, out=np.full((N, S), np.inf), where=falls)
        first = root.argmin(axis=1)
        rises = root[arms, first] >= subsidy - _NOISE
        subsidy = np.where(sound, root[arms, first], 0.0)
        back = ~acts & (fixed + slope * subsidy[:, None] > _NOISE)
        sound &= rises & np.isfinite(subsidy) & ~back.any(axis=1)
        subsidy[~sound] = 0.0
        index[arms, first] = subsidy
        acts[arms, first] = False
    index[~sound] = np.nan
    return index
