"""The contract of a learner: five planted faults are found, each by its check."""

from typing import Any

import numpy as np
import pytest

from dopl_core import Learner
from dopl_core.cli import main
from dopl_core.experiments import contract
from dopl_core.experiments.baselines import index_plan
from dopl_core.learning.bandit import IntArray
from dopl_core.learning.planning import Plan


class LosersFirst(Learner):
    """A learner without a fault: those who lost most of their duels are helped first."""

    def make_plan(self) -> Plan:
        wins = self.counts.wins()
        return index_plan((wins.T - wins).sum(axis=1).reshape(self.n_arms, self.n_states))


class PlansArmsOnly(LosersFirst):
    """Its plan has one number for each arm."""

    def make_plan(self) -> Plan:
        return index_plan(super().make_plan().index.sum(axis=1, keepdims=True))


class HelpsOneMore(LosersFirst):
    def activate(self, states: IntArray, epoch: int, *given: Any, **more: Any) -> IntArray:
        arms = super().activate(states, epoch, *given, **more)
        return np.union1d(arms, np.setdiff1d(self._arms, arms)[:1])


class DrawsAnew(LosersFirst):
    """Its random numbers do not come from its seed."""

    def make_plan(self) -> Plan:
        return index_plan(np.random.default_rng().random((self.n_arms, self.n_states)))


class KeepsAScore(LosersFirst):
    """It carries a score from plan to plan, but does not save it."""

    score: Any = 0.0

    def make_plan(self) -> Plan:
        self.score = 0.5 * self.score + super().make_plan().index
        return index_plan(self.score)


class TakesNothingBack(LosersFirst):
    def count_duels(self, duels: Any, credit: Any, times: Any = 1.0, who: Any = 0) -> None:
        super().count_duels(duels, credit, np.maximum(times, 0), who)


FAULTS = {
    PlansArmsOnly: "shapes",
    HelpsOneMore: "budget",
    DrawsAnew: "determinism",
    KeepsAScore: "restores",
    TakesNothingBack: "forgets",
}


@pytest.mark.parametrize("kind", FAULTS, ids=lambda kind: kind.__name__)
def test_a_planted_fault_is_found_by_its_check(kind: type[Learner]) -> None:
    found = contract.check(f"{__name__}:{kind.__name__}")
    assert found[FAULTS[kind]]
    if kind in (KeepsAScore, TakesNothingBack):  # these break one rule only
        assert [name for name, trouble in found.items() if trouble] == [FAULTS[kind]]


def test_a_learner_without_fault_passes_by_command(capsys: pytest.CaptureFixture[str]) -> None:
    main(["check", f"{__name__}:LosersFirst"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines] == [[name, "ok"] for name in contract.CHECKS]


def test_the_command_fails_and_says_what_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="1 of 7 checks failed"):
        main(["check", f"{__name__}:TakesNothingBack"])
    assert "answers taken back leave a trace: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("magic", "is not one of oracle, dopl"),
        ("no.such.module:Class", "ModuleNotFoundError"),
        ("dopl_core.world:Nothing", "AttributeError"),
        ("dopl_core.world:SimulatedWorld", "is not a subclass of dopl_core.Learner"),
    ],
)
def test_what_is_no_learner_is_refused_with_the_reason(name: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        contract.check(name)
