"""Response times that browsers send are checked."""

import pytest

from dopl_core.studies.collect.views import Timing, browser_times


@pytest.mark.parametrize(
    ("sent", "timing"),
    [
        ({"impression": 7, "response": 812.6, "trip": 40, "narrow": True}, Timing(812, 40, True)),
        ({"impression": 7, "response": 812, "trip": None}, Timing(812)),
        ({"impression": 6, "response": 812, "trip": 40}, Timing(1000)),  # of another duel
        (
            {"impression": 7, "response": 9000, "trip": 40},
            Timing(1000),
        ),  # longer than the cards were shown
        ({"impression": 7, "response": -1}, Timing(1000)),
        ({"impression": 7, "response": "1"}, Timing(1000)),
        ({"impression": 7, "response": True}, Timing(1000)),
        ({"impression": 7, "response": float("nan")}, Timing(1000)),
        ({"impression": 7, "response": 5, "trip": 1e30, "narrow": "yes"}, Timing(5)),
        ([7, 812], Timing(1000)),
        (None, Timing(1000)),
    ],
)
def test_impossible_times_are_replaced_by_the_servers(sent: object, timing: Timing) -> None:
    assert browser_times(sent, 7, 1000) == timing
