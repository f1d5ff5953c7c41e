"""How charts look: in both themes, on a phone, names whole and numbers as people write them."""

import textwrap

import altair as alt
import pandas as pd
import streamlit as st

from dopl_core.studies.findings import charted

PERCENT = "round(datum.value * 100) + ' %'"
LINES = "split(datum.label, '\\n')"  # of a name that was wrapped

_LIGHT = {"faint": "#c9d3ce", "strong": "#0b5f58", "ink": "#1d2733", "second": "#b4540a"}
_DARK = {"faint": "#2c3a43", "strong": "#5fd3c4", "ink": "#e9eef0", "second": "#f0a35a"}


def colours() -> dict[str, str]:
    """Of the theme that is on: what is little is faint, on dark pages too."""
    return _DARK if st.context.theme.type == "dark" else _LIGHT


def ramp(count: int) -> list[str]:
    """Colours for states from worst to best."""
    low, high = (_rgb(colours()[name]) for name in ("faint", "strong"))
    steps = [step / max(count - 1, 1) for step in range(count)]
    return [_hex(tuple(a + (b - a) * x for a, b in zip(low, high, strict=True))) for x in steps]


def _rgb(colour: str) -> tuple[int, ...]:
    return tuple(int(colour[place : place + 2], 16) for place in (1, 3, 5))


def _hex(rgb: tuple[float, ...]) -> str:
    return "#" + "".join(f"{round(part):02x}" for part in rgb)


def names(data: pd.DataFrame, column: str, width: int = 22) -> pd.DataFrame:
    """A table for a chart whose names of a column are broken into lines, and never cut."""
    data = charted(data)
    return data.assign(**{column: data[column].map(lambda name: wrapped(name, width))})


def wrapped(name: str, width: int = 22) -> str:
    return "\n".join(textwrap.wrap(name, width)) or " "


def named(column: str, order: list[str] | None = None) -> alt.Y:
    """An axis of such names."""
    axis = alt.Axis(labelExpr=LINES, labelLimit=0, labelOverlap=False, labelLineHeight=15)
    return alt.Y(f"{column}:N", sort=order, title=None, axis=axis)


def percent(column: str, title: str | None, whole: bool = True) -> alt.X:
    """An axis of shares; whole: from nothing to all."""
    domain = {"scale": alt.Scale(domain=[0, 1])} if whole else {}
    return alt.X(column, title=title, axis=alt.Axis(labelExpr=PERCENT, tickCount=5), **domain)


def legend(labels: list[str]) -> alt.Legend:
    """A legend that no phone cuts off."""
    return alt.Legend(orient="top", columns=3 if sum(map(len, labels)) < 30 else 1, labelLimit=0)


def ranges(data: pd.DataFrame, domain: tuple[float, float], zero: bool = False) -> alt.LayerChart:
    """A line each: name and words, and below them the mean and its range, as wide as the page.

    data: name, words, mean, low, high;  zero: draw a line there
    """
    ink, strong = colours()["ink"], colours()["strong"]
    rows = charted(data).assign(row=range(len(data)))
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
