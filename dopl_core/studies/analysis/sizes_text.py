"""How much columns and the season change, in words: only sizes that are known, of columns that
matter.
"""

from collections.abc import Mapping, Sequence

import pandas as pd

from dopl_core.learning.moves.model import Size
from dopl_core.studies.analysis.assessment_text import more_in_100
from dopl_core.studies.analysis.chart_text import SURE, Finding
from dopl_core.studies.analysis.effect_of_help import (
    MIN_MOVES,
    UNKNOWN_ESTIMATE,
    Estimate,
    normal_estimate,
)
from dopl_core.studies.model.plurals import plural
from dopl_core.studies.model.study_config import StudyConfig

SHOWN = {"without help": "without", "with help": "with", "help adds": "adds"}  # of Estimates
LEAST_SEASON = 0.02  # of a difference that is worth a sentence


def sizes_finding(
    sizes: Sequence[Size], probabilities: Mapping[str, float], config: StudyConfig
) -> Finding:
    """How much each label of the columns that matter changes, against the average person.

    Estimates need MIN_MOVES of people with the label: without help, with help, or both.
    """
    nouns, word = plural(config.noun), config.epoch_word
    rows: list[dict[str, object]] = []
    clear: list[tuple[float, str]] = []
    for one in sizes:
        if probabilities.get(one.column, 0.0) < SURE:
            continue
        enough = one.moves >= MIN_MOVES
        found = [
            normal_estimate(mean, error) if seen else UNKNOWN_ESTIMATE
            for mean, error, seen in zip(one.mean, one.error, [*enough, enough.all()], strict=True)
        ]
        people = _people(one, nouns)
        row: dict[str, object] = {"column": one.column, "value": one.label or "high"}
        for name, estimate in zip(SHOWN.values(), found, strict=True):
            row |= {name: estimate.mean, f"{name}_low": estimate.low, f"{name}_high": estimate.high}
        rows.append(row)
        if is_clear(found[0]):
            more = more_in_100(found[0], config.noun)
            sentence = (
                f"{people}: without help, {more} are better off the next {word} than on average"
            )
            clear.append((abs(found[0].mean), sentence))
    if not clear:
        return Finding("No single value of these columns stands out yet", pd.DataFrame(rows))
    return Finding(max(clear)[1], pd.DataFrame(rows))


def in_words(sizes: pd.DataFrame) -> pd.DataFrame:
    """The data of `sizes_finding` as a table to read: more people in 100, with 90 % intervals."""
    table = pd.DataFrame({"people": sizes.column + ": " + sizes.value})
    for title, name in SHOWN.items():
        parts = (sizes[column] for column in (name, f"{name}_low", f"{name}_high"))
        table[title] = [_difference(*shares) for shares in zip(*parts, strict=True)]
    return table


def season_text(size: tuple[float, float] | None, config: StudyConfig) -> str:
    """How the next week differs from all weeks; empty where that is small or not known."""
    if size is None:
        return ""
    found, word = normal_estimate(*size), config.epoch_word
    if abs(found.mean) < LEAST_SEASON or not is_clear(found):
        return ""
    nouns = plural(config.noun)
    change = "better" if found.mean > 0 else "worse"
    return (
        f"In recent {word}s, {nouns} do {change} than over all {word}s. The next {word}, "
        f"{more_in_100(found, config.noun)} are expected to be better off."
    )


def is_clear(estimate: Estimate) -> bool:
    """Whether the 90 % interval excludes 0 as it is shown."""
    return estimate.known and (estimate.low >= 0.005 or estimate.high <= -0.005)


def _people(size: Size, nouns: str) -> str:
    if size.label:
        return f'{size.column} "{size.label}"'
    return f"{nouns[:1].upper()}{nouns[1:]} with a high {size.column}"


def _difference(mean: float, low: float, high: float) -> str:
    if pd.isna(mean):
        return "too few"
    mean, low, high = (round(100 * share) for share in (mean, low, high))
    return f"{mean:+d} ({low:+d} to {high:+d})"
