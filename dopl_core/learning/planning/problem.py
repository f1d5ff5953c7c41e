"""A planning problem: pay, transition boxes and budget, checked and in slack form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]
Pays = Literal["all", "active"]

SAME_USE = 1e-9  # how far sums of floors and caps may miss each other by rounding
SUM_TOLERANCE = 1e-7  # how far the sums of a row's bounds may miss 1 by rounding
IMPOSSIBLE = 1e-9  # transitions less likely than this are impossible; LP solvers drop them too


class PlanningError(ValueError):
    """The arguments are not a valid planning problem, or the engine could not solve it."""


@dataclass(frozen=True)
class Limits:
    """Who is to be helped how much, beside the budget.

    group: [N] of each arm, from 0;  floors: [G] least expected number of helped arms of a group
    caps: [N] largest share of epochs in which an arm is helped; 1 where there is no limit
    """

    group: Numbers
    floors: Floats
    caps: Floats


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
    limits: Limits | None = None


def pose(reward: ArrayLike, low: ArrayLike, high: ArrayLike, budget: float, pays: Pays) -> Problem:
    """Check reward [N, S] or [N, S, A] and bounds [N, S, A, S] and bring them into slack form."""
    reward, low, high = (np.asarray(x, dtype=np.float64) for x in (reward, low, high))
    _check(reward, low, high, budget, pays)
    low, width, room = slack_form(low, high)
    pay = np.repeat(reward[:, :, None], 2, axis=2) if reward.ndim == 2 else reward.copy()
    if pays == "active":
        pay[:, :, 0] = 0.0
    return Problem(pay, low, width, room, float(budget))


def limits_of(
    n_arms: int,
    budget: float,
    groups: ArrayLike | None,
    floors: ArrayLike | None,
    caps: ArrayLike | None,
) -> Limits | None:
    """Check group codes [N], floors [G] and caps [N]; None if there are none of them."""
    if (groups is None) != (floors is None):
        raise PlanningError("groups and floors belong together: give both or neither")
    if floors is None and caps is None:
        return None
    most = np.ones(n_arms) if caps is None else np.asarray(caps, dtype=np.float64)
    if most.shape != (n_arms,) or not ((most >= 0) & (most <= 1)).all():
        raise PlanningError(f"caps must be {n_arms} shares from 0 to 1, one for each arm")
    group = np.zeros(n_arms) if groups is None else np.asarray(groups)
    least = np.zeros(1) if floors is None else np.asarray(floors, dtype=np.float64)
    if least.ndim != 1 or not (np.isfinite(least) & (least >= 0)).all():
        raise PlanningError("floors must be a list of numbers from 0, one for each group")
    codes = group.astype(np.int64) if group.shape == (n_arms,) else np.full(1, -1)
    if (codes != group).any() or codes.min() < 0 or codes.max() >= least.size:
        raise PlanningError(
            f"groups must be {n_arms} whole numbers from 0 to {least.size - 1}: the group of each "
            "arm, one of those that floors has"
        )
    _check_floors(Limits(codes, least, most), budget)
    return Limits(codes, least, most)


def _check_floors(limits: Limits, budget: float) -> None:
    """Refuse floors that no plan can meet."""
    total = limits.floors.sum()
    if total > budget * (1 + SAME_USE):
        raise PlanningError(
            f"the floors sum to {total:g}, but the budget is {budget:g}: lower the floors"
        )
    size = np.bincount(limits.group, minlength=limits.floors.size)
    reach = np.bincount(limits.group, weights=limits.caps, minlength=limits.floors.size)
    for number, floor in enumerate(limits.floors):
        if floor > size[number] * (1 + SAME_USE):
            raise PlanningError(
                f"the floor of group {number} is {floor:g}, but it has {size[number]} arms: "
                "lower the floor"
            )
        if floor > reach[number] * (1 + SAME_USE):
            raise PlanningError(
                f"the floor of group {number} is {floor:g}, but the caps of its arms allow "
                f"{reach[number]:g}: lower the floor or raise the caps"
            )


def _check(reward: Floats, low: Floats, high: Floats, budget: float, pays: Pays) -> None:
    """Refuse invalid arguments; `slack_form` refuses boxes that contain no distribution."""
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

    # A row that is fixed by its bounds is normalised, so that rounding leaves no room.
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
