"""Studies that leave and come in as bundles, and the proof that they can be played again."""

from dataclasses import replace
from pathlib import Path

from dopl_core.learning.dopl import Dopl
from dopl_core.studies import archive, bundle
from dopl_core.studies.episode import plan_arrays
from dopl_core.studies.history import check
from dopl_core.studies.replay import replay, with_arrays
from dopl_core.studies.store import Store


def export_bundle(store: Store, study: str) -> bytes:
    """The zip of a study as it is now."""
    return bundle.write(with_arrays(archive.read(store, study)))


def import_bundle(store: Store, source: Path | bytes) -> str:
    """Put the study of a bundle into the database, all of it or nothing; its id.

    It is replayed first: what does not come out as recorded is not taken in.
    """
    history = bundle.read(source)
    learner = replay(history)
    if history.plans and history.arrays is None:
        history = replace(history, arrays=plan_arrays(learner))
    archive.write(store, history)
    return history.study


def replay_bundle(source: Path | bytes) -> Dopl:
    """The learner of a bundle, computed from the start and compared with it at every step."""
    return replay(bundle.read(source))


def replay_study(store: Store, study: str) -> Dopl:
    """The same for a study in the database, whose rows must also agree with its log."""
    archive.check_chain(store, study)
    history = archive.read(store, study)
    check(history)
    return replay(history)
