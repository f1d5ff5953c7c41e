"""Own rows: drawn in to the expected ones as far as people are alike."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, dirichlet_multinomial

from dopl_core.learning.bandit import ACT, WAIT, FloatArray
from dopl_core.learning.moves import own_rows
from dopl_core.learning.moves.own_rows import CONCENTRATIONS, concentrations, drawn_in

S, R = 3, 6


def only(k: float, *, helped: float | None = None) -> FloatArray:
    """Concentrations [k, a] where this one is certain, with help another one."""
    found = np.zeros((len(CONCENTRATIONS), 2))
    found[k == CONCENTRATIONS, WAIT] = 1
    found[(helped or k) == CONCENTRATIONS, ACT] = 1
    return found


def counted(rng: np.random.Generator, rows: FloatArray, total: int) -> FloatArray:
    """As many moves of each row."""
    return rng.multinomial(total, rows).astype(float)


def test_with_one_concentration_a_row_has_the_mean_and_the_variance_of_its_dirichlet() -> None:
    counts = np.array([[[3.0, 1.0], [0.0, 0.0]]])
    expected = np.array([[[0.4, 0.6], [0.5, 0.5]]])
    mean, variance = drawn_in(counts, expected, np.zeros((1, 2, 2)), only(10.0, helped=2.0))
    assert mean[0, 0] == pytest.approx([7 / 14, 7 / 14])
    assert variance[0, 0] == pytest.approx(beta(7, 7).var())
    assert mean[0, 1] == pytest.approx([0.5, 0.5])
    assert variance[0, 1] == pytest.approx(beta(1, 1).var())


def test_the_variance_of_the_expected_row_counts_as_far_as_own_moves_do_not() -> None:
    expected, unsure = np.full((1, 2, 2), 0.5), np.full((1, 2, 2), 0.03)
    counts = np.array([[[5.0, 5.0], [0.0, 0.0]]])
    _, variance = drawn_in(counts, expected, unsure, only(10.0))
    assert variance[0, 0] == pytest.approx(beta(10, 10).var() + 0.03 / 4)
    assert variance[0, 1] == pytest.approx(beta(5, 5).var() + 0.03)


@settings(max_examples=40, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.integers(0, 30))
def test_rows_are_a_mixture_over_concentrations_between_the_shares_and_the_expected(
    seed: int, total: int
) -> None:
    rng = np.random.default_rng(seed)
    expected = rng.dirichlet(np.ones(S), size=(4, R))
    counts = counted(rng, rng.dirichlet(np.ones(S), size=(4, R)), total)
    alike = rng.dirichlet(np.ones(len(CONCENTRATIONS)), size=2).T
    mean, variance = drawn_in(counts, expected, np.zeros(expected.shape), alike)
    assert mean.sum(axis=2) == pytest.approx(1)
    shares = counts / max(total, 1) if total else expected
    assert (mean >= np.minimum(shares, expected) - 1e-12).all()
    assert (mean <= np.maximum(shares, expected) + 1e-12).all()
    assert (variance > 0).all()
    assert (variance <= mean * (1 - mean) + 1e-12).all()
    nothing = np.zeros(expected.shape)
    each = [drawn_in(counts, expected, nothing, only(k)) for k in CONCENTRATIONS]
    of_row = np.tile(alike, (1, S))[:, None, :, None]
    expectation = sum(p * m for p, (m, _) in zip(of_row, each, strict=True))
    square = sum(p * (v + m**2) for p, (m, v) in zip(of_row, each, strict=True))
    assert mean == pytest.approx(expectation)
    assert variance == pytest.approx(square - expectation**2, abs=1e-9)


def test_the_chance_of_a_concentration_is_by_the_dirichlet_multinomial() -> None:
    rng = np.random.default_rng(0)
    expected = rng.dirichlet(np.full(S, 5.0), size=(3, R))
    counts = rng.multinomial(4, expected).astype(int)
    counts[1, 2] = 0
    prior = np.ones(len(CONCENTRATIONS))
    prior[-1] = own_rows.ALIKE
    for action in (WAIT, ACT):
        n, m = counts[:, action::2].reshape(-1, S), expected[:, action::2].reshape(-1, S)
        log = [
            sum(dirichlet_multinomial.logpmf(x, k * p, x.sum()) for x, p in zip(n, m, strict=True))
            for k in CONCENTRATIONS
        ]
        likely = prior * np.exp(np.array(log) - max(log))
        found = concentrations(counts.astype(float), expected)[:, action]
        assert found == pytest.approx(likely / likely.sum())


def test_without_moves_everybody_alike_is_the_likeliest_explanation() -> None:
    found = concentrations(np.zeros((5, R, S)), np.full((5, R, S), 1 / S))
    assert found.sum(axis=0) == pytest.approx(1)
    assert (found.argmax(axis=0) == len(CONCENTRATIONS) - 1).all()


def test_everybody_alike_is_found_where_people_are_alike_and_own_rows_where_they_differ() -> None:
    """Without help people are alike, with help each has their own rows."""
    rng = np.random.default_rng(1)
    expected = np.broadcast_to(np.tile([0.2, 0.3, 0.5], (R, 1)), (80, R, S))
    rows = expected.copy()
    rows[:, ACT::2] = rng.dirichlet(3 * expected[0, 0], size=(80, S))
    counts = counted(rng, rows, 10)
    alike = concentrations(counts, expected)
    likeliest = CONCENTRATIONS[alike.argmax(axis=0)]
    assert likeliest[WAIT] >= 200
    assert likeliest[ACT] <= 5
    mean, _ = drawn_in(counts, expected, np.zeros(rows.shape), alike)
    error = np.sqrt(((mean - rows) ** 2).mean(axis=(0, 2)))
    shares = np.sqrt(((counts / 10 - rows) ** 2).mean(axis=(0, 2)))
    everybody = np.sqrt(((expected - rows) ** 2).mean(axis=(0, 2)))
    assert (error[WAIT::2] < 0.3 * shares[WAIT::2]).all()
    assert (error[ACT::2] < np.minimum(shares, everybody)[ACT::2]).all()


def test_90_percent_intervals_cover_where_concentrations_are_those_of_the_people() -> None:
    rng = np.random.default_rng(2)
    covered = []
    for k in (5.0, 20.0, 200.0):
        expected = np.broadcast_to(rng.dirichlet(np.full(S, 4.0), size=R), (60, R, S))
        rows = rng.standard_gamma(k * expected)
        rows /= rows.sum(axis=2, keepdims=True)
        counts = counted(rng, rows, 6)
        alike = concentrations(counts, expected)
        mean, variance = drawn_in(counts, expected, np.zeros(rows.shape), alike)
        covered.append((np.abs(mean - rows) <= 1.645 * np.sqrt(variance)).mean())
    assert np.mean(covered) == pytest.approx(0.9, abs=0.04)
