"""The latest report that counts, and how long ago it was sent."""

from dataclasses import dataclass

from dopl_core.studies.model.event_kinds import body_of
from dopl_core.studies.model.log_values import week_of
from dopl_core.studies.model.plurals import count
from dopl_core.studies.store.database import Store
from dopl_core.studies.store.study_reader import StudyReader, read_study

SOON = 3600.0  # seconds: a second report within this time may be a mistake


@dataclass(frozen=True)
class LastReport:
    """The latest report.

    place: its episode and epoch;  seq: the number of its event;  ago: seconds since it was sent
    digest: of what it says
    """

    week: int
    place: tuple[int, int]
    seq: int
    ago: float
    digest: str

    @property
    def is_recent(self) -> bool:
        """Whether a second report now may be a mistake; not if the clock was put back."""
        return 0 <= self.ago < SOON

    @property
    def when(self) -> str:
        """How long ago it was sent, in words."""
        minutes = int(self.ago // 60)
        if minutes < 1:
            return "less than a minute ago"
        return f"{count(minutes, 'minute')} ago"


def last_report(store: Store, study: str) -> LastReport | None:
    """The latest report that counts; None before the first."""
    with read_study(store, study) as reader:
        return read_last_report(reader)


def read_last_report(reader: StudyReader) -> LastReport | None:
    """The latest report of a study that is being read."""
    reports = reader.standing("observed")
    if not reports:
        return None
    seq, event = reports[-1]
    body = body_of(event)
    week = week_of(reader.config, body.episode, body.epoch)
    ago = (reader.now - event.at) / 1000
    return LastReport(week, (body.episode, body.epoch), seq, ago, body.report)
