"""How every arm would best be run on its own, when acting costs a given multiplier."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dopl_core.planning.problem import Floats, PlanningError, Problem

LIMIT = 200
TOLERANCE = 1e-11


@dataclass(frozen=True)
class Response:
    """gain: [N] average pay less cost; bias: [N, S], 0 at its best state; act: [N, S];
    chain: [N, S, S] transition rows under act; worth: [N, S, A] pay less cost plus bias of what
    follows.
    """

    gain: Floats
    bias: Floats
    act: Floats
    chain: Floats
    worth: Floats


def rows(problem: Problem, bias: Floats) -> Floats:
    """The rows of the box [N, S, A, S] that lead to the highest expected bias [N, S]."""
    n_arms, n_states = bias.shape
    first, second = bias[:, :, None], bias[:, None, :]
    earlier = np.tri(n_states, k=-1, dtype=bool).T
    ahead = (first > second) | ((first == second) & earlier)  # [i, j]: i is filled before j
    flat = problem.width.reshape(n_arms, -1, n_states)
    before = (flat @ ahead.astype(np.float64)).reshape(problem.width.shape)
    return problem.low + np.clip(problem.room[..., None] - before, 0.0, problem.width)


def respond(problem: Problem, multiplier: float) -> Response:
    """Optimistic policy iteration, all arms at once."""
    n_arms, n_states = problem.pay.shape[:2]
    pay = problem.pay - multiplier * np.array([0.0, 1.0])
    bias = np.zeros((n_arms, n_states))
    act = np.zeros((n_arms, n_states), dtype=bool)
    goal = np.full((n_arms, n_states), -np.inf)
    for _ in range(LIMIT):
        box = rows(problem, bias)
        worth = pay + (box @ bias[:, None, :, None])[..., 0]
        best = worth.max(axis=-1)
        better = best > goal + TOLERANCE * (1 - bias)
        if not better.any():
            gain = goal[:, 0] - bias[:, 0]
            return Response(gain, bias, act.astype(float), chain, worth)
        act = np.where(
            np.abs(worth[..., 1] - worth[..., 0]) <= TOLERANCE, act, worth[..., 1] > worth[..., 0]
        )
        chain = np.where(act[..., None], box[:, :, 1], box[:, :, 0])
        system = np.eye(n_states) - chain
        system[:, :, 0] = 1.0
        earned = np.where(act, pay[..., 1], pay[..., 0])
        solved = np.linalg.solve(system, earned[..., None])[..., 0]
        gain = solved[:, 0].copy()
        solved[:, 0] = 0.0
        bias = solved - solved.max(axis=1, keepdims=True)
        goal = gain[:, None] + bias
    raise PlanningError("policy iteration did not settle")


def advantage(problem: Problem, multiplier: float) -> Floats:
    worth = respond(problem, multiplier).worth
    return worth[..., 1] - worth[..., 0]
