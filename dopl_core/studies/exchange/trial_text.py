"""What the promised analysis of a trial says: for Insights, and as a methods section to paste."""

from datetime import UTC, datetime

from dopl_core.learning.places.lot_trial import REDRAWS, Interval, Look
from dopl_core.studies.exchange.trial_analysis import ANALYSIS, TrialAnalysis
from dopl_core.studies.model.plurals import plural
from dopl_core.studies.model.protocol import OUTCOMES

LOOK_COLUMNS = ("after", "effect (interval)", "p (needed)", "known of drawn")
FLOW_COLUMNS = ("people", "person-weeks", "step")  # a phone shows the first ones


def headline(found: TrialAnalysis) -> tuple[str, list[str]]:
    """The answer of the trial so far, and what it rests on; no effect before the first look."""
    word = found.config.epoch_word
    if not found.looks:
        if found.protocol.analysis != ANALYSIS:
            return "This version of dopl cannot make the promised analysis", [
                f"The protocol names version {found.protocol.analysis} of the analysis. This "
                f"program has version {ANALYSIS}."
            ]
        title = f"The first look at the trial is after {word} {found.next_look}"
        if found.closed:
            title = f"The trial was closed before its first look, after {word} {found.next_look}"
        return title, [
            f"{found.weeks} of {found.protocol.weeks} {word}s are reported. The trial's effect is "
            "computed at its looks only."
        ]
    look = found.looks[-1]
    basis = [effect_text(found, look), list_text(found, look), _numbers(found, look)]
    if (first := _deciding(found)) is not None and first is not look:
        basis.insert(
            0,
            f"The look after {word} {first.week} decided this. The figures are those of the look "
            f"after {word} {look.week}.",
        )
    if found.next_look is not None and not found.closed:
        stop = "The protocol allows the trial to stop now. " if first is not None else ""
        basis.append(f"{stop}The next look is after {word} {found.next_look}.")
    return _answer(found, look), basis


def _deciding(found: TrialAnalysis) -> Look | None:
    """The first look with a claim: what it shows is the result, whatever later looks say."""
    return next((look for look in found.looks if look.claim), None)


def _answer(found: TrialAnalysis, look: Look) -> str:
    word, first = found.config.epoch_word, _deciding(found)
    if first is not None:
        shown = "works" if first.claim > 0 else "does harm"
        return f"The trial shows that help {shown} (look after {word} {first.week})"
    if found.next_look is None:
        return "The trial has ended and did not show whether help works"
    so_far = "was closed and did not show" if found.closed else "does not show yet"
    return f"The trial {so_far} whether help works (look after {word} {look.week})"


def effect_text(found: TrialAnalysis, look: Look) -> str:
    """The effect of help by lot at a look."""
    nouns = plural(found.config.noun)
    if look.effect.effect is None:
        return f"Too few {nouns} were drawn to compare them."
    return (
        f"With help, {_more(look.effect, found, f' of 100 {nouns}')} are better off than without, "
        f"p = {_p(look.p)}. The interval and the test allow for all looks."
    )


def list_text(found: TrialAnalysis, look: Look) -> str:
    """The effect of the list over lots at a look."""
    gain = look.list_gain
    if gain.effect is None:
        return "Too few were drawn on the list or off it to compare the two."
    return (
        f"On the list, help makes {_more(look.listed, found, ' of 100')} better off; off the list, "
        f"{_more(look.others, found)}. The difference is the effect of the list over random "
        f"places: {_signed(gain.effect)} ({_range(gain, found)})."
    )


def _numbers(found: TrialAnalysis, look: Look) -> str:
    word = found.config.epoch_word
    return (
        f"In {look.week} {word}s, {look.drawn} were drawn for a place ({look.drawn_known} with a "
        f"known outcome) and {look.waiting} to wait ({look.waiting_known}). People drawn in "
        "several of them count each time."
    )


def look_rows(found: TrialAnalysis) -> list[tuple[str, str, str, str]]:
    """A row for each look, of LOOK_COLUMNS; effects in 100 people."""
    return [
        (
            f"{found.config.epoch_word} {look.week}",
            _effect(look.effect),
            f"{_p(look.p)} ({_p(look.nominal)})",
            f"{look.drawn_known + look.waiting_known} of {look.drawn + look.waiting}",
        )
        for look in found.looks
    ]


def _effect(one: Interval) -> str:
    between = f"{_signed(one.low)} to {_signed(one.high)}"
    return "unknown" if one.effect is None else f"{_signed(one.effect)} ({between})"


def flow_rows(found: TrialAnalysis) -> list[tuple[int, int, str]]:
    """The flow of people, of FLOW_COLUMNS."""
    return [(row.people, row.person_weeks, row.what) for row in found.flow]


def methods(found: TrialAnalysis, software: str) -> str:
    """A methods section with results, flow and deviations, in Markdown; software: its version."""
    parts = [
        f"# Methods\n\n{_design(found)}\n\n{_statistics(found, software)}",
        f"## Results\n\n{_results(found)}",
        f"## Flow of people\n\n{_flow_table(found)}",
        f"## Deviations from the protocol\n\n{_deviations(found)}",
    ]
    return "\n\n".join(parts) + "\n"


def _design(found: TrialAnalysis) -> str:
    protocol, word = found.protocol, found.config.epoch_word
    nouns = plural(found.config.noun)
    fixed = datetime.fromtimestamp(found.fixed_at / 1000, UTC)
    groups = ", each within its group" if found.config.fair_column else ""
    return (
        f"The protocol asked: {protocol.question.strip()} It was fixed on {fixed:%Y-%m-%d}, before "
        f"the first list (SHA-256 {found.digest}). Each {word}, DOPL listed {protocol.budget} of "
        f"{protocol.people} {nouns} for help. Then {protocol.by_lot} on the list were drawn at "
        f"random to wait, and as many who could be listed but were not were drawn at random for "
        f"their places{groups}. The primary outcome was to be {OUTCOMES[protocol.outcome]}."
    )


def _statistics(found: TrialAnalysis, software: str) -> str:
    protocol, word = found.protocol, found.config.epoch_word
    looks = ", ".join(map(str, protocol.looks))
    return (
        f"We compared people drawn with the others in the same lottery, by intention to treat. "
        f"From each outcome we subtracted the mean of all in the same {word}, lottery and state. "
        f"Tests and intervals come from {REDRAWS:,} redraws of all lotteries, with the {word}'s "
        f"draw as the unit; they assume no model. Intervals invert the test of a constant shift. "
        f"Redraws take the lists as they were. Later lists depend on earlier draws, so tests are "
        f"exact for given lists and approximate otherwise. People with an unknown state were left "
        f"out. Looks were planned after {word}s {looks}; the two-sided error of "
        f"{100 * protocol.level:g} % was spent over them after Lan and DeMets (1983), little of it "
        f"early. Analysis version {ANALYSIS}, {software}."
    )


def _results(found: TrialAnalysis) -> str:
    if not found.looks:
        return f"{' '.join(headline(found)[1])}"
    word = found.config.epoch_word
    looks = [
        f"After {word} {look.week}: {effect_text(found, look)} {list_text(found, look)} "
        f"{_numbers(found, look)}"
        for look in found.looks
    ]
    return "\n\n".join([f"{headline(found)[0]}.", *looks])


def _flow_table(found: TrialAnalysis) -> str:
    rows = [FLOW_COLUMNS, ("---:", "---:", "---"), *flow_rows(found)]
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in rows)


def _deviations(found: TrialAnalysis) -> str:
    return "\n".join(f"- {one}" for one in found.deviations) or "None were recorded."


def _more(one: Interval, found: TrialAnalysis, of: str = "") -> str:
    """17 more of 100 patients (95 % interval +9 to +25); of: 100 of whom"""
    if one.effect is None:
        return f"an unknown number{of}"
    many = round(100 * one.effect)
    return f"{abs(many)} {'more' if many >= 0 else 'fewer'}{of} ({_range(one, found)})"


def _range(one: Interval, found: TrialAnalysis) -> str:
    level = 100 * (1 - found.protocol.level)
    return f"{level:g} % interval {_signed(one.low)} to {_signed(one.high)}"


def _signed(share: float) -> str:
    """A difference of shares, in 100 people; one digit more near 0, which decides."""
    return f"{100 * share:+.0f}" if abs(share) > 0.01 else f"{100 * share:+.1f}"


def _p(value: float) -> str:
    return f"{value:.4f}" if value < 0.01 else f"{value:.3f}"
