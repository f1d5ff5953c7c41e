"""What a planning problem is: pay, transition boxes and budget, checked and in slack form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Pays = Literal["all", "active"]

SUM_TOLERANCE = 1e-7  # how far the sums of a row's bounds may miss 1 by rounding
IMPOSSIBLE = 1e-9  # transitions less likely than this are none; LP solvers drop them as well


class PlanningError(ValueError):
    """The numbers given make no planning problem, or no engine could solve it."""


@dataclass(frozen=True)
class Problem:
    """N arms with S states and two actions, coupled by one budget.

    A transition row p of (arm, state, action) is written p = low + fill, where fill is
    non-negative, at most width, and sums to room. So the lower bounds of the box need no rows.

    pay: [N, S, A] reward per epoch; low, width: [N, S, A, S]; room: [N, S, A].
    """

    pay: Floats
    low: Floats
    width: Floats
    room: Floats
    budget: float


def pose(reward: ArrayLike, low: ArrayLike, high: ArrayLike, budget: float, pays: Pays) -> Problem:
    """Check reward [N, S] or [N, S, A] and bounds [N, S, A, S] and bring them into slack form."""
    reward, low, high = (np.asarray(x, dtype=np.float64) for x in (reward, low, high))
    _check(reward, low, high, budget, pays)
    low, width, room = slack_form(low, high)
    pay = np.repeat(reward[:, :, None], 2, axis=2) if reward.ndim == 2 else reward.copy()
    if pays == "active":
        pay[:, :, 0] = 0.0
    return Problem(pay, low, width, room, float(budget))


def _check(reward: Floats, low: Floats, high: Floats, budget: float, pays: Pays) -> None:
    """Refuse what makes no problem; `slack_form` refuses boxes without a distribution."""
    if reward.ndim not in (2, 3) or reward.size == 0 or reward.shape[2:] not in ((), (2,)):
        raise PlanningError(
            "reward must have shape [arms, states] or [arms, states, actions], "
            f"not {list(reward.shape)}"
        )
    n_arms, n_states = reward.shape[:2]
    shape = (n_arms, n_states, 2, n_states)
    for name, bound in (("low", low), ("high", high)):
        if bound.shape != shape:
            raise PlanningError(f"{name} must have shape {list(shape)}, not {list(bound.shape)}")
    if pays not in ("all", "active"):
        raise PlanningError(f'pays must be "all" or "active", not {pays!r}')
    if not 0 < budget <= n_arms:
        raise PlanningError(f"budget must be above 0 and at most {n_arms} arms, not {budget}")
    if not np.isfinite(reward).all():
        raise PlanningError(f"reward of {_place(~np.isfinite(reward))} is not a finite number")
    if not (low <= high).all():  # catches NaN too
        raise PlanningError(f"low exceeds high, or one is NaN, at {_place(~(low <= high))}")


def slack_form(low: Floats, high: Floats) -> tuple[Floats, Floats, Floats]:
    """The low [N, S, A, S], width [N, S, A, S] and room [N, S, A] of boxes from low to high."""
    low, high = np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)  # errata 10
    low[low < IMPOSSIBLE] = 0.0
    high[high < IMPOSSIBLE] = 0.0
    least, most = low.sum(axis=-1), high.sum(axis=-1)
    if not least.max() <= 1 + SUM_TOLERANCE:
        bad = least > 1 + SUM_TOLERANCE
        raise PlanningError(f"the lower bounds sum to more than 1 in the row of {_place(bad)}")
    if not most.min() >= 1 - SUM_TOLERANCE:
        bad = most < 1 - SUM_TOLERANCE
        raise PlanningError(f"the upper bounds sum to less than 1 in the row of {_place(bad)}")

    # A row that its bounds fix is normalised, so that rounding leaves no sliver of room.
    full, filled = most <= 1 + SUM_TOLERANCE, least >= 1 - SUM_TOLERANCE
    room = 1.0 - least
    fixed = full | filled
    if fixed.any():
        rows = np.where(full[..., None], high, low)[fixed]
        low[fixed] = rows / rows.sum(axis=-1, keepdims=True)
        room[fixed] = 0.0
    return low, np.clip(high - low, 0.0, room[..., None]), room


def _place(bad: NDArray[np.bool_]) -> str:
    """Name the first place of a mask over [N, S], [N, S, A] or [N, S, A, S]."""
    names = ("arm", "state", "action", "next state")
    return ", ".join(f"{name} {i}" for name, i in zip(names, np.argwhere(bad)[0], strict=False))
