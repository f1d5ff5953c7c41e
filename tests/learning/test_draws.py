"""Draws from what is believed have its means, its spreads and its correlations."""

import numpy as np

from dopl_core import environments
from dopl_core.learning import columns, draws, preferences
from dopl_core.learning.counts import Counts
from dopl_core.learning.transitions import moves


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
    mean, variance = moves.rows(seen)
    assert found.shape == (3000, *seen.shape)
    assert np.allclose(found.sum(axis=-1), 1)
    assert np.abs(found.mean(axis=0) - mean).max() < 0.02
    assert np.abs(found.std(axis=0) - np.sqrt(variance)).max() < 0.02


def test_drawn_moves_have_the_mean_and_the_spread_of_what_columns_tell():
    seen = visits()
    age = columns.Column("age", "number", columns.standardised(np.arange(8.0)))
    known = columns.Columns((columns.category("kind", ["a"] * 4 + ["b"] * 4), age), 8)
    found = draws.moves(seen, known, 3000, np.random.default_rng(1))
    mean, variance = moves.rows(seen, known)
    assert np.allclose(found.sum(axis=-1), 1)
    assert np.abs(found.mean(axis=0) - mean).max() < 0.03
    assert np.abs(found.std(axis=0) - np.sqrt(variance)).max() < 0.03
    again = draws.moves(seen, known, 50, np.random.default_rng(1), 0.2)
    assert np.allclose(again.sum(axis=-1), 1)


def test_drawn_moves_can_be_drawn_again():
    one, other = (draws.moves(visits(), None, 5, np.random.default_rng(3)) for _ in range(2))
    assert np.array_equal(one, other)


def test_rows_of_nearly_empty_parameters_are_still_rows():
    found = moves.dirichlet(np.full((100, 3), 1e-6), np.random.default_rng(0))
    assert np.isfinite(found).all()
    assert np.allclose(found.sum(axis=-1), 1)


def test_drawn_strengths_have_the_mean_and_the_covariance_of_the_belief():
    counts = Counts(6)
    counts.add(np.array([0, 1, 2, 5]), np.array([3, 4, 5, 0]), 3.0)
    belief = preferences.calibrated(counts, 2, None)
    found = draws.strengths(belief, 20_000, np.random.default_rng(2)).reshape(20_000, -1)
    assert np.abs(found.mean(axis=0) - belief.mean.ravel()).max() < 0.03
    assert np.abs(np.cov(found.T) - belief.covariance).max() < 0.05


def with_help(seed: int, gain: float) -> np.ndarray:
    """Visits of 12 arms with two states: help adds `gain` in the worse one, nothing else."""
    rng = np.random.default_rng(seed)
    found = np.zeros((12, 2, 2, 2), dtype=int)
    for arm, s, a in np.ndindex(12, 2, 2):
        up = 0.3 + gain * a * (s == 0)
        found[arm, s, a] = rng.multinomial(8, [1 - up, up])
    return found


def share_alike(gain: float, idle: float) -> np.ndarray:
    """In which share of the draws help makes no difference at all, by state."""
    found = draws.moves(with_help(0, gain), None, 400, np.random.default_rng(1), idle)
    return (found[:, :, :, 0] == found[:, :, :, 1]).all(axis=(1, 3)).mean(axis=0)


def test_that_help_makes_no_difference_is_drawn_as_often_as_the_moves_make_it_likely():
    plain, other = share_alike(0.5, 0.2)  # 0.3 without help and 0.8 with it is plain
    assert plain == 0
    assert other > 0.5  # it was thought of with 0.2, and looks like it
    assert (share_alike(0.0, 0.02) < share_alike(0.0, 0.2)).all()
    assert not share_alike(0.0, 0.0).any()


def with_the_same_helped(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """26 weeks of CPAP in which the last 8 patients, of the high-risk kind, are always helped.

    Visits, and the true probabilities of the best state [n, s, a].
    """
    P, rng, arms = environments.load("cpap").transitions, np.random.default_rng(seed), np.arange(20)
    found, helped, s = (
        np.zeros(P.shape, dtype=int),
        (arms >= 12).astype(int),
        rng.integers(3, size=20),
    )
    for _ in range(26):
        then = (rng.random((20, 1)) >= P[arms, s, helped].cumsum(axis=1)[:, :2]).sum(axis=1)
        found[arms, s, helped, then] += 1
        s = then
    return found, P[..., -1]


def test_help_is_judged_honestly_where_always_the_same_are_helped():
    """Those helped are the badly off: compared with the others, help seems to do little."""
    held = []
    for seed in range(10):
        seen, best = with_the_same_helped(seed)
        found = draws.moves(seen, None, 100, np.random.default_rng(seed))[..., -1]
        weight = seen.sum(axis=(2, 3))
        gain, true = ((x[..., 1] - x[..., 0]) * weight for x in (found, best))
        low, high = np.quantile(gain.sum(axis=1), [0.05, 0.95], axis=0)
        held.append((low <= true.sum(axis=0)) & (true.sum(axis=0) <= high))
    assert np.mean(held) >= 0.7


def test_who_is_helped_explains_moves_only_where_most_are_helped_always_or_never():
    seen, _ = with_the_same_helped(0)
    found = draws.with_selection(seen, None)
    assert found is not None
    assert found.names == (draws.SELECTION,)
    assert draws.with_selection(seen + seen[::-1], None) is None
    assert draws.with_selection(np.zeros_like(seen), None) is None
    seen[:, :, 1] = 0  # nobody is helped
    assert draws.with_selection(seen, None) is None
