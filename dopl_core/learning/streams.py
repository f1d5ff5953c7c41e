"""Every random stream of the project by name, so that no two ever share their numbers.

A stream's numbers are a function of the seed and of a place (episode, epoch, arm ...), so anything
random can be drawn again. Keys have one fixed length: NumPy pads short ones with zeros, which made
[0, 8] and [0, 8, 0] the same stream in edition 1. Studies keep the edition they were made in for
ever. Edition 3 draws what edition 2 drew; its strengths cannot run away (strengths.onward).
"""

from enum import IntEnum

import numpy as np

EDITION = 3  # of the streams, and of the maths whose results are compared to the bit

_WORD = 0xFFFFFFFF
_PLACES = 3


class Stream(IntEnum):
    """What is drawn, and in brackets what its place is; numbers are never given away again."""

    ENVIRONMENT = 0  # entries of a range (arm)
    TIES = 1  # which of equal arms come first (episode)
    DUELS = 2  # which pairs, and their sides (episode)
    START = 3  # first states of a simulated world (episode)
    MOVES = 4  # of a simulated world (episode)
    ANSWERS = 5  # of a simulated oracle (episode)
    EXPLORE = 6  # when Q-learning tries anything (episode)
    CARDS = 7  # evidence made up for a simulated arm (episode, epoch, arm)
    PRACTICE = 8  # practice duels
    REHEARSAL = 9  # what a simulated annotator does (annotator)
    SITTING = 10  # which of equally telling pairs of a first sitting come first, and their sides
    FURTHER = 11  # the same for an epoch's further pairs (episode, epoch)
    PAST = 12  # whom help went to before a simulated study began (epoch)
    LOTS = 13  # who gets the places of a list that are drawn by lot (episode, epoch)
    STRENGTHS = 14  # draws from what is known of many strengths (episode)
    CLASSES = 15  # the arms that the classes of many are found from (episode)


# Edition 1: the number that a stream had, at the end of its key.
_FIRST = {
    Stream.TIES: 0,
    Stream.DUELS: 1,
    Stream.START: 2,
    Stream.MOVES: 3,
    Stream.ANSWERS: 4,
    Stream.EXPLORE: 5,
    Stream.CARDS: 5,
    Stream.PRACTICE: 8,
}


def generator(
    stream: Stream, seed: int, *place: int, edition: int = EDITION
) -> np.random.Generator:
    """The numbers of a stream at a place."""
    if len(place) > _PLACES or min((seed, *place)) < 0 or seed >> 64:
        raise ValueError(f"{stream.name} {seed} {place}: a seed and up to {_PLACES} places needed")
    if edition == 1 and stream in _FIRST:
        return np.random.default_rng([seed, *place, _FIRST[stream]])
    entropy = [seed & _WORD, *place, *[0] * (_PLACES - len(place))]
    # Environments keep the draw that published figures were made with: theirs is the one key
    # without the two further words, and NumPy never takes a shorter key for a longer one.
    more: tuple[int, ...] = (int(stream), seed >> 32)
    if more == (Stream.ENVIRONMENT, 0):
        more = ()
    return np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=more))
