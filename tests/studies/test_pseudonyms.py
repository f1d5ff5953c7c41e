"""Bundles without names: nobody can be told, and nothing else is lost."""

import io
import zipfile

import pytest
from playing import Clock, clinic, cpap, play

from dopl_core import cli
from dopl_core.studies import service
from dopl_core.studies.arrays import digest
from dopl_core.studies.episode import plan_arrays
from dopl_core.studies.service import Ask, Store

NAMES = ("Zoë Quist", "=Hopkins()", "'Wim\n, Dr.", "Zoë")
PANEL = "panel-7f3a"


def made(store: Store, clock: Clock, make=cpap) -> str:
    """A study with repeats, undone answers, leases that ran out, an id, a comment, one left out."""
    study = service.create_study(store, make(repeat_every=3, ratings=2))
    service.next_duel(store, study, NAMES[0])
    play(store, study, 40, people=NAMES[:3], clock=clock)
    clock.wait(4000)
    service.exclude(store, study, NAMES[1])
    service.advance(store, study)
    found = service.next_duel(store, study, NAMES[3], participant=PANEL)
    if isinstance(found, Ask):
        comment = f"Zoë Quist and Zoë ({PANEL}) told me: Zoëlogy is no name"
        service.flag(store, found.impression, NAMES[3], comment)
        service.answer(store, found.impression, "left", too_fast_ms=0)
    return study


def texts(content: bytes) -> dict[str, str]:
    with zipfile.ZipFile(io.BytesIO(content)) as bundle:
        return {name: bundle.read(name).decode("utf-8", "replace") for name in bundle.namelist()}


def test_no_name_is_in_any_file_and_comments_are_kept(sqlite_store: Store, clock: Clock) -> None:
    study = made(sqlite_store, clock)
    kept = texts(service.export_bundle(sqlite_store, study))
    assert all(word in kept["events.csv"] for word in ("Quist", "Hopkins", "Wim"))
    members = texts(service.export_bundle(sqlite_store, study, pseudonyms=True))
    for name, text in members.items():
        for word in ("Quist", "Hopkins", "Wim", "Zoë ", "Zoë,", PANEL):
            assert word not in text, name
    said = "annotator 1 and annotator 4 (participant 1) told me: Zoëlogy is no name"
    assert said in members["events.csv"]
    assert "participant 1" in members["duels.csv"]


@pytest.mark.parametrize("make", [cpap, clinic])
def test_such_a_bundle_is_imported_replays_to_the_bit_and_goes_on(
    store: Store, clock: Clock, make
) -> None:
    study = made(store, clock, make)
    learner = digest(plan_arrays(service.load_learner(store, study)))
    exported = service.export_bundle(store, study, pseudonyms=True)
    assert digest(plan_arrays(service.replay_bundle(exported))) == learner
    before = service.answers(store, study, pseudonyms=True)
    service.delete_study(store, study)
    service.import_bundle(store, exported)
    assert digest(plan_arrays(service.replay_study(store, study))) == learner
    after = service.answers(store, study)
    assert after.equals(before)  # the table has the pseudonyms of the bundle
    assert service.export_bundle(store, study) == exported
    play(store, study, 6, people=("annotator 1", "annotator 2"), clock=clock)
    service.replay_study(store, study)


def test_the_command_line_exports_pseudonyms(
    sqlite_store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch, tmp_path
) -> None:
    study = made(sqlite_store, clock)
    monkeypatch.setattr(service, "open_store", lambda: sqlite_store)
    out = tmp_path / "some.zip"
    cli.main(["export", study, "--pseudonyms", "--out", str(out)])
    assert "Hopkins" not in "".join(texts(out.read_bytes()).values())
