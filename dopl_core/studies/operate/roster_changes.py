"""What owners change between lists: people join and leave, settings, whose answers count."""

from collections.abc import Iterable, Sequence
from typing import Any

from dopl_core.studies.collect.limits import check_limits, reported_now
from dopl_core.studies.model.config_changes import Change, changed, joining, leaving, setting
from dopl_core.studies.model.errors import StudyError
from dopl_core.studies.model.names import ERASED_ANNOTATOR
from dopl_core.studies.model.study_config import Arm
from dopl_core.studies.operate.first_round import draw_anew
from dopl_core.studies.operate.list_changes import free_places
from dopl_core.studies.operate.planning import withdraw
from dopl_core.studies.replay import learner_from_log
from dopl_core.studies.store import log_reader, queries, tables
from dopl_core.studies.store.database import Store
from dopl_core.studies.store.transaction import StudyTransaction, write_study

LEFT = "has left"  # why somebody is taken off the open list


def join(store: Store, study: str, arms: Sequence[Arm]) -> None:
    """Arms join or come back; lists and duels have them from the next list on."""
    with write_study(store, study) as tx:
        append_changes(tx, joining(tx.next_config, arms))


def leave(store: Store, study: str, ids: Iterable[str]) -> None:
    """Arms leave: no duel asks about them any more, and the next in line take their places."""
    going = list(ids)
    with write_study(store, study) as tx:
        withdraw_people(tx, going)
        append_changes(tx, leaving(tx.next_config, going))
        free_places(tx, going, LEFT)


def update_people(
    store: Store, study: str, roster: Sequence[Arm], *, left: bool = False, many: bool = False
) -> tuple[int, int]:
    """Arms that are new in a roster join; how many joined and left. All or nothing.

    left: arms that are missing in the roster leave;  many: even if they are more than a third
    """
    with write_study(store, study) as tx:
        config = tx.next_config
        here, named = [arm.id for arm in config.arms if arm.present], {arm.id for arm in roster}
        coming = [arm for arm in roster if arm.id not in set(here)]
        going = [arm for arm in here if arm not in named] if left else []
        if 3 * len(going) > len(here) and not many:
            raise StudyError(
                f"{len(going)} of {len(here)} people are missing in the file and would leave: "
                "check that it is the right file, then add --yes; nothing was changed"
            )
        withdraw_people(tx, going)
        changes = [joining(config, coming)] if coming else []
        changes += [leaving(config, going)] if going else []
        append_changes(tx, *changes)
        free_places(tx, going, LEFT)
    return len(coming), len(going)


def withdraw_people(tx: StudyTransaction, ids: Iterable[str]) -> None:
    """Ask no open duel about these arms; some may join with the next plan only."""
    numbers = {arm.id: number for number, arm in enumerate(tx.config.arms)}
    known = [numbers[arm] for arm in ids if arm in numbers]
    withdraw(tx, tables.duels.c.left_arm.in_(known) | tables.duels.c.right_arm.in_(known))


def change_settings(store: Store, study: str, **settings: Any) -> None:
    """Change settings of a study (model/settings.py); they hold from the next list on."""
    with write_study(store, study) as tx:
        write_settings(tx, settings)
        tx.row.title = str(settings.get("title", tx.row.title))


def write_settings(tx: StudyTransaction, settings: dict[str, Any]) -> None:
    """Append a change of settings, and choose the pairs of the first round anew where it must."""
    before = tx.next_config
    append_changes(tx, setting(before, settings))
    if "annotator_limits" in settings:
        check_limits(tx.next_config, reported_now(tx))
    draw_anew(tx, before)


def append_changes(tx: StudyTransaction, *changes: Change) -> None:
    """Append changes, after checking that the configuration allows all of them."""
    changed(tx.next_config, changes)
    for change in changes:
        tx.append(*change)


def exclude(store: Store, study: str, annotator: str) -> None:
    """Count no answer of this person from the next plan on; they can still answer."""
    _trust(store, study, annotator, "person_excluded")


def include(store: Store, study: str, annotator: str) -> None:
    """Count all answers of an excluded person again, later ones too."""
    _trust(store, study, annotator, "person_included")


def _trust(store: Store, study: str, annotator: str, kind: str) -> None:
    with write_study(store, study) as tx:
        came = tx.run(queries.PERSON, at_study=study, annotator=annotator).one_or_none()
        if came is None and annotator not in log_reader.annotator_numbers(tx.connection, study):
            raise StudyError(f'nobody called "{annotator}" has come to study "{study}"')
        if annotator.startswith(ERASED_ANNOTATOR):
            raise StudyError(f'"{annotator}" was erased: whether their answers count is settled')
        out = annotator in learner_from_log.excluded(tx.connection, study)
        if out == (kind == "person_excluded"):
            raise StudyError(f'"{annotator}" is {"excluded already" if out else "not excluded"}')
        tx.append(kind, annotator=annotator)
