"""What arm-states are worth: from counts of duels to the overestimated reference column."""

from dataclasses import dataclass, field

import numpy as np

from dopl_core.bandit import FloatArray
from dopl_core.dynamics import hoeffding

LIPSCHITZ = 1.3  # Lemma 4's L
F_LOW, F_HIGH = 1 / (1 + np.e), np.e / (1 + np.e)  # Bradley-Terry with rewards in [0, 1] (Prop. 2)


@dataclass(frozen=True, eq=False)
class Preferences:
    """What is believed of Q_n(s), the strength of an arm-state over the reference; arrays [N, S].

    mean: the estimate Q^;  sd: its uncertainty (paper: how far the overestimate lies above)
    overestimate: Q~, in [-1, 1], the reward that the plan is made with
    reference: code (arm * S + state) all are measured against, None while there are no answers
    warm: small arrays that a next estimate may start from
    """

    mean: FloatArray
    sd: FloatArray
    overestimate: FloatArray
    reference: int | None
    warm: dict[str, FloatArray] = field(default_factory=dict)


def most_compared(wins: FloatArray) -> int | None:
    """The arm-state in most duels, None where there were none (errata 13)."""
    compared = wins.sum(axis=0) + wins.sum(axis=1)
    return int(compared.argmax()) if compared.any() else None


def empirical(wins: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Alg. 3, step 2: F^ [M, M], the share of duels that the row won, and the duels C [M, M]."""
    C = wins + wins.T
    return np.divide(wins, C, out=np.full_like(wins, 0.5), where=C > 0), C


def infer(F1: FloatArray, F2: FloatArray) -> FloatArray:
    """Lemma 4: F(j1, j2) from F1 = F(hub, j1) and F2 = F(hub, j2)."""
    a, b = (1 - F1) * F2, (1 - F2) * F1
    return a / (a + b)


def logit(F: FloatArray) -> FloatArray:
    """Q = ln F / (1 - F) (Prop. 1)."""
    return np.log(F / (1 - F))


def paper(
    wins: FloatArray, n_states: int, reference: int | None, epochs: int, epsilon: float
) -> Preferences:
    """Alg. 3 from wins [M, M]: how often each arm-state beat each other, ties half each."""
    M = len(wins)
    shape = (M // n_states, n_states)
    if reference is None:
        one = np.ones(shape)
        return Preferences(np.zeros(shape), one, one, None)
    F, C = empirical(wins)
    width = hoeffding(C, shape[0], n_states, epochs, epsilon)
    # Step 3, errata 5: each arm-state x takes the hub with the least L (d(hub, x) + d(hub, ref)).
    by_hub = LIPSCHITZ * (width + width[:, [reference]])
    np.fill_diagonal(by_hub, np.inf)
    by_hub[reference] = np.inf
    hub = by_hub.argmin(axis=0)
    x = np.arange(M)
    F_domain = np.clip(F, F_LOW, F_HIGH)  # Lemma 4 holds where rewards lie in [0, 1]
    inferred = infer(F_domain[hub, x], F_domain[hub, reference])
    direct = width[:, reference] <= by_hub[hub, x]
    estimate = np.where(direct, F[:, reference], inferred)
    delta = np.where(direct, width[:, reference], by_hub[hub, x])
    # Step 4, errata 4: overestimated, but inside the domain; the reference is 0.5 to itself.
    over = np.clip(estimate + delta, F_LOW, F_HIGH)
    estimate = np.clip(estimate, F_LOW, F_HIGH)
    estimate[reference] = over[reference] = 0.5
    mean, overestimate = logit(estimate).reshape(shape), logit(over).reshape(shape)
    return Preferences(mean, overestimate - mean, overestimate, reference)
