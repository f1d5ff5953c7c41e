"""Strengths from answers alone: annotators, columns and the order of states as options."""

import numpy as np
import pytest

from dopl_core.learning.columns import of_bandit
from dopl_core.learning.from_answers import features, strengths
from dopl_core.learning.preferences import calibrated_strengths


def answers(theta: np.ndarray, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Winners and losers of random pairs of items with strengths theta."""
    rng = np.random.default_rng(seed)
    left = rng.integers(len(theta), size=count)
    right = (left + rng.integers(1, len(theta), size=count)) % len(theta)
    wins = rng.random(count) < 1 / (1 + np.exp(theta[right] - theta[left]))
    return np.where(wins, left, right), np.where(wins, right, left)


def test_without_options_these_are_the_calibrated_strengths_to_the_bit() -> None:
    won, lost = answers(np.linspace(-1, 1, 8), 40, 0)
    for mine, theirs in zip(
        strengths(won, lost, 4, 2), calibrated_strengths(won, lost, 4, 2), strict=True
    ):
        assert np.array_equal(mine, theirs)


def test_a_column_that_explains_strengths_makes_them_better_and_noise_hardly_worse() -> None:
    ward, errors = np.arange(30) % 2, []
    for seed in range(6):
        rng = np.random.default_rng([seed, 1])
        theta = 1.5 * ward + rng.normal(0, 0.3, 30)
        won, lost = answers(theta, 60, seed)
        noise = {"noise": rng.normal(size=30)}
        means = [
            strengths(won, lost, 30, columns=columns)[0].ravel()
            for columns in (None, {"ward": ["A", "B"] * 15}, noise)
        ]
        centred = theta - theta.mean()
        errors.append([np.sqrt(((m - m.mean() - centred) ** 2).mean()) for m in means])
    none, helpful, useless = np.mean(errors, axis=0)
    assert helpful < 0.9 * none
    assert useless < 1.1 * none


def test_arms_that_nobody_was_asked_about_are_like_others_of_their_ward() -> None:
    ward = {"ward": ["A", "A", "A", "B", "B", "B"]}
    mean, _ = strengths([0, 0, 1, 1, 0, 1], [3, 4, 3, 4, 4, 3], n_arms=6, columns=ward)
    assert mean[2] > mean[5]


def test_without_answers_everybody_is_equal_and_sds_are_those_of_the_prior() -> None:
    mean, sd = strengths([], [], 5, columns={"age": [30, 41, 52, 33, 74]})
    assert np.allclose(mean, 0)
    assert (sd > 0.1).all()


def test_an_annotator_who_answers_at_random_counts_less() -> None:
    theta = np.linspace(-2, 2, 10)
    won, lost = answers(theta, 120, 3)
    rng = np.random.default_rng(4)
    noise = np.array([rng.choice(10, 2, replace=False) for _ in range(120)])
    all_won, all_lost = np.concatenate([won, noise[:, 0]]), np.concatenate([lost, noise[:, 1]])
    who = ["Ann", "Bob", "Cem"] * 40 + ["Random"] * 120
    weighed, _ = strengths(all_won, all_lost, 10, annotators=who)
    alike, _ = strengths(all_won, all_lost, 10)
    assert np.abs(weighed.ravel() - theta).mean() < np.abs(alike.ravel() - theta).mean()


def test_the_order_of_states_decides_where_nothing_was_asked() -> None:
    ordered, _ = strengths([], [], 3, 3, ordered=True)
    assert (np.diff(ordered, axis=1) > 0).all()
    unordered, _ = strengths([], [], 3, 3)
    assert np.allclose(unordered, 0)


def test_features_are_standardised_numbers_and_a_column_for_each_category() -> None:
    known = of_bandit({"age": ("20", "40", "90", ""), "ward": ("A", "A", "B", "B")}, 4)
    found = features(known)
    assert found.shape == (4, 3)
    assert found[3, 0] == 0
    assert found[:, 1:].tolist() == [[1, 0], [1, 0], [0, 1], [0, 1]]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"winners": [0, 9]}, "winners: codes must be from 0 to 2"),
        ({"losers": [1]}, "one of each for a duel"),
        ({"annotators": ["Ann"]}, "annotators: 1 given, one for each of 2"),
        ({"columns": {"age": [3]}}, 'column "age": 1 given, one for each of 3 arms'),
        ({"columns": {"age": [3]}, "n_arms": 401}, "401 arm-states .* leave out"),
    ],
)
def test_wrong_arguments_are_named(wrong: dict[str, object], says: str) -> None:
    given: dict[str, object] = {"winners": [0, 1], "losers": [1, 2], "n_arms": 3}
    with pytest.raises(ValueError, match=says):
        strengths(**(given | wrong))  # type: ignore[arg-type]
