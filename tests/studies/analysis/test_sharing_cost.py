"""What sharing places costs, from a study's own learner."""

import numpy as np
import pytest

from dopl_core import studies
from dopl_core.studies import Arm, Store, sharing_cost

STATES = ("Low", "High")


def learner(store: Store, **rules: object) -> studies.Learner:
    """Ten people in two wards."""
    arms = [Arm(f"p{n}", f"p{n}", state="Low", columns={"ward": "ABBBB"[n % 5]}) for n in range(10)]
    config = studies.from_roster(arms, STATES, title="Clinic", budget=4, **rules)
    return studies.load_learner(store, studies.create_study(store, config))


def test_a_rule_costs_a_share_of_the_gain_and_moves_places(sqlite_store: Store) -> None:
    rule = {"fair_column": "ward", "fair_rule": "shares", "fair_shares": "A 50"}
    found = sharing_cost.compute(learner(sqlite_store, **rule), 0)
    assert found is not None
    assert found.groups == ("A", "B")
    assert found.people == [2, 8]
    assert found.with_rule[0] == pytest.approx(2, abs=1e-6)
    assert found.without[0] < 1.5
    assert found.with_rule.sum() <= 4 + 1e-6
    assert 0 < found.cost.mean < 1
    assert found.cost.low <= found.cost.mean <= found.cost.high
    assert sharing_cost.share_rows(found)[0][:3] == ("A", 2, 2.0)


def test_the_cost_is_a_sentence() -> None:
    cost = sharing_cost.Estimate(0.031, 0.012, 0.049, 1.0)
    found = sharing_cost.SharingCost("ward", ("A",), [2], np.ones(1), np.ones(1), cost)
    assert sharing_cost.cost_text(found, seen=True) == (
        "Sharing places by ward costs 3 % (90 % interval 1 to 5 %) of what the list is expected to "
        "gain."
    )
    assert "%" not in sharing_cost.cost_text(found, seen=False)


def test_a_study_without_the_rule_has_no_cost(sqlite_store: Store) -> None:
    assert sharing_cost.compute(learner(sqlite_store), 0) is None
