"""A restless bandit: how every arm moves, what its states are worth, and how many can be helped."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Pays = Literal["all", "active"]

WAIT, ACT = 0, 1
UNKNOWN = -1  # in place of a state


@dataclass(frozen=True)
class State:
    """Where an arm can be, in the owner's words."""

    label: str
    description: str = ""


@dataclass(frozen=True, eq=False)
class Bandit:
    """A known restless bandit (paper, sec. 2.1).

    transitions: [N, S, A, S'] rows of P_n(s'|s, a); action 0 waits, 1 acts
    rewards:     [N, S] latent reward r_n(s) in [0, 1]
    budget:      B, how many arms are activated each epoch
    pays:        who earns r(s): "all" arms (LP (4)) or the "active" ones (sec. 2.1); errata 6
    """

    transitions: FloatArray
    rewards: FloatArray
    budget: int
    pays: Pays = "all"
    name: str = "bandit"
    title: str = "Bandit"
    question: str = "Which of these two is doing better?"
    noun: str = "arm"
    states: tuple[State, ...] = ()
    arms: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    episodes: int = 100
    horizon: int = 5
    epsilon: float = 1e-5
    n_arms: int = field(init=False)
    n_states: int = field(init=False)

    def __post_init__(self) -> None:
        P = np.array(self.transitions, dtype=float)
        r = np.array(self.rewards, dtype=float)
        _check_shapes(P, r)
        N, S = r.shape
        _check_rows(P)
        _check_rewards(r)
        check_budget(self.budget, N)
        if self.pays not in ("all", "active"):
            raise ValueError(f'pays is "{self.pays}": it must be "all" or "active"')
        set_ = object.__setattr__
        set_(self, "n_arms", N)
        set_(self, "n_states", S)
        set_(self, "transitions", _frozen(P / P.sum(axis=3, keepdims=True)))
        set_(self, "rewards", _frozen(r))
        set_(self, "states", self.states or tuple(State(f"State {s + 1}") for s in range(S)))
        set_(
            self, "arms", self.arms or tuple(f"{self.noun.capitalize()} {n + 1}" for n in range(N))
        )
        set_(self, "groups", self.groups or ("all",) * N)
        for what, count, of in (("states", S, "state"), ("arms", N, "arm"), ("groups", N, "arm")):
            if len(getattr(self, what)) != count:
                raise ValueError(
                    f"{what}: {len(getattr(self, what))} given, one per {of} is {count}"
                )


def check_budget(budget: int, n_arms: int) -> None:
    """A budget must leave something to compare and something to choose."""
    whole = isinstance(budget, int | np.integer) and not isinstance(budget, bool)
    if not whole or not 1 <= budget <= n_arms:
        raise ValueError(
            f"budget is {budget}: it must be between 2 and the number of arms, {n_arms}"
        )
    if budget < 2:
        raise ValueError("budget is 1: a duel needs two activated arms, so it must be at least 2")


def check_states(
    states: Any, n_arms: int, n_states: int, what: str = "states", *, unknown: bool = False
) -> IntArray:
    """One state per arm, each in range or UNKNOWN where allowed: [N], or [E, N] of E epochs."""
    array = np.asarray(states)
    if array.shape[-1:] != (n_arms,) or array.ndim > 2:
        raise ValueError(f"{what}: {array.shape} given, one state for each of {n_arms} arms needed")
    if array.dtype.kind not in "iu":
        raise ValueError(f"{what}: states are numbered 0 to {n_states - 1}, not {array.dtype}")
    array = np.ascontiguousarray(array, dtype=np.int64)
    # Seen as unsigned, negative numbers are large: one reduction checks both ends, every epoch.
    numbers = (array - UNKNOWN if unknown else array).view(np.uint64)
    if array.size and numbers.max() >= n_states + unknown:
        worst = int(numbers.argmax())
        raise ValueError(
            f"{what}: arm {worst % n_arms} is in state {array.flat[worst]}; states are numbered "
            f"0 to {n_states - 1}"
        )
    return array


def actions(arms: IntArray, n_arms: int) -> IntArray:
    """What is done to each arm [N], ACT or WAIT, where `arms` are activated."""
    action = np.zeros(n_arms, dtype=np.int64)
    action[arms] = ACT
    return action


def check_choice(what: str, given: str, allowed: Iterable[str]) -> None:
    """An option must be one of those that there are."""
    allowed = tuple(allowed)
    if given not in allowed:
        raise ValueError(f'{what} is "{given}": it must be one of {", ".join(allowed)}')


def _check_shapes(P: FloatArray, r: FloatArray) -> None:
    if r.ndim != 2 or 0 in r.shape:
        raise ValueError(f"rewards have shape {r.shape}: [arms, states] needed")
    N, S = r.shape
    if P.shape != (N, S, 2, S):
        raise ValueError(f"transitions have shape {P.shape}: [{N}, {S}, 2, {S}] needed for rewards")
    if S < 2:
        raise ValueError("there is 1 state: with nothing to move between there is nothing to learn")


def _check_rows(P: FloatArray) -> None:
    bad = ~np.isfinite(P) | (P < 0) | (P > 1)
    if bad.any():
        n, s, a, t = np.argwhere(bad)[0]
        raise ValueError(
            f"transitions: arm {n}, state {s}, action {a}, next state {t} is {P[n, s, a, t]}: "
            "a probability between 0 and 1 needed"
        )
    sums = P.sum(axis=3)
    off = np.abs(sums - 1) > 1e-6
    if off.any():
        n, s, a = np.argwhere(off)[0]
        raise ValueError(
            f"transitions: arm {n}, state {s}, action {a}: the row sums to {sums[n, s, a]:.6g}, "
            "not to 1"
        )


def _check_rewards(r: FloatArray) -> None:
    bad = ~np.isfinite(r) | (r < 0) | (r > 1)
    if bad.any():
        n, s = np.argwhere(bad)[0]
        raise ValueError(f"rewards: arm {n}, state {s} is {r[n, s]}: a number from 0 to 1 needed")


def _frozen(array: FloatArray) -> FloatArray:
    array.setflags(write=False)
    return array
