"""Every random stream of the project by name, so that no two streams share their numbers.

The numbers of a stream are a function of the seed and of a place (episode, epoch, arm ...), so
anything random can be drawn again. All keys have the same length, because NumPy pads short keys
with zeros: [0, 8] and [0, 8, 0] are the same key.
"""

from enum import IntEnum

import numpy as np

_WORD = 0xFFFFFFFF
_PLACES = 3


class Stream(IntEnum):
    """What is drawn, with its place in brackets. A number is never used for another stream."""

    ENVIRONMENT = 0  # entries of a range (arm)
    TIES = 1  # how ties between arms are broken (episode)
    DUELS = 2  # which pairs, and their sides (episode)
    START = 3  # first states of a simulated world (episode)
    MOVES = 4  # of a simulated world (episode)
    ANSWERS = 5  # of a simulated oracle (episode)
    EXPLORE = 6  # when Q-learning explores, and what Thompson sampling draws (episode)
    CARDS = 7  # simulated evidence about an arm (episode, epoch, arm)
    PRACTICE = 8  # practice duels
    REHEARSAL = 9  # what a simulated annotator does (annotator)
    SITTING = 10  # ties between pairs of a first sitting, and their sides
    FURTHER = 11  # the same for the further pairs of an epoch (episode, epoch)
    PAST = 12  # the arms helped before a simulated study began (epoch)
    LOTS = 13  # the places of a list that are drawn by lot (episode, epoch)
    STRENGTHS = 14  # draws from the posterior of many strengths (episode)
    CLASSES = 15  # the sample of arms that classes of many arms are fitted to (episode)
    COLUMNS = 16  # columns of a simulated world (the first arm of a group)
    REPORTS = 17  # which reports of a simulated world are misread, and as what (episode)


def generator(stream: Stream, seed: int, *place: int) -> np.random.Generator:
    """The random numbers of a stream at a place: at most three numbers, none negative."""
    if len(place) > _PLACES or min((seed, *place)) < 0 or seed >> 64 or max(place, default=0) >> 32:
        raise ValueError(f"{stream.name} {seed} {place}: needs a seed and up to {_PLACES} places")
    key = [seed & _WORD, *place, *[0] * (_PLACES - len(place)), int(stream), seed >> 32]
    # Environments keep the draw of the published figures: theirs is the only key without the last
    # two words, and NumPy never confuses keys of more than four words with shorter ones.
    if stream == Stream.ENVIRONMENT and not seed >> 32:
        key = key[:-2]
    # An array of words spares NumPy a slow conversion; the numbers are those of a spawn key.
    words = np.array(key, dtype=np.uint32)
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(words)))
