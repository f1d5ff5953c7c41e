"""Help lists as CSV: the list of one week for its readers, and all lists of a study for exports."""

from collections.abc import Iterator

from dopl_core.studies.model.study_log import StudyLog
from dopl_core.studies.operate.help_lists import LIST_EVENTS, WeekList, week_lists, why_listed

LIST_COLUMNS = (
    *("week", "id", "name", "group", "state", "by_lot", "to_find_out", "why", "helped", "then"),
    *("reserve", "changed", "because", "waits"),
)


def list_columns(week: WeekList) -> tuple[str, ...]:
    """The columns of a list for CSV: the facts that the owner wants on the list come last."""
    return (*LIST_COLUMNS, *_further_facts(week))


def _further_facts(week: WeekList) -> list[str]:
    return [name for name in week.facts if name not in LIST_COLUMNS]


def list_rows(week: WeekList) -> list[tuple[str | int | None, ...]]:
    """The rows of a list for CSV, as list_columns; helped and then are empty until reported.

    People who wait by lot come last. Their reserve is empty, because readers of the file help the
    rows with reserve 0, and those with reserve 1 next.
    """
    return [
        (
            week.week,
            one.id,
            one.label,
            one.group,
            one.state,
            int(one.by_lot),
            int(one.to_find_out),
            why_listed(one, week),
            None if one.helped is None else int(one.helped),
            one.then,
            None if one.left_out else int(one.reserve),
            one.changed,
            one.because,
            int(one.left_out),
            *(one.facts.get(name, "") for name in _further_facts(week)),
        )
        for one in (*week.everybody, *week.left_out)
    ]


EVERY_LIST = (
    *("week", "arm", "listed", "by_lot", "to_find_out", "helped", "why"),
    *("reserve", "changed", "because"),
)


def every_list(log: StudyLog) -> Iterator[tuple[str | int | None, ...]]:
    """All lists of a study, and people helped without being listed; helped is empty until known."""
    config, epochs = log.coming, log.known_epochs
    events = (event for _seq, event in log.standing if event.kind in LIST_EVENTS)
    made = {week.week: week for week in week_lists(config, epochs, events)}
    for number, epoch in enumerate(epochs, start=1):
        known, week = epoch.next_states is not None, made.get(number)
        named = {} if week is None else {one.id: one for one in (*week.everybody, *week.left_out)}
        listed, drawn = set(epoch.listed.tolist()), set(epoch.by_lot.tolist())
        acted = set(epoch.acted.tolist()) if known else set()
        for n in sorted(listed | acted | {config.arm_number(arm) for arm in named}):
            arm = config.arms[n].id
            one = named.get(arm)
            finds_out = one is not None and one.to_find_out
            marks = int(n in listed), int(n in drawn), int(finds_out)
            helped = int(n in acted) if known else None
            if one is None or week is None:
                yield number, arm, *marks, helped, None, 0, None, None
            else:
                change = one.changed or None, one.because or None
                why = why_listed(one, week)
                yield number, arm, *marks, helped, why, int(one.reserve), *change
