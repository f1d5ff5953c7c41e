"""The learners that can be simulated, in one table. A new learner is a file and a row here."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dopl_core.experiments.baselines import MleLp, Oracle, Random, WorstFirst
from dopl_core.experiments.whittle import MleQwic, MleWibql
from dopl_core.learning.bandit import Bandit
from dopl_core.learning.columns import of_bandit
from dopl_core.learning.dopl import Confidence, Dopl, Reference
from dopl_core.learning.learner import Learner


@dataclass(frozen=True)
class Kind:
    """A kind of learner.

    label: shown to people
    lines: its lines in figures, label and colour, by confidence ("none" if it has none);
           colours that colour-blind readers can tell apart (Okabe and Ito)
    make: from its settings and the bandit; only the oracle uses more than size, `pays` and columns
    uses: settings that it has in addition to those of every learner
    """

    label: str
    lines: dict[str, tuple[str, str]]
    make: Callable[..., Learner]
    uses: tuple[str, ...] = ()


def _dopl(bandit: Bandit, *, confidence: Confidence, columns: bool = True, **own: Any) -> Learner:
    # Errata 13. With the paper's widths everything except a fixed reference is overestimated, so
    # that its arm is never helped again and nothing is compared with it: after 400 episodes of App
    # Marketing such a learner is no better than random help. The authors' reference moves too.
    reference: Reference = "most-compared" if confidence == "paper" else "fixed"
    return Dopl(
        *_size(bandit),
        confidence=confidence,
        reference=reference,
        epsilon=bandit.epsilon,
        pays=bandit.pays,
        columns=of_bandit(bandit.columns, bandit.n_arms) if columns and bandit.columns else None,
        **own,
    )


def _paid(kind: Callable[..., Learner]) -> Callable[..., Learner]:
    """Makes a learner that knows which arms are paid."""
    return lambda bandit, **own: kind(*_size(bandit), pays=bandit.pays, **own)


def _sized(kind: Callable[..., Learner]) -> Callable[..., Learner]:
    """Makes a learner that knows only the size of its bandit."""
    return lambda bandit, **own: kind(*_size(bandit), **own)


def _size(bandit: Bandit) -> tuple[int, int, int]:
    return bandit.n_arms, bandit.n_states, bandit.budget


# In the order of a figure's legend.
LEARNERS = {
    "oracle": Kind(
        "Oracle (knows everything)", {"none": ("Oracle", "#000000")}, Oracle, ("engine",)
    ),
    "dopl": Kind(
        "DOPL",
        {"paper": ("DOPL", "#009e73"), "calibrated": ("DOPL, calibrated", "#cc79a7")},
        _dopl,
        ("confidence", "engine", "answers", "ordered", "columns"),
    ),
    "mle_lp": Kind("MLE + LP", {"none": ("MLE_LP", "#e69f00")}, _paid(MleLp), ("engine", "memory")),
    "mle_wibql": Kind(
        "MLE + WIBQL", {"none": ("MLE_WIBQL", "#0072b2")}, _paid(MleWibql), ("memory",)
    ),
    "mle_qwic": Kind("MLE + QWIC", {"none": ("MLE_QWIC", "#56b4e9")}, _paid(MleQwic), ("memory",)),
    "worst_first": Kind(
        "Worst states first", {"none": ("Worst first", "#999999")}, _sized(WorstFirst)
    ),
    "random": Kind("Random help", {"none": ("Random", "#d55e00")}, _sized(Random)),
}
