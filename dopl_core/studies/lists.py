"""A week's list: who is on it, and why, in numbers that were believed when it was made."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
import sqlalchemy as sa
from scipy.special import ndtr

from dopl_core.learning.bandit import ACT, UNKNOWN, WAIT
from dopl_core.learning.dopl import Dopl
from dopl_core.studies import archive, schema
from dopl_core.studies.config import StudyConfig
from dopl_core.studies.episode import Epoch
from dopl_core.studies.history import History, Move, corrected, state_label
from dopl_core.studies.reading import coming_config, reported_columns, study_row
from dopl_core.studies.store import Store
from dopl_core.studies.whereabouts import first_states, last_seen, where


@dataclass(frozen=True)
class Listed:
    """One of those on a list.

    state: the label of its state, None where that is not known; then last_seen, and weeks ago
    with_help, without: believed chance to be better off next time: in a better state than now, or
        still in the best
    sure: how sure it is that help is for the better, from 0 to 1
    equal: nothing told this one apart from others who are not on the list: chance decided
    by_lot: this one has a place that is drawn by lot, whatever is known
    badly_off: nobody who is not on the list is in a worse state
    helped: whether it was really helped, None while that is not reported
    then: the label of its state when the epoch had ended, None while that is not known
    """

    id: str
    label: str
    group: str
    state: str | None
    last_seen: str | None
    weeks_ago: int
    with_help: float
    without: float
    sure: float
    equal: bool
    badly_off: bool = False
    by_lot: bool = False
    helped: bool | None = None
    then: str | None = None


@dataclass(frozen=True)
class WeekList:
    """The list of a week, the most urgent first; made_at: milliseconds since 1970.

    word: what the owner calls a week;  best: the label of the best state
    """

    week: int
    made_at: int
    listed: list[Listed]
    reported: bool
    word: str = "week"
    best: str = ""

    @property
    def all_equal(self) -> bool:
        """Nothing told anybody apart: chance has decided on all of it."""
        return bool(self.listed) and all(one.equal for one in self.listed)


def reasons(
    config: StudyConfig, learner: Dopl, epoch: Epoch, moves: Sequence[Move]
) -> list[dict[str, Any]]:
    """Why each of a list's arms is on it, the most urgent first, lots last; see Listed."""
    assert learner.plan is not None  # noqa: S101
    assert learner.dynamics is not None  # noqa: S101
    mean, sd = learner.dynamics.mean, learner.dynamics.sd
    chances = where(epoch.states, moves, learner.present, mean)
    urgency = learner.standing(epoch.states, chances)
    left_out = np.setdiff1d(np.flatnonzero(learner.present), epoch.arms)
    others = epoch.states[left_out]
    worst = min(others[others != UNKNOWN], default=config.n_states)
    found = []
    drawn, off_the_list = set(epoch.by_lot.tolist()), set(urgency[left_out].tolist())
    for n in sorted(epoch.arms.tolist(), key=lambda arm: (arm in drawn, -urgency[arm], arm)):
        seen = last_seen(n, epoch.states, moves)
        now = 0 if seen is None else seen.state
        better = np.arange(config.n_states) >= min(now + 1, config.n_states - 1)
        with_help, without = (float(mean[n, now, a, better].sum()) for a in (ACT, WAIT))
        spread = sqrt(float((sd[n, now][:, better] ** 2).sum()))
        found.append(
            {
                "id": config.arms[n].id,
                "state": state_label(config, int(epoch.states[n])),
                "last_seen": None if seen is None else state_label(config, seen.state),
                "weeks_ago": 0 if seen is None else seen.ago,
                "with_help": round(with_help, 4),
                "without": round(without, 4),
                "sure": round(float(ndtr((with_help - without) / max(spread, 1e-9))), 4),
                "equal": n not in drawn and urgency[n] in off_the_list,
                "badly_off": bool(config.ordered and UNKNOWN < epoch.states[n] <= worst),
                "by_lot": n in drawn,
            }
        )
    return found


def read_lists(store: Store, study: str, last: int | None = None) -> list[WeekList]:
    """The lists of all weeks, the first first, with what is known of them by now.

    last: only so many of them, the newest
    """
    with store.read() as connection:
        row = study_row(connection, study)
        config = coming_config(store, connection, row)
        moves = archive.read_moves(connection, study)
        moves = corrected(moves, archive.read_corrections(connection, study), config)
        e = schema.events.c
        query = sa.select(e.at, e.body).where(e.study == study, e.kind == "listed")
        made = connection.execute(query.order_by(e.seq.desc()).limit(last)).all()
    found = []
    for at, body in reversed(made):
        content = archive.from_text(body)
        move = moves[content["week"] - 1]
        known = _with_outcomes(config, content["list"], move)
        reported, best = move.next_states is not None, config.states[-1].label
        found.append(WeekList(content["week"], at, known, reported, config.epoch_word, best))
    return found


def _with_outcomes(
    config: StudyConfig, entries: Sequence[dict[str, Any]], move: Move
) -> list[Listed]:
    """A list's entries with who they are, and what came of it where that is reported."""
    acted = set(move.acted.tolist())
    found = []
    for entry in entries:
        number = config.arm_number(entry["id"])
        arm = config.arms[number]
        helped, then = None, None
        if move.next_states is not None:
            helped = number in acted
            then = state_label(config, int(move.next_states[number]))
        found.append(Listed(**entry, label=arm.label, group=arm.group, helped=helped, then=then))
    return found


LIST_COLUMNS = ("week", "id", "name", "group", "state", "by_lot", "why", "helped", "then")


def list_rows(week: WeekList) -> list[tuple[str | int | None, ...]]:
    """A list as CSV has it; helped and then are empty until they are reported."""
    return [
        (
            *(week.week, one.id, one.label, one.group, one.state, int(one.by_lot), why(one, week)),
            *(None if one.helped is None else int(one.helped), one.then),
        )
        for one in week.listed
    ]


EVERY_LIST = ("week", "arm", "listed", "by_lot", "helped", "why")


def every_list(history: History) -> Iterator[tuple[str | int | None, ...]]:
    """All lists of a study, and who was helped without being on one; helped: empty until known."""
    config = history.coming
    moves = corrected(history.moves, (body for _, body in history.corrections), config)
    made = {e.content["week"]: e for e in history.events if e.kind == "listed"}
    for number, move in enumerate(moves, start=1):
        known, event = move.next_states is not None, made.get(number)
        reasons: dict[str, str] = {}
        if event is not None:
            entries = _with_outcomes(config, event.content["list"], move)
            best = config.states[-1].label
            week = WeekList(number, event.at, entries, known, config.epoch_word, best)
            reasons = {one.id: why(one, week) for one in entries}
        listed, drawn = set(move.arms.tolist()), set(move.by_lot.tolist())
        acted = set(move.acted.tolist()) if known else set()
        for n in sorted(listed | acted):
            arm = config.arms[n].id
            marks = int(n in listed), int(n in drawn), int(n in acted) if known else None
            yield number, arm, *marks, reasons.get(arm)


# Less of a gain, or less sure, is not worth a claim; from QUITE on somebody is quite sure.
GAIN, SURE, QUITE = 0.05, 0.8, 0.95


def why(one: Listed, week: WeekList) -> str:
    """Why somebody is on a list, in words that are true: a gain that is known, or that none is."""
    if one.by_lot:
        return "By lot: drawn among all who were not on the list, to see what help does."
    if one.with_help - one.without < GAIN or one.sure < SURE:
        return _without_a_claim(one)
    how = "quite sure" if one.sure >= QUITE else "fairly sure"
    better = "still in the best state" if one.last_seen == week.best else "better off"
    return (
        f"With help {better} next {week.word} in {100 * one.with_help:.0f} of 100 such "
        f"{week.word}s, without in {100 * one.without:.0f} ({how})."
        + (" Among those alike, picked by chance." if one.equal else "")
    )


def _without_a_claim(one: Listed) -> str:
    """Why somebody is on a list of whom it is not known what help does."""
    if one.badly_off and one.equal:
        return "Nobody off the list is worse off; among those alike, picked by chance."
    if one.badly_off:
        return "Nobody off the list is worse off; what help does is not known yet."
    if one.equal:
        return "As far as is known like others who are not on the list: picked by chance."
    return "Not known yet: on the list to find out."


def whereabouts_words(one: Listed, word: str = "week") -> str:
    """Where somebody was when the list was made, or was last seen."""
    if one.state is not None:
        return one.state
    if one.last_seen is None:
        return "Unknown: never seen yet"
    return f"Unknown: last seen {one.last_seen}, {_count(one.weeks_ago, word)} ago"


def _count(number: int, word: str) -> str:
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    said = words[number] if number < len(words) else str(number)
    return f"{said} {word}" + ("" if number == 1 else "s")


@dataclass(frozen=True)
class Standing:
    """Where somebody was when a week had ended (None: unknown), and whether they were helped."""

    state: str | None
    helped: bool


def read_week(store: Store, study: str, week: int) -> dict[str, Standing]:
    """What is known by now of a week that was reported: arm id -> standing; week 0 is the roster.

    Those who had not come yet are not in it.
    """
    with store.read() as connection:
        row = study_row(connection, study)
        config = coming_config(store, connection, row)
        moves = archive.read_moves(connection, study)
        moves = corrected(moves, archive.read_corrections(connection, study), config)
    if week == 0:
        states, acted = moves[0].states if moves else first_states(config), set()
    else:
        known = moves[week - 1].next_states
        assert known is not None  # noqa: S101
        states, acted = known, set(moves[week - 1].acted.tolist())
    return {
        config.arms[n].id: Standing(state_label(config, int(state)), n in acted)
        for n, state in enumerate(states)
        if state != UNKNOWN or n in acted or config.arms[n].present
    }


def read_cards(store: Store, study: str) -> dict[str, dict[str, str]]:
    """What cards show of everybody now, with what was reported since the roster."""
    with store.read() as connection:
        row = study_row(connection, study)
        config = coming_config(store, connection, row)
        fresh = reported_columns(store, connection, study, row.episode, row.epoch + 1)
    return {arm.id: arm.columns | fresh.get(arm.id, {}) for arm in config.arms}


def report_words(
    before: Mapping[str, str | None],
    states: Mapping[str, str | None],
    listed: Collection[str],
    helped: Collection[str],
) -> str:
    """What a report says, to be looked at before it counts.

    before, states: where everybody was and is, arm id -> label, None (or left out) where unknown
    """
    now = {arm: states.get(arm) for arm in before}
    unknown = sum(state is None for state in now.values())
    again = sum(state is not None and before[arm] is None for arm, state in now.items())
    same = sum(state is not None and before[arm] == state for arm, state in now.items())
    moved = len(now) - unknown - again - same
    others = len(set(helped) - set(listed))
    parts = [f"{moved} moved", f"{same} as before", f"{unknown} unknown"]
    parts += [f"{again} seen again"] * bool(again)
    more = f" and {others} not on the list" if others else ""
    parts += [f"{len(set(helped) & set(listed))} of {len(listed)} helped{more}"]
    return ", ".join(parts)
