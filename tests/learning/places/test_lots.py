"""Who of a list waits by lot, and who gets the places."""

import numpy as np

from dopl_core.learning.places.lots import exchange

LISTED, OTHERS = np.array([1, 4, 6, 7]), np.array([0, 2, 3, 5, 8, 9])


def test_everybody_listed_is_as_likely_to_wait_and_everybody_else_to_be_drawn():
    waited, drawn = np.zeros(10), np.zeros(10)
    for seed in range(4_000):
        out, instead = exchange(LISTED, OTHERS, 2, np.random.default_rng(seed))
        assert len(out) == len(instead) == 2
        waited[out] += 1
        drawn[instead] += 1
    assert waited[OTHERS].sum() == drawn[LISTED].sum() == 0
    assert np.abs(waited[LISTED] / 4_000 - 2 / 4).max() < 0.03
    assert np.abs(drawn[OTHERS] / 4_000 - 2 / 6).max() < 0.03


def test_nobody_waits_whose_place_nobody_could_get():
    rng = np.random.default_rng(0)
    for others, count in ((OTHERS[:0], 0), (OTHERS[:1], 1), (OTHERS, 3)):
        out, drawn = exchange(LISTED, others, 3, rng)
        assert len(out) == len(drawn) == count
    codes = np.arange(10) >= 5  # of the others, nobody is in the group of arms 6 and 7
    for _ in range(20):
        out, drawn = exchange(LISTED, OTHERS[:3], 3, rng, codes)
        assert out.tolist() == [1, 4]
        assert len(drawn) == 2
