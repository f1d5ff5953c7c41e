"""The protocol of a trial in plain sentences, to read, to print and to register."""

from datetime import UTC, datetime

from dopl_core.studies.model.plurals import plural
from dopl_core.studies.model.protocol import OUTCOMES, Protocol, digest
from dopl_core.studies.model.study_config import StudyConfig


def sections(protocol: Protocol, config: StudyConfig) -> list[tuple[str, str]]:
    """Headings and texts; config: as the study is made."""
    people, word, words = plural(config.noun), config.epoch_word, plural(config.epoch_word)
    states, best = ", ".join(state.label for state in config.states), config.states[-1].label
    k, B, others = protocol.by_lot, protocol.budget, protocol.people - protocol.budget
    wait, get = ("waits", "is helped") if k == 1 else ("wait", "are helped")
    level = f"{100 * protocol.level:g} %"
    return [
        ("Question", protocol.question),
        (
            "People",
            f"The study begins with {protocol.people:,} {people}. People who join later take part "
            "from the next list on.",
        ),
        ("Help", f"Every {word}, {B:,} {people} are helped. A list says whom to help."),
        (
            "Randomisation",
            f"Every {word}, DOPL first chooses {B:,} {people}. Then {k:,} of them, drawn at "
            f"random, {wait} this {word}. {k:,} of the other {others:,}, drawn at random, {get} "
            "instead. All are equally likely to be drawn.",
        ),
        (
            "Primary outcome",
            f"Better off: {OUTCOMES[protocol.outcome]} ({best}). States from worst to best: "
            f"{states}.",
        ),
        (
            "Secondary outcome",
            "The effect of the list, by the same draws: how much more help improves people whom "
            "DOPL chose first than the others.",
        ),
        (
            "Analysis",
            f"People drawn for a place are compared with others who were not chosen, and people "
            f"drawn to wait with others who were chosen, in the same {word} and state. The test is "
            f"a permutation test: it repeats the draws of every {word}. It is two-sided, with an "
            f"error of {level} over all analyses together. People count as drawn, whether or not "
            "help reached them (intention to treat). People with an unknown state are left out of "
            f"that {word}. This is version {protocol.analysis} of the analysis.",
        ),
        (
            "Analyses and stopping",
            f"The data are analysed after {_listed(protocol.looks)} reported {words}. The error is "
            "spent by O'Brien and Fleming's rule, so an early analysis needs strong evidence. The "
            "trial may stop at one of these analyses if the test shows an effect. Otherwise it "
            f"ends after {protocol.weeks} reported {words}.",
        ),
        ("Expected effect and power", _power(protocol, people)),
    ]


def protocol_text(protocol: Protocol, config: StudyConfig, fixed_at: int | None = None) -> str:
    """The protocol as lines of text; fixed_at: when, in milliseconds since 1970, UTC."""
    lines = [f"{heading}: {words}" for heading, words in sections(protocol, config)]
    if fixed_at is not None:
        lines.append(f"Fixed: {fixed_words(fixed_at)}, before the first list.")
    lines.append(f"Digest (SHA-256): {digest(protocol)}")
    return "\n".join(lines) + "\n"


def fixed_words(at: int) -> str:
    """When a protocol was fixed, in milliseconds since 1970."""
    return f"{datetime.fromtimestamp(at / 1000, UTC):%Y-%m-%d %H:%M} UTC"


def _power(protocol: Protocol, people: str) -> str:
    effect = f"Help is expected to improve {100 * protocol.effect:g} more {people} in 100."
    if protocol.power is None:
        return f"{effect} The power was not computed."
    power = f"{100 * protocol.power:.0f} %"
    return f"{effect} The trial shows such an effect with a probability of {power}."


def _listed(looks: tuple[int, ...]) -> str:
    words = [str(week) for week in looks]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
