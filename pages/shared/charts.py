"""The style of charts: colours of both themes, axes, legends and labels that fit a phone."""

import textwrap

import altair as alt
import pandas as pd
import streamlit as st

from dopl_core.studies import chart_text, printable

PERCENT = "round(datum.value * 100) + ' %'"
LINES = "split(datum.label, '\\n')"  # the lines of a wrapped name

# faint: for areas;  seen: for points and lines, which need more contrast with the page.
_LIGHT = {
    **{"faint": "#c9d3ce", "seen": "#84948c", "strong": "#0b5f58"},
    **{"ink": "#1d2733", "second": "#b4540a"},
}
_DARK = {
    **{"faint": "#35454f", "seen": "#66777f", "strong": "#5fd3c4"},
    **{"ink": "#e9eef0", "second": "#f0a35a"},
}
_DAY = 86_400
_FORMS = (  # formats of times, by the seconds between the first and the last
    (300, "%H:%M:%S"),
    (_DAY / 2, "%H:%M"),
    (3 * _DAY, "%-d %b, %H:%M"),
    (300 * _DAY, "%-d %b"),
)
MOST_WEEKS = 12  # labels of an axis
_LINE = 14  # height in pixels of a line of a name


def colours() -> dict[str, str]:
    """The colours of the present theme."""
    return _DARK if st.context.theme.type == "dark" else _LIGHT


def ramp(count: int, low: str = "faint") -> list[str]:
    """Colours for states from worst to best."""
    low, high = (_rgb(colours()[name]) for name in (low, "strong"))
    steps = [step / max(count - 1, 1) for step in range(count)]
    return [_hex(tuple(a + (b - a) * x for a, b in zip(low, high, strict=True))) for x in steps]


def _rgb(colour: str) -> tuple[int, ...]:
    return tuple(int(colour[place : place + 2], 16) for place in (1, 3, 5))


def _hex(rgb: tuple[float, ...]) -> str:
    return "#" + "".join(f"{round(part):02x}" for part in rgb)


def names(data: pd.DataFrame, column: str, width: int = 26) -> pd.DataFrame:
    """A table for a chart, with the names in a column wrapped into lines, never cut."""
    data = chart_text.with_one_line_texts(data)
    return data.assign(**{column: data[column].map(lambda name: wrapped(name, width))})


def wrapped(name: str, width: int = 26) -> str:
    return "\n".join(textwrap.wrap(name, width)) or " "


def named(column: str, order: list[str] | None = None) -> alt.Y:
    """An axis of wrapped names, each centred on its row."""
    up = alt.expr(f"{-_LINE / 2} * (length({LINES}) - 1)")
    axis = alt.Axis(
        labelExpr=LINES, labelLimit=0, labelOverlap=False, labelLineHeight=_LINE, labelOffset=up
    )
    return alt.Y(f"{column}:N", sort=order, title=None, axis=axis)


def step(names: pd.Series, least: int, parts: int = 1) -> alt.Step:
    """The height of a row, large enough for the longest name;  parts: steps that make up a row."""
    lines = int(max(names.str.count("\n"), default=0)) + 1
    return alt.Step(max(least, -(-(_LINE * lines + 4) // parts)))


def moments(times: pd.Series, column: str) -> alt.X:
    """An axis of times in the browser's time zone, as clocks and calendars write them."""
    first, last = times.min(), times.max()
    span = (last - first).total_seconds()
    form = next((form for most, form in _FORMS if span <= most), "%b %Y")
    room = pd.Timedelta(seconds=max(0, 60 - span) / 2)  # a minute at least
    ends = [end.isoformat() for end in (first - room, last + room)]
    axis = alt.Axis(format=form, tickCount=4, labelOverlap="greedy")
    return alt.X(
        f"{column}:T", title="your local time", axis=axis, scale=alt.Scale(domain=ends, nice=False)
    )


def weeks(numbers: pd.Series, word: str) -> alt.X:
    """An axis of the column "week", with few enough labels for a phone; word: the owner's."""
    every = sorted(set(numbers))
    axis = alt.Axis(labelAngle=0, values=every[:: -(-len(every) // MOST_WEEKS) or 1])
    return alt.X("week:O", title=printable(word), axis=axis)


def percent(column: str, title: str | None, whole: bool = True) -> alt.X:
    """An axis of percentages; whole: from 0 % to 100 %."""
    domain = {"scale": alt.Scale(domain=[0, 1])} if whole else {}
    return alt.X(column, title=title, axis=alt.Axis(labelExpr=PERCENT, tickCount=5), **domain)


def legend(labels: list[str]) -> alt.Legend:
    """A legend that fits the screen of a phone."""
    return alt.Legend(orient="top", columns=3 if sum(map(len, labels)) < 30 else 1, labelLimit=0)


def ranges(data: pd.DataFrame, domain: tuple[float, float], zero: bool = False) -> alt.LayerChart:
    """Means with intervals, one row each: name and text, and below them the interval.

    data: name, words, mean, low, high;  zero: draw a line at zero
    """
    ink, strong = colours()["ink"], colours()["strong"]
    rows = chart_text.with_one_line_texts(data).assign(row=range(len(data)))
    base = alt.Chart(rows, height=alt.Step(64))
    place = alt.Y("row:O", axis=None)
    axis = alt.Axis(tickCount=5, grid=False, title=None)
    scale = alt.Scale(domain=list(domain), nice=False)
    reach = base.mark_rule(aria=False, size=3, color=strong, yOffset=14).encode(
        alt.X("low:Q", scale=scale, axis=axis), alt.X2("high:Q"), place
    )
    dots = base.mark_point(filled=True, size=90, color=strong, opacity=1, yOffset=14).encode(
        alt.X("mean:Q", scale=scale, axis=axis), place
    )
    text = {"align": "left", "color": ink, "limit": 0, "x": 0}
    title = base.mark_text(**text, dy=-18, fontWeight="bold", fontSize=13).encode(
        place, alt.Text("name:N")
    )
    words = base.mark_text(**text, dy=-2, fontSize=13).encode(place, alt.Text("words:N"))
    line = base.mark_rule(aria=False, strokeDash=[4, 4], color=ink, opacity=0.5).encode(
        x=alt.datum(0)
    )
    layers = [*([line] if zero else []), reach, dots, title, words]
    return alt.layer(*layers)
