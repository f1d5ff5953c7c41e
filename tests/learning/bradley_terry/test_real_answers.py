"""Answers of 192 real people about 15 pairs of parties: predicted as well as the best fixed prior.

The counts are those of GermanParties2009 (R package psychotools): how often the first of a pair was
preferred, and how often the second.
"""

import choix
import numpy as np
import pytest
from scipy.special import expit

from dopl_core.learning.preferences import calibrated_strengths

PARTIES = ("none", "Linke", "CDU/CSU", "FDP", "Gruene", "SPD")
COUNTS = {
    ("none", "Linke"): (119, 73),
    ("none", "CDU/CSU"): (69, 123),
    ("none", "FDP"): (83, 109),
    ("none", "Gruene"): (25, 167),
    ("Linke", "CDU/CSU"): (76, 116),
    ("Linke", "FDP"): (70, 122),
    ("Linke", "Gruene"): (23, 169),
    ("Gruene", "CDU/CSU"): (128, 64),
    ("Gruene", "FDP"): (137, 55),
    ("none", "SPD"): (38, 154),
    ("SPD", "CDU/CSU"): (125, 67),
    ("SPD", "FDP"): (134, 58),
    ("Linke", "SPD"): (34, 158),
    ("Gruene", "SPD"): (124, 68),
    ("CDU/CSU", "FDP"): (106, 86),
}


def answers() -> np.ndarray:
    """All 2,880 answers [D, 2]: the winner's number and the loser's."""
    said = []
    for pair, (first, second) in COUNTS.items():
        one, other = (PARTIES.index(party) for party in pair)
        said += [(one, other)] * first + [(other, one)] * second
    return np.array(said)


def loss(strengths: np.ndarray, held_out: np.ndarray) -> float:
    """The mean of -ln p(answer)."""
    return float(-np.log(expit(strengths[held_out[:, 0]] - strengths[held_out[:, 1]])).mean())


@pytest.mark.parametrize(
    "size",
    [
        20,
        50,
        100,
        pytest.param(200, marks=pytest.mark.long),
        pytest.param(500, marks=pytest.mark.long),
    ],
)
def test_held_out_answers_are_predicted_as_well_as_by_choixs_best_prior(size: int) -> None:
    everything, ours, theirs = answers(), [], []
    for seed in range(20):
        order = np.random.default_rng(seed).permutation(len(everything))
        known, held_out = everything[order[:size]], everything[order[size:]]
        ours.append(loss(calibrated_strengths(known[:, 0], known[:, 1], 6)[0].ravel(), held_out))
        theirs.append(
            [loss(choix.opt_pairwise(6, known.tolist(), alpha=a), held_out) for a in (0.1, 1.0)]
        )
    assert np.mean(ours) <= np.mean(theirs, axis=0).min() + 0.003
