"""The roster's columns: which the learner uses, and which cards show."""

import numpy as np
from playing import STATES, clinic

from dopl_core import studies
from dopl_core.studies import Store
from dopl_core.studies.model.factories import learner_of


def ward(**rules: object) -> studies.StudyConfig:
    """Twelve people with a risk, an age, a note and a phone number each."""
    rows = ["id,state,risk,age,note,phone"]
    for n in range(12):
        risk = "high" if n % 2 else "low"
        rows.append(f"p{n},{STATES[n % 3]},{risk},{60 + n * n},said {n} things,555-{n}")
    arms = studies.read_roster("\n".join(rows).encode(), STATES)
    small = {"title": "Ward", "budget": 3, "practice": False}
    return studies.from_roster(arms, STATES, **(small | rules))


def test_the_learner_uses_numbers_and_categories_and_no_notes() -> None:
    columns = ward().columns
    assert columns is not None
    assert columns.names == ("risk", "age")
    used = learner_of(ward()).columns
    assert used is not None
    assert used.names == ("risk", "age")


def test_an_owner_keeps_a_column_from_the_learner() -> None:
    columns = ward(unused_columns="age, phone").columns
    assert columns is not None
    assert columns.names == ("risk",)


def test_a_hidden_column_is_on_no_card_and_still_used(sqlite_store: Store) -> None:
    config = ward(hidden_columns="risk,phone")
    assert config.columns is not None
    assert "risk" in config.columns.names
    study = studies.create_study(sqlite_store, config)
    found = studies.next_duel(sqlite_store, study, "Ann")
    assert isinstance(found, studies.Ask)
    assert found.left.columns.keys() == {"age", "note"}


def test_a_column_is_hidden_at_once_from_the_open_comparison(sqlite_store: Store) -> None:
    study = studies.create_study(sqlite_store, ward())
    shown = studies.next_duel(sqlite_store, study, "Ann")
    assert isinstance(shown, studies.Ask)
    assert "phone" in shown.left.columns
    studies.change_settings(sqlite_store, study, hidden_columns="phone")
    again = studies.next_duel(sqlite_store, study, "Ann")
    assert isinstance(again, studies.Ask)
    assert again.left.arm == shown.left.arm
    assert "phone" not in again.left.columns | again.right.columns


def test_a_simulated_world_has_its_columns_in_its_environment() -> None:
    assert studies.from_environment("cpap").columns is None


def test_somebody_who_joins_later_may_lack_a_column() -> None:
    config = clinic()
    joined = studies.Arm("p9", "Eve", state="Low")
    columns = studies.from_roster([*config.arms, joined], STATES, title="T", budget=2).columns
    assert columns is not None
    assert columns.n_arms == 5
    assert all(len(one.values) == 5 for one in columns.each)


def test_what_moves_with_a_column_is_found(sqlite_store: Store) -> None:
    """High risk mostly falls to Low, low risk mostly rises to High: twelve weeks tell."""
    study = studies.create_study(sqlite_store, ward(answers=0, horizon=1))
    rng = np.random.default_rng(0)
    for _ in range(12):
        usual = rng.random(12) < 0.8
        report = {f"p{n}": "Low" if usual[n] == n % 2 else "High" for n in range(12)}
        studies.observe(sqlite_store, study, report)
        studies.advance(sqlite_store, study)
    learner = studies.load_learner(sqlite_store, study)
    matters = learner.which_columns()
    assert matters["risk"] > 0.9
    finding = studies.chart_text.columns_finding(matters)
    assert "risk" in finding.title
    assert np.isfinite(finding.data.probability).all()
