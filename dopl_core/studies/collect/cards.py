"""Evidence on duel cards: from the roster or made up, two sides aligned, charts as HTML."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from html import escape

import numpy as np

from dopl_core.studies.collect.demo_evidence import demo_evidence
from dopl_core.studies.collect.views import Chart, Evidence, Fact, Side
from dopl_core.studies.model.study_config import StudyConfig
from dopl_core.wording import _, format_number, gettext_noop, ngettext

NOT_KNOWN = gettext_noop("not known")


def evidence(config: StudyConfig, side: Side, episode: int, epoch: int) -> Evidence:
    """What one card of a duel shows: columns of the roster, or made-up evidence if simulated."""
    if config.world == "observed":
        return from_roster(side.columns, config.photos_from_web, config.own_words)
    return demo_evidence(
        config.environment_name,
        [state.label for state in config.states],
        side.state_number,
        seed=config.seed,
        arm=side.number,
        episode=episode,
        epoch=epoch,
    )


def from_roster(
    columns: Mapping[str, str], from_web: bool = False, words: Callable[[str], str] = str
) -> Evidence:
    """Evidence from columns of a roster: lists of numbers become charts, all else facts.

    A list is a cell with three or more numbers ("5.1 0 7.2"), or numbered columns (hours_1,
    hours_2, hours_3). A column named photo becomes a picture only if it is a data URL: any other
    text might name a file on the server.

    from_web: allow https addresses too; the web server then learns when and from where they are
        opened
    words: the name of a column in the reader's language
    """
    facts: list[Fact] = []
    charts: dict[str, list[float]] = {}
    photo = ""
    numbered = _numbered(columns, words)
    for name, cell in columns.items():
        text = cell.strip()
        numbers = _numbers(text)
        if name in numbered:
            charts.setdefault(numbered[name], []).append(numbers[0] if numbers else math.nan)
        elif len(numbers) >= 3 and not _DIALLED.match(text.strip()):
            charts[_caption(words(name))] = numbers
        elif name.lower() == "photo" and _PHOTO.fullmatch(text):
            photo = text
        elif name.lower() == "photo" and _ON_THE_WEB.fullmatch(text):
            if from_web:
                photo = text
            else:
                facts.append(Fact(_caption(words(name)), _("on the web, not shown")))
        else:
            facts.append(Fact(_caption(words(name)), text))
    drawn = tuple(Chart(name, tuple(numbers)) for name, numbers in charts.items())
    return Evidence(tuple(facts), drawn, photo)


def aligned(left: Evidence, right: Evidence) -> tuple[Evidence, Evidence]:
    """Both sides of a duel with the same facts and charts in the same order.

    A fact of one side only is "not known" on the other; a fact that is empty on both sides is left
    out. If one side has a chart and the other a text, the text takes the place of the chart.
    """
    charts = list(dict.fromkeys(c.caption for side in (left, right) for c in side.charts))
    sides = []
    for side in (left, right):
        facts = {fact.label: fact for fact in side.facts if fact.value}
        drawn = {chart.caption: chart for chart in side.charts}
        for caption in charts:
            words = facts.pop(caption).value if caption in facts else _(NOT_KNOWN)
            drawn.setdefault(caption, Chart(caption, (), words=words))
        sides.append((facts, tuple(drawn[caption] for caption in charts), side.photo))
    known = sides[0][0] | sides[1][0]
    labels = dict.fromkeys(fact.label for side in (left, right) for fact in side.facts)
    even = (
        Evidence(
            tuple(facts.get(one, Fact(one, _(NOT_KNOWN))) for one in labels if one in known),
            drawn,
            photo,
        )
        for facts, drawn, photo in sides
    )
    return on_one_scale(*even)


def why_better(better: Side, worse: Side, seen: Sequence[Evidence], state_shown: bool) -> str:
    """Why one side of a practice duel is better, by what the cards show.

    seen: the evidence of the better and of the worse side
    """
    if state_shown:
        words = _("{better} is better than {worse}.")
        return words.format(better=better.state, worse=worse.state)
    met, other = (sum(bool(f.holds) for f in one.facts) for one in seen)
    if met > other:
        words = ngettext(
            "This card meets {met} target, the other {other}.",
            "This card meets {met} targets, the other {other}.",
            met,
        )
        return words.format(met=format_number(met), other=format_number(other))
    for mine, others in zip(seen[0].charts, seen[1].charts, strict=False):
        if mine.caption == others.caption and sum(mine.values) > sum(others.values):
            total, less = (
                f"{format_number(sum(c.values))} {c.unit}".strip() for c in (mine, others)
            )
            words = _("{caption}: {total} in total, the other {less}.")
            return words.format(caption=mine.caption, total=total, less=less)
    return _("The owner's records say so.")


def on_one_scale(left: Evidence, right: Evidence) -> tuple[Evidence, Evidence]:
    """Both sides of a duel with charts of the same caption on the same scale."""
    tops: dict[str, float] = {}
    scaled: list[Evidence] = []
    for chart in left.charts + right.charts:
        tops[chart.caption] = max(tops.get(chart.caption, 0.0), _top(chart))
    for side in (left, right):
        charts = tuple(replace(chart, top=tops[chart.caption]) for chart in side.charts)
        scaled.append(replace(side, charts=charts))
    return scaled[0], scaled[1]


def chart_html(chart: Chart) -> str:
    """The chart as HTML. It contains numbers and our own words only, no text of the roster."""
    top = _top(chart)
    unit = escape(chart.unit)
    labels = chart.labels or tuple(str(i + 1) for i in range(len(chart.values)))
    bars = []
    for value, label in zip(chart.values, labels, strict=True):
        height = 100 * min(max(0.0, value) / top, 1.0)  # max(0.0, nan) is 0.0
        kind = "low" if chart.line is not None and value < chart.line else "met"
        bars.append(
            f'<div class="dopl-bar {kind}"><b>{format_number(value)}</b>'
            f'<div><i style="height:{height:.1f}%"></i></div><span>{escape(label)}</span></div>'
        )
    line = ""
    if chart.line is not None:
        at = 100 * min(chart.line / top, 1.0)
        line = (
            f'<div class="dopl-line"><div style="bottom:{at:.1f}%">'
            f"<em>{chart.line:g} {unit}</em></div></div>"
        )
    return (
        f'<div class="dopl-chart{" lined" if line else ""}" role="img" '
        f'aria-label="{describe_chart(chart)}">{"".join(bars)}{line}</div>'
    )


def describe_chart(chart: Chart) -> str:
    """The chart in words, for screen readers."""
    unit = chart.unit
    numbers = ", ".join(format_number(value) for value in chart.values)
    words = _("{count} values in {unit}: {numbers}.") if unit else _("{count} values: {numbers}.")
    words = words.format(count=format_number(len(chart.values)), unit=unit, numbers=numbers)
    if chart.line is None:
        return escape(words)
    reached = sum(value >= chart.line for value in chart.values)
    more = ngettext(
        "{reached} of them reaches {line} {unit}.",
        "{reached} of them reach {line} {unit}.",
        reached,
    )
    more = more.format(reached=format_number(reached), line=format_number(chart.line), unit=unit)
    return escape(f"{words} {more}")


_PHOTO = re.compile(r"data:image/(png|jpeg|webp);base64,[A-Za-z0-9+/=]+")
_ON_THE_WEB = re.compile(r"https://\S+")
_NUMBERED = re.compile(r"(.+?)[ _-]?\d+")
_DIALLED = re.compile(r"\+|0\d")  # how a telephone number begins: +49 30 123, 030 12 34


def _numbered(columns: Mapping[str, str], words: Callable[[str], str]) -> dict[str, str]:
    """Columns that form a series of three or more (hours_1, hours_2, ...), with its caption."""
    stems: dict[str, list[str]] = {}
    for name, value in columns.items():
        match = _NUMBERED.fullmatch(name.strip())
        text = value.strip()
        if match and (not text or len(_numbers(text)) == 1):
            stems.setdefault(match[1], []).append(name)
    return {
        name: _caption(words(stem))
        for stem, names in stems.items()
        if len(names) > 2
        for name in names
    }


def _numbers(text: str) -> list[float]:
    """The numbers of a cell, separated by blanks, ; or |; none if it contains anything else."""
    try:
        numbers = [float(part) for part in re.split(r"[\s;|]+", text) if part]
    except ValueError:
        return []
    return numbers if np.isfinite(numbers).all() else []


def _top(chart: Chart) -> float:
    known = [value for value in chart.values if not math.isnan(value)]
    return chart.top or max([*known, chart.line or 0.0, 0.0]) or 1.0


def _caption(name: str) -> str:
    """The name of a column as a caption: hours_used becomes "Hours used"."""
    words = name.replace("_", " ").strip()
    return words[:1].upper() + words[1:]
