"""What owners do with a study that lives: report, correct, let people come and go, change it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from dopl_core.learning.bandit import UNKNOWN, IntArray
from dopl_core.studies import fold, schema, statements
from dopl_core.studies.changes import Change, changed, joining, leaving, setting
from dopl_core.studies.config import Arm, StudyConfig, check_text
from dopl_core.studies.history import Move, state_label, state_number
from dopl_core.studies.reading import study_row
from dopl_core.studies.running import move_on, withdraw
from dopl_core.studies.store import Store, StudyError
from dopl_core.studies.turn import Turn, take_turn
from dopl_core.studies.whereabouts import first_states


def observe(
    store: Store,
    study: str,
    states: Mapping[str, str | None],
    columns: Mapping[str, Mapping[str, str]] | None = None,
    *,
    helped: Iterable[str] | None = None,
    week: int | None = None,
) -> bool:
    """The owner reports where arms are now (arm id -> state label); whether a plan is due.

    Arms left out, or without a label, are somewhere unknown. It may come before all duels of the
    epoch are rated: they stay open, for what was asked about is known.
    helped: ids of those really helped, the list where None
    columns: what is newly known of some arms (arm id -> column -> text), for their cards
    week: the one that is reported, as the owner counts; another is refused
    """
    with take_turn(store, study) as turn:
        config = turn.config
        if config.world != "observed":
            raise StudyError(f'study "{study}" has a simulated world: it moves by itself')
        if turn.status == "closed":
            raise StudyError(f'study "{study}" is closed: open it again to report states')
        if turn.episode == 0:
            raise StudyError(f'study "{study}" has no list yet: its first sitting comes first')
        _check_week(turn, week)
        if turn.epoch >= config.horizon:
            raise StudyError(
                f"{config.epoch_word} {turn.week - 1} is reported: the next list comes first"
            )
        move_on(
            turn, _reported(config, states), _helped(config, helped), _fresh(config, columns or {})
        )
        return turn.plan_due


def _check_week(turn: Turn, week: int | None) -> None:
    if week is None or week == turn.week:
        return
    word, now = turn.config.epoch_word, turn.week
    what = f"{word} {week} is reported already" if week < now else f"{word} {week} is to come"
    raise StudyError(f"{what}: it is {word} {now} that is open; what was reported can be corrected")


def correct(
    store: Store,
    study: str,
    week: int,
    states: Mapping[str, str | None] | None = None,
    helped: Mapping[str, bool] | None = None,
) -> None:
    """Put right what was reported at the end of a week; the next list is made with it.

    Nothing is overwritten: a correction is an event. Week 0 is the roster.
    """
    with take_turn(store, study) as turn:
        row, config = study_row(turn.connection, study), turn.coming
        if config.world != "observed":
            raise StudyError(f'study "{study}" has a simulated world: nothing in it was reported')
        moves = fold.moves_so_far(turn.connection, row, config)
        done = sum(move.next_states is not None for move in moves)
        if not 0 <= week <= done:
            word = config.epoch_word
            raise StudyError(f"{word} {week} has no report: {word} 0 (the roster) to {done} have")
        body: dict[str, Any] = {"week": week, "states": {}, "helped": {}}
        for name, label in (states or {}).items():
            was = _state_then(config, moves, week, config.arm_number(name))
            if was != state_number(config, label):
                body["states"][name] = [state_label(config, was), label or None]
        for name, mark in (helped or {}).items():
            if week == 0:
                raise StudyError("nobody was helped before the first list")
            was_helped = config.arm_number(name) in moves[week - 1].acted
            if was_helped != bool(mark):
                body["helped"][name] = [int(was_helped), int(bool(mark))]
        if not body["states"] and not body["helped"]:
            raise StudyError("nothing would change: it was reported like this")
        turn.append("corrected", body=body)


def _state_then(config: StudyConfig, moves: Sequence[Move], week: int, arm: int) -> int:
    """What is believed of an arm's state at the end of a week."""
    known = moves[week - 1].next_states if week else moves[0].states if moves else None
    if known is None:
        known = first_states(config)
    if arm >= len(known):
        raise StudyError(f'"{config.arms[arm].id}" was not there in {config.epoch_word} {week}')
    return int(known[arm])


def join(store: Store, study: str, arms: Sequence[Arm]) -> None:
    """Arms join, or come back; they are on lists and in duels from the next list on."""
    with take_turn(store, study) as turn:
        _change(turn, joining(turn.coming, arms))


def leave(store: Store, study: str, ids: Iterable[str]) -> None:
    """Arms leave: no duel is asked about them any more, and no list has them."""
    with take_turn(store, study) as turn:
        kind, body = leaving(turn.coming, ids)
        _change(turn, (kind, body))
        gone = [turn.config.arm_number(arm) for arm in body["arms"] if _known(turn, arm)]
        withdraw(turn, schema.duels.c.left_arm.in_(gone) | schema.duels.c.right_arm.in_(gone))


def _known(turn: Turn, arm: str) -> bool:
    return any(one.id == arm for one in turn.config.arms)


def change_settings(store: Store, study: str, **settings: Any) -> None:
    """Change words and numbers of a study (changes.SETTINGS); they hold from the next list on."""
    with take_turn(store, study) as turn:
        _change(turn, setting(turn.coming, settings))
        turn.title = str(settings.get("title", turn.title))


def _change(turn: Turn, change: Change) -> None:
    changed(turn.coming, [change])  # refused, if it makes no sense, before anything is written
    turn.append(change[0], body=change[1])


def exclude(store: Store, study: str, annotator: str) -> None:
    """Count no answer of this person from the next plan on; they are asked as before."""
    _trust(store, study, annotator, "person_excluded")


def include(store: Store, study: str, annotator: str) -> None:
    """Count all answers of somebody who was excluded, those meanwhile too."""
    _trust(store, study, annotator, "person_included")


def _trust(store: Store, study: str, annotator: str, kind: str) -> None:
    with take_turn(store, study) as turn:
        if turn.run(statements.PERSON, at_study=study, annotator=annotator).one_or_none() is None:
            raise StudyError(f'nobody called "{annotator}" has come to study "{study}"')
        out = annotator in fold.excluded(turn.connection, study)
        if out == (kind == "person_excluded"):
            raise StudyError(f'"{annotator}" is {"excluded already" if out else "not excluded"}')
        turn.append(kind, annotator=annotator)


def _helped(config: StudyConfig, ids: Iterable[str] | None) -> IntArray | None:
    """The numbers of those really helped, in order."""
    if ids is None:
        return None
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
            raise StudyError(f'"{name}" has left: let it come back first')
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
