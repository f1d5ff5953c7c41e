"""The learners that can be simulated: one table, and those that come from outside.

A new one is an entry of LEARNERS, and is named in the researcher's guide.
A learner from outside is `package.module:Class`, an entry point of the group `dopl.learners` in an
installed package, or a class or factory that is given to `simulate`.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from dopl_core.experiments.baselines import (
    MiddleFirst,
    MleLp,
    Oracle,
    Pooled,
    Random,
    WorstFirst,
)
from dopl_core.experiments.known_rewards import Thompson, UcWhittle, WhittleOracle
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
    make: from its settings and the bandit; only those that know moves or rewards, such as the
          oracle, use more of it than size, `pays` and columns
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
    "middle_first": Kind(
        "Middle states first", {"none": ("Middle first", "#cc6677")}, _sized(MiddleFirst)
    ),
    "pooled": Kind(
        "Moves of all people pooled", {"none": ("Pooled", "#ddcc77")}, _paid(Pooled), ("engine",)
    ),
    "random": Kind("Random help", {"none": ("Random", "#d55e00")}, _sized(Random)),
    "whittle_oracle": Kind(
        "Whittle index of the true model", {"none": ("Whittle oracle", "#8b6f47")}, WhittleOracle
    ),
    "uc_whittle": Kind("UCWhittle, rewards known", {"none": ("UCWhittle", "#332288")}, UcWhittle),
    "thompson": Kind(
        "Thompson sampling, rewards known", {"none": ("Thompson", "#882255")}, Thompson
    ),
}

GROUP = "dopl.learners"
FLOW = ("horizon", "seed", "design", "ties")  # settings of every learner
_TOLD = ("confidence", "engine", "answers", "ordered", "memory")  # those that a class may ask for


def names() -> list[str]:
    """The learners of the table, then those that installed packages offer."""
    return [*LEARNERS, *(name for name in _offered() if name not in LEARNERS)]


def label(name: str) -> str:
    """What people read in place of a learner's name."""
    return LEARNERS[name].label if name in LEARNERS else name


def find(name: str) -> Kind:
    """The kind of learner with a name, or of `package.module:Class`."""
    if name in LEARNERS:
        return LEARNERS[name]
    if ":" in name:
        return kind_of(_imported(EntryPoint(name, name, GROUP)), name)
    if name in (offered := _offered()):
        return kind_of(_imported(offered[name]), name)
    raise ValueError(
        f'learner "{name}" is not one of {", ".join(names())}, nor a package.module:Class'
    )


def kind_of(learner: type[Learner] | Callable[..., Learner], name: str = "") -> Kind:
    """The kind of a class or a factory of learners.

    A class is made with n_arms, n_states, budget, horizon, seed, design and ties, and with those of
    confidence, engine, answers, ordered, memory and pays that its arguments name. A factory is
    called with the bandit, horizon and seed.
    """
    name = name or getattr(learner, "__name__", "") or type(learner).__name__
    if not isinstance(learner, type):
        if not callable(learner):
            raise ValueError(f"learner {learner!r} is not a name, a class or a factory")
        return Kind(name, {}, _from_factory(learner, name))
    if not issubclass(learner, Learner):
        raise ValueError(f'learner "{name}" is not a subclass of dopl_core.Learner')
    asked = _arguments(learner)
    uses = tuple(setting for setting in _TOLD if setting in asked)
    return Kind(name, {}, (_paid if "pays" in asked else _sized)(learner), uses)


def _arguments(learner: type) -> set[str]:
    """The arguments that a class names, and those of its bases where it passes others on."""
    found: set[str] = set()
    for kind in learner.__mro__:
        if "__init__" in vars(kind):
            arguments = inspect.signature(vars(kind)["__init__"]).parameters
            found |= arguments.keys()
            if all(one.kind != inspect.Parameter.VAR_KEYWORD for one in arguments.values()):
                break
    return found


def _from_factory(factory: Callable[..., Learner], name: str) -> Callable[..., Learner]:
    def make(bandit: Bandit, *, horizon: int, seed: int, **_: Any) -> Learner:
        made = factory(bandit, horizon=horizon, seed=seed)
        if not isinstance(made, Learner):
            raise ValueError(f"factory {name} gave {type(made).__name__}, not a dopl_core.Learner")
        return made

    return make


def _offered() -> dict[str, EntryPoint]:
    return {found.name: found for found in entry_points(group=GROUP)}


def _imported(place: EntryPoint) -> Any:
    """What an entry point names. Whatever its module raises becomes one line."""
    module, _, name = place.value.partition(":")
    try:
        found: Any = import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except Exception as error:
        raise ValueError(f'learner "{place.value}": {type(error).__name__}: {error}') from error
    return found
