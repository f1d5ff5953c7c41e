"""The B-1 duels of an epoch connect the B activated arms, whatever the design."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from dopl_core.learning.pairs import pair_designs as duels


def is_spanning_tree(pairs, B):
    graph = coo_array((np.ones(len(pairs)), tuple(pairs.T)), shape=(B, B))
    return len(pairs) == B - 1 and connected_components(graph, directed=False)[0] == 1


@pytest.mark.parametrize("design", [duels.star, duels.tree])
@given(B=st.integers(2, 30), seed=st.integers(0, 2**32))
def test_the_duels_are_a_spanning_tree_and_no_arm_meets_itself(design, B, seed):
    keys = np.random.default_rng(seed).random((3, duels.keys_needed(B)))
    for pairs in duels.shuffle_sides(design(keys), keys):
        assert is_spanning_tree(pairs, B)
        assert (pairs[:, 0] != pairs[:, 1]).all()


def test_a_star_has_one_centre_and_every_arm_is_it_equally_often():
    rng = np.random.default_rng(0)
    centres = Counter(duels.star(rng.random((4000, 8)))[:, 0, 0].tolist())
    assert set(centres) == {0, 1, 2, 3}
    assert min(centres.values()) > 900


def test_all_16_trees_of_four_arms_are_equally_likely():
    rng = np.random.default_rng(0)
    trees = Counter(
        frozenset(frozenset(pair) for pair in edges)
        for edges in duels.tree(rng.random((8000, 8))).tolist()
    )
    assert len(trees) == 16
    assert min(trees.values()) > 400
    assert max(trees.values()) < 600


def test_each_side_is_as_likely():
    rng = np.random.default_rng(0)
    keys = rng.random((2000, 8))
    pairs = np.broadcast_to([[0, 1], [0, 2], [0, 3]], (2000, 3, 2))
    left = (duels.shuffle_sides(pairs, keys)[..., 0] == 0).mean()
    assert left == pytest.approx(0.5, abs=0.03)
