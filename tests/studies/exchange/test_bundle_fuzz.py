"""Bundles spoilt in every way: refused with a reason and nothing changed, or imported and sound.

DOPL_FUZZ=2000 tries that many; some hundred are tried with the long tests.
"""

import os
import random
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from bundles import OURS, files, rows_kept
from playing import ROSTER, STATES, Clock, clinic, cpap, play, trial
from spoiling import read_events, spoilt

from dopl_core import studies
from dopl_core.studies import Arm, Ask, Store
from dopl_core.studies.model.event_kinds import KINDS
from dopl_core.studies.store import blobs

COUNT = int(os.environ.get("DOPL_FUZZ", "180"))
PARTS = 6  # tests that share them
SECONDS = 120  # more is a hang, on a busy machine too
KEPT = Path(__file__).resolve().parents[2] / "data" / "kept"

# --- what is spoilt


def simulated(store: Store, clock: Clock) -> str:
    rules = {"ratings": 2, "ties_allowed": True, "practice": True, "repeat_every": 3}
    study = studies.create_study(store, cpap(lease_seconds=9, **rules))
    play(store, study, 50, people=("Ann", "Bob", "Cy"), clock=clock)
    return study


PAST = (
    b"id,when,state,helped\np1,2026-01-05,Low,0\np1,2026-01-12,Low,1\nold,1,High,0\nold,8,Low,1\n"
)


ANSWERS = b"annotator,winner,loser,when\nmodel,p1,p2,2026-01-05\nAnn,p3,old,2\n"


def sitting(store: Store, clock: Clock) -> str:
    """A study before its first plan."""
    config = clinic(horizon=1, confidence="calibrated", sitting=5, practice=True)
    study = studies.create_study(store, config, studies.read_history(PAST, config))
    play(store, study, 4, clock=clock)
    return study


PEOPLE = ("Ann", "Bob", "Cy", "Eve")


def eventful(store: Store, clock: Clock) -> str:
    """A roster study with one of every event."""
    rules = {"horizon": 2, "confidence": "calibrated", "sitting": 3, "answers": 3, "ratings": 2}
    rules |= {"by_lot": 1}
    rules |= {"reason_every": 1, "reason_tags": "age, =hours"}
    arms = [*studies.read_roster(ROSTER, STATES), Arm("p5", "Eva", "ward", "Low", {"age": "9"})]
    config = studies.from_roster(
        arms, STATES, title="All", budget=3, practice=True, lease_seconds=60, **rules
    )
    study = studies.create_study(store, config, protocol=trial(config))
    studies.add_history(store, study, studies.read_history(PAST, config))
    studies.add_answers(store, study, ANSWERS)
    studies.change_settings(store, study, limited_pairs=True, annotator_limits="[Cy]\nnever = p5")
    studies.change_settings(store, study, limited_pairs=False, annotator_limits="")
    studies.skip_practice(store, study, "Ann")
    play(store, study, 6, clock=clock, undo=0.4)
    held = studies.next_duel(store, study, "Ann")
    studies.pause_study(store, study)
    studies.reopen_study(store, study)
    studies.keep_photos(store, study, {"p1": b"one"})
    studies.remove_photos(store, study)
    clock.wait(1000)
    play(store, study, 2, people=("Cy", "Di"), clock=clock)
    studies.close_duels(store, study)
    if isinstance(held, Ask):
        studies.answer(store, held.impression, "left")  # too late: refused
        studies.flag(store, held.impression, "Ann", "looks wrong", held.left.arm)
        studies.finish_flag(store, held.impression)
    studies.advance(store, study)
    for week in range(5):
        play(store, study, 5, clock=clock, people=("Ann", "Bob"), seed=week)
        if week == 0:
            studies.join(store, study, [Arm("p6", "Fay", "home", "")])
        if week == 1:
            studies.leave(store, study, ["p2"])
            studies.change_settings(store, study, budget=2, title="Some", ratings=1)
        if week == 1:
            studies.exclude(store, study, "Bob")
        if week == 3:
            studies.include(store, study, "Bob")
            studies.exclude(store, study, "Ann")
        if week == 2:
            studies.correct(store, study, 1, {"p1": "High"}, {"p3": True, "p1": True, "p4": True})
            first = studies.read_lists(store, study, last=1)[-1].listed[0].id
            studies.change_list(store, study, remove=[first], because="on holiday")
        if week == 4:
            studies.undo_report(store, study, 2 * week)
        while not studies.get_study(store, study).plan_due:
            here = studies.present_states(store, study)
            said = {arm: STATES[n % 3] for n, arm in enumerate(here)} | {"p4": None}
            studies.observe(store, study, said, {"p1": {"hours": f"{week}"}}, helped=["p1", "p4"])
        studies.advance(store, study)
    play(store, study, 3, clock=clock, people=("Ann", "Eve"))
    studies.limit_annotator(store, study, "Di", {"group": ["ward"]})
    studies.limit_annotator(store, study, "Eve", {"group": ["ward"], "age": ["9"]}, ["p5"])
    given = [(name, one) for name in PEOPLE for one in studies.own_answers(store, study, name)]
    [(name, one), *_] = [pair for pair in given if pair[1].outcome != "skip"]
    studies.give_reason(store, one.impression, name, ["=hours"], "=sleeps, more")
    studies.erase_annotator(store, study, "Di")
    studies.change_settings(store, study, consent="We keep your answers.")
    studies.agree(store, study, "Eve", studies.coming_config(store, study).consent_version)
    studies.close_study(store, study)
    studies.reopen_study(store, study)
    return study


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """Bundles that are as they should be: kept ones of every version, and fresh ones."""
    clock = Clock()
    store = studies.open_store(f"sqlite:///{tmp_path_factory.mktemp('f')}/f.db", clock=clock)
    with pytest.MonkeyPatch.context() as patch:  # the same bytes each time, so the same mutations
        patch.setattr(
            "dopl_core.studies.operate.lifecycle.secrets.token_hex", lambda size: "0" * 2 * size
        )
        patch.setattr("dopl_core.studies.replay.episode.perf_counter", lambda: 0.0)
        patch.setattr("dopl_core.studies.store.transaction.os.urandom", random.Random(0).randbytes)
        made = [make(store, clock) for make in (eventful, simulated, sitting)]
    kinds = {event.kind for event in read_events(files(studies.export_bundle(store, made[0])))}
    assert KINDS.keys() == kinds
    fresh = [studies.export_bundle(store, study) for study in made]
    store.close()
    return [*fresh, *fresh[:2], *(path.read_bytes() for path in sorted(KEPT.glob("*.zip")))]


# --- and what comes of it


def hung(*_: object) -> None:
    raise TimeoutError(f"longer than {SECONDS} s")


def tried(store: Store, content: bytes) -> str:
    """What became of a bundle: imported (and all of it is usable) or refused; else it fails."""
    signal.signal(signal.SIGALRM, hung)
    signal.alarm(SECONDS)
    reason = ""
    try:
        study = studies.import_bundle(store, content)
        use(store, study)
        studies.delete_study(store, study)
    except OURS as error:
        reason = str(error)
    finally:
        signal.alarm(0)
    assert len(reason) < 2000
    assert rows_kept(store) == 0  # so it is where an imported one is refused when it is used
    return "refused" if reason else "imported"


def use(store: Store, study: str) -> None:
    """Everything that people do with a study."""
    assert [one.id for one in studies.list_studies(store)] == [study]
    replayed = blobs.digest(studies.replay_study(store, study).state())
    assert blobs.digest(studies.load_learner(store, study).state()) == replayed
    exported = studies.export_bundle(store, study)
    assert blobs.digest(studies.replay_bundle(exported).state()) == replayed
    look(store, study)
    if studies.get_study(store, study).status != "running":
        studies.reopen_study(store, study)
    play(store, study, 4, people=("Ann", "Zoe"), states=_labels(store, study))
    studies.close_duels(store, study)
    if studies.get_study(store, study).waits_for == "owner":
        studies.observe(store, study, {})
    studies.advance(store, study)
    look(store, study)
    studies.replay_study(store, study)


def _labels(store: Store, study: str) -> list[str]:
    return [state.label for state in studies.get_study(store, study).config.states]


def look(store: Store, study: str) -> None:
    studies.get_study(store, study)
    studies.epoch_list(store, study)
    for week in studies.read_lists(store, study):
        studies.list_rows(week)
    studies.present_states(store, study)
    studies.next_duel(store, study, "Ann")
    studies.next_duel(store, study, "Eve")
    studies.answers(store, study)
    if studies.get_study(store, study).episode:
        studies.plans(store, study)


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
def test_a_spoilt_bundle_is_refused_or_is_sound(
    sqlite_store: Store, whole: list[bytes], part: int, tmp_path: Path
) -> None:
    rng = random.Random(f"dopl {part}")
    came: Counter[str] = Counter()
    for number in range(COUNT // PARTS):
        content = spoilt(whole[number % len(whole)], rng)
        (tmp_path / "last.zip").write_bytes(content)  # to look at, if it fails
        came[tried(sqlite_store, content)] += 1
    assert min(came["refused"], came["imported"]) > 0  # both happen
    if log := os.environ.get("DOPL_FUZZ_LOG"):
        with Path(log).open("a") as file:
            file.write(f"{part} {dict(came)}\n")


@pytest.mark.long
def test_postgresql_takes_and_refuses_the_same(
    sqlite_store: Store, new_postgresql: Callable[..., str], template: str, whole: list[bytes]
) -> None:
    other = studies.open_store(new_postgresql(template), clock=Clock())
    rng = random.Random("both")
    for number in range(COUNT // 15):
        content = spoilt(whole[number % len(whole)], rng)
        assert tried(other, content) == tried(sqlite_store, content)
    other.close()


@pytest.mark.long
def test_whole_bundles_are_sound(sqlite_store: Store, whole: list[bytes]) -> None:
    assert {tried(sqlite_store, content) for content in whole} == {"imported"}
