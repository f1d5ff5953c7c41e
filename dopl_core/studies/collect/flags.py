"""Flags: what annotators report about cards, and what the owner has dealt with."""

from typing import TYPE_CHECKING

import sqlalchemy as sa

from dopl_core.studies.collect.duels import read_impression
from dopl_core.studies.collect.my_answers import impression_of
from dopl_core.studies.collect.views import Side, sides_of
from dopl_core.studies.model.errors import StudyError
from dopl_core.studies.model.event_bodies import Flagged
from dopl_core.studies.model.event_kinds import read_body
from dopl_core.studies.model.names import check_text
from dopl_core.studies.model.safe_csv import printable
from dopl_core.studies.store import tables
from dopl_core.studies.store.database import Store
from dopl_core.studies.store.study_reader import read_study
from dopl_core.studies.store.transaction import write_study
from dopl_core.wording import _, format_number

if TYPE_CHECKING:
    import pandas as pd

LONGEST_COMMENT = 500

_d, _e = tables.duels.c, tables.events.c


def read_comment(comment: str) -> str:
    """A comment as it is kept: in one line, as the next would look like another person's."""
    check_text("the comment", comment)
    comment = printable(comment)
    if len(comment) > LONGEST_COMMENT:
        raise StudyError(
            _("Please use at most {most} characters: you have {given}.").format(
                most=format_number(LONGEST_COMMENT), given=format_number(len(comment))
            )
        )
    return comment


def flag(store: Store, impression: int, annotator: str, comment: str, arm: str = "") -> None:
    """Tell the owner that something is wrong with a duel; arm: the id of the one it is about."""
    comment = read_comment(comment)
    if not comment:
        raise StudyError(_("Please write what is wrong."))
    with write_study(store, impression=impression) as tx:
        shown = impression_of(tx, impression, annotator)
        if arm and arm not in {
            tx.next_config.arms[n].id for n in (shown.left_arm, shown.right_arm)
        }:
            raise StudyError(f'"{arm}" is in another duel')
        about = {"annotator": annotator, "impression": impression, "duel": shown.duel}
        tx.append("flagged", Flagged(comment, arm), **about)


def finish_flag(store: Store, impression: int) -> bool:
    """The owner has dealt with all flags of an impression so far; False if there are none open."""
    with write_study(store, impression=impression) as tx:
        last = (
            sa.select(_e.kind)
            .where(_e.study == tx.id, _e.impression == impression)
            .where(_e.kind.in_(("flagged", "flag_done")))
            .order_by(_e.seq.desc())
        )
        if tx.connection.execute(last.limit(1)).scalar() != "flagged":
            return False
        duel = read_impression(tx, impression).duel
        tx.append("flag_done", impression=impression, duel=duel)
        return True


def flags(store: Store, study: str) -> "pd.DataFrame":
    """All flags, the newest first, by impression: when, who, which duel and arm, what, done.

    done: the owner has dealt with it
    """
    import pandas as pd

    with read_study(store, study) as reader:
        config = reader.next_config
        query = (
            sa.select(
                _e.seq, _e.at, _e.annotator, _e.impression, _e.body, _d.left_arm, _d.right_arm
            )
            .join_from(tables.events, tables.duels, _e.duel == _d.id)
            .where(_e.study == study, _e.kind == "flagged")
            .order_by(_e.seq.desc())
        )
        told = reader.connection.execute(query).all()
        ends = sa.select(_e.impression, _e.seq).where(_e.study == study, _e.kind == "flag_done")
        finished = reader.connection.execute(ends.order_by(_e.seq)).all()
    done = {row.impression: row.seq for row in finished}  # the last of each
    rows = [
        (at, who, config.arms[left].id, config.arms[right].id, said.arm, said.comment, is_done)
        for seq, at, who, impression, body, left, right in told
        for said, is_done in [(read_body("flagged", body), done.get(impression, 0) > seq)]
    ]
    columns = ["at", "annotator", "left_arm", "right_arm", "about", "comment", "done"]
    index = pd.Index([one.impression for one in told], name="impression")
    frame = pd.DataFrame(rows, columns=columns, index=index)
    frame["at"] = pd.to_datetime(frame["at"], unit="ms", utc=True)
    return frame


def flagged_pair(store: Store, study: str, impression: int) -> tuple[Side, Side, int, int]:
    """The two cards of an impression as they were shown, and their episode and epoch."""
    with read_study(store, study) as reader:
        shown = read_impression(reader, impression)
        return *sides_of(reader, shown), shown.episode, shown.epoch
