"""transitions.csv: one row an arm and epoch; an epoch that is still open has no next state."""

import json
from collections.abc import Iterator
from itertools import groupby

import numpy as np

from dopl_core.learning.bandit import UNKNOWN
from dopl_core.studies.exchange.bundle_csv import (
    Cells,
    Rows,
    Value,
    checked,
    iso,
    one_of,
    reason,
    same,
    whole,
)
from dopl_core.studies.model.config_json import read_json
from dopl_core.studies.model.errors import CsvError
from dopl_core.studies.model.log_values import Epoch, state_number
from dopl_core.studies.model.outcomes import SOURCES
from dopl_core.studies.model.study_config import StudyConfig
from dopl_core.studies.model.study_log import StudyLog
from dopl_core.validation import brief

_PLACE = ("study", "episode", "epoch", "arm")
_MOVE = ("state", "activated", "next_state", "source")
COLUMNS = (*_PLACE, *_MOVE, "listed", "by_lot", "corrected_at", "reported")


def rows(log: StudyLog) -> Iterator[tuple[Value, ...]]:
    """The rows as corrected by now; unknown states are empty.

    activated: really helped;  listed: on the plan's list;  by_lot: on it, or not, by a random draw
    reported: JSON of what was reported at first, where a correction has changed it
    """
    config, times = log.coming, _corrected_at(log)
    labels = [state.label for state in config.states] + [None]  # UNKNOWN is -1
    for week, (first, known) in enumerate(zip(log.epochs, log.known_epochs, strict=True), start=1):
        listed, drawn = set(known.arms.tolist()), set(known.by_lot.tolist())
        if known.next_states is None:  # until the report, the list as it is now
            first = first.with_own(known.own)
        for n in np.flatnonzero(log.configs[known.episode].present).tolist():
            cells, before = _cells(known, n, labels), _cells(first, n, labels)
            differ = {name: before[name] for name in before if before[name] != cells[name]}
            place = (log.study, known.episode, known.epoch, config.arms[n].id)
            marks = (int(n in listed), int(n in drawn), iso(times.get((week, n))))
            reported = json.dumps(differ, ensure_ascii=False, sort_keys=True) if differ else None
            yield (*place, *cells.values(), known.source, *marks, reported)


def _cells(epoch: Epoch, n: int, labels: list[str | None]) -> dict[str, Value]:
    after = None if epoch.next_states is None else labels[epoch.next_states[n]]
    helped = int(n in epoch.acted)
    return {"state": labels[epoch.states[n]], "activated": helped, "next_state": after}


def _corrected_at(log: StudyLog) -> dict[tuple[int, int], int]:
    """When the row of a week and an arm was last corrected."""
    times = {}
    for at, body in log.corrections:
        for name in body.states:
            times[body.week + 1, log.coming.arm_number(name)] = at
        for name in (*body.states, *body.helped):
            times[body.week, log.coming.arm_number(name)] = at
    return times


def read(rows: Rows, log: StudyLog) -> list[Epoch]:
    """The epochs as they were reported; log: with its events and plans."""
    epochs: list[Epoch] = []
    for _, block in groupby(rows, key=lambda row: (row[1]["episode"], row[1]["epoch"])):
        # Where nothing was corrected, an arm is where it was last reported to be.
        before = epochs[-1] if epochs and not log.corrections else None
        epochs.append(_read_epoch(list(block), log, before))
    return epochs


def _read_epoch(block: list[tuple[int, Cells]], log: StudyLog, before: Epoch | None) -> Epoch:
    name, number = "transitions.csv", block[0][0]
    episode = checked(name, number, whole, block[0][1], "episode")
    config = log.configs.get(episode) if episode <= log.episode else None
    if config is None:
        raise CsvError(f"{name} row {number}: there is no plan {episode} in plans.csv")
    here = np.flatnonzero(config.present).tolist()
    if len(block) != len(here):
        raise CsvError(f"{name} row {block[-1][0]}: the epoch has {len(block)} of {len(here)} arms")
    return checked(name, number, _epoch, block, log.study, config, here, before)


def _epoch(
    block: list[tuple[int, Cells]],
    study: str,
    config: StudyConfig,
    here: list[int],
    before: Epoch | None,
) -> Epoch:
    first = block[0][1]
    reported = first["source"] != ""
    one_of("source", first["source"], SOURCES if reported else ("",))
    shared = {name: first[name] for name in ("episode", "epoch", "source")} | {"study": study}
    states, next_states = (np.full(config.n_arms, UNKNOWN) for _ in range(2))
    marked: dict[str, list[int]] = {"listed": [], "activated": [], "by_lot": []}
    for n, (number, row) in zip(here, block, strict=True):
        try:
            for name, value in (shared | {"arm": config.arms[n].id}).items():
                same(name, row[name], value)
            cells = _as_reported(row)
            states[n] = state_number(config, cells["state"])
            next_states[n] = state_number(config, cells["next_state"])
            if not reported and cells["next_state"]:
                raise ValueError("there is a next_state, and no source that says it")
            _check_follows(config, cells, n, before)
            for mark, arms in marked.items():
                one_of(mark, cells[mark], ("0", "1"))
                arms += [n] if cells[mark] == "1" else []
        except ValueError as error:
            raise CsvError(f"transitions.csv row {number}: {reason(error)}") from None
    listed, acted, by_lot = (np.array(arms, dtype=np.int64) for arms in marked.values())
    if len(listed) > config.budget:  # fewer where the rules leave too few; replay counts them
        raise ValueError(f"{len(listed)} arms are listed, the budget is {config.budget}")
    return Epoch(
        episode=whole(first, "episode"),
        epoch=whole(first, "epoch"),
        states=states,
        arms=listed,
        next_states=next_states if reported else None,
        source=first["source"] or None,
        helped=acted if reported and not np.array_equal(acted, listed) else None,
        by_lot=by_lot,
    )


def _as_reported(row: Cells) -> Cells:
    """The cells as they were reported at first, before any correction."""
    first = read_json(row.get("reported") or "{}")
    if not isinstance(first, dict) or not first.keys() <= {"state", "activated", "next_state"}:
        raise ValueError("reported is not what was said of state, activated and next_state")
    for name, value in first.items():
        if not isinstance(value, str | int | None):
            raise ValueError(f"reported: {name} is {brief(value)}")
    return row | {name: "" if value is None else str(value) for name, value in first.items()}


def _check_follows(config: StudyConfig, cells: Cells, n: int, before: Epoch | None) -> None:
    """Where nothing was corrected, an arm is where it was last reported to be."""
    if before is None or before.next_states is None or n >= len(before.next_states):
        return
    if before.next_states[n] != UNKNOWN:
        same("state", cells["state"], config.states[before.next_states[n]].label)
