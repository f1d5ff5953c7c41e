"""Each step of the regression of rows on columns, against what it says it computes."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from dopl_core.learning.columns import Column, category
from dopl_core.learning.transitions import row_regression as regression


def example(rng, N=6, R=4, S=3, D=2, Q=2):
    x, Z = rng.normal(size=(N, D)), rng.normal(size=(S, Q))
    centre = rng.dirichlet(np.ones(S), size=(1, R))
    return x, Z, centre, rng.normal(size=(1, R, D, Q)) * 0.3


def test_features_are_numbers_about_zero_and_missing_ones_are_zero():
    age = Column("age", "number", np.array([1.0, -1.0, np.nan, 0.0]))
    ward = category("ward", ["A", "B", "", "C"])
    risk = category("risk", ["low", "high", "low", "high"])
    x, of = regression.features([age, ward, risk], 24)
    assert of.tolist() == [0, 1, 1, 1, 2, -1]
    assert (x[:, 5] == 1).all()
    assert x[2, :4].tolist() == [0, 0, 0, 0]
    assert np.abs(x[:, 4]) == pytest.approx(1)
    assert x[:, 4].sum() == pytest.approx(0)


def test_there_are_no_more_features_than_allowed_and_whole_columns_only():
    age = Column("age", "number", np.array([1.0, -1.0, 0.0]))
    ward = category("ward", ["A", "B", "C"])
    assert regression.features([age, ward], 3)[1].tolist() == [0, -1]
    assert regression.features([ward, age], 3)[1].tolist() == [0, 0, 0, -1]


def test_scores_rise_with_ordered_states_and_are_contrasts_otherwise():
    assert regression.scores(3, True).ravel() == pytest.approx([-0.5, 0, 0.5])
    assert regression.scores(2, False).ravel() == pytest.approx([-0.5, 0.5])
    contrasts = regression.scores(4, False)
    assert contrasts.shape == (4, 3)
    assert contrasts.sum(axis=0) == pytest.approx(0)
    assert contrasts.T @ contrasts == pytest.approx(np.eye(3))


def test_without_coefficients_every_arm_has_the_centre():
    x, Z, centre, b = example(np.random.default_rng(0))
    assert regression.centres(x, 0 * b, centre, Z) == pytest.approx(
        np.broadcast_to(centre[:, None], (1, 6, 4, 3))
    )


def test_the_slope_is_that_of_the_log_likelihood():
    rng = np.random.default_rng(1)
    x, Z, centre, b = example(rng)
    worth = rng.uniform(0, 5, size=(1, 6, 4, 3))

    def value(flat):
        m = regression.centres(x, flat.reshape(b.shape), centre, Z)
        return (worth * np.log(m)).sum()

    def gradient(flat):
        m = regression.centres(x, flat.reshape(b.shape), centre, Z)
        return regression.slope(worth, m, x, Z)[0].ravel()

    flat = b.ravel()
    assert gradient(flat) == pytest.approx(approx_fprime(flat, value), abs=1e-4)
    information = regression.slope(worth, regression.centres(x, b, centre, Z), x, Z)[1][0]
    numeric = np.array([approx_fprime(flat, lambda f, i=i: gradient(f)[i]) for i in range(16)])
    assert information == pytest.approx(-numeric, abs=1e-4)


def world(rng, effect, N=200, S=2, total=10):
    """Moves of arms where a number has this effect on the log-odds, and one column has none."""
    x = rng.normal(size=(N, 2))
    tilt = effect * x[:, :1, None]
    up = 1 / (1 + np.exp(-tilt - np.zeros((N, 4, 1))))
    n = rng.multinomial(total, np.concatenate([1 - up, up], axis=2)).astype(float)
    return n, np.column_stack([x, np.ones(N)]), np.full((1, 4, 2), 0.5)


def fitted(n, x, centre, k=512.0):
    Z = regression.scores(2, True)
    return regression.fit(n, n[None], x, centre, np.array([k]), Z)


def test_coefficients_are_found_and_their_uncertainty_covers_them():
    n, x, centre = world(np.random.default_rng(2), 0.8)
    found = fitted(n, x, centre)
    b, sd = found.mean[1, :, :, 0], np.sqrt(found.covariance[1].diagonal()).reshape(4, 3)
    assert (np.abs(b - [0.8, 0.0, 0.0]) < 3 * sd).all()
    assert found.gain.max() > 50


def test_columns_that_do_nothing_lose_by_evidence():
    n, x, centre = world(np.random.default_rng(3), 0.0)
    assert (fitted(n, x, centre).gain < 0).all()


def test_the_evidence_is_that_of_the_integral_where_there_are_few_coefficients():
    """One row, one feature: Laplace's approximation against draws from the prior."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=(15, 1))
    up = 1 / (1 + np.exp(-0.5 * x))
    x = np.column_stack([x, np.ones(15)])
    n = rng.multinomial(4, np.concatenate([1 - up, up], axis=1))[:, None].astype(float)
    centre, k, Z = np.full((1, 1, 2), 0.5), np.array([1e5]), regression.scores(2, True)
    found = regression.fit(n, n[None], x, centre, k, Z)
    K = regression.coefficients_covariance(np.zeros(1, dtype=int))[0, 0]
    for g, spread in enumerate(regression.SPREADS):
        sd = np.array([spread * np.sqrt(K), regression.CONSTANT])[:, None]
        b = rng.normal(size=(20_000, 1, 2, 1)) * sd
        m = regression.centres(x, b, np.broadcast_to(centre, (20_000, 1, 2)), Z)
        gain = (n * np.log(m / 0.5)).sum(axis=(1, 2, 3))
        assert found.gain[g] == pytest.approx(np.log(np.mean(np.exp(gain))), abs=0.1)


def test_which_features_matter_is_told_apart():
    n, x, centre = world(np.random.default_rng(5), 0.8)
    found = fitted(n, x, centre)
    given = np.array([0.5, 0.5]), np.arange(4) % 2
    assert regression.matters(found, np.array([True, False, False]), *given) > 0.99
    assert regression.matters(found, np.array([False, True, False]), *given) < 0.3


def test_draws_have_the_mean_and_the_covariance_of_the_coefficients():
    n, x, centre = world(np.random.default_rng(6), 0.5, N=20)
    one = regression.only(fitted(n, x, centre), 1)
    drawn = regression.draw(one, 20_000, np.random.default_rng(0)).reshape(20_000, -1)
    assert np.abs(drawn.mean(axis=0) - one.mean.ravel()).max() < 0.03
    assert np.abs(np.cov(drawn.T) - one.covariance[0]).max() < 0.03


def test_the_variance_of_a_centre_is_that_of_drawn_coefficients():
    n, x, centre = world(np.random.default_rng(7), 0.5, N=60)
    one = regression.only(fitted(n, x, centre), 1)
    m = regression.centres(x, one.mean, one.centre, one.scores)
    variance = regression.variances(x, one, m)[0]
    b = regression.draw(one, 4000, np.random.default_rng(0))
    drawn = regression.centres(x, b, np.broadcast_to(one.centre, (4000, 4, 2)), one.scores)
    assert np.abs(np.sqrt(variance) - drawn.std(axis=0)).max() < 0.02


def test_help_that_was_not_given_at_random_does_not_bend_the_rows():
    """Only arms with a high number were helped, and help does nothing."""
    rng = np.random.default_rng(8)
    x = rng.normal(size=400)
    up = 1 / (1 + np.exp(-x))[:, None]
    rows = np.stack([1 - up, up], axis=-1).repeat(2, axis=1)
    total = np.where((x > 0)[:, None], [0, 12], [12, 0])
    n = rng.multinomial(total, rows).astype(float)
    seen = n.sum(axis=0) / n.sum(axis=(0, 2))[:, None]
    found = fitted(n, np.column_stack([x, np.ones(400)]), seen[None])
    average = np.array([[0.0, 1.0]])
    at = regression.centres(average, found.mean, found.centre, found.scores)[1, 0]
    assert seen[1, 1] - seen[0, 1] > 0.3
    assert abs(at[1, 1] - at[0, 1]) < 0.1
