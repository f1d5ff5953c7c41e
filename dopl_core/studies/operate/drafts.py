"""Drafts: a report that its owner is still writing, kept until it is sent."""

from collections.abc import Callable, Iterable, Mapping

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from dopl_core.studies.model.roster import Report
from dopl_core.studies.store import tables
from dopl_core.studies.store.database import Store
from dopl_core.studies.store.study_reader import study_row

_kept = tables.drafts.c


class Draft(msgspec.Struct):
    """What the owner has filled in of a week's report.

    states: arm id -> label, None for unknown; blank entries are left out
    helped: arm id -> whether they were helped, where that differs from the list
    columns: arm id -> column -> text, changed texts of cards
    rest: how blank entries count: "as before", "unknown", or None until that is chosen
    """

    states: dict[str, str | None] = {}
    helped: dict[str, bool] = {}
    columns: dict[str, dict[str, str]] = {}
    rest: str | None = None

    def who_was_helped(self, listed: Iterable[str]) -> set[str]:
        """The people on the list, as far as the owner has not said otherwise."""
        ticks = dict.fromkeys(listed, True) | self.helped
        return {arm for arm, ticked in ticks.items() if ticked}

    def report(
        self,
        before: Mapping[str, str | None],
        listed: Iterable[str],
        newcomers: Iterable[str] = (),
    ) -> Report:
        """The whole report, of the people in `before`; blank entries count by `rest`.

        newcomers: people who may be reported as well; blank entries leave them as they joined
        """
        rest = before if self.rest == "as before" else dict.fromkeys(before)
        states = {arm: self.states.get(arm, rest[arm]) for arm in before}
        states |= {arm: self.states[arm] for arm in newcomers if arm in self.states}
        return Report(states, self.columns, sorted(self.who_was_helped(listed) & before.keys()))


def read_draft(store: Store, study: str, week: int) -> Draft:
    """The draft of a week's report; an empty one if nothing is filled in."""
    with store.read() as connection:
        return _read(connection, study, week)


def change_draft(store: Store, study: str, week: int, change: Callable[[Draft], object]) -> None:
    """Change the draft of a week's report; it replaces the draft of any other week."""
    with store.write() as connection:
        study_row(connection, study, lock=True)
        draft = _read(connection, study, week)
        change(draft)
        discard_draft(connection, study)
        row = {"study": study, "week": week, "content": msgspec.json.encode(draft).decode()}
        connection.execute(sa.insert(tables.drafts), row)


def discard_draft(connection: Connection, study: str) -> None:
    """Delete the draft of a study, as its report is sent."""
    connection.execute(sa.delete(tables.drafts).where(_kept.study == study))


def _read(connection: Connection, study: str, week: int) -> Draft:
    query = sa.select(_kept.content).where(_kept.study == study, _kept.week == week)
    content = connection.execute(query).scalar()
    return Draft() if content is None else msgspec.json.decode(content, type=Draft)
