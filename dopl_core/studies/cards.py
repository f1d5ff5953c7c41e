"""What a duel card shows: who, in which state, and evidence to look at."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape

import numpy as np

from dopl_core.learning.streams import EDITION, Stream, generator
from dopl_core.studies.config import StudyConfig
from dopl_core.studies.replies import Side

NOT_KNOWN = "not known"
NIGHTS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


@dataclass(frozen=True)
class Fact:
    """One thing known about an arm; `holds` says whether it meets its target, where it has one."""

    label: str
    value: str
    holds: bool | None = None


@dataclass(frozen=True)
class Chart:
    """Numbers over time, drawn as bars, with the line they should reach where there is one.

    words: what is said where there are no numbers to draw
    """

    caption: str
    values: tuple[float, ...]
    labels: tuple[str, ...] = ()
    unit: str = ""
    top: float = 0.0
    line: float | None = None
    words: str = ""


@dataclass(frozen=True)
class Evidence:
    """What there is to look at: a photo's address, short facts, charts."""

    facts: tuple[Fact, ...] = ()
    charts: tuple[Chart, ...] = ()
    photo: str = ""


@dataclass(frozen=True)
class Picture:
    """How the states of an environment are drawn.

    environment, states: the environment's name and its states' labels in order; where either is
        another, as in a copy of the file with one more state, nothing is drawn
    draw: evidence that fits the words of a state, given by its number
    """

    environment: str
    states: tuple[str, ...]
    draw: Callable[[int, np.random.Generator], Evidence]


def evidence(config: StudyConfig, side: Side, episode: int, epoch: int) -> Evidence:
    """What there is to look at on one side of a duel: the roster's, or drawn to fit the state."""
    if config.world == "observed":
        return read(side.columns, from_web=config.photos_from_web)
    return draw(
        config.environment_name,
        [state.label for state in config.states],
        side.state_number,
        seed=config.seed,
        arm=side.number,
        episode=episode,
        epoch=epoch,
        edition=config.edition,
    )


def draw(
    environment: str,
    states: Sequence[str],
    state: int,
    *,
    seed: int = 0,
    arm: int = 0,
    episode: int = 1,
    epoch: int = 0,
    edition: int = EDITION,
) -> Evidence:
    """Evidence made to fit an arm's state; none where no picture is for these states.

    The same for everybody who sees the arm in this epoch: it depends on the arguments only.
    """
    for picture in _PICTURES:
        if (picture.environment, picture.states) == (environment, tuple(states)):
            rng = generator(Stream.CARDS, seed, episode, epoch, arm, edition=edition)
            return picture.draw(state, rng)
    return Evidence()


def read(columns: Mapping[str, str], from_web: bool = False) -> Evidence:
    """Evidence in the owner's roster: a list of numbers is a chart, anything else a fact.

    Numbers are a list when a cell holds three or more ("5.1 0 7.2") or when columns are numbered
    (hours_1, hours_2, hours_3). A column named photo is shown as a picture if it is a data address,
    and only then: any other text might name a file of the server.

    from_web: https addresses too; whoever keeps those pictures learns when they are looked at, and
        from where
    """
    facts: list[Fact] = []
    charts: dict[str, list[float]] = {}
    photo = ""
    numbered = _numbered(columns)
    for name, cell in columns.items():
        text = cell.strip()
        numbers = _numbers(text)
        if name in numbered:
            charts.setdefault(numbered[name], []).append(numbers[0] if numbers else math.nan)
        elif len(numbers) >= 3:
            charts[_caption(name)] = numbers
        elif name.lower() == "photo" and _PHOTO.fullmatch(text):
            photo = text
        elif name.lower() == "photo" and _ON_THE_WEB.fullmatch(text):
            if from_web:
                photo = text
            else:
                facts.append(Fact(_caption(name), "on the web, not shown"))
        else:
            facts.append(Fact(_caption(name), text))
    drawn = tuple(Chart(name, tuple(numbers)) for name, numbers in charts.items())
    return Evidence(tuple(facts), drawn, photo)


def facing(left: Evidence, right: Evidence) -> tuple[Evidence, Evidence]:
    """The two sides of a duel with the same facts and charts in the same order.

    What is known of one side only is "not known" on the other, what is known of neither is left
    out. Where one has numbers to draw and the other a word, the word stands in the chart's place.
    """
    charts = list(dict.fromkeys(c.caption for side in (left, right) for c in side.charts))
    sides = []
    for side in (left, right):
        facts = {fact.label: fact for fact in side.facts if fact.value}
        drawn = {chart.caption: chart for chart in side.charts}
        for caption in charts:
            said = facts.pop(caption).value if caption in facts else NOT_KNOWN
            drawn.setdefault(caption, Chart(caption, (), words=said))
        sides.append((facts, tuple(drawn[caption] for caption in charts), side.photo))
    known = sides[0][0] | sides[1][0]
    labels = dict.fromkeys(fact.label for side in (left, right) for fact in side.facts)
    even = (
        Evidence(
            tuple(facts.get(one, Fact(one, NOT_KNOWN)) for one in labels if one in known),
            drawn,
            photo,
        )
        for facts, drawn, photo in sides
    )
    return on_one_scale(*even)


def why_better(better: Side, worse: Side, seen: Sequence[Evidence], state_shown: bool) -> str:
    """Why one side of a practice duel is the better one, by what its cards show.

    seen: the evidence of the better and of the worse side
    """
    if state_shown:
        return f"{better.state} is better than {worse.state}."
    met, other = (sum(bool(f.holds) for f in one.facts) for one in seen)
    if met > other:
        return f"It meets {met} of its targets, the other {other}."
    for mine, others in zip(seen[0].charts, seen[1].charts, strict=False):
        if mine.caption == others.caption and sum(mine.values) > sum(others.values):
            total, less = (f"{_short(sum(c.values))} {c.unit}".strip() for c in (mine, others))
            return f"{mine.caption}: {total} in all, the other {less}."
    return "That is how the owner's records have it."


def on_one_scale(left: Evidence, right: Evidence) -> tuple[Evidence, Evidence]:
    """The two sides of a duel with equal charts drawn to an equal height."""
    tops: dict[str, float] = {}
    for chart in left.charts + right.charts:
        tops[chart.caption] = max(tops.get(chart.caption, 0.0), _top(chart))

    def scaled(side: Evidence) -> Evidence:
        return replace(side, charts=tuple(replace(c, top=tops[c.caption]) for c in side.charts))

    return scaled(left), scaled(right)


def html(chart: Chart) -> str:
    """The chart as HTML; made of numbers and of our own words only, whatever the roster says."""
    top = _top(chart)
    unit = escape(chart.unit)
    labels = chart.labels or tuple(str(i + 1) for i in range(len(chart.values)))
    bars = []
    for value, label in zip(chart.values, labels, strict=True):
        height = 100 * min(max(0.0, value) / top, 1.0)  # max takes the 0 where value is missing
        kind = "low" if chart.line is not None and value < chart.line else "met"
        bars.append(
            f'<div class="dopl-bar {kind}"><b>{_short(value)}</b>'
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
        f'aria-label="{describe(chart)}">{"".join(bars)}{line}</div>'
    )


def describe(chart: Chart) -> str:
    """The chart in words, for those who do not see it."""
    unit = escape(chart.unit)
    numbers = ", ".join(_short(value) for value in chart.values)
    words = f"{len(chart.values)} values{f' in {unit}' if unit else ''}: {numbers}"
    if chart.line is not None:
        reached = sum(value >= chart.line for value in chart.values)
        words += f"; {reached} of them reach {chart.line:g} {unit}"
    return words


def _cpap(state: int, rng: np.random.Generator) -> Evidence:
    """Seven nights: short and few; most nights but often too short; every night over the line."""
    used = [int(rng.integers(1, 4)), int(rng.integers(5, 7)), 7][state]
    long = [0, int(rng.integers(2, 4)), 7][state]
    short = rng.uniform(0.4, 2.6, 7) if state == 0 else rng.uniform(1.5, 3.8, 7)
    hours = np.where(np.arange(7) < long, rng.uniform(4.2, 8.2, 7), short)
    hours[used:] = 0.0
    nights = tuple(float(h) for h in rng.permutation(hours).round(1))
    return Evidence(
        charts=(Chart("Hours of CPAP, last seven nights", nights, NIGHTS, "h", 9.0, 4.0),)
    )


def _app(state: int, rng: np.random.Generator) -> Evidence:
    """A week of minutes in the app, when it was last opened, and how much of it is used."""
    active = [0, 0, int(rng.integers(2, 5)), 7][state]
    minutes = rng.integers(3, 16, 7) if state == 2 else rng.integers(14, 46, 7)
    minutes[active:] = 0
    minutes = rng.permutation(minutes)
    days = [int(rng.integers(32, 61)), int(rng.integers(8, 29)), 0, 0][state]
    if state == 2:
        days = 6 - int(np.flatnonzero(minutes).max())
    ago = {0: "today", 1: "yesterday"}.get(days, f"{days} days ago")
    features = [0, 0, int(rng.integers(1, 4)), int(rng.integers(4, 9))][state]
    week = tuple(float(m) for m in minutes)
    return Evidence(
        (Fact("Last opened", ago), Fact("Features used this week", str(features))),
        (Chart("Minutes in the app, last seven days", week, NIGHTS, "min", 50.0),),
    )


def _calls(state: int, rng: np.random.Generator) -> Evidence:
    """Share of each of the last eight calls listened to, around the middle of the state's range."""
    share = [
        rng.uniform(45, 98, 8),
        np.where(rng.random(8) < 0.2, 0.0, rng.uniform(8, 58, 8)),
        np.where(rng.random(8) < 0.7, 0.0, rng.uniform(1, 9, 8)),
    ][state].round()
    calls = tuple(str(i) for i in range(1, 9))
    listened = tuple(float(s) for s in share)
    return Evidence(
        (Fact("Listened to on average", f"{share.mean():.0f} %"),),
        (Chart("Share of each call listened to, last eight calls", listened, calls, "%", 110.0),),
    )


# A player's four conditions: the words where one holds and where it does not. A state's number has
# a bit for each, set where it does not hold.
_CONDITIONS = (("Slept", "Tired"), ("fed", "underfed"), ("sharp", "dull"), ("fast", "slow"))


def _sports(state: int, rng: np.random.Generator) -> Evidence:
    """A measurement for each of the four conditions, with its target."""
    rested, fed, sharp, fast = (not state >> bit & 1 for bit in range(4))
    sleep = rng.uniform(8.0, 9.3) if rested else rng.uniform(5.2, 7.8)
    calories = rng.uniform(100, 112) if fed else rng.uniform(72, 97)
    attention = rng.uniform(76, 97) if sharp else rng.uniform(38, 68)
    sprint = rng.uniform(90, 100) if fast else rng.uniform(77, 89)
    return Evidence(
        (
            Fact("Sleep (8 h)", f"{sleep:.1f} h", rested),
            Fact("Calories (100 % of target)", f"{calories:.0f} %", fed),
            Fact("Attention test (70 points)", f"{attention:.0f}", sharp),
            Fact("Sprint (90 % of best)", f"{sprint:.0f} %", fast),
        )
    )


_PICTURES = (
    Picture("cpap", ("Low adherence", "Moderate adherence", "High adherence"), _cpap),
    Picture(
        "app_marketing",
        ("At risk of churn", "Low engagement", "Moderately engaged", "Highly engaged"),
        _app,
    ),
    Picture("armman", ("Self-motivated", "Persuadable", "Lost cause"), _calls),
    Picture(
        "sports",
        tuple(
            ", ".join(words[state >> bit & 1] for bit, words in enumerate(_CONDITIONS))
            for state in range(2 ** len(_CONDITIONS))
        ),
        _sports,
    ),
)

_PHOTO = re.compile(r"data:image/(png|jpeg|webp);base64,[A-Za-z0-9+/=]+")
_ON_THE_WEB = re.compile(r"https://\S+")
_NUMBERED = re.compile(r"(.+?)[ _-]?\d+")


def _numbered(columns: Mapping[str, str]) -> dict[str, str]:
    """Columns that belong to one series, and its caption: three or more numbered alike."""
    stems: dict[str, list[str]] = {}
    for name, value in columns.items():
        match = _NUMBERED.fullmatch(name.strip())
        text = value.strip()
        if match and (not text or len(_numbers(text)) == 1):
            stems.setdefault(match[1], []).append(name)
    return {
        name: _caption(stem) for stem, names in stems.items() if len(names) > 2 for name in names
    }


def _numbers(text: str) -> list[float]:
    """All of a cell's numbers, or none if anything else is in it; blank, ; and | separate."""
    try:
        numbers = [float(part) for part in re.split(r"[\s;|]+", text) if part]
    except ValueError:
        return []
    return numbers if np.isfinite(numbers).all() else []


def _top(chart: Chart) -> float:
    known = [value for value in chart.values if not math.isnan(value)]
    return chart.top or max([*known, chart.line or 0.0, 0.0]) or 1.0


def _short(value: float) -> str:
    if math.isnan(value):
        return "–"
    return f"{value:.0f}" if abs(value) >= 10 or value == round(value) else f"{value:.1f}"


def _caption(name: str) -> str:
    """A column's name as a person would write it."""
    words = name.replace("_", " ").strip()
    return words[:1].upper() + words[1:]
