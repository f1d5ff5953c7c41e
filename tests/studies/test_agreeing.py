"""Agreement: what textbooks compute, and nothing where there is nothing to say."""

import numpy as np
import pandas as pd
import pytest

from dopl_core.studies import agreeing

_ = None
# Krippendorff (2011), Computing Krippendorff's Alpha-Reliability, example C: an observer a line.
FOUR_OBSERVERS = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, _, _, _],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, _, 3],
    [_, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, _],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, _],
]
# The same, example A.
TWO_OBSERVERS = [[0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]]
# Fleiss (1971), as often reprinted: 10 subjects, 14 raters, 5 categories.
FLEISS = [
    *([0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1]),
    *([7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7]),
]


def counts(observers):
    codes = sorted({code for line in observers for code in line if code is not None})
    return [[column.count(code) for code in codes] for column in zip(*observers, strict=True)]


def answers(rows):
    """rows: person, duel, left arm, right arm, outcome and purpose."""
    names = ["annotator", "duel", "left_arm", "right_arm", "outcome", "purpose"]
    frame = pd.DataFrame(rows, columns=names)
    return frame.assign(episode=1, epoch=0, left_state="Low", right_state="Low")


def by_two(said):
    """Two people's answers to as many duels: "left right" a duel."""
    return agreeing.choices(
        answers(
            [
                (name, duel, "p1", "p2", outcome, "policy")
                for duel, pair in enumerate(said)
                for name, outcome in zip(("Ann", "Bo"), pair.split(), strict=True)
            ]
        )
    )


def test_alpha_is_krippendorffs():
    assert agreeing.alpha(counts(FOUR_OBSERVERS)) == pytest.approx(0.743, abs=5e-4)
    assert agreeing.alpha(counts(TWO_OBSERVERS)) == pytest.approx(0.095, abs=5e-4)


def test_kappas_are_fleiss_and_cohens():
    assert agreeing.fleiss(FLEISS) == pytest.approx(0.210, abs=5e-4)
    pairs, times = [[0, 0], [0, 1], [1, 0], [1, 1]], [20, 5, 10, 15]
    assert agreeing.cohen(pairs, times) == pytest.approx(0.4)


def test_perfect_agreement_is_one_and_chance_is_about_zero():
    found = agreeing.agreement(by_two(["left left", "right right"] * 20))
    assert found.same == found.alpha.value == found.kappa.value == 1
    assert found.alpha.low == found.alpha.high == 1
    drawn = np.random.default_rng(1).choice(["left", "right"], size=(4000, 2))
    found = agreeing.agreement(by_two([" ".join(pair) for pair in drawn]))
    assert found.cohens
    for measure in (found.alpha, found.kappa):
        assert abs(measure.value) < 0.05
        assert measure.low < 0 < measure.high


def test_there_is_nothing_to_say_of_duels_that_one_person_rated():
    alone = [("Ann", duel, "p1", "p2", "left", "policy") for duel in range(9)]
    again = [("Ann", 0, "p2", "p1", "right", "repeat")]
    skipped = [("Bo", 0, "p1", "p2", "skip", "policy")]
    assert agreeing.agreement(agreeing.choices(answers(alone + again + skipped))) is None
    assert agreeing.agreement(agreeing.choices(answers([]))) is None
    assert np.isnan(agreeing.alpha([[1, 0], [0, 1]]))
    assert np.isnan(agreeing.fleiss([[1, 0], [0, 1]]))


def test_who_always_agrees_on_the_same_side_tells_nothing_beyond_chance():
    found = agreeing.agreement(by_two(["left left"] * 20))
    assert found.same == 1
    assert np.isnan(found.alpha.value)
    assert np.isnan(found.kappa.value)


def test_a_few_duels_give_no_range():
    found = agreeing.agreement(by_two(["left left", "right left"]))
    assert found.duels == 2
    assert np.isnan(found.alpha.low)


def test_ranges_are_those_of_resampled_duels():
    said = ["left left", "right right"] * 20 + ["left right", "right left"] * 5
    found = agreeing.agreement(by_two(said))
    assert found.kappa.value == pytest.approx(0.6)
    # Of 50 duels 80 % are alike: 1.96 sd of the share is 0.11, twice that of kappa.
    assert (found.kappa.low, found.kappa.high) == pytest.approx((0.38, 0.82), abs=0.05)
    assert found == agreeing.agreement(by_two(said))


def test_three_people_of_whom_two_rate_each_duel_have_fleiss_kappa():
    rows = []
    for duel, pair in enumerate([("Ann", "Bo"), ("Bo", "Cy"), ("Cy", "Ann")] * 4):
        outcome = "left" if duel % 2 else "right"
        rows += [(name, duel, "p1", "p2", outcome, "policy") for name in pair]
    found = agreeing.agreement(agreeing.choices(answers(rows)))
    assert (found.people, found.cohens) == (3, False)
    assert found.kappa.value == 1


def test_a_repeat_is_the_same_answer_when_the_same_one_wins_on_the_other_side():
    said = [
        *[("Ann", duel, "p1", "p2", outcome, "policy") for duel, outcome in enumerate("lrt")],
        *[("Ann", duel, "p2", "p1", outcome, "repeat") for duel, outcome in enumerate("rrt")],
    ]
    frame = answers(said)
    words = {"l": "left", "r": "right", "t": "tie"}
    found = agreeing.choices(frame.assign(outcome=frame.outcome.map(words)))
    assert found.choice.tolist() == [0, 1, 2, 0, 0, 2]
    assert agreeing.consistency(found) == (2, 3)  # as before, the other one, a tie again
