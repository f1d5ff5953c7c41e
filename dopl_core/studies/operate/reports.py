"""What owners do with a study that lives: report, correct, let people come and go, change it."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace

import numpy as np

from dopl_core.learning.bandit import UNKNOWN, IntArray
from dopl_core.studies.model.errors import StudyError
from dopl_core.studies.model.event_bodies import ArmsJoined, Corrected
from dopl_core.studies.model.log_values import Epoch, state_label, state_number
from dopl_core.studies.model.names import check_text
from dopl_core.studies.model.study_config import Arm, StudyConfig
from dopl_core.studies.operate.drafts import discard_draft
from dopl_core.studies.operate.last_report import read_last_report
from dopl_core.studies.operate.planning import move_on
from dopl_core.studies.replay.known_states import first_states
from dopl_core.studies.store.database import Store
from dopl_core.studies.store.study_reader import StudyReader, read_study
from dopl_core.studies.store.transaction import StudyTransaction, write_study


def observe(
    store: Store,
    study: str,
    states: Mapping[str, str | None],
    columns: Mapping[str, Mapping[str, str]] | None = None,
    *,
    helped: Iterable[str] | None = None,
    week: int | None = None,
    again: bool = True,
) -> bool:
    """Report the present states (arm id -> state label); whether a plan is due.

    The state of an arm that is left out, or has no label, is unknown. A report may come before all
    duels of the epoch are answered: they stay open. Arms that joined since the list was made may be
    reported: that is where they begin, and no move is counted.
    helped: ids of those really helped, the list where None
    columns: what is newly known of some arms (arm id -> column -> text), for their cards
    week: the week that is reported, as the owner counts; any other is refused
    again: False refuses a report that says the same as the last one
    """
    named = None if helped is None else sorted(helped)
    digest = _digest(states, columns or {}, named)
    with write_study(store, study) as tx:
        config = tx.config
        if config.world != "observed":
            raise StudyError(f'study "{study}" has a simulated world: it moves by itself')
        if tx.row.status == "closed":
            raise StudyError(f'study "{study}" is closed: open it again to report states')
        if tx.row.episode == 0:
            raise StudyError(f'study "{study}" has no list yet: its first round comes first')
        _check_week(tx, week)
        if tx.row.epoch >= config.horizon:
            raise StudyError(
                f"{config.epoch_word} {tx.week - 1} is reported: the next list comes first"
            )
        if not again and _is_last(tx, digest):
            word, now = config.epoch_word, tx.week
            raise StudyError(
                f"this is the report of {word} {now - 1} again, and a report counts once: if all "
                f"is the same in {word} {now}, add --week {now}"
            )
        new = _newcomers(tx.config, tx.next_config)
        arrivals = _arrivals(tx.next_config, new, states, columns or {})
        here = {arm: label for arm, label in states.items() if arm not in new}
        fresh = _fresh(config, {a: texts for a, texts in (columns or {}).items() if a not in new})
        move_on(tx, _reported(config, here), _helped(config, named, new), fresh, digest)
        if arrivals:
            tx.append("arms_joined", ArmsJoined([asdict(arm) for arm in arrivals]))
        discard_draft(tx.connection, study)
        return tx.plan_due


def report_config(store: Store, study: str) -> StudyConfig:
    """The configuration to read a report with: the list's, with arms that have joined since."""
    with read_study(store, study) as reader:
        config, coming = reader.config, reader.next_config
    here = {arm.id: arm for arm in config.arms if arm.present}
    return replace(coming, arms=tuple(here.get(arm.id, arm) for arm in coming.arms))


def _newcomers(config: StudyConfig, coming: StudyConfig) -> dict[str, Arm]:
    """The arms that have joined since the list was made."""
    here = {arm.id for arm in config.arms if arm.present}
    return {arm.id: arm for arm in coming.arms if arm.present and arm.id not in here}


def _arrivals(
    config: StudyConfig,
    new: Mapping[str, Arm],
    states: Mapping[str, str | None],
    columns: Mapping[str, Mapping[str, str]],
) -> list[Arm]:
    """Newcomers as they are reported, where that differs from how they joined."""
    found = []
    for name in (name for name in states if name in new):
        _reported(config, {name: states[name]})
        texts = _fresh(config, {name: columns.get(name, {})})[name]
        arm = replace(new[name], state=states[name] or "", columns=new[name].columns | texts)
        found += [arm] if arm != new[name] else []
    return found


def is_last_report(
    store: Store,
    study: str,
    states: Mapping[str, str | None],
    columns: Mapping[str, Mapping[str, str]] | None = None,
    helped: Iterable[str] | None = None,
) -> bool:
    """Whether this report, as `observe` takes it, is the one that counted last."""
    named = None if helped is None else sorted(helped)
    with read_study(store, study) as reader:
        return _is_last(reader, _digest(states, columns or {}, named))


def _is_last(reader: StudyReader, digest: str) -> bool:
    last = read_last_report(reader)
    return last is not None and last.digest == digest


def _digest(
    states: Mapping[str, str | None],
    columns: Mapping[str, Mapping[str, str]],
    helped: Sequence[str] | None,
) -> str:
    """What a report says, in 16 characters: the order of its rows does not matter."""
    said = json.dumps(
        [{arm: states[arm] or None for arm in states}, columns, helped], sort_keys=True
    )
    return hashlib.sha256(said.encode()).hexdigest()[:16]


def _check_week(tx: StudyTransaction, week: int | None) -> None:
    if week is None or week == tx.week:
        return
    word, now = tx.config.epoch_word, tx.week
    what = f"{word} {week} is reported already" if week < now else f"{word} {week} is to come"
    raise StudyError(f"{what}: it is {word} {now} that is open; earlier reports can be corrected")


def correct(
    store: Store,
    study: str,
    week: int,
    states: Mapping[str, str | None] | None = None,
    helped: Mapping[str, bool] | None = None,
) -> None:
    """Correct what was reported at the end of a week; the next list is made with it.

    Nothing is overwritten: a correction is an event. Week 0 is the roster.
    """
    with write_study(store, study) as tx:
        tx.append("corrected", _correction(tx, week, states or {}, helped or {}))


def read_correction(
    store: Store,
    study: str,
    week: int,
    states: Mapping[str, str | None] | None = None,
    helped: Mapping[str, bool] | None = None,
) -> Corrected:
    """What `correct` would change, without changing it."""
    with read_study(store, study) as reader:
        return _correction(reader, week, states or {}, helped or {})


def _correction(
    reader: StudyReader, week: int, states: Mapping[str, str | None], helped: Mapping[str, bool]
) -> Corrected:
    config = reader.next_config
    if config.world != "observed":
        raise StudyError(f'study "{reader.id}" has a simulated world: nothing in it was reported')
    epochs = reader.epochs
    done = sum(epoch.next_states is not None for epoch in epochs)
    if not 0 <= week <= done:
        word = config.epoch_word
        latest = f"{word} {done}" if done else f"{word} 0, the roster"
        raise StudyError(f"{word} {week} has no report: the latest is of {latest}")
    body = Corrected(week, {}, {})
    for name, label in states.items():
        was = _state_then(config, epochs, week, config.arm_number(name))
        if was != state_number(config, label):
            body.states[name] = (state_label(config, was), label or None)
    for name, mark in helped.items():
        if week == 0:
            raise StudyError("nobody was helped before the first list")
        was_helped = config.arm_number(name) in epochs[week - 1].acted
        if was_helped != bool(mark):
            body.helped[name] = (int(was_helped), int(bool(mark)))
    if not body.states and not body.helped:
        raise StudyError("The report already says this: nothing to correct")
    return body


def _state_then(config: StudyConfig, epochs: Sequence[Epoch], week: int, arm: int) -> int:
    """The state of an arm at the end of a week, as known by now."""
    known = epochs[week - 1].next_states if week else epochs[0].states if epochs else None
    if known is None:
        known = first_states(config)
    if arm >= len(known):
        raise StudyError(f'"{config.arms[arm].id}" was not there in {config.epoch_word} {week}')
    return int(known[arm])


def _helped(
    config: StudyConfig, ids: Sequence[str] | None, new: Mapping[str, Arm]
) -> IntArray | None:
    """The numbers of those really helped, in order."""
    if ids is None:
        return None
    for arm in ids:
        if arm in new:
            raise StudyError(f'"{arm}" joined after the list was made: help counts from the next')
    numbers = sorted({config.arm_number(arm) for arm in ids})
    for number in numbers:
        if not config.arms[number].present:
            raise StudyError(f'"{config.arms[number].id}" has left and cannot have been helped')
    return np.array(numbers, dtype=np.int64)


def _reported(config: StudyConfig, states: Mapping[str, str | None]) -> IntArray:
    """Reported states in the order of the arms [N], or why they cannot be used."""
    numbers = np.full(config.n_arms, UNKNOWN)
    for name, label in states.items():
        arm = config.arm_number(name)
        if not config.arms[arm].present:
            raise StudyError(f'"{name}" has left; re-admit them first')
        try:
            numbers[arm] = state_number(config, label)
        except StudyError as error:
            raise StudyError(f'arm "{name}": {error}') from None
    return numbers


def _fresh(
    config: StudyConfig, columns: Mapping[str, Mapping[str, str]]
) -> dict[str, dict[str, str]]:
    """Reported columns as text, or why they cannot be kept."""
    fresh = {arm: {str(k): str(v) for k, v in known.items()} for arm, known in columns.items()}
    for arm, known in fresh.items():
        config.arm_number(arm)
        for text in (*known.keys(), *known.values()):
            check_text(f'arm "{arm}"', text)
    return fresh
