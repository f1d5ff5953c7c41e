"""Texts about the power of a trial, for New study and `dopl power`."""

from collections.abc import Sequence

from dopl_core.studies.analysis.chart_text import percent
from dopl_core.studies.analysis.power import ENOUGH, Power, recommended
from dopl_core.studies.model.owner_words import many_weeks
from dopl_core.studies.model.plurals import plural
from dopl_core.studies.model.study_config import StudyConfig

FIRST_COLUMN = "Places at random"
_RULES = ("once_in", "most_times", "wait_after_joining", "fair_column")


def columns(found: Sequence[Power], word: str = "week") -> list[str]:
    """The headings of the table; word: the owner's for a week."""
    return [FIRST_COLUMN, *(many_weeks(word, weeks) for weeks in _weeks(found))]


def rows(found: Sequence[Power], budget: int) -> list[tuple[str, ...]]:
    """The power of each design: a row for each number of places, a column for each duration."""
    known = {(one.by_lot, one.weeks): _percent(one.power) for one in found}
    weeks = _weeks(found)
    lots = sorted({one.by_lot for one in found})
    return [(f"{k} of {budget}", *(known[k, one] for one in weeks)) for k in lots]


def _percent(share: float) -> str:
    return percent(share) if share < 0.995 else "over 99 %"


def _weeks(found: Sequence[Power]) -> list[int]:
    return sorted({one.weeks for one in found})


def advice(
    found: Sequence[Power], config: StudyConfig, effect: float, weeks: int | None = None
) -> str:
    """What to choose, and why; weeks: how long the trial may last, if possible."""
    people = plural(config.noun)
    if (best := recommended(found, weeks)) is None:
        most = max(found, key=lambda one: one.power)
        return (
            f"No design here has a power of {percent(ENOUGH)}. The best one has "
            f"{percent(most.power)}: {design(most, config)}. Choose a longer trial, more places at "
            "random, or a larger effect if you expect one."
        )
    return (
        f"Choose {design(best, config)}. If help improves {100 * effect:g} more {people} in 100, "
        f"the trial shows it with a probability of {_percent(best.power)}."
        + ("" if len(found) == 1 else f" {_fewest(best, config, weeks)}")
    )


def _fewest(best: Power, config: StudyConfig, weeks: int | None) -> str:
    return (
        f"Of all designs {_within(best, config, weeks)} with at least {percent(ENOUGH)}, this one "
        f"draws the fewest {plural(config.noun)} at random."
    )


def _within(best: Power, config: StudyConfig, weeks: int | None) -> str:
    if weeks is None or best.weeks > weeks:
        return "here"
    return f"of at most {many_weeks(config.epoch_word, weeks)}"


def caveat(found: Sequence[Power], *, records: bool, config: StudyConfig | None = None) -> str:
    """How far the figures can be trusted; config: whose rules are not simulated."""
    error = 100 * max(one.error for one in found)
    wide = max(found, key=lambda one: one.high - one.low)
    source = (
        "What people do without help was estimated from your past records."
        if records
        else "Without past records, DOPL assumes that most people stay in their state. Add past "
        "records for better figures."
    )
    return (
        f"The simulation has a standard error of at most {max(error, 0.1):.1f} percentage points. "
        f"{source} This is uncertain: a power of {percent(wide.power)} has a 90 % interval of "
        f"{100 * wide.low:.0f} to {100 * wide.high:.0f} %. {_not_simulated(wide.unknown)}"
        + (" Your rules are not simulated, and may lower it." if _has_rules(config) else "")
    )


def _has_rules(config: StudyConfig | None) -> bool:
    return config is not None and any(getattr(config, name) for name in _RULES)


def _not_simulated(unknown: float) -> str:
    if unknown < 0.005:
        return "People who leave and states that nobody reports lower the power."
    return (
        f"As in your past records, {_percent(unknown)} of the states are unknown. "
        "People who leave lower the power."
    )


COST = (
    "Places at random cost something: in simulated clinics of 20 patients, one place in eight cost "
    "about a fifth of what the list gains over random help."
)


def design(one: Power, config: StudyConfig) -> str:
    """A design in words."""
    return f"{one.by_lot} of {config.budget} places at random for " + many_weeks(
        config.epoch_word, one.weeks
    )
