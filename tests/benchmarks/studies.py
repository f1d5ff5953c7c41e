"""How long a click takes, and how long it takes to open a study of 100,000 answers."""

import tempfile
import time
from pathlib import Path

import numpy as np
import sqlalchemy as sa

from dopl_core import studies
from dopl_core.studies import Habits, Store, rehearse
from dopl_core.studies.store import blobs, tables

ANNOTATORS, ANSWERS, THINK = 20, 300, 2.0  # as in the measurements of the app
LARGE = 100_000


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = studies.open_store(f"sqlite:///{folder}/dopl.db")
        _clicks(store)
        _opening(store)
        _disk(Path(folder))
        store.close()


def _clicks(store: Store) -> None:
    """One long episode, so that no plan is made meanwhile."""
    config = studies.from_environment("cpap", horizon=400, confidence="paper", practice=False)
    study = studies.create_study(store, config)
    rehearse(store, study, annotators=2, answers=20)
    done = rehearse(
        store, study, annotators=ANNOTATORS, answers=ANSWERS, habits=Habits(think_seconds=THINK)
    )
    p50, p95 = np.percentile(done.click_seconds, [50, 95]) * 1000
    print(
        f"next_duel + answer, SQLite, {ANNOTATORS} annotators thinking {THINK:g} s: "
        f"median {p50:.1f} ms, p95 {p95:.1f} ms (bar: p95 under 25 ms)"
    )
    busy = rehearse(store, study, annotators=ANNOTATORS, answers=ANSWERS)
    p50, p95 = np.percentile(busy.click_seconds, [50, 95]) * 1000
    print(
        f"the same without a pause to think: {ANSWERS / busy.seconds:.0f} answers a second, "
        f"median {p50:.1f} ms, p95 {p95:.1f} ms"
    )


def _opening(store: Store) -> None:
    study = _large_study(store)
    with_snapshot = _seconds(store, study)
    digest = blobs.digest(studies.load_learner(store, study).state())
    with store.write() as connection:
        connection.execute(sa.delete(tables.snapshots))
    folding = _seconds(store, study)
    same = digest == blobs.digest(studies.load_learner(store, study).state())
    print(
        f"opening a study of {LARGE:,} answers: {1000 * with_snapshot:.0f} ms with its snapshot "
        f"(bar: under a second), {1000 * folding:.0f} ms by folding the whole log, "
        f"{folding / with_snapshot:.1f}x; {'the same' if same else 'ANOTHER'} learner"
    )


def _seconds(store: Store, study: str) -> float:
    """The fastest of three, each by a process's first look: the configuration is parsed too."""
    best = np.inf
    for _ in range(3):
        store.configs.clear()
        started = time.perf_counter()
        studies.load_learner(store, study)
        best = min(best, time.perf_counter() - started)
    return float(best)


def _large_study(store: Store) -> str:
    """Answers put in by the thousand, plans made by the service."""
    config = studies.from_environment(
        "cpap", horizon=1000, confidence="paper", engine="lagrangian", practice=False
    )
    study = studies.create_study(store, config)
    rng, answers = np.random.default_rng(0), 0
    while answers < LARGE:
        answers += _answer_all(store, study, rng)
        studies.advance(store, study)
    return study


def _answer_all(store: Store, study: str, rng: np.random.Generator) -> int:
    from dopl_core.studies.store.transaction import write_study

    d = tables.duels.c
    with write_study(store, study) as turn:
        query = sa.select(d.id).where(d.study == study, d.episode == turn.episode)
        duels = turn.connection.execute(query.order_by(d.id)).scalars().all()
        said = rng.choice(["left", "right"], size=len(duels)).tolist()
        shown = [
            {
                "study": study,
                "duel": duel,
                "annotator": "crowd",
                "session": 1,
                "shown_at": turn.now,
                "expires_at": turn.now,
                "outcome": outcome,
                "answered_at": turn.now,
                "response_ms": 900,
            }
            for duel, outcome in zip(duels, said, strict=True)
        ]
        insert = sa.insert(tables.impressions).returning(
            tables.impressions.c.id, sort_by_parameter_order=True
        )
        impressions = turn.connection.execute(insert, shown).scalars().all()
        for kind in ("shown", "answered"):
            rows = [
                {
                    "study": study,
                    "seq": turn.seq + n,
                    "at": turn.now,
                    "kind": kind,
                    "annotator": "crowd",
                    "impression": impression,
                    "duel": duel,
                    "outcome": outcome if kind == "answered" else None,
                }
                for n, (impression, duel, outcome) in enumerate(
                    zip(impressions, duels, said, strict=True), start=1
                )
            ]
            turn.connection.execute(sa.insert(tables.events), rows)
            turn.seq += len(rows)
        turn.connection.execute(
            sa.update(tables.duels).where(d.id.in_(duels)).values(given=d.ratings, free=0)
        )
        turn.heard, turn.given = turn.seq, turn.asked
    return len(duels)


def _disk(folder: Path) -> None:
    """What one wait for the disk costs here, for comparison."""
    store = studies.open_store(f"sqlite:///{folder}/disk.db")
    started = time.perf_counter()
    for _ in range(50):
        with store.write() as connection:
            connection.execute(sa.text("CREATE TABLE IF NOT EXISTS waits (n INTEGER)"))
            connection.execute(sa.text("INSERT INTO waits VALUES (1)"))
    print(f"one write that waits for this disk: {20 * (time.perf_counter() - started):.1f} ms")
    store.close()


if __name__ == "__main__":
    main()
