"""Exporting, importing and replaying studies."""

from collections.abc import Callable, Collection
from pathlib import Path

from dopl_core.learning.learner import Learner
from dopl_core.studies.exchange import (
    bundle,
    codebook,
    import_writer,
    names_removed,
    reliability_csv,
    trial_files,
)
from dopl_core.studies.exchange import seal as seals
from dopl_core.studies.exchange.row_checks import check_duels, check_rows
from dopl_core.studies.model import safe_csv
from dopl_core.studies.model.errors import StudyError
from dopl_core.studies.operate import list_csv
from dopl_core.studies.replay.consistency import check
from dopl_core.studies.replay.replay import replay, with_arrays
from dopl_core.studies.store.database import Store
from dopl_core.studies.store.log_reader import check_chain, log_of, read_log
from dopl_core.studies.store.study_reader import read_study
from dopl_core.studies.store.time_limits import slowly


@slowly()
def export_bundle(
    store: Store, study: str, without_names: bool = False, keep: Collection[str] = ()
) -> bytes:
    """The zip of a study as it is now, with its lists and a codebook.

    Of a trial, also the protocol, the promised analysis and its methods; see trial_files.py.

    without_names: nothing says who patients and annotators are; see names_removed.py
    keep: columns that it then still has
    """
    if keep and not without_names:
        raise StudyError(
            "an export with names keeps all columns: choose some to keep without names"
        )
    log = with_arrays(read_log(store, study))
    if without_names:
        log = names_removed.without_names(log, keep)
    lists = safe_csv.write(list_csv.EVERY_LIST, list_csv.every_list(log))
    reliable = safe_csv.write(reliability_csv.COLUMNS, reliability_csv.rows(log))
    texts = {"lists.csv": lists, "reliability.csv": reliable, "codebook.md": codebook.text()}
    return bundle.write(log, texts | trial_files.files(log))


@slowly()
def import_bundle(store: Store, source: Path | bytes) -> str:
    """Put the study of a bundle into the database, all of it or nothing; its id.

    It is replayed first: a bundle that contradicts itself is refused.
    """
    log = bundle.read(source)
    replay(log)
    import_writer.write(store, log)
    return log.study


def replay_bundle(
    source: Path | bytes, tell: Callable[[str], None] = lambda how: None, seal: str | None = None
) -> Learner:
    """The learner of a bundle, computed from the start and compared with it at every step.

    The analysis that a protocol promised is computed again, too.
    tell: is told the result in a sentence
    seal: a line of `dopl seal` that the log must contain
    """
    log = bundle.read(source)
    if seal is not None:
        seals.check_log(log, seals.read_seal(seal))
    how: list[str] = []
    learner = replay(log, how.append)
    compared = trial_files.compare(log, bundle.read_texts(source, trial_files.FILES))
    tell(" ".join([*how, compared]).rstrip())
    return learner


@slowly()
def replay_study(
    store: Store,
    study: str,
    tell: Callable[[str], None] = lambda how: None,
    seal: str | None = None,
) -> Learner:
    """The same for a study in the database, whose rows must also agree with its log."""
    with read_study(store, study) as reader:
        check_chain(reader)
        if seal is not None:
            seals.check_study(reader, seals.read_seal(seal))
        check_duels(reader)
        log = log_of(reader)
        check(log)
        check_rows(reader, log)
    return replay(log, tell)
