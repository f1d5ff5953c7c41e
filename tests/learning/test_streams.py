"""Random streams: no two share their numbers."""

import itertools

import numpy as np
import pytest

from dopl_core.learning.streams import Stream, generator

SEEDS = (0, 1, 8, 2**32 - 1, 2**32, 2**32 + 8, 2**63 - 1)
PLACES = list(itertools.product((0, 1, 2, 8), repeat=3))


def test_no_two_streams_seeds_or_places_share_their_numbers() -> None:
    drawn = {
        (stream, seed, place): generator(stream, seed, *place).random()
        for stream in Stream
        for seed in SEEDS
        for place in PLACES
    }
    assert len(set(drawn.values())) == len(drawn)


def test_a_short_place_is_padded_with_zeros_and_never_another_stream() -> None:
    assert generator(Stream.PRACTICE, 0).random() == generator(Stream.PRACTICE, 0, 0, 0).random()
    practice, lots = generator(Stream.PRACTICE, 0), generator(Stream.TIES, 0, 8)
    assert practice.random() != lots.random()


def test_drawn_environments_keep_the_draw_of_the_published_figures() -> None:
    was = np.random.default_rng([5, 3]).random()
    assert generator(Stream.ENVIRONMENT, 5, 3).random() == was


@pytest.mark.parametrize(("seed", "place"), [(-1, ()), (2**64, ()), (0, (-1,)), (0, (1, 2, 3, 4))])
def test_an_invalid_seed_or_place_is_refused(seed: int, place: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="needs a seed and up to 3 places"):
        generator(Stream.TIES, seed, *place)


def test_the_numbers_are_those_of_a_seed_sequence_with_a_spawn_key() -> None:
    """Studies draw the same numbers again for ever."""
    seed = 7 << 32 | 5
    key = np.random.SeedSequence([5, 3, 2, 0], spawn_key=(int(Stream.LOTS), 7))
    assert generator(Stream.LOTS, seed, 3, 2).random() == np.random.default_rng(key).random()
