"""Past answers: comparisons from before the study, from another tool, or by a model.

    annotator,winner,loser,when
    Ann,p-017,p-003,2026-03-02
    model-7,p-003,p-021,

`winner` and `loser` are ids of arms. `when` is a date, a time (2026-03-02T09:30:00Z), or a number
if past records have numbers; it may be empty. An answer is about the states that both arms had
then. That is the state in the arm's last past record, if the record is less than one usual step
old; otherwise it is the state in the roster. Only past records that were given before count here.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from dopl_core.learning.bandit import UNKNOWN
from dopl_core.studies.model import past_records, safe_csv
from dopl_core.studies.model.dates import moment
from dopl_core.studies.model.errors import CsvError, StudyError
from dopl_core.studies.model.log_values import Sides, state_number
from dopl_core.studies.model.names import check_name
from dopl_core.studies.model.roster import check_columns
from dopl_core.studies.model.sheet import Sheet, open_sheet
from dopl_core.studies.model.study_config import StudyConfig

COLUMNS = ("annotator", "winner", "loser", "when")

_MOST_ANSWERS = 500_000

_StateAt = Callable[[str, float | None], int]  # id of an arm, moment -> state


@dataclass(frozen=True)
class PastAnswers:
    """Past answers in a standard form.

    text: CSV with COLUMNS, in the order of the file;  count: the number of answers in it
    annotators: their names, in the order of their first answers
    """

    text: str
    count: int
    annotators: tuple[str, ...]


def read_answers(
    source: Path | bytes | Sheet,
    config: StudyConfig,
    records: str | None = None,
    name: str = "answers.csv",
) -> PastAnswers:
    """The answers of a file, checked row by row.

    records: the text of the past records, where there are some
    """
    sheet = open_sheet(source, name)
    check_columns(sheet, {column: column for column in COLUMNS})
    state_at = _states_at(config, records)
    kept: list[tuple[str, ...]] = []
    for number, cells in sheet.rows:
        row = tuple(safe_csv.unquote(cells[column].strip()) for column in COLUMNS)
        try:
            annotator = check_name(row[0])
            _states(row, state_at)
        except (CsvError, StudyError) as error:
            raise CsvError(f"{sheet.name} row {number}: {error}") from None
        kept.append((annotator, *row[1:]))
    if len(kept) > _MOST_ANSWERS:
        raise CsvError(f"{sheet.name}: {len(kept)} answers exceed the limit of {_MOST_ANSWERS}")
    text = safe_csv.write(COLUMNS, kept)
    return PastAnswers(text, len(kept), tuple(dict.fromkeys(row[0] for row in kept)))


def duels(text: str, config: StudyConfig, records: str | None) -> Iterator[tuple[str, Sides]]:
    """The annotator of each answer, and its duel with the winner on the left."""
    state_at = _states_at(config, records)
    for row in rows_in(text):
        left, right = _states(row, state_at)
        yield row[0], (config.arm_number(row[1]), left, config.arm_number(row[2]), right)


def annotators_in(text: str) -> list[str]:
    """The annotator of each answer."""
    return [row[0] for row in rows_in(text)]


def renamed(text: str, names: Mapping[str, str], ids: Mapping[str, str]) -> str:
    """The same answers by annotators with other names, about arms with other ids."""
    rows = ((names[who], ids[won], ids[lost], when) for who, won, lost, when in rows_in(text))
    return safe_csv.write(COLUMNS, rows)


def rows_in(text: str) -> Iterator[tuple[str, ...]]:
    """Annotator, winner, loser and time of each answer."""
    for _, cells in safe_csv.read(text, "answers.csv")[1]:
        yield tuple(safe_csv.unquote(cells[column]) for column in COLUMNS)


def _states(row: tuple[str, ...], state_at: _StateAt) -> tuple[int, int]:
    """The states of winner and loser at the time of an answer."""
    _, winner, loser, when = row
    if winner == loser:
        raise CsvError(f'winner and loser are both "{winner[:80]}"')
    at = moment(when) if when else None
    return state_at(winner, at), state_at(loser, at)


def _states_at(config: StudyConfig, records: str | None) -> _StateAt:
    """Looks up states by id and moment; refuses arms that are unknown or have no known state."""
    of_arm, step = past_records.sightings(records, config) if records else ({}, 1.0)
    times = {arm: [at for at, _ in seen] for arm, seen in of_arm.items()}
    roster = {arm.id: state_number(config, arm.state) for arm in config.arms}

    def state_at(arm: str, at: float | None) -> int:
        if arm not in roster and arm not in times:
            raise CsvError(f'"{arm[:80]}" is not in the roster')
        state = UNKNOWN
        if at is not None and (last := bisect_right(times.get(arm, []), at)):
            seen, found = of_arm[arm][last - 1]
            state = found if at - seen < step else UNKNOWN
        state = roster.get(arm, UNKNOWN) if state == UNKNOWN else state
        if state == UNKNOWN:
            raise CsvError(f'"{arm[:80]}" has no state, neither then nor in the roster')
        return state

    return state_at
