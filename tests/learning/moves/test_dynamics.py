"""The paper's boxes around transition rows."""

import numpy as np
import pytest

from dopl_core.learning.moves import dynamics


def test_unvisited_rows_are_flat_and_their_box_is_everything() -> None:
    belief = dynamics.paper(np.zeros((2, 4, 2, 4), dtype=int), 0, 1e-5)
    assert (belief.mean == 0.25).all()
    assert (belief.low == 0).all()
    assert (belief.high == 1).all()


def test_the_width_is_the_papers() -> None:
    visits = np.zeros((1, 2, 2, 2), dtype=int)
    visits[0, 0, 1] = [300, 100]
    belief = dynamics.paper(visits, 400, 1e-5)
    width = np.sqrt(np.log(4 * 2 * 2 * 1 * 400 / 1e-5) / (2 * 400))
    assert belief.mean[0, 0, 1] == pytest.approx([0.75, 0.25])
    assert belief.high[0, 0, 1] == pytest.approx([0.75 + width, 0.25 + width])
    assert belief.low[0, 0, 1] == pytest.approx([0.75 - width, 0.25 - width])


def test_the_first_plan_has_a_finite_width() -> None:
    assert np.isfinite(dynamics.hoeffding(np.zeros(1), 20, 3, 0, 1e-5)).all()


def test_boxes_hold_a_distribution_and_the_truth() -> None:
    rng = np.random.default_rng(0)
    truth = rng.dirichlet(np.ones(3), size=(5, 3, 2))
    visits = np.array([rng.multinomial(200, row) for row in truth.reshape(-1, 3)])
    belief = dynamics.paper(visits.reshape(truth.shape), 1000, 0.05)
    assert (belief.low.sum(axis=3) <= 1).all()
    assert (belief.high.sum(axis=3) >= 1).all()
    assert ((belief.low <= truth) & (truth <= belief.high)).all()


def test_the_papers_belief_says_nothing_of_an_effect_that_everybody_shares() -> None:
    belief = dynamics.paper(np.zeros((2, 3, 2, 3), dtype=int), 0, 1e-5)
    assert belief.effect is None
    assert belief.effect_covariance is None
