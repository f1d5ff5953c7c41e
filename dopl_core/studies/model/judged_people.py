"""Whom a limited annotator judges, by the roster and the owner's last report."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dopl_core.studies.model.annotator_limits import Limit
from dopl_core.studies.model.log_values import Epoch
from dopl_core.studies.model.study_config import Arm, StudyConfig

Reported = Mapping[str, Mapping[str, str]]  # arm id -> column -> text, as owners reported it


def group_of(arm: Arm, column: str, reported: Reported) -> str:
    """What stands in a column of an arm now; in `group`, its group if there is no such column."""
    cells = {**arm.columns, **reported.get(arm.id, {})}
    return cells.get(column, arm.group if column == "group" else "").strip()


def is_judged(arm: Arm, limit: Limit, reported: Reported) -> bool:
    """Whether an annotator with this limit may see the card of an arm."""
    return arm.id not in limit.never and all(
        group_of(arm, column, reported) in values for column, values in limit.only.items()
    )


def judged_by_each(config: StudyConfig, epochs: Sequence[Epoch]) -> NDArray[np.bool_] | None:
    """The present arms that each limited annotator judges [K, N]; None if any pair may be asked.

    Annotators who judge fewer than two arms are left out, those who judge the same count once, and
    those who judge the fewest come first.
    epochs: all before
    """
    if not config.limited_pairs:
        return None
    reported: Reported = next((e.columns for e in reversed(epochs) if e.columns), {})
    found = {
        tuple(arm.present and is_judged(arm, limit, reported) for arm in config.arms)
        for limit in config.limits.values()
    }
    some = sorted((row for row in found if sum(row) > 1), key=lambda row: (sum(row), row))
    return np.array(some, dtype=bool).reshape(-1, config.n_arms)
