"""Planning problems drawn at random, the awkward ones included."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog


@dataclass(frozen=True)
class Drawn:
    """The arguments of plan()."""

    reward: np.ndarray
    low: np.ndarray
    high: np.ndarray
    budget: float
    pays: str = "all"

    def arguments(self):
        return self.reward, self.low, self.high, self.budget


def ordinary(rng, n_arms=20, n_states=3, half_width=0.05, budget=None, pays="all"):
    """Rewards that rise with the state, rows drawn evenly, a box around each row."""
    reward = np.sort(rng.uniform(size=(n_arms, n_states)), axis=1)
    rows = rng.dirichlet(np.ones(n_states), size=(n_arms, n_states, 2))
    low, high = np.clip(rows - half_width, 0, 1), np.clip(rows + half_width, 0, 1)
    return Drawn(reward, low, high, 0.2 * n_arms if budget is None else budget, pays)


def awkward(rng, zeros=True):
    """Any mix of: few or many states, structural zeros, no width or full width, ties, twins."""
    n_arms, n_states = int(rng.integers(1, 9)), int(rng.choice([1, 2, 2, 3, 3, 4, 5, 8, 16]))
    shape = (n_arms, n_states, 2, n_states)
    rows = rng.dirichlet(np.full(n_states, rng.choice([0.3, 1.0, 3.0])), size=shape[:3])
    possible = np.ones(shape, dtype=bool)
    if zeros and rng.random() < 0.5:
        possible = rng.random(shape) > rng.choice([0.3, 0.6, 0.9])
        possible |= ~possible.any(axis=-1, keepdims=True) & (rng.random(shape) < 0.5)
        possible[~possible.any(axis=-1)] = True
    rows = np.where(possible, np.maximum(rows, 1e-3), 0)
    if rng.random() < 0.2:
        rows = np.ceil(4 * rows)
    rows /= rows.sum(axis=-1, keepdims=True)
    width = rng.choice([0, 0, 0.01, 0.1, 0.25, 1.0])
    if rng.random() < 0.5:
        width = width * rng.uniform(0.1, 1, size=shape)
    low, high = np.clip(rows - width, 0, 1), np.clip(rows + width, 0, 1)
    if zeros and rng.random() < 0.5:
        high = np.where(possible, high, 0)
    elif not zeros:
        high = np.maximum(high, 1e-3)
    if rng.random() < 0.5:
        reward = rng.uniform(-1, 1, size=shape[:2])
    else:
        reward = rng.integers(0, 3, size=shape[:2]) / 2
    if rng.random() < 0.3:
        low, high = np.repeat(low[:1], n_arms, axis=0), np.repeat(high[:1], n_arms, axis=0)
        reward = np.repeat(reward[:1], n_arms, axis=0)
    budget = rng.integers(1, n_arms + 1) if rng.random() < 0.5 else rng.uniform(0.05, n_arms)
    return Drawn(reward, low, high, float(budget), str(rng.choice(["all", "active"])))


def limited(rng, drawn):
    """Groups, floors and caps of a drawn problem, the awkward ones included."""
    n_arms, n_groups = len(drawn.reward), int(rng.integers(1, 4))
    groups = rng.integers(0, n_groups, n_arms)
    caps = np.ones(n_arms)
    if rng.random() < 0.5:
        caps = rng.choice([0, 0.25, 0.5, rng.random(), 1, 1], n_arms)
    reach = np.bincount(groups, weights=caps, minlength=n_groups)
    floors = rng.dirichlet(np.ones(n_groups)) * drawn.budget * rng.choice([0.5, 0.9, 1, 1])
    if rng.random() < 0.3:
        floors = np.floor(floors)
    if rng.random() < 0.2:
        floors = reach
    floors = np.minimum(floors, reach)
    floors = floors * min(1, drawn.budget / max(floors.sum(), 1e-12))
    return {"groups": groups, "floors": floors, "caps": caps if caps.min() < 1 else None}


def distance_to_feasible(drawn, occupancy):
    """By how much the flows of an occupancy must leave the boxes, at least.

    The flows w(s, a, y) have to sum to mu(s, a) over y, and to bring as much into each state as
    goes out. Minimises the sum of what they miss low * mu and high * mu by.
    """
    missing = 0.0
    n_states = drawn.reward.shape[1]
    size = 2 * n_states * n_states
    _, pair, target = (x.ravel() for x in np.indices((1, 2 * n_states, n_states)))
    for mu, low, high in zip(occupancy, drawn.low, drawn.high, strict=True):
        leave = (pair == np.arange(2 * n_states)[:, None]).astype(float)
        enter = (target == np.arange(n_states)[:, None]).astype(float)
        equal = np.block([[leave, np.zeros((2 * n_states, size))], [enter, np.zeros_like(enter)]])
        flows = np.concatenate([mu.ravel(), mu.sum(axis=1)])
        beyond = np.block([[np.eye(size), -np.eye(size)], [-np.eye(size), -np.eye(size)]])
        bounds = [(high * mu[..., None]).ravel(), -(low * mu[..., None]).ravel()]
        cost = np.repeat([0.0, 1.0], size)
        # Flows are known to a few digits only, so the equations may be missed by as little.
        answer = linprog(cost, beyond, np.concatenate(bounds), equal, _balanced(flows, mu))
        assert answer.status == 0, answer.message
        missing += answer.fun
    return missing


def _balanced(flows, mu):
    """The same sums for what leaves and what enters, which rounding would keep from agreeing."""
    leave, enter = flows[: mu.size], flows[mu.size :]
    return np.concatenate([leave, enter * leave.sum() / enter.sum()])
