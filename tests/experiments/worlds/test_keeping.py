"""Programmes in which help keeps active people active: kinds, and gains of the published size."""

import numpy as np
import pytest

from dopl_core.experiments.worlds import draw
from dopl_core.experiments.worlds.keeping import kind_rows


@pytest.mark.parametrize(
    ("name", "arms", "budget"), [("keeping_kinds", 20, 8), ("keeping_kinds_100", 100, 40)]
)
def test_people_are_of_three_kinds_that_move_alike(name: str, arms: int, budget: int) -> None:
    bandit = draw(name, 0).bandit
    assert (bandit.n_arms, bandit.n_states, bandit.budget) == (arms, 3, budget)
    assert len(np.unique(bandit.transitions, axis=0)) == len(set(bandit.groups)) == 3
    for kind in set(bandit.groups):
        rows = bandit.transitions[np.array(bandit.groups) == kind]
        assert len(rows) >= arms // 3
        assert (rows == rows[0]).all()
    assert not bandit.columns  # nobody is told the kinds


def test_help_does_most_by_keeping_active_people_active() -> None:
    drawn = np.array([kind_rows(np.random.default_rng(seed)) for seed in range(200)])
    assert drawn.min() >= 0
    assert drawn.sum(axis=-1) == pytest.approx(1)
    wait, act = drawn[:, :, 0], drawn[:, :, 1]
    left, middle, active = (act - wait)[:, :, 2].T
    assert 0.01 <= left.min() < left.max() <= 0.02
    assert 0.07 <= middle.min() < middle.max() <= 0.19
    drifts = 1 - wait[:, 2, 2]
    assert (active <= 0.95 * drifts + 1e-12).all()
    assert ((active >= 0.26) | np.isclose(active, 0.95 * drifts)).all()
    assert active.max() <= 0.34
    assert (wait[:, 0, 0] >= 0.9).all()
    assert ((drifts >= 0.3) & (drifts <= 0.5)).all()
    assert wait[:, 1, 0].mean() == pytest.approx(0.3, abs=0.02)
    assert wait[:, 1, 2].mean() == pytest.approx(0.1, abs=0.01)
