"""The owner decides: who is taken off this week's list, and who is put on it."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from dopl_core.studies.model.corrections import own_list
from dopl_core.studies.model.errors import StudyError
from dopl_core.studies.model.event_bodies import ListChanged
from dopl_core.studies.model.log_values import Epoch, OwnList
from dopl_core.studies.model.names import check_text
from dopl_core.studies.model.study_config import StudyConfig
from dopl_core.studies.operate.help_lists import listed_to_find_out, reasons
from dopl_core.studies.replay import learner_from_log
from dopl_core.studies.replay.episode import change_list as changed_arms
from dopl_core.studies.replay.episode import in_line
from dopl_core.studies.store.database import Store
from dopl_core.studies.store.transaction import StudyTransaction, write_study

LONGEST_REASON = 200


def change_list(
    store: Store,
    study: str,
    *,
    remove: Sequence[str] = (),
    add: Sequence[str] = (),
    because: str = "",
    week: int | None = None,
) -> None:
    """Take people off this week's list and put people on it, by id, with a short reason.

    The next in line fill the places that become free, and the least urgent make room.
    week: the week that the owner looks at; any other than the open one is refused
    """
    with write_study(store, study) as tx:
        _check_open(tx, week)
        reason = _reason(because)
        removed, added = (_numbers(tx.config, ids) for ids in (remove, add))
        _check_people(tx.next_config, tx.epochs[-1], removed, added)
        if not _append(tx, remove, add, reason):
            raise StudyError(
                f"the list has {len(tx.epochs[-1].arms)} places, and all are yours or drawn at "
                "random: take somebody off as well"
            )


def free_places(tx: StudyTransaction, going: Iterable[str], because: str = "") -> None:
    """Take people who leave or are being erased off the open list; the next in line move up.

    Nothing changes where nobody else could be on the list.
    """
    is_open = tx.row.episode and tx.row.epoch < tx.config.horizon and tx.row.status != "closed"
    if tx.config.world == "observed" and is_open:
        listed = {tx.config.arms[n].id for n in tx.epochs[-1].listed.tolist()}
        remove = [person for person in going if person in listed]
        if remove:
            _append(tx, remove, [], because)


def _append(tx: StudyTransaction, remove: Sequence[str], add: Sequence[str], because: str) -> bool:
    """Record a change of the open list; False if the list cannot be like this."""
    epoch, before = tx.epochs[-1], tx.epochs[:-1]
    removed, added = (_numbers(tx.config, ids) for ids in (remove, add))
    learner = learner_from_log.learner_now(tx)
    line = in_line(tx.config, learner, epoch, before)
    gone = set(np.flatnonzero(~tx.next_config.present).tolist())
    arms = changed_arms(epoch, line, set(removed), set(added), gone)
    if not 0 < len(arms) <= len(epoch.arms):
        return False
    body = ListChanged(tx.week, list(remove), list(add), because, [])
    own = own_list(epoch, body, tx.config)
    after = epoch.with_own(OwnList(arms, own.on, own.off))
    after = replace(after, to_find_out=np.setdiff1d(listed_to_find_out(tx), own.on))
    body.entries = reasons(tx.config, learner, after, before, learner.visits, gone)
    tx.append("list_changed", body)
    return True


def _check_open(tx: StudyTransaction, week: int | None) -> None:
    config, row = tx.config, tx.row
    if config.world != "observed":
        raise StudyError(f'study "{tx.id}" has a simulated world: its lists cannot be changed')
    if row.status == "closed":
        raise StudyError(f'study "{tx.id}" is closed: reopen it to change its list')
    if row.episode == 0:
        raise StudyError(f'study "{tx.id}" has no list yet: its first round comes first')
    word, now = config.epoch_word, tx.week
    if row.epoch >= config.horizon:
        raise StudyError(f"{word} {now - 1} is reported: wait for the next list")
    if week is not None and week != now:
        raise StudyError(f"{word} {week} is not open: only the list of {word} {now} can be changed")


def _reason(because: str) -> str:
    reason = " ".join(because.split())
    check_text("the reason", reason)
    if not reason:
        raise StudyError("Please write why: a few words are enough")
    if len(reason) > LONGEST_REASON:
        raise StudyError(
            f"the reason has {len(reason)} characters: use at most {LONGEST_REASON} characters"
        )
    return reason


def _numbers(config: StudyConfig, ids: Sequence[str]) -> list[int]:
    for arm in ids:
        if ids.count(arm) > 1:
            raise StudyError(f'"{arm[:80]}" is named twice')
    return [config.arm_number(arm) for arm in ids]


def _check_people(
    config: StudyConfig, epoch: Epoch, removed: Sequence[int], added: Sequence[int]
) -> None:
    listed, noun = set(epoch.listed.tolist()), config.noun
    off = set() if epoch.own is None else set(epoch.own.off.tolist())
    for n in removed:
        if n not in listed:
            why = "was taken off it already" if n in off else "is not on it"
            raise StudyError(f'"{config.arms[n].id}" cannot be taken off the list: {noun} {why}')
    for n in added:
        if n in listed:
            raise StudyError(f'"{config.arms[n].id}" is on the list already')
        if not config.arms[n].present:
            raise StudyError(f'"{config.arms[n].id}" has left; re-admit them first')
    if not removed and not added:
        raise StudyError("nobody is named: say whom to take off the list or put on it")
    if not np.setdiff1d(epoch.listed, removed).size and not added:
        raise StudyError("nobody would be left on the list")
