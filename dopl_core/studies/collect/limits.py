"""Whose cards an annotator is shown, where the owner limits who judges whom."""

from dataclasses import dataclass, field

from dopl_core.studies.model.annotator_limits import Limit
from dopl_core.studies.model.errors import StudyError
from dopl_core.studies.model.judged_people import Reported, group_of, is_judged
from dopl_core.studies.model.names import check_name, looks_like
from dopl_core.studies.model.study_config import Arm, StudyConfig
from dopl_core.studies.store.queries import DuelRow, ImpressionRow
from dopl_core.studies.store.study_reader import StudyReader


@dataclass(frozen=True)
class Permission:
    """What a limited annotator may see now.

    arms: all of the study;  reported: columns that replace those of the roster
    found: number of an arm -> whether its card may be shown, as far as somebody has asked
    """

    limit: Limit
    arms: tuple[Arm, ...]
    reported: Reported
    found: dict[int, bool] = field(default_factory=dict)

    def shows(self, arm: int) -> bool:
        """Whether the card of the arm with this number may be shown."""
        if arm not in self.found:
            self.found[arm] = is_judged(self.arms[arm], self.limit, self.reported)
        return self.found[arm]

    def judges(self, duel: DuelRow | ImpressionRow) -> bool:
        """Whether both cards of a duel may be shown."""
        return self.shows(duel.left_arm) and self.shows(duel.right_arm)


def permission(reader: StudyReader, annotator: str) -> Permission | None:
    """What an annotator may see now; None if they are not limited.

    A change of limits holds at once, and so do a new roster and the last report.
    """
    config = reader.next_config
    limit = limit_of(config, annotator)
    return None if limit is None else Permission(limit, config.arms, reported_now(reader))


def limit_of(config: StudyConfig, annotator: str) -> Limit | None:
    """The limit of an annotator; participants of a panel have that of their link.

    Names that look alike are the same here: a limit must not fail because of a capital letter.
    """
    names = {looks_like(annotator), looks_like(annotator.rpartition(", participant ")[0])} - {""}
    found = (limit for name, limit in config.limits.items() if looks_like(name) in names)
    return next(found, None)


def reported_now(reader: StudyReader) -> Reported:
    """The columns of the last report."""
    return reader.reported_columns(reader.row.episode, reader.row.epoch)


def check_limits(config: StudyConfig, reported: Reported) -> None:
    """Refuse limits that name nobody; a misspelt id would let a card through."""
    seen: set[str] = set()
    ids = {arm.id for arm in config.arms}
    for name, limit in config.limits.items():
        check_name(name)
        if looks_like(name) in seen:
            raise StudyError(f"annotator_limits: [{name[:80]}] is given twice")
        seen.add(looks_like(name))
        for unknown in sorted(limit.never - ids):
            raise StudyError(
                f'annotator_limits: [{name[:80]}] never = "{unknown[:80]}": the roster has no '
                "such id"
            )
        for column, values in limit.only.items():
            known = {group_of(arm, column, reported) for arm in config.arms}
            if known == {""}:
                columns = sorted({c for arm in config.arms for c in arm.columns} | {"group"})
                raise StudyError(
                    f'annotator_limits: [{name[:80]}]: "{column[:80]}" is not a column of the '
                    f"roster. Use one of: {', '.join(columns)[:800]}"
                )
            for unknown in sorted(values - known):
                raise StudyError(
                    f'annotator_limits: [{name[:80]}] {column[:80]} = "{unknown[:80]}" is not '
                    f"one of {', '.join(sorted(known))[:800]}"
                )
