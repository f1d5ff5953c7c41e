"""Agreement: published examples, and no result without overlapping ratings."""

import numpy as np
import pandas as pd
import pytest

from dopl_core.studies.analysis import agreement

_ = None
# Krippendorff (2011), Computing Krippendorff's Alpha-Reliability, example C: one row per observer.
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
    [0, 0, 0, 0, 14],
    [0, 2, 6, 4, 2],
    [0, 0, 3, 5, 6],
    [0, 3, 9, 2, 0],
    [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0],
    [3, 2, 6, 3, 0],
    [2, 5, 3, 2, 2],
    [6, 5, 2, 1, 0],
    [0, 2, 2, 3, 7],
]


def counts(observers):
    codes = sorted({code for line in observers for code in line if code is not None})
    return [[column.count(code) for code in codes] for column in zip(*observers, strict=True)]


def answers(rows):
    """rows: annotator, duel, left arm, right arm, outcome and purpose."""
    names = ["annotator", "duel", "left_arm", "right_arm", "outcome", "purpose"]
    frame = pd.DataFrame(rows, columns=names)
    return frame.assign(episode=1, epoch=0, left_state="Low", right_state="Low")


def by_two(said):
    """The answers of two annotators, for example "left right" for each duel."""
    return answers(
        [
            (name, duel, "p1", "p2", outcome, "policy")
            for duel, pair in enumerate(said)
            for name, outcome in zip(("Ann", "Bo"), pair.split(), strict=True)
        ]
    )


def test_alpha_matches_krippendorffs_examples():
    assert agreement.alpha(counts(FOUR_OBSERVERS)) == pytest.approx(0.743, abs=5e-4)
    assert agreement.alpha(counts(TWO_OBSERVERS)) == pytest.approx(0.095, abs=5e-4)


def test_kappas_match_published_examples():
    assert agreement.fleiss(FLEISS) == pytest.approx(0.210, abs=5e-4)
    pairs, times = [[0, 0], [0, 1], [1, 0], [1, 1]], [20, 5, 10, 15]
    assert agreement.cohen(pairs, times) == pytest.approx(0.4)


def test_perfect_agreement_is_one_and_chance_is_about_zero():
    found = agreement.measure_agreement(by_two(["left left", "right right"] * 20))
    assert found.same == found.alpha.value == found.kappa.value == 1
    assert found.alpha.low == found.alpha.high == 1
    drawn = np.random.default_rng(1).choice(["left", "right"], size=(4000, 2))
    found = agreement.measure_agreement(by_two([" ".join(pair) for pair in drawn]))
    assert found.is_cohens
    for measure in (found.alpha, found.kappa):
        assert abs(measure.value) < 0.05
        assert measure.low < 0 < measure.high


def test_duels_with_one_rating_give_no_agreement():
    alone = [("Ann", duel, "p1", "p2", "left", "policy") for duel in range(9)]
    again = [("Ann", 0, "p2", "p1", "right", "repeat")]
    skipped = [("Bo", 0, "p1", "p2", "skip", "policy")]
    assert agreement.measure_agreement(answers(alone + again + skipped)) is None
    assert agreement.measure_agreement(answers([])) is None
    assert np.isnan(agreement.alpha([[1, 0], [0, 1]]))
    assert np.isnan(agreement.fleiss([[1, 0], [0, 1]]))


def test_identical_answers_give_no_alpha_or_kappa():
    found = agreement.measure_agreement(by_two(["left left"] * 20))
    assert found.same == 1
    assert np.isnan(found.alpha.value)
    assert np.isnan(found.kappa.value)


def test_few_duels_give_no_interval():
    found = agreement.measure_agreement(by_two(["left left", "right left"]))
    assert found.duels == 2
    assert np.isnan(found.alpha.low)


def test_intervals_are_bootstrapped_over_duels():
    said = ["left left", "right right"] * 20 + ["left right", "right left"] * 5
    found = agreement.measure_agreement(by_two(said))
    assert found.kappa.value == pytest.approx(0.6)
    # 80 % of 50 duels agree: 1.96 sd of the share is 0.11, and twice that of kappa.
    assert (found.kappa.low, found.kappa.high) == pytest.approx((0.38, 0.82), abs=0.05)
    assert found == agreement.measure_agreement(by_two(said))


def test_three_annotators_with_two_ratings_per_duel_have_fleiss_kappa():
    rows = []
    for duel, pair in enumerate([("Ann", "Bo"), ("Bo", "Cy"), ("Cy", "Ann")] * 4):
        outcome = "left" if duel % 2 else "right"
        rows += [(name, duel, "p1", "p2", outcome, "policy") for name in pair]
    found = agreement.measure_agreement(answers(rows))
    assert (found.people, found.is_cohens) == (3, False)
    assert found.kappa.value == 1


def test_a_repeat_agrees_if_the_same_arm_wins_on_the_other_side():
    said = [
        *[("Ann", duel, "p1", "p2", outcome, "policy") for duel, outcome in enumerate("lrt")],
        *[("Ann", duel, "p2", "p1", outcome, "repeat") for duel, outcome in enumerate("rrt")],
    ]
    frame = answers(said)
    words = {"l": "left", "r": "right", "t": "tie"}
    found = agreement.choices(frame.assign(outcome=frame.outcome.map(words)))
    assert found.choice.tolist() == [0, 1, 2, 0, 0, 2]
    assert agreement.consistency(found) == (2, 3)  # same, different, tie again
