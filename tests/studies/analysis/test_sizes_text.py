"""How much columns and the season change, in words."""

import numpy as np
import pytest
from playing import clinic

from dopl_core.learning.moves.model import Size
from dopl_core.studies.analysis import sizes_text

CONFIG = clinic(noun="patient")
SURE, OPEN = {"ward": 0.95}, {"ward": 0.85}


def size(
    mean: tuple[float, float, float] = (0.06, 0.07, 0.01),
    moves: tuple[int, int] = (40, 12),
    label: str = "North",
    error: float = 0.0243,
) -> Size:
    return Size("ward", label, np.array(moves), np.array(mean), np.full(3, error))


def test_a_size_is_said_against_the_average_with_its_interval() -> None:
    found = sizes_text.sizes_finding([size()], SURE, CONFIG)
    assert found.title == (
        'ward "North": without help, 6 more patients in 100 (90 % interval 2 to 10) are better off '
        "the next week than on average"
    )
    [row] = sizes_text.in_words(found.data).to_dict("records")
    assert row == {
        "people": "ward: North",
        "without help": "+6 (+2 to +10)",
        "with help": "+7 (+3 to +11)",
        "help adds": "+1 (-3 to +5)",
    }


def test_the_title_says_the_largest_size_of_those_that_are_known() -> None:
    worse = size((-0.1, -0.1, 0.0), label="South")
    unsure = size((0.2, 0.2, 0.0), label="West", error=0.2)
    found = sizes_text.sizes_finding([size(), worse, unsure], SURE, CONFIG)
    assert found.title.startswith('ward "South": without help, 10 fewer patients in 100')
    assert found.data.value.tolist() == ["North", "South", "West"]
    assert found.data.without.tolist() == pytest.approx([0.06, -0.1, 0.2])
    found = sizes_text.sizes_finding([unsure], SURE, CONFIG)
    assert found.title == "No single value of these columns stands out yet"


def test_a_number_is_said_of_those_with_a_high_one() -> None:
    age = Size("age", "", np.array([40, 12]), np.array([-0.05, -0.05, 0.0]), np.full(3, 0.01))
    found = sizes_text.sizes_finding([age], {"age": 0.99}, CONFIG)
    assert found.title.startswith("Patients with a high age: without help, 5 fewer patients")
    assert sizes_text.in_words(found.data).people.tolist() == ["age: high"]


def test_nothing_is_said_of_columns_that_may_not_matter() -> None:
    for probabilities in (OPEN, {}):
        assert sizes_text.sizes_finding([size()], probabilities, CONFIG).data.empty


@pytest.mark.parametrize(
    ("moves", "shown"),
    [
        ((4, 40), ["too few", "+7 (+3 to +11)", "too few"]),
        ((40, 4), ["+6 (+2 to +10)", "too few", "too few"]),
    ],
)
def test_there_is_no_figure_without_moves_of_such_people(
    moves: tuple[int, int], shown: list[str]
) -> None:
    found = sizes_text.sizes_finding([size(moves=moves)], SURE, CONFIG)
    [row] = sizes_text.in_words(found.data).to_numpy().tolist()
    assert row[1:] == shown
    assert found.title.startswith("ward") == (moves[0] > 4)


@pytest.mark.parametrize(
    ("season", "said"),
    [
        (
            (-0.08, 0.0304),
            "In recent weeks, patients do worse than over all weeks. The next week, 8 fewer "
            "patients in 100 (90 % interval 3 to 13) are expected to be better off.",
        ),
        (
            (0.05, 0.01),
            "In recent weeks, patients do better than over all weeks. The next week, 5 more "
            "patients in 100 (90 % interval 3 to 7) are expected to be better off.",
        ),
        ((-0.08, 0.06), ""),
        ((0.015, 0.001), ""),
        (None, ""),
    ],
)
def test_a_season_is_said_only_where_it_is_large_enough_and_known(
    season: tuple[float, float] | None, said: str
) -> None:
    assert sizes_text.season_text(season, CONFIG) == said
