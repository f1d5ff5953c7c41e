"""Texts and data of charts: titles that state the finding, notes, and reasons for a list."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.special import expit

from dopl_core.studies.analysis.agreement import MIN_DUELS, Agreement, Interval
from dopl_core.studies.analysis.effect_of_help import MIN_MOVES
from dopl_core.studies.model.outcomes import ANSWERS, LEARNT
from dopl_core.studies.model.plurals import count
from dopl_core.studies.model.safe_csv import printable
from dopl_core.studies.operate.present import Helped

SURE = 0.9  # posterior probability from which a column is said to matter
_Z = 1.96  # 95 % intervals
_MOST_POINTS = 200  # of a line
_WIDTHS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 300)  # of bins of response times, in seconds


@dataclass(frozen=True)
class Finding:
    """A chart's title, which states what the chart shows, its data, and a note if needed."""

    title: str
    data: pd.DataFrame
    note: str = ""


def percent(share: float) -> str:
    """A share as a percentage: 27 %."""
    return f"{100 * share:.0f} %"


def share_of(hits: int, of: int, noun: str = "") -> str:
    """A share with its base: 12 of 45 patients (27 %)."""
    return f"{hits:,} of {of:,}{noun} ({percent(hits / of)})"


def share_with_interval(hits: int, of: int, noun: str = "") -> str:
    """A share with its base and interval: 9 of 10 answers (90 %, 95 % interval 60 to 98 %)."""
    low, high = wilson_interval(hits, of)
    interval = f"95 % interval {100 * low:.0f} to {100 * high:.0f} %"
    return f"{hits:,} of {of:,}{noun} ({percent(hits / of)}, {interval})"


def reason(helped: Helped) -> str:
    """Why to help this arm now, and what was seen of help in its state."""
    if helped.advantage <= 0:
        return f"Included to fill a free place. {helped.seen}"
    if helped.known_effect.in_favour or helped.known_effect.fewer_worse:
        return helped.seen
    return f"Listed by the plan. {helped.seen}"


def help_table(helped: list[Helped]) -> pd.DataFrame:
    """The arms to help now, the most urgent first, with reasons."""
    rows = [(h.arm, h.label, h.group, h.state, reason(h)) for h in helped]
    return pd.DataFrame(rows, columns=["id", "name", "group", "state now", "why"])


def learnt_answers(answers: pd.DataFrame) -> pd.DataFrame:
    """The answers that the learner counts: without practice, repeats, gold and expired duels."""
    return answers[answers.outcome.isin(ANSWERS) & answers.purpose.isin(LEARNT)]


def excluded_note(answers: pd.DataFrame, excluded: Sequence[str]) -> str:
    """The number of excluded answers and their annotators; empty if none."""
    own = answers[answers.annotator.isin(excluded)]
    if own.empty:
        return ""
    names = ", ".join(sorted(own.annotator.unique()))
    return f"Without {count(len(own), 'answer')} by excluded people: {names}."


def answers_over_time_finding(answers: pd.DataFrame) -> Finding:
    """Cumulative answers over time."""
    times = answers.answered_at.sort_values()
    people = answers.annotator.nunique()
    at = np.unique(np.linspace(0, len(times) - 1, min(len(times), _MOST_POINTS)).astype(int))
    data = pd.DataFrame({"time": times.iloc[at].to_numpy(), "answers": at + 1})
    by = "1 person" if people == 1 else f"{people:,} people"
    return Finding(f"{count(len(times), 'answer')} so far, by {by}", data)


def response_times_finding(answers: pd.DataFrame) -> Finding:
    """Response times in bins of a round width; the slowest 2 % are in the last bin."""
    seconds = answers.response_ms.dropna().to_numpy(dtype=float) / 1000
    if not len(seconds):
        return Finding("No response times yet", pd.DataFrame({"seconds": [], "answers": []}))
    slow = max(1.0, float(np.quantile(seconds, 0.98)))
    width = next((w for w in _WIDTHS if slow <= 25 * w), slow / 25)
    last = math.ceil(slow / width) - 1
    counts = np.bincount(np.minimum(seconds // width, last).astype(int), minlength=last + 1)
    low = width * np.arange(last + 1)
    data = pd.DataFrame({"from": low, "to": low + width, "answers": counts}).round(3)
    median = f"{np.median(seconds):.1f} s"
    if len(seconds) == 1:
        return Finding(f"The only answer took {median}", data)
    return Finding(f"Half of the answers took at most {median}", data)


def sides_finding(answers: pd.DataFrame) -> Finding:
    """How often left was chosen, by everybody and by each annotator, with 95 % intervals."""
    sided = answers[answers.outcome.isin(["left", "right"])]
    groups = [(str(name), own) for name, own in sided.groupby("annotator")]
    if len(groups) != 1:
        groups.insert(0, ("Everybody", sided))
    rows = []
    for name, own in groups:
        hits, of = int((own.outcome == "left").sum()), len(own)
        low, high = wilson_interval(hits, of)
        rows.append((name, hits / of if of else math.nan, low, high, of))
    data = pd.DataFrame(rows, columns=["person", "left_share", "low", "high", "answers"])
    if not len(sided):
        return Finding("Nobody has chosen a side yet", data)
    left = int((sided.outcome == "left").sum())
    return Finding(f"Left was chosen in {_side_habit(left, len(sided))}", data, phone_note(answers))


def with_limit_note(finding: Finding, many: int, most: int) -> Finding:
    """The finding with a note if its chart shows only `most` of `many`."""
    if many <= most:
        return finding
    note = f"The chart shows the {most} with the most answers; the CSV file has all {many:,}."
    return replace(finding, note=f"{finding.note} {note}".strip())


def most_answers(shares: pd.DataFrame, count: int) -> pd.DataFrame:
    """The rows of the `count` people with the most answers, in their order."""
    return shares.loc[shares.answers.nlargest(count).index.sort_values()]


def phone_note(answers: pd.DataFrame) -> str:
    """How often the upper card was chosen on phones, where the left card is above the right one."""
    sided = answers[answers.outcome.isin(["left", "right"]) & (answers.narrow == 1)]
    if sided.empty:
        return ""
    upper = int((sided.outcome == "left").sum())
    return f"On phones, the upper card was chosen in {_side_habit(upper, len(sided))}."


def _side_habit(hits: int, of: int) -> str:
    low, high = wilson_interval(hits, of)
    habit = "no sign of a habit" if low <= 0.5 <= high else "more than chance explains"
    return f"{share_with_interval(hits, of, ' answers')}: {habit}"


def agreement_finding(found: Agreement | None) -> Finding:
    """Agreement on pairs that several people have rated, one row per measure."""
    columns = ["measure", "value", "low", "high"]
    if found is None:
        title = "No pair has been rated by two people yet, so agreement is unknown"
        return Finding(title, pd.DataFrame(columns=columns))
    if found.duels < MIN_DUELS:
        rated = f"{count(found.duels, 'pair')} {'has' if found.duels == 1 else 'have'}"
        title = f"Only {rated} been rated by two people: too few to measure agreement"
        return Finding(title, pd.DataFrame(columns=columns))
    rows = [
        ("Krippendorff's alpha", *found.alpha),
        ("Cohen's kappa" if found.is_cohens else "Fleiss' kappa", *found.kappa),
    ]
    data = pd.DataFrame(rows, columns=columns).dropna().round(2)
    title = f"Two people give the same answer {percent(found.same)} of the time"
    raters = "two people" if found.people == 2 else f"two or more of {found.people:,} people"
    basis = f"Based on {found.duels:,} pairs rated by {raters}."
    if data.empty:
        return Finding(title, data, f"{basis} Nearly all answers are the same: no alpha or kappa.")
    alpha, kappa = (_with_interval(measure) for measure in (found.alpha, found.kappa))
    return Finding(
        f"{title} (Krippendorff's alpha {alpha})",
        data,
        f"{basis} {rows[1][0]} {kappa}. 1 is perfect agreement, 0 is chance.",
    )


def _with_interval(measure: Interval) -> str:
    value, low, high = (f"{round(x, 2) + 0.0:.2f}" for x in measure)
    return f"{value}, 95 % interval {low} to {high}".replace("-", "\N{MINUS SIGN}")


# Thresholds of warnings: least answers, weight below, share of one side above, median time below.
MIN_ANSWERS, LOW_WEIGHT, ONE_SIDED, TOO_FAST_MS = 30, 0.4, 0.85, 400


def warnings(annotators: pd.DataFrame, sureness: dict[str, float]) -> list[str]:
    """Warnings for the owner about annotators whose answers look careless."""
    lines = []
    for one in annotators[annotators.answers >= MIN_ANSWERS].itertuples():
        name, weight = str(one.annotator), sureness.get(str(one.annotator), 1.0)
        if weight < LOW_WEIGHT:
            lines.append(f"{name}'s answers look random; weighted at {percent(weight)}.")
        for side, share in (("left", one.left_share), ("right", 1 - one.left_share)):
            if share > ONE_SIDED:
                lines.append(f"{name} chose the {side} card {percent(share)} of the time.")
        if one.median_ms < TOO_FAST_MS:
            lines.append(f"Half of {name}'s answers took at most {one.median_ms / 1000:.1f} s.")
    return lines


def annotators_finding(
    annotators: pd.DataFrame,
    sureness: dict[str, float] | None = None,
    excluded: Sequence[str] = (),
) -> Finding:
    """Answers, speed, side, consistency and weight of each annotator.

    Excluded annotators are marked in the table and do not count in the title.
    """
    shares = ["left_share", "consistency", "correct", "agreement"]
    data = annotators.assign(**{name: (100 * annotators[name]).round() for name in shares})
    data["median_ms"] = (data.median_ms / 1000).round(1)
    if sureness:
        data.insert(
            2, "weight", (100 * data.annotator.map(sureness | dict.fromkeys(excluded, 0.0))).round()
        )
    if excluded:
        data.insert(
            1, "counted", data.annotator.map(lambda name: "no" if name in excluded else "yes")
        )
    if not data.gold.any():
        data = data.drop(columns="gold")
    data = data.dropna(axis="columns", how="all").rename(
        columns={
            "annotator": "person",
            "skips": "could not tell",
            "median_ms": "median (s)",
            "left_share": "left",
            "again": "asked again",
            "gold": "obvious pairs",
            "correct": "correct on obvious pairs",
            "agreement": "agrees with others",
            "last_seen": "last answer",
        }
    )
    if not annotators.again.any():
        data = data.drop(columns="asked again")
    counted = annotators[~annotators.annotator.isin(excluded)]
    again = int(counted.again.sum())
    if counted.empty and len(annotators):
        return Finding("Everybody is excluded", data)
    if not again:
        return Finding("Nobody has been asked the same pair twice yet", data)
    same = round(float((counted.again * counted.consistency).sum()))
    share = share_with_interval(same, again, " times")
    return Finding(f"Asked again, people gave the same answer {share}", data)


def strengths_finding(beliefs: pd.DataFrame) -> Finding:
    """The estimated strength of every arm-state with its 95 % interval."""
    data = beliefs[["arm", "label", "group", "state", "mean", "sd", "answers"]].copy()
    data["low"], data["high"] = data["mean"] - _Z * data.sd, data["mean"] + _Z * data.sd
    twins = data.groupby("label").arm.transform("nunique") > 1
    data.insert(2, "name", data.label.where(~twins, data.label + " (" + data.arm + ")"))
    by_state = data.groupby("state", sort=False)["mean"].mean()
    best, worst = str(by_state.idxmax()), str(by_state.idxmin())
    gap = float(by_state.max() - by_state.min())
    if gap < 0.02:
        return Finding("No state is estimated to be better than another yet", data)
    wins = percent(expit(gap)) if expit(gap) < 0.995 else "more than 99 %"
    answers = count(round(data.answers.sum() / 2), "answer")  # each is about two
    title = f'"{best}" is estimated to win {wins} of comparisons with "{worst}" ({answers})'
    return Finding(title, data)


def arms_differ(strengths: pd.DataFrame) -> bool:
    """Whether arms in the same state differ by more than the uncertainty of their strengths."""
    spread = strengths.groupby("state")["mean"].std().fillna(0.0)
    return bool((spread > strengths.groupby("state").sd.mean()).any())


def mean_strengths(strengths: pd.DataFrame) -> pd.DataFrame:
    """One row per state: the mean strength of all arms in it."""
    numbers = ["mean", "sd", "low", "high"]
    found = strengths.groupby("state", sort=False)[numbers].mean().reset_index()
    return found.assign(answers=found.state.map(strengths.groupby("state").answers.sum()))


def most_compared(strengths: pd.DataFrame, count: int) -> pd.DataFrame:
    """The strengths of the `count` arms with the most answers, in the roster's order."""
    answers = strengths.groupby("arm").answers.sum()
    return strengths[strengths.arm.isin(answers.nlargest(count).index)]


def plan_changes_finding(plans: pd.DataFrame, horizon: int = 1) -> Finding:
    """How much each plan differs from the previous one, by its first week; horizon: weeks a plan"""
    data = plans[plans.plan > 1][["plan", "answers", "changed"]].reset_index(drop=True)
    data.insert(1, "week", (data.plan - 1) * horizon + 1)
    if data.empty:
        return Finding("There is only one plan so far", data)
    changed = f"The newest plan changed {percent(data.changed.iloc[-1])} of its decisions"
    note = "A decision is to help, or not to help, one person in one state."
    return Finding(changed, data, note)


def moves_findings(transitions: pd.DataFrame) -> dict[str, Finding]:
    """Estimated next states with and without help, by group if groups differ; "" is everybody.

    Only of states and actions that were seen often enough: fewer moves are mostly prior. The title
    makes no claim about the effect of help: that needs proof (assessment_text.py).
    """
    words = {"wait": "without help", "act": "with help"}
    found = {}
    for group, data in moves_by_group(transitions.assign(action=transitions.action.map(words))):
        title = "Estimated next states, without and with help" + (f": {group}" if group else "")
        times = data.groupby(["state", "action"], sort=False).visits.transform("sum")
        few = data.assign(times=times)[times < MIN_MOVES].drop_duplicates(["state", "action"])
        rows = ", ".join(f'"{row.state}" {row.action} ({row.times})' for row in few.itertuples())
        note = f"Not shown, because fewer than {MIN_MOVES} moves were seen: {rows}." if rows else ""
        found[group] = Finding(title, data[times >= MIN_MOVES], note)
    return found


def columns_finding(probabilities: Mapping[str, float]) -> Finding:
    """Which columns explain how people move; probabilities: posterior, by name of the column."""
    rows = sorted(probabilities.items(), key=lambda row: -row[1])
    data = pd.DataFrame(rows, columns=["column", "probability"])
    sure = [name for name, probability in rows if probability >= SURE]
    if not sure:
        return Finding("No column of the roster is known yet to explain how people move", data)
    posterior = f"(posterior at least {percent(SURE)})"
    return Finding(f"How people move depends on {', '.join(sure)} {posterior}", data)


def moves_by_group(moves: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """The moves of each group if groups differ by 10 percentage points anywhere; else of all.

    At most eight groups, so that the charts stay readable. The name of "all" is empty. Beside other
    groups, people in none (group "all") are "no group", such as people of past records.
    """
    place = ["state", "action", "next_state"]
    groups = [(str(name), data) for name, data in moves.groupby("group", sort=False)]
    groups = [("no group" if name == "all" else name, data) for name, data in groups]
    spread = moves.groupby(place).chance.agg(lambda chance: chance.max() - chance.min())
    if len(groups) > 1 and spread.max() >= 0.1:
        return groups[:8]
    of_all = moves.groupby(place, sort=False)
    found = of_all.agg({"chance": "mean", "sd": "mean", "visits": "sum"}).reset_index()
    return [("", found)]


def decisions_finding(beliefs: pd.DataFrame) -> Finding:
    """The plan as a table: what it does for each arm in each state."""
    words = beliefs.assign(does=beliefs["index"].map(_how_often))
    words = words.rename(columns={"arm": "id", "label": "name"})
    order = list(dict.fromkeys(beliefs.state))
    person = ["id", "name"] + ["group"] * (set(beliefs.group) != {"all"})
    table = words.pivot_table("does", person, "state", aggfunc="first", sort=False)
    table = table[order].set_axis(_unique(order, person), axis="columns")
    helped = (beliefs["index"] > 0.5).groupby(beliefs.state).sum()
    people = share_of(helped.max(), beliefs.arm.nunique(), " people")
    title = f'The plan helps most often in "{helped.idxmax()}": {people}'
    if not helped.any():
        title = "The plan does not prefer anybody yet"
    return Finding(title, table.reset_index())


def wilson_interval(hits: int, of: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share; (0, 1) if nothing was counted.

    scipy.stats has it too, but takes half a second to import while a page waits.
    """
    if of == 0:
        return 0.0, 1.0
    share, z2 = hits / of, _Z**2 / of
    middle = (share + z2 / 2) / (1 + z2)
    reach = math.sqrt(z2 * share * (1 - share) + z2**2 / 4) / (1 + z2)
    return max(0.0, middle - reach), min(1.0, middle + reach)


def _unique(names: list[str], taken: list[str]) -> list[str]:
    """Unique names of columns: a state may be called "id", like a column."""
    unique: list[str] = []
    for name in names:
        while name in taken or name in unique:
            name += " (state)"
        unique.append(name)
    return unique


def with_one_line_texts(data: pd.DataFrame) -> pd.DataFrame:
    """The table with every text on one line, for labels and legends of charts."""
    texts = data.select_dtypes(["object", "string"]).columns
    return data.assign(**{name: data[name].map(_on_one_line) for name in texts})


def _on_one_line(cell: object) -> object:
    return printable(cell) if isinstance(cell, str) else cell


def _how_often(index: float) -> str:
    if index < 0.005:
        return "wait"
    return "help" if index > 0.995 else f"help {percent(index)} of the time"
