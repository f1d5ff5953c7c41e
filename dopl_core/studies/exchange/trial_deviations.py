"""How a trial departed from its protocol, in sentences without names."""

from collections.abc import Iterator, Sequence

import numpy as np

from dopl_core.studies.model.log_values import Epoch
from dopl_core.studies.model.protocol import Protocol
from dopl_core.studies.model.study_config import StudyConfig
from dopl_core.studies.model.study_log import StudyLog

# Settings that decide who can be drawn. The analysis allows for their changes.
_RULES = ("once_in", "most_times", "wait_after_joining", "fair_column", "fair_rule", "fair_shares")
_MOST_WEEKS = 10  # that a sentence names


def deviations(
    log: StudyLog,
    protocol: Protocol,
    epochs: Sequence[Epoch],
    configs: Sequence[StudyConfig],
    *,
    shown: bool,
) -> list[str]:
    """What differed from the protocol in the reported weeks.

    epochs, configs: one a week;  shown: whether a look has shown an effect, so that the trial may
        stop
    """
    word = log.coming.epoch_word
    return [
        *_of_lists(protocol, epochs, word),
        *_of_rules(configs, word),
        *_of_help(epochs),
        *_of_the_log(log, protocol, epochs, shown=shown),
    ]


def erased_people(log: StudyLog) -> list[int]:
    """The numbers of people who were erased with all that was known of them."""
    names = [one.name for _, _, one in log.erasures if one.what == "person" and one.answers]
    return [log.coming.arm_number(name) for name in names]


def _of_lists(protocol: Protocol, epochs: Sequence[Epoch], word: str) -> Iterator[str]:
    """Lists of another size, or with other places by lot."""
    places = [len(epoch.arms) != protocol.budget for epoch in epochs]
    drawn = [len(epoch.drawn) for epoch in epochs]
    some = [0 < many != protocol.by_lot for many in drawn]
    if any(places):
        yield f"The list did not have {protocol.budget} places {_in_weeks(places, word)}."
    if not all(drawn):
        yield f"No places were drawn at random {_in_weeks([not x for x in drawn], word)}."
    if any(some):
        yield f"Not {protocol.by_lot} places were drawn at random {_in_weeks(some, word)}."


def _of_rules(configs: Sequence[StudyConfig], word: str) -> Iterator[str]:
    """Rules of the study that changed while the trial ran."""
    for name in _RULES:
        values = [getattr(config, name) for config in configs]
        new = [week > 0 and value != values[week - 1] for week, value in enumerate(values)]
        if any(new):
            yield f"The setting {name} changed {_in_weeks(new, word)}; the analysis allows for it."


def _of_help(epochs: Sequence[Epoch]) -> Iterator[str]:
    """Lists that the owner changed among people drawn, and help that was not as drawn."""
    drawn, waiting = (
        sum(len(epoch.drawn) for epoch in epochs),
        sum(len(epoch.left_out) for epoch in epochs),
    )
    owned = [(epoch, epoch.own) for epoch in epochs if epoch.own is not None]
    off = sum(len(np.intersect1d(epoch.drawn, own.off)) for epoch, own in owned)
    on = sum(len(np.intersect1d(epoch.left_out, own.on)) for epoch, own in owned)
    if off or on:
        yield (
            f"The owner changed the list after the draw: taken off, {off} of {drawn} drawn for a "
            f"place; put on, {on} of {waiting} drawn to wait."
        )
    missed = sum(len(np.setdiff1d(epoch.drawn, epoch.acted)) for epoch in epochs)
    helped = sum(len(np.intersect1d(epoch.left_out, epoch.acted)) for epoch in epochs)
    if missed or helped:
        yield (
            f"Help was not always as drawn: not helped, {missed} of {drawn} drawn for a place; "
            f"helped, {helped} of {waiting} drawn to wait. All count as drawn."
        )
    chosen = [np.setdiff1d(epoch.arms, epoch.drawn) for epoch in epochs]
    listed = sum(len(arms) for arms in chosen)
    missed = sum(
        len(np.setdiff1d(arms, epoch.acted)) for arms, epoch in zip(chosen, epochs, strict=True)
    )
    helped = sum(len(np.setdiff1d(epoch.acted, [*epoch.arms, *epoch.by_lot])) for epoch in epochs)
    if missed or helped:
        yield (
            f"Among people not drawn, help was not always as listed: not helped, {missed} of "
            f"{listed} on the list; helped, {helped} off the list."
        )


def _of_the_log(
    log: StudyLog, protocol: Protocol, epochs: Sequence[Epoch], *, shown: bool
) -> Iterator[str]:
    """Reports undone or corrected, people erased, and a study closed too early."""
    undone = sum(event.kind == "report_undone" for event in log.events)
    if undone:
        yield f"Reports undone and made again: {undone}."
    if log.corrections:
        yield f"Corrections of reports: {len(log.corrections)}."
    if erased := erased_people(log):
        yield (
            f"Erased at their request, with all that was known of them: {len(erased)} "
            "of the people. They are left out."
        )
    if log.status == "closed" and len(epochs) < protocol.weeks and not shown:
        word = log.coming.epoch_word
        yield f"The study was closed after {len(epochs)} of {protocol.weeks} {word}s."


def _in_weeks(those: Sequence[bool], word: str) -> str:
    """In which weeks, from 1."""
    numbers = [str(number) for number, is_one in enumerate(those, start=1) if is_one]
    if len(numbers) > _MOST_WEEKS:
        return f"in {len(numbers)} of {len(those)} {word}s"
    if len(numbers) == 1:
        return f"in {word} {numbers[0]}"
    return f"in {word}s {', '.join(numbers[:-1])} and {numbers[-1]}"
