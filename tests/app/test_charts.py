"""How charts look: names whole, times as clocks have them, colours that can be told apart."""

import pandas as pd
import pytest
from streamlit import config

from pages import _charts

LONG = "Maximiliana Theodora von Habsburg-Lothringen zu Sachsen-Coburg"
WORD = "x" * 60
BACKGROUND = {"light": "theme.light.backgroundColor", "dark": "theme.dark.backgroundColor"}
COLOURS = {"light": _charts._LIGHT, "dark": _charts._DARK}


@pytest.mark.parametrize("name", ["Bo", LONG, WORD, ""])
def test_names_are_broken_into_lines_and_never_cut(name):
    data = _charts.names(pd.DataFrame({"person": [name, "Ann"]}), "person")
    lines = data.person[0].split("\n")
    assert "".join(lines).replace(" ", "") == name.replace(" ", "")
    assert max(map(len, lines)) <= 26
    axis = _charts.named("person").to_dict()["axis"]
    assert axis["labelLimit"] == 0  # by default Vega cuts labels at 180 pixels
    assert axis["labelOverlap"] is False
    each = _charts.step(data.person, 9, parts=3).to_dict()["step"]
    assert 3 * each >= axis["labelLineHeight"] * len(lines)


@pytest.mark.parametrize(
    ("span", "form"),
    [
        ("0s", "%H:%M:%S"),
        ("442ms", "%H:%M:%S"),
        ("2min", "%H:%M:%S"),
        ("3h", "%H:%M"),
        ("30h", "%-d %b, %H:%M"),
        ("84 days", "%-d %b"),
        ("900 days", "%b %Y"),
    ],
)
def test_times_are_written_as_clocks_and_calendars_write_them(span, form):
    first = pd.Timestamp("2026-11-16T13:58:01.442Z")
    last = first + pd.Timedelta(span)
    x = _charts.moments(pd.Series([first, last]), "time").to_dict()
    assert x["axis"]["format"] == form
    low, high = (pd.Timestamp(end) for end in x["scale"]["domain"])
    assert low <= first <= last <= high
    assert high - low >= pd.Timedelta("1min")  # no axis of split seconds
    assert low.tzinfo is not None  # the browser turns it into its own time


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("count", [2, 3, 7])
def test_states_of_points_are_seen_in_both_themes_and_the_best_the_most(monkeypatch, theme, count):
    monkeypatch.setattr(_charts, "colours", lambda: COLOURS[theme])
    background = config.get_option(BACKGROUND[theme])
    seen = [_contrast(colour, background) for colour in _charts.ramp(count, "seen")]
    assert min(seen) >= 3  # WCAG 1.4.11
    areas = [_contrast(colour, background) for colour in _charts.ramp(count)]
    for one in (seen, areas):
        assert one == sorted(one)  # what is little is faint, on dark pages too
        assert len(set(one)) == count


def _contrast(one: str, other: str) -> float:
    """Of two colours, as WCAG has it."""
    bright, dim = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


def _luminance(colour: str) -> float:
    parts = [part / 255 for part in _charts._rgb(colour)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
