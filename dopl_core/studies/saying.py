"""Is it working, in words: each sentence is as true as its numbers, and good news waits for proof.

A claim that help works is made by one rule (working.known_sign), and no other good news before it.
"""

import pandas as pd

from dopl_core.studies import believed, working
from dopl_core.studies.findings import Finding, count
from dopl_core.studies.verdict import MORE, Verdict
from dopl_core.studies.working import FIRST_WEEK, Estimate

FEW_LOTS = 5  # drawn; of fewer, nothing is said


def points(estimate: Estimate, sign: bool = True) -> str:
    """A difference of shares and its interval, as of 100 people: +21 (+8 to +31)."""
    form = "{:+.0f}" if sign else "{:.0f}"
    mean, low, high = (form.format(_whole(100 * x)) for x in estimate[:3])
    return f"{mean} ({low} to {high})".replace("-", "\N{MINUS SIGN}")


def _whole(number: float) -> float:
    return round(number) + 0.0  # never -0


def headline(verdict: Verdict) -> tuple[str, str]:
    """The answer, and what it rests on."""
    word, weeks = verdict.config.epoch_word, verdict.weeks
    found = verdict.effect
    if weeks == 0:
        return (
            f"Nothing can be said yet: no {word} is reported.",
            f"Report where everybody is when the {word} has ended, and come back.",
        )
    if weeks < FIRST_WEEK:
        return (
            f"It is too early to tell: {weeks} of the first {FIRST_WEEK} {word}s "
            f"{'is' if weeks == 1 else 'are'} reported.",
            "Before that, luck looks too much like help.",
        )
    if not found.known:
        return (
            "Nothing can be said yet: in no state were there people with help and without.",
            "Lists that change, or places by lot, will show both.",
        )
    basis = (
        f"Of 100 {verdict.config.noun}s, whatever their state, so many more are better off the "
        f"next {word} with help than without: {points(found)}. By all moves in "
        f"{count(weeks, word)}; 9 of 10 such ranges hold the truth."
    )
    if verdict.claimed:
        return "Yes: help works.", basis
    if verdict.sign < 0:
        return "No: with help, people do worse than without.", basis
    return f"It is not known yet whether help works, after {count(weeks, word)}.", basis


def course(verdict: Verdict) -> Finding:
    """How everybody is, week by week: of all, of those helped and of those not helped."""
    config, word = verdict.config, verdict.config.epoch_word
    labels = [state.label for state in config.states]
    half = working.better_half(config.n_states)
    rows = []
    for week, counts in enumerate(verdict.course, start=1):
        for who, some in (
            ("everybody", counts.sum(axis=0)),
            ("not helped", counts[0]),
            ("helped", counts[1]),
        ):
            share = some[half].sum() / some.sum() if some.sum() else None
            rows += [
                (week, who, label, int(some[s]), int(some.sum()), share)
                for s, label in enumerate(labels)
            ]
    columns = ["week", "who", "state", "people", "of", "better_half"]
    data = pd.DataFrame(rows, columns=columns)
    best = _either([label for label, good in zip(labels, half, strict=True) if good])
    all_of = data[data.who == "everybody"].dropna().drop_duplicates("week")
    if not verdict.weeks:
        return Finding(f"No {word} is reported yet", data)
    if all_of.empty:
        return Finding(f"How anybody was when a {word} had ended is not known yet", data)
    first, last = all_of.iloc[0], all_of.iloc[-1]
    now = f"{last.better_half:.0%} were {best} when {word} {last.week} had ended"
    if len(all_of) == 1:
        return Finding(now.replace("%", " %"), data)
    before = f"after {first.better_half:.0%} in {word} {first.week}"
    return Finding(f"{now}, {before}".replace("%", " %"), data)


def _either(labels: list[str]) -> str:
    quoted = [f'"{label}"' for label in labels]
    return "in " + (quoted[0] if len(quoted) == 1 else ", ".join(quoted[:-1]) + f" or {quoted[-1]}")


def by_state(verdict: Verdict) -> Finding:
    """What help does in each state: everybody compared with themselves."""
    pairs, word = verdict.pairs, verdict.config.epoch_word
    data = pd.DataFrame(
        {
            "state": [state.label for state in verdict.config.states],
            "with_help": pairs.with_help,
            "without": pairs.without,
            "gain": pairs.gain,
            "low": pairs.low,
            "high": pairs.high,
            "pairs": pairs.weight.round(1),
        }
    )
    known = data.dropna()
    if known.empty:
        return Finding("Nothing can be said yet of single states", data)
    sure = known[(known.low > 0) & (known.gain > 0)]
    if not verdict.claimed or sure.empty:
        return Finding("Of no single state is it known yet that help works there", data)
    top = sure.loc[sure.gain.idxmax()]
    then = "still there" if top.state == verdict.config.states[-1].label else "better off"
    return Finding(
        f'Help is known to work in "{top.state}": of 100, {_whole(100 * top.with_help):.0f} are '
        f"{then} the next {word} with it, {_whole(100 * top.without):.0f} without",
        data,
    )


def lots(verdict: Verdict) -> tuple[str, str]:
    """The fair comparison: those drawn by lot against those not drawn."""
    found, word = verdict.lots, verdict.config.epoch_word
    by_lot = verdict.config.by_lot
    if found.drawn == 0 and by_lot:
        return (
            f"{count(by_lot, 'place')} of every list {'goes' if by_lot == 1 else 'go'} by lot.",
            f"Once {FEW_LOTS} lots are drawn and reported, those drawn are compared with those not "
            "drawn: only chance tells them apart, so that is fair whatever else is true.",
        )
    if found.drawn == 0:
        return (
            "No places were drawn by lot yet.",
            "Where some places of a list go by lot, comparing those drawn with those not drawn is "
            "fair, whatever else is true: only chance tells them apart. One place in eight is "
            "enough; it is a setting of the study.",
        )
    if found.drawn < FEW_LOTS or not found.effect.known:
        return (
            f"{count(found.drawn, 'lot')} drawn so far: too few to compare.",
            "Only chance tells those drawn from those not drawn, so the comparison will be fair.",
        )
    basis = (
        f"Of 100 drawn, so many more were better off the next {word} than of 100 like them who "
        f"were not drawn: {points(found.effect)}. {count(found.drawn, 'lot')}, compared "
        f"{word} by {word}; only chance tells the two apart, so this is fair whatever else is true."
    )
    if found.effect.low > 0 and verdict.claimed:
        return "Lots say so, too: those drawn did better.", basis + _over_lots(verdict)
    if found.effect.high < 0:
        return "Those drawn by lot did worse than those not drawn.", basis
    return "By lots alone it cannot be told yet.", basis + _over_lots(verdict)


def _over_lots(verdict: Verdict) -> str:
    if not verdict.claimed or not verdict.over_lots.known:
        return ""
    gained = f"{points(verdict.over_lots)} of 100."
    if verdict.over_lots.low < 0.005:
        return f" Whether help does more where the list sends it than by lot is open: {gained}"
    return f" Where the list sends it, help is believed to do more than by lot: {gained}"


def worth(verdict: Verdict) -> Finding:
    """The list, chance and no help in the weeks to come, by the same beliefs."""
    words = {"by_list": "the list", "by_chance": "help by chance", "by_nobody": "no help"}
    found = verdict.worth
    if found is None:
        return Finding("What the list is worth is not known yet", pd.DataFrame())
    rows = [(words[name], *getattr(found, name)[:3]) for name in words]
    data = pd.DataFrame(rows, columns=["who", "people", "low", "high"])
    gain = found.over_chance
    if not verdict.claimed:
        return Finding(
            "What the list goes by so far: not proven, for it is not known yet whether help works",
            data,
        )
    if gain.low <= 0:
        return Finding("Whether the list does better than chance is not known yet", data)
    return Finding(
        f"The list is believed to do better than chance: {gain.mean:.1f} more in the better half "
        f"({gain.low:.1f} to {gain.high:.1f})",
        data,
    )


def belongs(verdict: Verdict) -> Finding:
    """How sure the list is: the chance that each person on it belongs there."""
    rows = [
        (one.id, one.label, one.state or "unknown", "by lot" if one.by_lot else "", one.chance)
        for one in verdict.belongs
    ]
    data = pd.DataFrame(rows, columns=["id", "name", "state", "by lot", "chance"])
    if data.empty:
        return Finding("There is no list yet to be sure of", data)
    chosen = data[data["by lot"] == ""]
    if chosen.empty:
        return Finding("All places of the list were drawn by lot", data)
    if len(chosen) == 1:
        sure = round(100 * chosen.chance.iloc[0])
        return Finding(f"The one chosen for the list belongs there with a chance of {sure} %", data)
    found = believed.how_many(chosen.chance.to_numpy())
    low, most, high = (round(x) for x in (found.low, found.mean, found.high))
    return Finding(
        f"About {most} of the {len(chosen)} chosen for the list belong there, as far as is known "
        f"({low} to {high})",
        data,
    )


def advice(verdict: Verdict) -> str:
    """Whether to go on asking."""
    changing = verdict.changing
    if changing is None:
        return ""
    places = count(sum(not one.by_lot for one in verdict.belongs), "place")
    if changing < 0.5:
        return (
            f"{MORE} more answers would change hardly any of the {places}: for this list, people "
            "can stop answering. What is not known is how everybody moves, which reports will tell."
        )
    return (
        f"{MORE} more answers would change about {max(1, round(changing))} of the {places}: "
        "answers still count."
    )
