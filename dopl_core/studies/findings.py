"""What the tables of a study say, in words: reasons, and charts whose titles are findings."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.special import expit

from dopl_core.studies.agreeing import FEWEST, Agreement, Range
from dopl_core.studies.csvtext import printable
from dopl_core.studies.insights import Helped
from dopl_core.studies.vocabulary import ANSWERS, LEARNT

_Z = 1.96  # 95 % intervals
_BINS = 200  # a chart needs no more points
_WIDTHS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 300)  # of bins of time, in seconds


@dataclass(frozen=True)
class Finding:
    """A chart's title, which says what it shows, its data, and what else is to be said."""

    title: str
    data: pd.DataFrame
    words: str = ""


def percent(share: float) -> str:
    """A share as people write it."""
    return f"{100 * share:.0f} %"


def count(number: int, word: str) -> str:
    """So many of something: 1 week, 2 weeks."""
    return f"{number:,} {word}" + ("" if number == 1 else "s")


def reason(helped: Helped) -> str:
    """Why to help this arm now: what it changes about where the arm goes next."""
    before, after = helped.better_if_not, helped.better_if_helped
    if after - before < 0.01:
        return "Too little is known yet: on the list to find out."
    if helped.advantage <= 0:
        return "There is help to spare: nobody else gains more."
    return (
        "Help is believed to raise the chance to be better off next from "
        f"{percent(before)} to {percent(after)}."
    )


def help_table(helped: list[Helped]) -> pd.DataFrame:
    """Whom to help now, the most urgent first, and why."""
    rows = [(h.arm, h.label, h.group, h.state, reason(h)) for h in helped]
    return pd.DataFrame(rows, columns=["id", "name", "group", "state now", "why"])


def given(answers: pd.DataFrame) -> pd.DataFrame:
    """What people have answered, of all impressions; practice and what only measures them apart."""
    return answers[answers.outcome.isin(ANSWERS) & answers.purpose.isin(LEARNT)]


def left_out(answers: pd.DataFrame, excluded: Sequence[str]) -> str:
    """Whose answers a summary is without, and how many these are."""
    own = answers[answers.annotator.isin(excluded)]
    if own.empty:
        return ""
    names = ", ".join(sorted(own.annotator.unique()))
    return f"Without the {count(len(own), 'answer')} of those left out: {names}."


def over_time(answers: pd.DataFrame) -> Finding:
    """Answers so far, against time."""
    times = answers.answered_at.sort_values()
    people = answers.annotator.nunique()
    at = np.unique(np.linspace(0, len(times) - 1, min(len(times), _BINS)).astype(int))
    data = pd.DataFrame({"time": times.iloc[at].to_numpy(), "answers": at + 1})
    who = "1 person" if people == 1 else f"{people:,} people"
    return Finding(f"{count(len(times), 'answer')} so far, by {who}", data)


def response_times(answers: pd.DataFrame) -> Finding:
    """How long answers took, in bins of a round width; the slowest 2 % are in the last one."""
    seconds = answers.response_ms.dropna().to_numpy(dtype=float) / 1000
    if not len(seconds):
        return Finding("No response times yet", pd.DataFrame({"seconds": [], "answers": []}))
    slow = max(1.0, float(np.quantile(seconds, 0.98)))
    width = next((w for w in _WIDTHS if slow <= 25 * w), slow / 25)
    last = math.ceil(slow / width) - 1
    counts = np.bincount(np.minimum(seconds // width, last).astype(int), minlength=last + 1)
    low = width * np.arange(last + 1)
    data = pd.DataFrame({"from": low, "to": low + width, "answers": counts}).round(3)
    half = f"{np.median(seconds):.1f} s"
    if len(seconds) == 1:
        return Finding(f"The one answer took {half}", data)
    return Finding(f"Half of the answers took less than {half}", data)


def sides(answers: pd.DataFrame) -> Finding:
    """How often left was chosen, by everybody and by each, with 95 % intervals."""
    sided = answers[answers.outcome.isin(["left", "right"])]
    groups = [(str(name), own) for name, own in sided.groupby("annotator")]
    if len(groups) != 1:
        groups.insert(0, ("Everybody", sided))
    rows = []
    for name, own in groups:
        hits, of = int((own.outcome == "left").sum()), len(own)
        low, high = interval(hits, of)
        rows.append((name, hits / of if of else math.nan, low, high, of))
    data = pd.DataFrame(rows, columns=["person", "left_share", "low", "high", "answers"])
    share, low, high = data.left_share[0], data.low[0], data.high[0]
    if not len(sided):
        return Finding("No side was chosen yet", data)
    return Finding(
        f"Left was chosen {percent(share)} of the time ({percent(low)} to {percent(high)}): "
        f"{_habit(low, high)}",
        data,
        phones(answers),
    )


def drawn_in_part(finding: Finding, many: int, most: int) -> Finding:
    """The finding, which says so where a chart has room for some of them only."""
    if many <= most:
        return finding
    words = f"Drawn are the {most} with the most answers; the data have all {many:,}."
    return replace(finding, words=f"{finding.words} {words}".strip())


def most_answers(shares: pd.DataFrame, count: int) -> pd.DataFrame:
    """The rows of so many people, those with the most answers, in their order."""
    return shares.loc[shares.answers.nlargest(count).index.sort_values()]


def phones(answers: pd.DataFrame) -> str:
    """How often the upper card was chosen where one stood above the other: left is upper there."""
    sided = answers[answers.outcome.isin(["left", "right"]) & (answers.narrow == 1)]
    if sided.empty:
        return ""
    upper, of = int((sided.outcome == "left").sum()), len(sided)
    low, high = interval(upper, of)
    return (
        f"On phones, the upper card was chosen {percent(upper / of)} of the time "
        f"({percent(low)} to {percent(high)}, of {of:,}): {_habit(low, high)}."
    )


def _habit(low: float, high: float) -> str:
    return "no sign of a habit" if low <= 0.5 <= high else "more than chance explains"


def agreement(found: Agreement | None) -> Finding:
    """How far people agree on pairs that several have rated: a line a measure."""
    columns = ["measure", "value", "from", "to"]
    if found is None or found.duels < FEWEST:
        asked = "No pair was rated by two people yet"
        if found is not None:
            were = "was" if found.duels == 1 else "were"
            asked = f"Only {count(found.duels, 'pair')} {were} rated by two people yet"
        words = "how far they agree cannot be told."
        return Finding(f"{asked}: {words}", pd.DataFrame(columns=columns))
    rows = [
        ("Krippendorff's alpha", *found.alpha),
        ("Cohen's kappa" if found.cohens else "Fleiss' kappa", *found.kappa),
    ]
    data = pd.DataFrame(rows, columns=columns).dropna().round(2)
    title = f"Two people say the same {percent(found.same)} of the time"
    who = "two people" if found.people == 2 else f"two or more of {found.people:,} people"
    basis = f"By {found.duels:,} pairs that {who} have rated."
    if data.empty:
        return Finding(title, data, f"{basis} Nearly all answers are one and the same.")
    alpha, kappa = (_ranged(measure) for measure in (found.alpha, found.kappa))
    return Finding(
        f"{title} (Krippendorff's alpha {alpha})",
        data,
        f"{basis} {rows[1][0]} {kappa}. 1 is always the same, 0 is what chance would give.",
    )


def _ranged(measure: Range) -> str:
    value, low, high = (f"{round(x, 2) + 0.0:.2f}" for x in measure)
    return f"{value}, {low} to {high}".replace("-", "\N{MINUS SIGN}")


# When the owner hears of somebody: from so many answers on, if they weigh so little, if one side
# was chosen so often, or if half of the answers took less.
ENOUGH, LITTLE, ONE_SIDE, TOO_FAST_MS = 30, 0.4, 0.85, 400


def warnings(annotators: pd.DataFrame, sureness: dict[str, float]) -> list[str]:
    """A line for the owner about everybody whose answers look odd; nobody else sees it."""
    said = []
    for one in annotators[annotators.answers >= ENOUGH].itertuples():
        name, k = str(one.annotator), sureness.get(str(one.annotator), 1.0)
        if k < LITTLE:
            said.append(f"{name}'s answers look like chance and weigh {percent(k)} of the usual.")
        for side, share in (("left", one.left_share), ("right", 1 - one.left_share)):
            if share > ONE_SIDE:
                said.append(f"{name} has chosen the {side} {percent(share)} of the time.")
        if one.median_ms < TOO_FAST_MS:
            said.append(f"Half of {name}'s answers took less than {one.median_ms / 1000:.1f} s.")
    return said


def people(
    annotators: pd.DataFrame,
    sureness: dict[str, float] | None = None,
    excluded: Sequence[str] = (),
) -> Finding:
    """Everybody's answers, speed, habits and consistency, and what their answers weigh.

    Those left out are in the table, and said to be; the title is without them.
    """
    shares = ["left_share", "consistency", "right", "agreement"]
    data = annotators.assign(**{name: (100 * annotators[name]).round() for name in shares})
    data["median_ms"] = (data.median_ms / 1000).round(1)
    if sureness:
        data.insert(
            2, "weight", (100 * data.annotator.map(sureness | dict.fromkeys(excluded, 0.0))).round()
        )
    if excluded:
        data.insert(
            1, "counts", data.annotator.map(lambda n: "left out" if n in excluded else "yes")
        )
    if not data.plain.any():
        data = data.drop(columns="plain")
    data = data.dropna(axis="columns", how="all").rename(
        columns={
            "annotator": "person",
            "skips": "could not tell",
            "median_ms": "median (s)",
            "left_share": "left",
            "again": "asked again",
            "plain": "plain pairs",
            "right": "right on plain pairs",
            "agreement": "agrees with others",
            "last_seen": "last answer",
        }
    )
    if not annotators.again.any():
        data = data.drop(columns="asked again")
    counted = annotators[~annotators.annotator.isin(excluded)]
    again = int(counted.again.sum())
    if counted.empty and len(annotators):
        return Finding("Everybody's answers are left out", data)
    if not again:
        return Finding("Nobody was asked the same pair twice yet", data)
    same = round(float((counted.again * counted.consistency).sum()))
    low, high = interval(same, again)
    title = f"Asked again, people give the same answer {percent(same / again)} of the time"
    return Finding(f"{title} ({percent(low)} to {percent(high)}, of {again:,})", data)


def strengths(beliefs: pd.DataFrame) -> Finding:
    """How good every arm-state is believed to be, with 95 % intervals."""
    data = beliefs[["arm", "label", "group", "state", "mean", "sd", "answers"]].copy()
    data["low"], data["high"] = data["mean"] - _Z * data.sd, data["mean"] + _Z * data.sd
    twins = data.groupby("label").arm.transform("nunique") > 1
    data.insert(2, "name", data.label.where(~twins, data.label + " (" + data.arm + ")"))
    by_state = data.groupby("state", sort=False)["mean"].mean()
    best, worst = str(by_state.idxmax()), str(by_state.idxmin())
    gap = float(by_state.max() - by_state.min())
    if gap < 0.02:
        return Finding("No state is believed better than another yet", data)
    wins = percent(expit(gap)) if expit(gap) < 0.995 else "more than 99 %"
    title = f'"{best}" is believed to win {wins} of duels with "{worst}"'
    return Finding(title, data)


def arms_differ(strengths: pd.DataFrame) -> bool:
    """Whether arms in the same state differ by more than how little is known of them."""
    spread = strengths.groupby("state")["mean"].std().fillna(0.0)
    return bool((spread > strengths.groupby("state").sd.mean()).any())


def by_state(strengths: pd.DataFrame) -> pd.DataFrame:
    """One row a state: the strengths of all arms in it, on average."""
    numbers = ["mean", "sd", "low", "high"]
    found = strengths.groupby("state", sort=False)[numbers].mean().reset_index()
    return found.assign(answers=found.state.map(strengths.groupby("state").answers.sum()))


def most_compared(strengths: pd.DataFrame, count: int) -> pd.DataFrame:
    """The strengths of so many arms, those with the most answers, in the roster's order."""
    answers = strengths.groupby("arm").answers.sum()
    return strengths[strengths.arm.isin(answers.nlargest(count).index)]


def changes(plans: pd.DataFrame) -> Finding:
    """How much each plan differed from the one before, against the answers it was made with."""
    data = plans[plans.plan > 1][["plan", "answers", "changed"]].reset_index(drop=True)
    if data.empty:
        return Finding("The first plan has yet to be improved on", data)
    last = data.changed.iloc[-1]
    settled = "it has settled" if last < 0.02 else "it is still learning"
    much = f"{percent(last)} of its decisions"
    return Finding(f"The newest plan differs from the one before in {much}: {settled}", data)


def moves(transitions: pd.DataFrame) -> Finding:
    """Where everybody is believed to go next, left alone or helped.

    What help changes is no finding here: beliefs are not proof (saying.py).
    """
    data = transitions.assign(
        action=transitions.action.map({"wait": "left alone", "act": "helped"})
    )
    return Finding("Where everybody is believed to go next, left alone and helped", data)


def by_group(moves: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """The moves of each group where groups differ in any by a tenth; else of all, without a name.

    At most eight groups: more would be no picture.
    """
    place = ["state", "action", "next_state"]
    groups = [(str(name), data) for name, data in moves.groupby("group", sort=False)]
    spread = moves.groupby(place).chance.agg(lambda chance: chance.max() - chance.min())
    if len(groups) > 1 and spread.max() >= 0.1:
        return groups[:8]
    of_all = moves.groupby(place, sort=False)
    found = of_all.agg({"chance": "mean", "sd": "mean", "visits": "sum"}).reset_index()
    return [("", found)]


def decisions(beliefs: pd.DataFrame) -> Finding:
    """The plan as a table: what it does with each arm in each state."""
    words = beliefs.assign(does=beliefs["index"].map(_how_often))
    words = words.rename(columns={"arm": "id", "label": "name"})
    order = list(dict.fromkeys(beliefs.state))
    who = ["id", "name", "group"]
    table = words.pivot_table("does", who, "state", aggfunc="first", sort=False)
    table = table[order].set_axis(_apart(order, who), axis="columns")
    always = (beliefs["index"] > 0.5).groupby(beliefs.state).sum()
    title = f'The plan helps most in "{always.idxmax()}": {always.max()} of {beliefs.arm.nunique()}'
    if not always.any():
        title = "The plan prefers nobody yet"
    return Finding(title, table.reset_index())


def interval(hits: int, of: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share; all of [0, 1] where nothing was counted.

    Not scipy's, whose statistics take half a second to import: a page waits for that.
    """
    if of == 0:
        return 0.0, 1.0
    share, z2 = hits / of, _Z**2 / of
    middle = (share + z2 / 2) / (1 + z2)
    reach = math.sqrt(z2 * share * (1 - share) + z2**2 / 4) / (1 + z2)
    return max(0.0, middle - reach), min(1.0, middle + reach)


def _apart(names: list[str], taken: list[str]) -> list[str]:
    """Names of columns, those that are taken marked: a state may be called "arm"."""
    apart: list[str] = []
    for name in names:
        while name in taken or name in apart:
            name += " (state)"
        apart.append(name)
    return apart


def charted(data: pd.DataFrame) -> pd.DataFrame:
    """A table for a chart: its texts, which become labels and legends, on one line."""
    texts = data.select_dtypes(["object", "string"]).columns
    return data.assign(**{name: data[name].map(_on_one_line) for name in texts})


def _on_one_line(cell: object) -> object:
    return printable(cell) if isinstance(cell, str) else cell


def _how_often(index: float) -> str:
    if index < 0.005:
        return "wait"
    return "help" if index > 0.995 else f"help {percent(index)} of the time"
