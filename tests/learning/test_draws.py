"""Draws from what is believed have its means, its spreads and its correlations."""

import numpy as np

from dopl_core.learning import draws, latent_classes, preferences
from dopl_core.learning.counts import Counts


def visits(seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    found = np.zeros((8, 2, 2, 2), dtype=int)
    for arm in range(8):
        p = 0.2 if arm < 4 else 0.7
        for s, a in np.ndindex(2, 2):
            found[arm, s, a] = rng.multinomial(5, [1 - p, p])
    return found


def test_drawn_moves_are_rows_with_the_mean_and_the_spread_of_what_is_believed():
    seen = visits()
    found = draws.moves(seen, None, 3000, np.random.default_rng(1))
    mean, variance = latent_classes.rows(seen)
    assert found.shape == (3000, *seen.shape)
    assert np.allclose(found.sum(axis=-1), 1)
    assert np.abs(found.mean(axis=0) - mean).max() < 0.02
    assert np.abs(found.std(axis=0) - np.sqrt(variance)).max() < 0.02


def test_drawn_moves_can_be_drawn_again():
    one, other = (draws.moves(visits(), None, 5, np.random.default_rng(3)) for _ in range(2))
    assert np.array_equal(one, other)


def test_rows_of_nearly_empty_parameters_are_still_rows():
    found = draws.dirichlet(np.full((100, 3), 1e-6), np.random.default_rng(0))
    assert np.isfinite(found).all()
    assert np.allclose(found.sum(axis=-1), 1)


def test_drawn_strengths_have_the_mean_and_the_covariance_of_the_belief():
    counts = Counts(6)
    counts.add(np.array([0, 1, 2, 5]), np.array([3, 4, 5, 0]), 3.0)
    belief = preferences.calibrated(counts, 2, None)
    found = draws.strengths(belief, 20_000, np.random.default_rng(2)).reshape(20_000, -1)
    assert np.abs(found.mean(axis=0) - belief.mean.ravel()).max() < 0.03
    assert np.abs(np.cov(found.T) - belief.covariance).max() < 0.05
