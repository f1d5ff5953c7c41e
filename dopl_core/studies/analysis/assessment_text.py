"""The sentences of "Is it working?". No sentence claims a gain before help is proven to work.

Whether help is proven to work is decided in one place: effect_of_help.proven_sign.
"""

import pandas as pd

from dopl_core.studies.analysis import effect_of_help, forecast
from dopl_core.studies.analysis.assessment import MORE_ANSWERS, AnswersChanged, Assessment
from dopl_core.studies.analysis.chart_text import Finding, percent, share_of
from dopl_core.studies.analysis.earlier_help import WEEKS_BEFORE
from dopl_core.studies.analysis.effect_of_help import (
    FIRST_CLAIM_WEEK,
    SCEPTICAL_PROBABILITY,
    Estimate,
    claim_probability,
)
from dopl_core.studies.model.plurals import count, plural
from dopl_core.studies.model.study_config import StudyConfig
from dopl_core.studies.operate.known_effects import KnownEffect, Words, effect_text

MIN_DRAWN = 5  # random places that a comparison needs


def more_in_100(estimate: Estimate, noun: str) -> str:
    """A difference of two shares with its interval: 15 more patients in 100 (90 % interval ...)."""
    mean, low, high = (round(100 * x) for x in estimate[:3])
    people = f"{abs(mean)} {'more' if mean >= 0 else 'fewer'} {plural(noun)} in 100"
    if low < 0 <= mean or mean < 0 < high:
        return f"{people} (90 % interval {-low} fewer to {high} more)"
    least, most = sorted((abs(low), abs(high)))
    return f"{people} (90 % interval {least} to {most})"


def headline(found: Assessment) -> tuple[str, str]:
    """The answer to "Is it working?", and its basis."""
    word, weeks = found.config.epoch_word, found.weeks
    if weeks == 0:
        return (
            f"No answer yet: no {word} has been reported.",
            f"Report everyone's state at the end of the {word}, then come back.",
        )
    if weeks < FIRST_CLAIM_WEEK:
        return (
            f"Too early to tell: {weeks} of the first {FIRST_CLAIM_WEEK} {word}s "
            f"{'is' if weeks == 1 else 'are'} reported.",
            f"With so few {word}s, chance can look like an effect of help.",
        )
    effect = found.effect.overall
    if not effect.known:
        return (
            "No answer yet: too few people were seen in one state both with help and without.",
            "Lists that change, or places chosen at random, will show both.",
        )
    more = more_in_100(effect, found.config.noun)
    basis = (
        "Better off means: in a better state, or still in the best one. Each person is compared "
        f"with themselves in the same state, allowing for good and bad {word}s. "
        f"Based on {count(weeks, word)}."
    )
    if found.help_works:
        return "Yes: help works.", f"Help improves {more}. {basis}"
    estimate = f"Estimate: {more} are better off the next {word} with help than without. {basis}"
    if found.proven_sign < 0:
        return "No: people do worse with help than without.", estimate
    return (
        f"It is not known yet whether help works ({count(weeks, word)} reported).",
        f"{estimate} After {count(weeks, word)}, a claim needs a probability of "
        f"{100 * claim_probability(weeks):.4g} % by this comparison, and of "
        f"{percent(SCEPTICAL_PROBABILITY)} by all moves under a sceptical prior.",
    )


def states_finding(found: Assessment) -> Finding:
    """How many people are in each state, week by week: everybody, helped and not helped."""
    config, word = found.config, found.config.epoch_word
    labels = [state.label for state in config.states]
    half = effect_of_help.better_half(config.n_states)
    rows = []
    for week, counts in enumerate(found.state_counts, start=1):
        groups = {
            "everybody": counts.sum(axis=0),
            "not helped": counts[0],
            "helped": counts[1],
        }
        for group, people in groups.items():
            better, of = int(people[half].sum()), int(people.sum())
            share = better / of if of else None
            rows += [
                (week, group, label, int(number), better, of, share)
                for label, number in zip(labels, people, strict=True)
            ]
    columns = ["week", "group", "state", "people", "in_better_half", "of", "better_half"]
    data = pd.DataFrame(rows, columns=columns)
    if not found.weeks:
        return Finding(f"No {word} has been reported yet", data)
    everybody = data[data.group == "everybody"].dropna().drop_duplicates("week")
    if everybody.empty:
        return Finding(f"No state at the end of a {word} is known yet", data)
    first, last = everybody.iloc[0], everybody.iloc[-1]
    best = _either([label for label, good in zip(labels, half, strict=True) if good])
    share_now = share_of(last.in_better_half, last.of, f" {plural(config.noun)}")
    verb = "was" if last.in_better_half == 1 else "were"
    title = f"{share_now} {verb} {best} at the end of {word} {last.week}"
    if len(everybody) > 1:
        title += f"; {word} {first.week}: {share_of(first.in_better_half, first.of)}"
    return Finding(title, data)


def trend_text(found: Assessment) -> str:
    """Why the verdict and the trend of everybody can differ; empty if they do not."""
    half = effect_of_help.better_half(found.config.n_states)
    everybody = found.state_counts.sum(axis=1)  # [w, s]
    known = everybody[everybody.sum(axis=1) > 0]
    if len(known) < 2:
        return ""
    shares = known[:, half].sum(axis=1) / known.sum(axis=1)
    first, last = (round(100 * share) for share in shares[[0, -1]])  # as the title shows them
    nouns, word = plural(found.config.noun), found.config.epoch_word
    if first == last or (last > first) == (found.proven_sign > 0):
        return ""
    if found.proven_sign == 0:
        if last < first:
            return ""
        return f"A rise alone does not prove that help works: {nouns} also get better without help."
    here = int(found.config.present.sum())
    verdict = "Help works" if found.help_works else "Help does harm"
    trend = "fewer" if last < first else "more"
    return (
        f"{verdict}, and yet {trend} {nouns} than at first are in the better half. Both are true. "
        f"Each {word} at most {found.config.budget} of {here} {nouns} are helped. The chart counts "
        "everybody, and how the others change without help weighs more."
    )


def _either(labels: list[str]) -> str:
    quoted = [f'"{label}"' for label in labels]
    return "in " + (quoted[0] if len(quoted) == 1 else ", ".join(quoted[:-1]) + f" or {quoted[-1]}")


def effect_by_state_finding(found: Assessment) -> Finding:
    """What was observed of help in each state, and the estimated effect with its interval.

    A claim about a state needs proof that help works, an interval above 0, and observed shares in
    favour of help.
    """
    config = found.config
    words = Words(config.noun, config.epoch_word, config.states[-1].label)
    rows = [
        (state.label, *known, *estimate[:3], effect_text(known, state.label, words))
        for state, (known, estimate) in zip(config.states, found.effect_by_state, strict=True)
    ]
    columns = ["state", *KnownEffect._fields, "difference", "low", "high", "observed"]
    data = pd.DataFrame(rows, columns=columns)
    within = [estimate[:3] for estimate in found.effect.by_state]
    data[["within", "within_low", "within_high"]] = within
    if data.difference.isna().all():
        return Finding("Too few moves with help and without for an estimate in any state", data)
    in_favour = [effect.known.in_favour for effect in found.effect_by_state]
    positive = data[(data.low > 0) & pd.Series(in_favour)]
    if not found.help_works or positive.empty:
        return Finding("Help is not proven yet in any single state", data)
    top = positive.loc[positive.difference.idxmax()]
    return Finding(f'Help works in "{top.state}"', data)


def earlier_help_text(found: Assessment) -> list[str]:
    """Whether help wears off, and whether it works a week later; empty where that is not known.

    Each needs FIRST_CLAIM_WEEK weeks and an interval that excludes 0. Good news also needs proof
    that help works.
    """
    noun, word = found.config.noun, found.config.epoch_word
    again, later = found.earlier_help
    sentences = []
    if _is_claimed(found, again):
        sentences.append(
            f"Help does {'more' if again.mean > 0 else 'less'} for {plural(noun)} who were helped "
            f"in the {WEEKS_BEFORE} {word}s before. For each time, {more_in_100(again, noun)} are "
            f"better off the next {word}."
        )
    if _is_claimed(found, later):
        still = f"Help still works a {word} later."
        if later.mean < 0:
            still = f"A {word} after help, {plural(noun)} do worse than without it."
        sentences.append(
            f"{still} After help in the {word} before, {more_in_100(later, noun)} are better off "
            f"the next {word}."
        )
    return sentences


def _is_claimed(found: Assessment, estimate: Estimate) -> bool:
    """Whether an effect of earlier help may be claimed; an interval from 0, as shown, says less."""
    if not estimate.known or found.weeks < FIRST_CLAIM_WEEK:
        return False
    return estimate.high <= -0.005 or (estimate.low >= 0.005 and found.help_works)


def by_lot_text(found: Assessment) -> tuple[str, str]:
    """What the places chosen at random show, and the basis."""
    drawn, effect, waiting = found.effect_by_lot
    word, by_lot = found.config.epoch_word, found.config.by_lot
    if drawn == 0 and by_lot:
        return (
            f"{count(by_lot, 'place')} of every list {'is' if by_lot == 1 else 'are'} chosen at "
            "random.",
            f"After {MIN_DRAWN} random choices are reported, people helped at random are compared "
            "with others off the list, and people left out at random with others on it. Only "
            "chance separates them, so the comparison is fair.",
        )
    if drawn == 0:
        return (
            "No places have been chosen at random yet.",
            "If some places of each list are chosen at random, the people helped and left out by "
            "chance can be compared fairly with the others. One place in eight is enough. It is a "
            "setting of the study.",
        )
    if drawn < MIN_DRAWN or not effect.known:
        return (
            f"{count(drawn, 'random choice')} so far: too few to compare.",
            "Only chance separates people who were chosen at random from the others, so the "
            "comparison will be fair.",
        )
    basis = (
        f"{more_in_100(effect, found.config.noun)} were better off the next {word} with a place "
        f"than without. Based on {_choices(drawn, waiting)}, compared with the people they were "
        f"chosen from in the same {word}. Only chance separates them, so the comparison is fair."
    )
    if effect.low >= 0.005 and found.help_works:  # an interval that is shown as 0 to 51 says less
        return "Random places confirm it: people did better with a place than without.", (
            basis + _targeting(found)
        )
    if effect.high <= -0.005 and found.proven_sign < 0:
        return "Random places confirm it: people did worse with a place than without.", basis
    return "Random places alone do not prove an effect yet.", basis + _targeting(found)


def _choices(drawn: int, waiting: int) -> str:
    """How many people were helped at random, and how many were left out at random."""
    helped = count(drawn - waiting, "random place")
    return f"{helped} and {count(waiting, 'random wait')}" if waiting else helped


def _targeting(found: Assessment) -> str:
    gain = found.targeting_gain
    if not found.help_works or not gain.known:
        return ""
    more = more_in_100(gain, found.config.noun)
    if gain.low < 0.005:
        return f" It is open whether help does more in listed places than in random ones: {more}."
    return f" Help is estimated to do more in listed places than in random ones: {more}."


def forecast_finding(found: Assessment) -> Finding:
    """The coming weeks with help by the list, worst first, at random, and without help."""
    coming = found.forecast
    if coming is None:
        return Finding("There is no forecast yet", pd.DataFrame())
    names = ("this list", "worst off first", "help at random", "no help")
    rows = [(name, *way[:3]) for name, way in zip(names, coming, strict=False)]
    data = pd.DataFrame(rows, columns=["help", "people", "low", "high"])
    most = int(found.config.present.sum())  # an interval is an approximation
    data[["low", "high"]] = data[["low", "high"]].clip(0, most)
    if not found.help_works:
        return Finding("Forecast, not proven: it is not known yet whether help works", data)
    noun = found.config.noun
    title = _against("help at random", coming.over_random, noun)
    note = _against("helping the worst off first", coming.over_worst_first, noun)
    return Finding(title, data, f"{note}.")


def rules_text(config: StudyConfig) -> str:
    """That the forecast leaves out the owner's rules, if there are some."""
    if config.once_in or config.most_times or config.wait_after_joining or config.fair_column:
        return "Your rules (how often, by group) are left out."
    return ""


def _against(way: str, gain: Estimate, noun: str) -> str:
    if round(gain.low, 1) <= 0 <= round(gain.high, 1):  # as they are shown
        return f"It is not known yet whether the list does better than {way}"
    word, more = ("better", "more") if gain.mean > 0 else ("worse", "fewer")
    least, most = sorted((abs(gain.low), abs(gain.high)))
    return (
        f"The list is expected to do {word} than {way}: {abs(gain.mean):.1f} {more} "
        f"{plural(noun)} in the better half (90 % interval {least:.1f} to {most:.1f})"
    )


def places_finding(found: Assessment) -> Finding:
    """The probability that each person on the list belongs there."""
    rows = [
        (one.id, one.label, one.state or "unknown", *marks, one.probability)
        for one in found.places
        for marks in [["yes" if mark else "" for mark in (one.by_lot, one.to_find_out)]]
    ]
    columns = ["id", "name", "state", "random", "to_find_out", "probability"]
    data = pd.DataFrame(rows, columns=columns)
    if data.empty:
        return Finding("There is no list yet", data)
    chosen = data[(data.random == "") & (data.to_find_out == "")]
    if chosen.empty:
        by_lot = " or are there to find out" if data.to_find_out.any() else ""
        return Finding(f"All places on the list were chosen at random{by_lot}", data)
    if len(chosen) == 1:
        sure = round(100 * chosen.probability.iloc[0])
        return Finding(
            f"The person chosen for the list belongs there with {sure} % probability", data
        )
    belong = forecast.expected_count(chosen.probability.to_numpy())
    low, mean, high = (round(x) for x in (belong.low, belong.mean, belong.high))
    return Finding(
        f"About {mean} of the {len(chosen)} {plural(found.config.noun)} chosen for the list belong "
        f"there (90 % interval {low} to {high})",
        data,
    )


def advice(found: Assessment) -> list[str]:
    """What answers changed of the list, and how much more of them would change it."""
    sentences = []
    if found.answers_changed:
        sentences.append(answers_text(found.answers_changed, len(found.places)))
    if found.places_changed is None:
        return sentences
    chosen = sum(not place.by_lot for place in found.places)
    places = count(chosen, "place")
    if chosen < len(found.places):
        places += " not chosen at random"
    changed = round(found.places_changed)
    some = f"about {changed}" if changed else "almost none"
    return [*sentences, f"{MORE_ANSWERS} more answers would change {some} of the {places}."]


def answers_text(changed: AnswersChanged, listed: int) -> str:
    """When answers matter: how many places they changed, and whether people in a state differ.

    listed: all places of the list
    """
    places = count(changed.of, "place")
    if changed.of == 1:
        text = f"All your answers {'changed' if changed.places else 'did not change'} the one place"
    else:
        the = "" if changed.of < listed else "the "
        text = f"All your answers changed {changed.places or 'none'} of {the}{places}"
    text += " on the list, compared with your order of states alone."
    if changed.of < listed:
        text += " Not counted: people chosen at random, to find out, or with an unknown state."
    if changed.people_differ:
        return f"{text} People in one state differ, so answers matter."
    if 4 * changed.places > changed.of:
        return text
    return f"{text} People in one state differ little: your order of states says nearly everything."
