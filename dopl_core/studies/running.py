"""A study's course: it is made, its world moves, its plans are made, people come and go."""

import re
import secrets
import threading
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import numpy as np
import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from dopl_core.learning.arithmetic import fingerprint
from dopl_core.learning.bandit import IntArray
from dopl_core.learning.dopl import Dopl
from dopl_core.studies import asking, fold, lists, records, rows, schema, statements
from dopl_core.studies.arrays import unpack_arms
from dopl_core.studies.asking import release
from dopl_core.studies.changes import Change, changed
from dopl_core.studies.config import StudyConfig, learner_of
from dopl_core.studies.episode import (
    Episode,
    Epoch,
    begin,
    open_epoch,
    plan_arrays,
    practice_duels,
    sitting_duels,
)
from dopl_core.studies.history import Move
from dopl_core.studies.reading import (
    coming_config,
    config_of,
    read_changes,
    reported_columns,
    study_row,
)
from dopl_core.studies.records import Records
from dopl_core.studies.store import Store, StudyError
from dopl_core.studies.turn import Turn, take_turn
from dopl_core.studies.vocabulary import EVENTS, LEARNT, SAID
from dopl_core.studies.whereabouts import coming_states, first_states


def create_study(store: Store, config: StudyConfig, history: Records | None = None) -> str:
    """Make a study with its first duels; its id.

    Where a first sitting is wanted, those are its duels, and the first plan comes after it; else
    the first plan is made now.
    history: past records, see records.read_history
    """
    change: Change | None = None
    if history is not None:
        change = "history_added", {"records": history.text, "moves": history.moves}
    now = config if change is None else changed(config, [change])
    learner = learner_of(now)
    if history is not None:
        learner.count_moves(*records.moves(history.text, now))
    study = f"{_slug(config.title)}-{secrets.token_hex(3)}"
    row, made_as = rows.study(study, config, store.now())
    episode = None if config.sitting else begin(now, learner, first_states(now))
    plan = None if episode is None else _plan_row(episode)
    with store.write() as connection:
        connection.execute(sa.insert(schema.studies), row)
        connection.execute(sa.insert(schema.configs), made_as)
        turn = Turn(store, connection, study_row(connection, study))
        made_with = {"config": row["config_digest"], "arithmetic": fingerprint()}
        turn.append("made", body=made_with)
        if change is not None:
            turn.append(change[0], body=change[1])
        if config.practice:
            _ask(turn, (0, 0), practice_duels(config), "practice")
        if episode is None or plan is None:
            turn.asked = _ask(turn, (0, 0), sitting_duels(config), "sitting")
        else:
            _commit_plan(turn, _Made(episode, plan, now, (), turn.seq))
        turn.write_back()
    return study


def add_history(store: Store, study: str, history: Records) -> None:
    """Past records for a study that has no plan yet."""
    with take_turn(store, study) as turn:
        if turn.episode:
            raise StudyError(
                f'study "{study}" has its first plan: past records are given before it, when the '
                "study is made or during its first sitting"
            )
        known = read_changes(turn.connection, study)
        if any(kind == "history_added" for kind, _ in known):
            raise StudyError(f'study "{study}" has past records already')
        turn.append("history_added", body={"records": history.text, "moves": history.moves})


def close_duels(store: Store, study: str) -> bool:
    """Wait no longer for the ratings that are missing; whether a plan is now due.

    For the owner whose annotators have gone: the next plan is made with the answers there are.
    """
    with take_turn(store, study) as turn:
        if turn.given < turn.asked:
            missing = withdraw(turn, sa.true())
            turn.append("duels_closed", body={"missing": missing})
        return turn.plan_due


def advance(store: Store, study: str) -> bool:
    """Make the plan that is due, and open its epoch; whether this call did it.

    Whoever comes first does it; others return at once. The plan is made outside any transaction
    and written with its duels in one. A process that dies on the way is replaced by the next
    caller when its lease has run out.
    """
    me = secrets.token_hex(8)
    while True:
        with take_turn(store, study) as turn:
            if not turn.plan_due or turn.planning(asking.PLANNER_LEASE) or turn.status == "closed":
                return False
            turn.planner, turn.planner_until = me, turn.now + int(1000 * asking.PLANNER_LEASE)
        with _lease(store, study, me) as tell:
            made = _make_plan(store, study, tell)
        with take_turn(store, study) as turn:
            # Whoever is first with a plan that still holds: no matter whose turn it was.
            if turn.plan_due and turn.status != "closed" and _still_holds(turn, made):
                turn.config = made.config
                _commit_plan(turn, made)
                turn.planner = turn.planner_until = turn.planner_step = None
                return True
        # An answer was taken back meanwhile, or somebody else was faster: look again.


@dataclass(frozen=True, eq=False)
class _Made:
    """A plan that is not written yet: from the log up to event `seq`, with its configuration."""

    episode: Episode
    row: rows.Row
    config: StudyConfig
    moves: Sequence[Move]
    seq: int


def _make_plan(store: Store, study: str, tell: Callable[[str], None]) -> _Made:
    """The next plan from the log as it is."""
    with store.read() as connection:
        row = study_row(connection, study)
        learner = fold.fold(store, connection, row)
        config = coming_config(store, connection, row)
        before = config_of(store, connection, row) if row.episode else None
        moves = fold.moves_so_far(connection, row, config)
    learner.tell = tell
    episode = begin(config, learner, coming_states(config, moves, before), moves)
    return _Made(episode, _plan_row(episode), config, moves, row.seq)


def _still_holds(turn: Turn, made: _Made) -> bool:
    """Nothing has happened since that the plan should have known.

    In an observed world answers go on coming, and the list does not wait: they count in the next.
    """
    if made.row["plan"] != turn.episode + 1:
        return False
    late = SAID if turn.config.world == "observed" and turn.episode else ()
    kinds = [kind for kind, matters in EVENTS.items() if matters and kind not in late]
    e = schema.events.c
    since = sa.select(e.seq).where(e.study == turn.study, e.seq > made.seq, e.kind.in_(kinds))
    return turn.connection.execute(since.limit(1)).first() is None


@contextmanager
def _lease(store: Store, study: str, me: str) -> Iterator[Callable[[str], None]]:
    """Keep the right to plan for as long as the block takes, and give it back.

    The block is given what to tell its steps to; everybody can see the last that was told.
    """
    done = threading.Event()
    steps = [""]

    def renew() -> None:
        while not done.wait(asking.PLANNER_LEASE / 3):
            with suppress(ValueError, IntegrityError), take_turn(store, study) as turn:
                if turn.planner == me:
                    turn.planner_until = turn.now + int(1000 * asking.PLANNER_LEASE)
                    turn.planner_step = steps[-1]

    keeper = threading.Thread(target=renew, daemon=True)
    keeper.start()
    try:
        yield steps.append
    finally:
        done.set()
        keeper.join()
        with take_turn(store, study) as turn:
            if turn.planner == me:
                turn.planner = turn.planner_until = turn.planner_step = None


def _plan_row(episode: Episode) -> rows.Row:
    """The row of a plan; packing its arrays takes a while, and needs no database."""
    return rows.plan(
        episode.learner,
        random_value=episode.random_value,
        changed=episode.changed,
        seconds=episode.seconds,
        arrays=plan_arrays(episode.learner),
    )


def _commit_plan(turn: Turn, made: _Made) -> None:
    """Write a plan, its epochs and its duels, and begin its episode."""
    plan, learner = made.row, made.episode.learner
    p = schema.plans.c
    last = sa.and_(p.study == turn.study, p.plan == turn.episode)
    turn.connection.execute(sa.update(schema.plans).where(last).values(arrays=None))
    row = plan | {"study": turn.study, "made_at": turn.now}
    rows.insert(turn.connection, schema.plans, [row])
    turn.episode, turn.epoch, turn.asked, turn.given = plan["plan"], 0, 0, 0
    turn.in_force = turn.changes
    body = {"plan": plan["plan"], "engine": plan["engine"], "heard": made.seq}
    turn.append("planned", body=body | {"arithmetic": fingerprint()})
    fold.save_snapshot(turn, learner, made.seq)
    _open_epochs(turn, learner, made.episode.epochs, made.moves)


def _open_epochs(turn: Turn, learner: Dopl, epochs: list[Epoch], moves: Sequence[Move]) -> None:
    """Ask the duels of the coming epochs; a simulated world has moved through them already."""
    opened: list[rows.Row] = []
    for epoch in epochs:
        place, moved = (turn.episode, turn.epoch), epoch.next_states
        source = None if moved is None else "simulated"
        known = (epoch.states, epoch.arms, moved, source)
        opened.append(rows.epoch(turn.study, place, *known, by_lot=epoch.by_lot))
        turn.asked += _ask(turn, place, epoch.duels, "policy")
        if moved is None:
            reasons = lists.reasons(turn.config, learner, epoch, moves)
            turn.append("listed", body={"week": turn.week, "list": reasons})
        else:
            _observed(turn, "simulated")
    rows.insert(turn.connection, schema.epochs, opened)


def _ask(turn: Turn, place: tuple[int, int], duels: IntArray, purpose: str) -> int:
    """Put duels [D, 4] into the queue; how many ratings they want."""
    asked = [
        rows.duel(turn.study, (*place, number), purpose, sides, turn.config.ratings)
        for number, sides in enumerate(duels.tolist())
    ]
    rows.insert(turn.connection, schema.duels, asked)
    return sum(row["ratings"] for row in asked)


def move_on(
    turn: Turn,
    next_states: IntArray,
    helped: IntArray | None,
    fresh: Mapping[str, Mapping[str, str]],
) -> None:
    """Close the epoch with what the owner reported, and open the next of the episode."""
    before = reported_columns(turn.store, turn.connection, turn.study, turn.episode, turn.epoch)
    known = dict(before)
    known |= {arm: known.get(arm, {}) | dict(new) for arm, new in fresh.items()}
    e = schema.epochs.c
    here = sa.and_(e.study == turn.study, e.episode == turn.episode, e.epoch == turn.epoch)
    listed = turn.connection.execute(sa.select(e.arms).where(here)).scalar_one()
    if helped is not None and np.array_equal(helped, unpack_arms(listed)):
        helped = None
    report = rows.report(next_states, "owner", known if fresh else None, helped)
    turn.connection.execute(sa.update(schema.epochs).where(here).values(report))
    _observed(turn, "owner")
    if turn.epoch < turn.config.horizon:
        row = study_row(turn.connection, turn.study)
        learner = fold.planned(turn.store, turn.connection, row)
        moves = fold.moves_so_far(turn.connection, row, turn.coming)
        turn.asked, turn.given = turn.asked - turn.given, 0
        epoch = open_epoch(learner, next_states, turn.epoch, moves)
        _open_epochs(turn, learner, [epoch], moves)


def _observed(turn: Turn, source: str) -> None:
    body = {"episode": turn.episode, "epoch": turn.epoch, "source": source}
    if source == "owner":  # the next list is made at once
        body["arithmetic"] = fingerprint()
    turn.append("observed", body=body)
    turn.epoch += 1


def withdraw(turn: Turn, which: sa.ColumnElement[bool]) -> int:
    """Ask no more of open duels of the present episode; how many ratings that saves."""
    d = schema.duels.c
    missing = sa.and_(
        d.study == turn.study,
        d.episode == turn.episode,
        d.purpose.in_(LEARNT),
        d.given < d.ratings,
        which,
    )
    ids = turn.connection.execute(sa.select(d.id).where(missing)).scalars().all()
    for duel in ids:
        release(turn, statements.HELD_BY_OTHERS, duel=duel, impression=0)
    saved = sa.select(sa.func.coalesce(sa.func.sum(d.ratings - d.given), 0)).where(missing)
    count = int(turn.connection.execute(saved).scalar_one())
    values = {"ratings": d.given, "free": 0}
    turn.connection.execute(sa.update(schema.duels).where(missing).values(values))
    turn.asked -= count
    return count


def _slug(title: str) -> str:
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain)[:24].strip("-") or "study"
