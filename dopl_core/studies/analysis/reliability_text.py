"""Texts about the reliability of answers, for Insights and `dopl enough`."""

import math

import pandas as pd

from dopl_core.learning.bradley_terry.reliability import ENOUGH, Measure
from dopl_core.studies.analysis.chart_text import Finding
from dopl_core.studies.analysis.reliability import MORE, Enough
from dopl_core.studies.exchange.reliability_csv import (
    MIN_ANSWERS,
    MIN_COMPARISONS,
    SURE,
    Reliability,
)
from dopl_core.studies.model.plurals import count

MISFIT = 1.3  # an infit that is usually called too high
MOST_NAMED = 3  # annotators whose answers do not fit


def finding(enough: Enough) -> Finding:
    """The reliability now and with more answers: advice as the title, a point for each."""
    if enough.found is None:
        return Finding(advice(enough), pd.DataFrame(columns=["answers", "reliability"]))
    found = enough.found
    now, expected = found.separation, _expected(found)
    data = pd.DataFrame(
        {
            "answers": [found.answers, *(found.answers + more for more in expected)],
            "reliability": [now.value, *expected.values()],
            "low": [now.low, *(math.nan for _ in expected)],
            "high": [now.high, *(math.nan for _ in expected)],
        }
    ).round(3)
    note = [reliability_text(found), *fit_text(found), *places_text(enough)]
    return Finding(advice(enough), data, " ".join(note))


def _expected(found: Reliability) -> dict[int, float]:
    """The reliability that is expected, by number of more answers; empty if nobody can tell."""
    if found.separation.value <= 0:
        return {}
    return {more: found.with_more(more) for more in MORE}


def advice(enough: Enough) -> str:
    """Whether people can stop answering, in one sentence."""
    found = enough.found
    if found is None:
        if (missing := MIN_ANSWERS - enough.answers) > 0:
            return f"Too early to say how reliable the answers are: at least {missing} more needed"
        return "Too early to say how reliable the answers are: most people were compared too rarely"
    if found.is_enough:
        return f"You can stop asking: the answers are reliable ({_number(found.separation.value)})"
    if found.separation.value >= ENOUGH and found.comparisons < MIN_COMPARISONS:
        each = f"{found.comparisons:.0f} of {MIN_COMPARISONS} comparisons a person"
        return f"Go on asking: the answers look reliable, but there are only {each}"
    if found.separation.low >= SURE and len(found.infit) == 1:
        return "Let a second person answer: it is not known yet whether others agree"
    if found.separation.low >= SURE:
        return "Go on asking: two halves of the annotators do not agree enough yet"
    if found.separation.value >= ENOUGH:
        return "Go on asking: the answers look reliable, but that is not sure yet"
    value = _number(found.separation.value)
    if found.with_more(MORE[-1]) < ENOUGH and round(enough.changed.get(MORE[-1], 1)) == 0:
        neither = f"{MORE[-1]} more would neither make them so nor change the list"
        return f"The answers are not reliable ({value}); {neither}"
    return f"Go on asking: the answers are not reliable yet ({value})"


def reliability_text(found: Reliability) -> str:
    """The reliability now, what it means, and what more answers would bring."""
    sentences = [
        f"The scale separation reliability is {_with_interval(found.separation)}. It is the share "
        f"of the differences between people that is not chance; {ENOUGH} is usually enough.",
        f"There are {count(found.answers, 'answer')} with a winner, about {found.comparisons:.0f} "
        f"comparisons a person; at least {MIN_COMPARISONS} are usual.",
    ]
    if expected := _expected(found):
        more = [f"{_number(value)} with {n} more answers" for n, value in expected.items()]
        sentences.append(f"Expect about {' and '.join(more)}.")
    else:
        sentences.append("So far the answers tell people apart no better than chance.")
    if not math.isnan(found.halves.value):
        sentences.append(
            f"Two halves of the annotators agree with a correlation of "
            f"{_with_interval(found.halves)}."
        )
    return " ".join(sentences)


def fit_text(found: Reliability) -> list[str]:
    """Whose answers do not fit those of the others, the worst first; or that all fit."""
    known = {name: fit for name, fit in found.infit.items() if not math.isnan(fit.value)}
    if len(known) < 2:
        return []
    bad = {name: fit for name, fit in known.items() if fit.value > MISFIT and fit.low > 1}
    if not bad:
        values = [fit.value for fit in known.values()]
        span = " to ".join(dict.fromkeys((_number(min(values)), _number(max(values)))))
        return [f"Every annotator's answers fit those of the others (infit {span})."]
    worst = sorted(bad, key=lambda name: -bad[name].value)[:MOST_NAMED]
    return [
        f"{name}'s answers do not fit those of the others: infit {_with_interval(bad[name])}; "
        "1 is expected."
        for name in worst
    ]


def places_text(enough: Enough) -> list[str]:
    """How many places of the list more answers would change."""
    if not enough.changed:
        return []
    places = count(enough.places, "place")
    changed = {more: round(number) for more, number in enough.changed.items()}
    if not any(changed.values()):
        return [f"{max(changed)} more answers would change none of the {places} on the list."]
    each = " and ".join(
        f"{f'about {n}' if n else 'almost none'} with {more} more answers"
        for more, n in changed.items()
    )
    return [f"Of the {places} on the list, {each} would change."]


def measures(found: Reliability) -> pd.DataFrame:
    """All measures with their intervals; the worst fits first."""
    named = {"scale separation": found.separation, "split halves": found.halves}
    fits = [(name, fit) for name, fit in found.infit.items() if not math.isnan(fit.value)]
    named |= {f"infit: {name}": fit for name, fit in sorted(fits, key=lambda one: -one[1].value)}
    rows = [(what, *one) for what, one in named.items() if not math.isnan(one.value)]
    return pd.DataFrame(rows, columns=["measure", "value", "low", "high"]).round(2)


def _with_interval(measure: Measure) -> str:
    if math.isnan(measure.low):
        return _number(measure.value)
    value, low, high = map(_number, measure)
    return f"{value} (95 % interval {low} to {high})"


def _number(value: float) -> str:
    return f"{value:.2f}".replace("-", "\N{MINUS SIGN}")
