"""A study's whole history as values: what a bundle holds, checked cell by cell."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dopl_core.learning.bandit import IntArray
from dopl_core.studies.config import StudyConfig
from dopl_core.studies.csvtext import CsvError
from dopl_core.studies.fold import Arrays
from dopl_core.studies.statements import COUNTED
from dopl_core.studies.tables import DUELS, PLANS, TRANSITIONS, milliseconds

PURPOSES = ("policy", "repeat", "gold", "practice")

Place = tuple[int, int, int]  # episode, epoch, number of the duel
Rows = list[tuple[int, dict[str, str]]]


@dataclass(frozen=True)
class Impression:
    """A row of duels.csv; duel: left arm, left state, right arm, right state by number."""

    annotator: str
    session: int
    place: Place
    purpose: str
    duel: tuple[int, int, int, int]
    outcome: str | None
    shown_at: int
    answered_at: int | None
    response_ms: int | None


@dataclass(frozen=True, eq=False)
class Move:
    """An epoch of transitions.csv: states [N], arms helped [B], next states [N] where known."""

    episode: int
    epoch: int
    states: IntArray
    arms: IntArray
    next_states: IntArray | None
    source: str | None


@dataclass(frozen=True, eq=False)
class History:
    """Everything that happened in a study.

    version: of the bundle;  plans: the rows of plans.csv, without digests in version 1
    arrays: what the learner held after the last plan beside its counts; None in version 1
    closed: duels of the present episode that the owner waits for no longer, with their ratings
    reports: (episode, epoch) -> what the owner reported of the arms when it ended
    """

    version: int
    study: str
    status: str
    made_at: int
    config: StudyConfig
    asked: int
    given: int
    annotators: list[dict[str, Any]]
    impressions: list[Impression]
    moves: list[Move]
    plans: list[dict[str, Any]]
    arrays: Arrays | None
    closed: dict[Place, int] = field(default_factory=dict)
    reports: dict[tuple[int, int], dict[str, dict[str, str]]] = field(default_factory=dict)

    @property
    def episode(self) -> int:
        return len(self.plans)


def read_impressions(
    rows: Rows, columns: list[str], config: StudyConfig, study: str
) -> list[Impression]:
    """The impressions of duels.csv."""
    _check_columns("duels.csv", columns, DUELS)
    return [_checked("duels.csv", number, _impression, row, config, study) for number, row in rows]


def read_moves(rows: Rows, columns: list[str], config: StudyConfig, study: str) -> list[Move]:
    """The epochs of transitions.csv: blocks of N rows, in the order of the arms."""
    name, N = "transitions.csv", config.n_arms
    _check_columns(name, columns, TRANSITIONS)
    moves: list[Move] = []
    for start in range(0, len(rows), N):
        block = rows[start : start + N]
        if len(block) < N:
            raise CsvError(f"{name} row {block[-1][0]}: the epoch has {len(block)} of {N} arms")
        before = moves[-1] if moves else None
        moves.append(_checked(name, block[0][0], _move, block, config, study, before))
    return moves


def read_plans(
    rows: Rows, columns: list[str], study: str, with_digest: bool
) -> list[dict[str, Any]]:
    """The rows of plans.csv, numbers as numbers."""
    expected = PLANS if with_digest else PLANS[:-1]
    _check_columns("plans.csv", columns, expected)
    plans: list[dict[str, Any]] = []
    for number, row in rows:
        plans.append(_checked("plans.csv", number, _plan, row, study, len(plans) + 1))
    if not plans:
        raise CsvError("plans.csv has no plans: a study begins with one")
    return plans


def check(history: History) -> None:
    """What the files say must fit together."""
    config, episode = history.config, history.episode
    known = [(move.episode, move.epoch) for move in history.moves]
    open_epochs = [place for place, m in zip(known, history.moves, strict=True) if _open(m)]
    whole = [(k, h) for k in range(1, episode + 1) for h in range(config.horizon)]
    if known != whole[: len(known)] or (episode, 0) not in known:
        raise CsvError(
            f"transitions.csv: the epochs are not those of {episode} plans with {config.horizon} "
            "epochs each, in order"
        )
    if open_epochs and (open_epochs != known[-1:] or config.world == "simulated"):
        raise CsvError(f"transitions.csv: epoch {open_epochs[0]} has no next states")
    helped = dict(zip(known, history.moves, strict=True))
    names = {person["name"] for person in history.annotators}
    sides: dict[tuple[Place, str], tuple[int, int, int, int]] = {}
    ratings: Counter[tuple[Place, str]] = Counter()
    people: set[tuple[Place, str, str]] = set()
    for number, shown in enumerate(history.impressions, start=2):
        where = f"duels.csv row {number}"
        key = (shown.place, shown.purpose)
        if shown.annotator not in names:
            raise CsvError(f'{where}: annotator "{shown.annotator}" is not in study.json')
        if sides.setdefault(key, shown.duel) != shown.duel:
            raise CsvError(f"{where}: the duel has other sides than before")
        if shown.purpose != "practice":
            move = helped.get(shown.place[:2])
            if move is None:
                raise CsvError(f"{where}: the epoch is not in transitions.csv")
            _check_sides(where, shown, move)
        if shown.outcome != "undone":
            if (*key, shown.annotator) in people:
                raise CsvError(f"{where}: shown to the same person before")
            people.add((*key, shown.annotator))
        if shown.purpose == "policy" and shown.outcome in COUNTED:
            ratings[key] += 1
            if ratings[key] > config.ratings:
                raise CsvError(f"{where}: the duel has more than {config.ratings} ratings")
    used: Counter[int] = Counter()
    for shown in history.impressions:
        if shown.purpose == "policy" and shown.outcome in ("left", "right", "tie"):
            used[shown.place[0]] += 1
    for number, plan in enumerate(history.plans, start=2):
        before = sum(used[k] for k in range(plan["plan"]))
        if plan["answers"] != before:
            raise CsvError(
                f"plans.csv row {number}: made with {plan['answers']} answers, duels.csv has "
                f"{before} from before it"
            )
    if not 0 <= history.given <= history.asked:
        raise CsvError(f"study.json: {history.given} ratings given of {history.asked} asked")


def _check_sides(where: str, shown: Impression, move: Move) -> None:
    left_arm, left_state, right_arm, right_state = shown.duel
    for arm, state in ((left_arm, left_state), (right_arm, right_state)):
        if arm not in move.arms or move.states[arm] != state:
            raise CsvError(f"{where}: transitions.csv has no such arm helped in that state then")


def _open(move: Move) -> bool:
    return move.next_states is None


def _impression(row: dict[str, str], config: StudyConfig, study: str) -> Impression:
    _same("study", row["study"], study)
    left, right = config.arm_number(row["left_arm"]), config.arm_number(row["right_arm"])
    if left == right:
        raise ValueError("an arm is asked about against itself")
    outcome = row["outcome"] or None
    _one_of("outcome", row["outcome"], ("", *COUNTED, "expired", "undone"))
    _one_of("purpose", row["purpose"], PURPOSES)
    sides = {"left": ("left_arm", "right_arm"), "right": ("right_arm", "left_arm")}
    won, lost = (row[side] for side in sides[outcome]) if outcome in sides else ("", "")
    _same("winner_arm", row["winner_arm"], won)
    _same("loser_arm", row["loser_arm"], lost)
    if outcome in COUNTED and not row["answered_at"]:
        raise ValueError("answered_at is empty")
    _same("confidence", row["confidence"], config.confidence)
    _same("plan", row["plan"], row["episode"])
    return Impression(
        annotator=row["annotator"],
        session=_whole(row, "session"),
        place=(_whole(row, "episode"), _whole(row, "epoch"), _whole(row, "duel")),
        purpose=row["purpose"],
        duel=(
            left,
            config.state_number(row["left_state"]),
            right,
            config.state_number(row["right_state"]),
        ),
        outcome=outcome,
        shown_at=milliseconds(row["shown_at"]),
        answered_at=milliseconds(row["answered_at"]) if row["answered_at"] else None,
        response_ms=_whole(row, "response_ms") if row["response_ms"] else None,
    )


def _move(block: Rows, config: StudyConfig, study: str, before: Move | None) -> Move:
    first = block[0][1]
    episode, epoch, source = _whole(first, "episode"), _whole(first, "epoch"), first["source"]
    known = first["next_state"] != ""
    states, arms, after = [], [], []
    for n, (number, row) in enumerate(block):
        try:
            _same("study", row["study"], study)
            _same("arm", row["arm"], config.arms[n].id)
            _same("episode", row["episode"], first["episode"])
            _same("epoch", row["epoch"], first["epoch"])
            _same("source", row["source"], source)
            _one_of("activated", row["activated"], ("0", "1"))
            states.append(config.state_number(row["state"]))
            arms += [n] if row["activated"] == "1" else []
            if (row["next_state"] != "") != known:
                raise ValueError("next_state is there for some arms only")
            after.append(config.state_number(row["next_state"]) if known else 0)
            if before is not None and before.next_states is not None:
                _same("state", row["state"], config.states[before.next_states[n]].label)
        except ValueError as error:
            raise CsvError(f"transitions.csv row {number}: {error}") from None
    if len(arms) != config.budget:
        raise ValueError(f"{len(arms)} arms are activated, the budget is {config.budget}")
    _one_of("source", source, ("simulated", "owner") if known else ("",))
    return Move(
        episode,
        epoch,
        np.array(states, dtype=np.int64),
        np.array(arms, dtype=np.int64),
        np.array(after, dtype=np.int64) if known else None,
        source or None,
    )


def _plan(row: dict[str, str], study: str, expected: int) -> dict[str, Any]:
    _same("study", row["study"], study)
    _same("plan", row["plan"], str(expected))
    numbers = {name: float(row[name]) for name in ("value", "random_value", "multiplier")}
    numbers |= {name: float(row[name]) for name in ("changed", "seconds")}
    return {
        "plan": expected,
        "made_at": milliseconds(row["made_at"]),
        "engine": row["engine"],
        "answers": _whole(row, "answers"),
        "digest": row.get("digest") or None,
        **numbers,
    }


def _checked(name: str, number: int, read: Callable[..., Any], *given: Any) -> Any:
    """What a row says, or the file, the row and the reason why it cannot be read."""
    try:
        return read(*given)
    except CsvError:
        raise
    except ValueError as error:
        raise CsvError(f"{name} row {number}: {error}") from None


def _check_columns(name: str, columns: list[str], expected: tuple[str, ...]) -> None:
    if tuple(columns) != expected:
        raise CsvError(f"{name} row 1: the columns are not {', '.join(expected)}")


def _same(what: str, given: str, expected: str) -> None:
    if given != expected:
        raise ValueError(f'{what} is "{given}", not "{expected}"')


def _one_of(what: str, given: str, allowed: tuple[str, ...]) -> None:
    if given not in allowed:
        raise ValueError(f'{what} "{given}" is not one of {", ".join(allowed)}')


def _whole(row: dict[str, str], column: str) -> int:
    if not row[column].isascii() or not row[column].isdigit():
        raise ValueError(f'{column} is "{row[column]}": a whole number needed')
    return int(row[column])
