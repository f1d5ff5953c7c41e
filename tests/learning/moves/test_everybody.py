"""Rows of everybody: what holds whatever is believed beforehand."""

from itertools import product
from math import exp

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dopl_core.learning.bandit import ACT, WAIT, FloatArray
from dopl_core.learning.effects import KINDS
from dopl_core.learning.moves.everybody import (
    dirichlet_covariance,
    dirichlet_multinomial,
    learnt,
    normalised,
)
from dopl_core.learning.moves.model import dirichlet


def moved(seed: int, total: float, n_states: int = 3) -> FloatArray:
    """Moves [s, a, t] of rows drawn at random; some rows have none."""
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.full(n_states, 0.7), size=(n_states, 2))
    return rng.multinomial(rng.poisson(total, size=(n_states, 2)), rows).astype(float)


def test_the_probability_of_moves_is_the_product_of_polyas_urn() -> None:
    """Each move puts another ball of its kind into the urn."""
    alpha, counts = [0.5, 2.0, 1.5], [2, 0, 3]
    urn, product_ = list(alpha), 1.0
    for outcome, count in enumerate(counts):
        for _ in range(count):
            product_ *= urn[outcome] / sum(urn)
            urn[outcome] += 1
    found = dirichlet_multinomial(np.array(counts, dtype=float), np.array(alpha))
    assert found == pytest.approx(np.log(product_))


@settings(max_examples=30, derandomize=True)
@given(st.lists(st.floats(0.01, 50), min_size=2, max_size=4), st.integers(0, 5))
def test_probabilities_of_all_sequences_of_moves_sum_to_one(alpha: list[float], total: int) -> None:
    sequences = product(range(len(alpha)), repeat=total)
    counts = [np.bincount(np.array(one, dtype=int), minlength=len(alpha)) for one in sequences]
    each = dirichlet_multinomial(np.array(counts, dtype=float), np.array(alpha))
    assert sum(exp(log) for log in each) == pytest.approx(1)


def test_the_probability_of_no_moves_is_one() -> None:
    assert dirichlet_multinomial(np.zeros((4, 3)), np.full((4, 3), 0.2)) == pytest.approx(0)


def test_the_covariance_of_a_dirichlet_row_is_that_of_draws() -> None:
    rng = np.random.default_rng(0)
    rows, weight = rng.dirichlet(np.ones(3), size=2), np.array([2.0, 30.0])
    found = dirichlet_covariance(rows, weight)
    for row, size, covariance in zip(rows, weight, found, strict=True):
        draws = dirichlet(np.tile(size * row, (50_000, 1)), rng)
        assert covariance == pytest.approx(np.cov(draws.T), abs=0.003)
        assert covariance.sum(axis=1) == pytest.approx(0)


def test_normalised_rows_sum_to_one_and_keep_their_ratios() -> None:
    rows = normalised(np.array([[[1.0, 3.0], [2.0, 2.0]]]))
    assert rows.tolist() == [[[0.25, 0.75], [0.5, 0.5]]]


@settings(max_examples=40, derandomize=True)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.0, 0.5, 5.0, 5000.0]),
    st.integers(2, 5),
    st.sampled_from(KINDS),
    st.booleans(),
)
def test_rows_are_distributions_whatever_was_seen(
    seed: int, total: float, n_states: int, kind: str, ordered: bool
) -> None:
    found = learnt(moved(seed, total, n_states), kind, ordered=ordered)  # type: ignore[arg-type]
    assert found.rows.shape == (n_states, 2, n_states)
    assert (found.rows > 0).all()
    assert found.rows.sum(axis=2) == pytest.approx(1)
    assert found.chance.sum(axis=0) == pytest.approx(1)
    variance = found.variance()
    assert (variance > 0).all()
    assert (variance <= found.rows * (1 - found.rows) + 1e-9).all()
    change, covariance = found.effect()
    assert change == pytest.approx(found.rows[:, ACT] - found.rows[:, WAIT])
    assert change.sum(axis=1) == pytest.approx(0)
    assert covariance.sum(axis=2) == pytest.approx(0)
    assert (np.linalg.eigvalsh(covariance) > -1e-9).all()


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_with_many_moves_rows_approach_the_shares_that_were_seen(seed: int, ordered: bool) -> None:
    moves = 1 + moved(seed, 20_000)
    found = learnt(moves, ordered=ordered)
    assert found.rows == pytest.approx(normalised(moves), abs=0.03)
    assert np.sqrt(found.variance()).max() < 0.02


@pytest.mark.parametrize("ordered", [False, True])
def test_moves_make_rows_more_certain(ordered: bool) -> None:
    few, many = (learnt(1 + moved(4, total), ordered=ordered) for total in (3, 300))
    assert (many.variance() < few.variance()).all()
    traces = [np.trace(one.effect()[1], axis1=1, axis2=2) for one in (few, many)]
    assert (traces[1] < traces[0]).all()


def test_where_states_have_no_order_help_is_expected_to_do_nothing_beforehand() -> None:
    found = learnt(np.zeros((3, 2, 3)), ordered=False)
    assert found.effect()[0] == pytest.approx(0)
    alone = moved(5, 30)
    alone[:, ACT] = 0
    assert learnt(alone, ordered=False).effect()[0] == pytest.approx(0)


def test_where_states_have_no_order_their_names_make_no_difference() -> None:
    moves, order = moved(6, 10), np.array([2, 0, 1])
    found = learnt(moves, ordered=False).rows
    other = learnt(moves[order][:, :, order], ordered=False).rows
    assert other == pytest.approx(found[order][:, :, order])


def test_where_states_are_ordered_help_is_expected_to_do_good_beforehand() -> None:
    found = learnt(np.zeros((4, 2, 4)))
    change, covariance = found.effect()
    up = np.arange(4)
    gain, sd = change @ up, np.sqrt(up @ covariance @ up)
    assert (gain[:-1] > 0).all()
    assert (gain < 3 * sd).all()  # and may as well do nothing


def test_where_only_help_was_seen_it_is_not_believed_to_have_done_everything() -> None:
    """Of people who were all helped, some would have moved up anyway."""
    moves = np.zeros((3, 2, 3))
    moves[:, ACT] = [[50, 30, 20], [20, 50, 30], [10, 20, 70]]
    found = learnt(moves)
    assert found.rows[:, ACT] == pytest.approx(normalised(moves[:, ACT]), abs=0.1)
    change, covariance = found.effect()
    up = np.arange(3)
    assert (np.abs(change @ up) < 3 * np.sqrt(up @ covariance @ up)).all()
    nothing = learnt(np.zeros((3, 2, 3)))
    towards = np.abs(found.rows - normalised(moves[:, ACT])[:, None])[:, WAIT].sum()
    assert towards < np.abs(nothing.rows - normalised(moves[:, ACT])[:, None])[:, WAIT].sum()
