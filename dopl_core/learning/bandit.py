"""A restless bandit: transitions and rewards of every arm, and how many arms can be helped."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Arrays = dict[str, NDArray[Any]]  # by name
IntArray = NDArray[np.int64]
Pays = Literal["all", "active"]

WAIT, ACT = 0, 1
UNKNOWN = -1  # instead of a state's number


@dataclass(frozen=True)
class State:
    """A state of an arm, in the owner's words."""

    label: str
    description: str = ""


@dataclass(frozen=True, eq=False)
class Bandit:
    """A known restless bandit (paper, sec. 2.1).

    transitions: [N, S, A, S'] rows of P_n(s'|s, a); action 0 waits, 1 acts
    rewards:     [N, S] latent reward r_n(s) in [0, 1]
    budget:      B, how many arms are activated each epoch
    pays:        who earns r(s): "all" arms (LP (4)) or the "active" ones (sec. 2.1); errata 6
    columns:     what a roster says of every arm: texts [N] by the column's name, "" if missing
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
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
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
                    f"{what}: {len(getattr(self, what))} given, {count} needed, one for each {of}"
                )
        for name, texts in self.columns.items():
            if len(texts) != N:
                raise ValueError(f'column "{name}": {len(texts)} given, one per arm is {N}')


def check_places(
    present: NDArray[np.bool_], n_arms: int, budget: int, by_lot: int | None, find_out: int | None
) -> None:
    """Places of a list go to arms that are present [N']; n_arms: known.

    by_lot, find_out: how many of them are drawn by lot, and may be there to find something out
    """
    check_budget(budget, int(present.sum()))
    if len(present) < n_arms:
        known = f"{len(present)} arms given, but {n_arms} are known"
        raise ValueError(f"present: {known}: mark those that have left as absent")
    for name, places in (("by_lot", by_lot), ("find_out", find_out)):
        if places is not None and not 0 <= places < budget:
            raise ValueError(f"{name} is {places}: it must be at least 0 and below the budget")


def state_chances(
    states: IntArray, n_states: int, where: FloatArray | None, present: NDArray[np.bool_]
) -> FloatArray:
    """The probability of each state [N, S]; where: for UNKNOWN ones, needed if somebody has one."""
    unknown = states == UNKNOWN
    if where is None:
        if (unknown & present).any():
            raise ValueError("some states are unknown: pass `where`, their probabilities")
        where = np.zeros((len(states), n_states))
    known = states[:, None] == np.arange(n_states)
    return np.where(unknown[:, None], where, known.astype(np.float64))


def better_states(n_states: int) -> NDArray[np.bool_]:
    """Whether somebody who moves from state s to s' is better off [s, s']."""
    states = np.arange(n_states)
    return np.asarray(states >= np.minimum(states + 1, n_states - 1)[:, None])


def check_epoch(epoch: int, episode: int, horizon: int) -> None:
    """An episode has its epochs, and no more."""
    if not 0 <= epoch < horizon:
        raise ValueError(
            f"epoch {epoch}: episode {episode} is over after {horizon} epochs, "
            "counted from 0: call replan()"
        )


def check_budget(budget: int, n_arms: int) -> None:
    """A budget is a whole number from 1 to the number of arms."""
    whole = isinstance(budget, int | np.integer) and not isinstance(budget, bool)
    if not whole or not 1 <= budget <= n_arms:
        raise ValueError(
            f"budget is {budget}: it must be between 1 and the number of arms, {n_arms}"
        )


def check_states(
    states: Any, n_arms: int, n_states: int, what: str = "states", *, unknown: bool = False
) -> IntArray:
    """One state for each arm, in range, or UNKNOWN if allowed: [N], or [E, N] of E epochs."""
    array = np.asarray(states)
    if array.shape[-1:] != (n_arms,) or array.ndim > 2:
        raise ValueError(
            f"{what}: shape {array.shape} given, one state for each of {n_arms} arms needed"
        )
    if array.dtype.kind not in "iu":
        raise ValueError(f"{what}: states are numbered 0 to {n_states - 1}, not {array.dtype}")
    array = np.ascontiguousarray(array, dtype=np.int64)
    # As unsigned integers, negative numbers are large: one reduction checks both ends.
    numbers = (array - UNKNOWN if unknown else array).view(np.uint64)
    if array.size and numbers.max() >= n_states + unknown:
        worst = int(numbers.argmax())
        raise ValueError(
            f"{what}: arm {worst % n_arms} is in state {array.flat[worst]}; states are numbered "
            f"0 to {n_states - 1}"
        )
    return array


def check_duels(duels: IntArray, credit: NDArray[Any], n_arms: int, n_states: int) -> None:
    """Duels [D, 4] of two different arms each, and the credit [D] of the left side."""
    known = (duels >= 0) & (duels < (n_arms, n_states, n_arms, n_states))
    same = duels[:, 0] == duels[:, 2]
    if same.any() or not known.all():
        bad = ~known.all(axis=1) | same
        raise ValueError(
            f"duel {duels[bad][0].tolist()}: must be left arm and state, right arm and state; "
            f"two different arms of {n_arms} and states of {n_states}"
        )
    if credit.shape != (len(duels),) or not ((credit >= 0) & (credit <= 1)).all():
        raise ValueError(
            f"credit {credit.tolist()} of {len(duels)} duels: must be, for each, 1 if the left "
            "side won, 0 if the right side won, 0.5 for a tie"
        )


def in_states(pairs: IntArray, states: IntArray) -> IntArray:
    """Duels [D, 4] of pairs of arms [D, 2] in their states [N]."""
    return np.stack([pairs, states[pairs]], axis=2).reshape(-1, 4)


def actions(arms: IntArray, n_arms: int) -> IntArray:
    """The action of each arm [N]: ACT for `arms`, WAIT for the others."""
    action = np.zeros(n_arms, dtype=np.int64)
    action[arms] = ACT
    return action


def check_choice(what: str, given: str, allowed: Iterable[str]) -> None:
    """An option must be one of those allowed."""
    allowed = tuple(allowed)
    if given not in allowed:
        raise ValueError(f'{what} is "{given}": it must be one of {", ".join(allowed)}')


def _check_shapes(P: FloatArray, r: FloatArray) -> None:
    if r.ndim != 2 or 0 in r.shape:
        raise ValueError(f"rewards have shape {r.shape}: must be [arms, states]")
    N, S = r.shape
    if P.shape != (N, S, 2, S):
        raise ValueError(
            f"transitions have shape {P.shape}: must be [{N}, {S}, 2, {S}], to match rewards"
        )
    if S < 2:
        raise ValueError("there is 1 state: a bandit needs at least 2")


def _check_rows(P: FloatArray) -> None:
    bad = ~np.isfinite(P) | (P < 0) | (P > 1)
    if bad.any():
        n, s, a, t = np.argwhere(bad)[0]
        raise ValueError(
            f"transitions: arm {n}, state {s}, action {a}, next state {t} is {P[n, s, a, t]}: "
            "must be a probability between 0 and 1"
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
        raise ValueError(f"rewards: arm {n}, state {s} is {r[n, s]}: must be from 0 to 1")


def _frozen(array: FloatArray) -> FloatArray:
    array.setflags(write=False)
    return array
