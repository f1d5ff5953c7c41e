"""The style of charts: whole names, readable times, colours with enough contrast."""

import pandas as pd
import pytest
from streamlit import config

from pages.shared import charts

LONG = "Maximiliana Theodora von Habsburg-Lothringen zu Sachsen-Coburg"
WORD = "x" * 60
BACKGROUND = {"light": "theme.light.backgroundColor", "dark": "theme.dark.backgroundColor"}
COLOURS = {"light": charts._LIGHT, "dark": charts._DARK}


@pytest.mark.parametrize("name", ["Bo", LONG, WORD, ""])
def test_names_are_wrapped_and_never_cut(name):
    data = charts.names(pd.DataFrame({"person": [name, "Ann"]}), "person")
    lines = data.person[0].split("\n")
    assert "".join(lines).replace(" ", "") == name.replace(" ", "")
    assert max(map(len, lines)) <= 26
    axis = charts.named("person").to_dict()["axis"]
    assert axis["labelLimit"] == 0  # by default Vega cuts labels at 180 pixels
    assert axis["labelOverlap"] is False
    each = charts.step(data.person, 9, parts=3).to_dict()["step"]
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
def test_the_format_of_times_fits_their_span(span, form):
    first = pd.Timestamp("2026-11-16T13:58:01.442Z")
    last = first + pd.Timedelta(span)
    x = charts.moments(pd.Series([first, last]), "time").to_dict()
    assert x["axis"]["format"] == form
    low, high = (pd.Timestamp(end) for end in x["scale"]["domain"])
    assert low <= first <= last <= high
    assert high - low >= pd.Timedelta("1min")  # no axis of split seconds
    assert low.tzinfo is not None  # the browser turns it into its own time


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("count", [2, 3, 7])
def test_colours_of_states_have_enough_contrast_in_both_themes(monkeypatch, theme, count):
    monkeypatch.setattr(charts, "colours", lambda: COLOURS[theme])
    background = config.get_option(BACKGROUND[theme])
    seen = [_contrast(colour, background) for colour in charts.ramp(count, "seen")]
    assert min(seen) >= 3  # WCAG 1.4.11
    areas = [_contrast(colour, background) for colour in charts.ramp(count)]
    for one in (seen, areas):
        assert one == sorted(one)  # worse states are fainter, on dark pages too
        assert len(set(one)) == count


def _contrast(one: str, other: str) -> float:
    """The contrast of two colours, by WCAG."""
    bright, dim = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


def _luminance(colour: str) -> float:
    parts = [part / 255 for part in charts._rgb(colour)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
