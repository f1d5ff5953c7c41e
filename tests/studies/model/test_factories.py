"""A study knows the Learner interface: any learner with dynamics and rewards can run one."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playing import STATES, Clock, check_replay, clinic, play

from dopl_core import studies
from dopl_core.learning.bandit import FloatArray
from dopl_core.learning.learner import Learner
from dopl_core.learning.moves import dynamics
from dopl_core.learning.moves.dynamics import Dynamics
from dopl_core.learning.planning import Plan, plan
from dopl_core.learning.state_arrays import pack, unpack
from dopl_core.studies import Arm, Store
from dopl_core.studies.model import factories

ROOT = Path(__file__).resolve().parents[3]


class Counting(Learner):
    """Plans for counted transitions, and for rewards that rise with the order of the states."""

    def __init__(self, *size: int, horizon: int, seed: int, design: str, **_: Any) -> None:
        super().__init__(*size, horizon=horizon, seed=seed, design=design)

    def make_plan(self) -> Plan:
        self.dynamics = dynamics.paper(self.visits, 1, 0.5)
        P = self.dynamics.mean
        return plan(self.rewards(), P, P, self.budget, engine="lagrangian")

    def rewards(self) -> FloatArray:
        rising = np.arange(self.n_states, dtype=float)
        return np.broadcast_to(rising[:, None], (self.n_arms, self.n_states, 2))

    def state(self) -> dict[str, Any]:
        return super().state() | pack("dynamics", self.dynamics)

    def restore(self, state: dict[str, Any]) -> None:
        self.dynamics = unpack(Dynamics, "dynamics", state)
        super().restore(state)


def test_another_learner_runs_a_study_that_replays_to_the_bit(
    sqlite_store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(factories, "Dopl", Counting)
    study = studies.create_study(sqlite_store, clinic(weigh_people=False, sitting=5))
    assert play(sqlite_store, study, 30, clock=clock) > 10
    studies.join(sqlite_store, study, [Arm("p5", "Eva", "ward", STATES[0])])
    assert play(sqlite_store, study, 30, clock=clock) > 10
    learner = check_replay(sqlite_store, study)
    assert isinstance(learner, Counting)
    assert learner.n_arms == 5
    assert learner.episode > 3
    shown = studies.read_lists(sqlite_store, study)[-1]
    assert len(shown.listed) == 2


def test_the_kind_of_help_reaches_the_learner_and_changes_with_the_next_plan(
    store: Store,
) -> None:
    study = studies.create_study(store, clinic(horizon=1, help_kind="call"))
    assert studies.load_learner(store, study).help_kind == "call"
    studies.change_settings(store, study, help_kind="visit")
    assert studies.load_learner(store, study).help_kind == "call"
    studies.observe(store, study, studies.present_states(store, study))
    studies.advance(store, study)
    assert check_replay(store, study).help_kind == "visit"
    exported = studies.export_bundle(store, study)
    studies.delete_study(store, study)
    studies.import_bundle(store, exported)
    assert studies.load_learner(store, study).help_kind == "visit"


def test_places_to_find_out_reach_the_learner_and_change_with_the_next_plan(
    sqlite_store: Store,
) -> None:
    store = sqlite_store
    study = studies.create_study(store, clinic(horizon=1, find_out=1))
    assert studies.load_learner(store, study).find_out == 1
    for places in (0, None):
        studies.change_settings(store, study, find_out=places)
        assert studies.load_learner(store, study).find_out != places
        studies.observe(store, study, studies.present_states(store, study))
        studies.advance(store, study)
        assert check_replay(store, study).find_out == places
    with pytest.raises(ValueError, match="find_out is 2: it must be less than the budget"):
        studies.change_settings(store, study, find_out=2)


def test_a_learner_that_cannot_follow_a_setting_refuses_the_study(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(factories, "Dopl", Counting)
    with pytest.raises(ValueError, match="Counting cannot weight answers by annotator"):
        studies.create_study(sqlite_store, clinic(weigh_people=True, sitting=5))


def test_only_the_factory_names_the_class_of_a_studys_learner() -> None:
    files = [*(ROOT / "dopl_core" / "studies").rglob("*.py"), *(ROOT / "pages").rglob("*.py")]
    naming = {path.name for path in files if "Dopl" in path.read_text(encoding="utf-8")}
    assert naming == {"factories.py"}
