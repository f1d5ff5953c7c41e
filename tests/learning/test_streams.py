"""Random streams: no two share their numbers, and edition 1 is what it always was."""

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


def test_a_shorter_place_is_the_same_place_padded_and_never_another_stream() -> None:
    assert generator(Stream.PRACTICE, 0).random() == generator(Stream.PRACTICE, 0, 0, 0).random()
    practice, lots = generator(Stream.PRACTICE, 0), generator(Stream.TIES, 0, 8)
    assert practice.random() != lots.random()
    # What edition 1 did: practice duels and the lots of episode 8 were the same numbers.
    practice = generator(Stream.PRACTICE, 0, edition=1)
    lots = generator(Stream.TIES, 0, 8, edition=1)
    assert practice.random() == lots.random()


def test_edition_1_draws_what_it_drew() -> None:
    def first(*key: int) -> float:
        return float(np.random.default_rng(list(key)).random())

    assert generator(Stream.TIES, 7, 3, edition=1).random() == first(7, 3, 0)
    assert generator(Stream.ANSWERS, 7, 3, edition=1).random() == first(7, 3, 4)
    assert generator(Stream.CARDS, 7, 3, 2, 9, edition=1).random() == first(7, 3, 2, 9, 5)
    assert generator(Stream.PRACTICE, 7, edition=1).random() == first(7, 8)


def test_drawn_environments_keep_their_draw_in_every_edition() -> None:
    was = np.random.default_rng([5, 3]).random()
    assert generator(Stream.ENVIRONMENT, 5, 3).random() == was
    assert generator(Stream.ENVIRONMENT, 5, 3, edition=1).random() == was


@pytest.mark.parametrize(("seed", "place"), [(-1, ()), (2**64, ()), (0, (-1,)), (0, (1, 2, 3, 4))])
def test_a_key_that_does_not_fit_is_refused(seed: int, place: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="a seed and up to 3 places"):
        generator(Stream.TIES, seed, *place)
