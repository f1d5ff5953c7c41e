"""A study log without names: nothing in it says who patients and annotators are.

People become "person 1", groups "group 1", annotators "annotator 1" and so on. Columns of the
roster and of reports are left out, unless the owner keeps them; so is all free text except title,
question, reasons to choose from, and the names and descriptions of states. States, times, answers
and the number of people stay, and so do the people of simulated worlds, who are nobody.

The learner may have used columns that are left out. So plans are marked, and replay follows the
record; see replay/replay.py. Groups and annotators keep their order, on which the learner relies.
"""

from collections.abc import Collection, Iterable
from dataclasses import replace

from dopl_core.studies.exchange.renaming import Names, arms_ever, renamed
from dopl_core.studies.model.errors import StudyError
from dopl_core.studies.model.event_kinds import body_of
from dopl_core.studies.model.study_log import StudyLog


def without_names(log: StudyLog, keep: Collection[str] = ()) -> StudyLog:
    """The same log without names; keep: the columns that it still has."""
    known = _columns_in(log)
    if unknown := [name for name in keep if name not in known]:
        raise StudyError(
            f'column "{unknown[0][:80]}" is not in this study: choose from '
            f"{', '.join(known)[:800] or 'none, it has no columns'}"
        )
    bare = renamed(log, everybody(log, keep))
    return replace(bare, events=[replace(e, salt=None, sealed=None) for e in bare.events])


def _columns_in(log: StudyLog) -> list[str]:
    """All columns that the study ever had, in the roster or in reports."""
    in_roster = (name for arm in arms_ever(log) for name in arm.columns)
    reported = (n for e in log.epochs for cells in (e.columns or {}).values() for n in cells)
    return list(dict.fromkeys([*in_roster, *reported]))


# --- new names


def everybody(log: StudyLog, keep: Collection[str] = ()) -> Names:
    """New names for everybody; keep: the columns that stay."""
    arms = arms_ever(log)
    settings = [body_of(e).settings for e in log.events if e.kind == "settings_changed"]
    shared = [log.config.fair_column, *(one.get("fair_column") for one in settings)]
    own = [c for c in shared if c not in keep and any(c in arm.columns for arm in arms)]
    values = [arm.group for arm in arms] + [arm.columns.get(c, "") for c in own for arm in arms]
    in_log = (event.annotator for event in log.events)
    people = (person.name for person in log.annotators)
    seen = (shown.participant for shown in log.impressions)
    ids = [arm.id for arm in log.coming.arms]
    observed = log.config.world == "observed"  # the people of simulated worlds are nobody
    # The learner knows annotators by their order; those of past answers come first.
    annotators = _numbered("annotator", [*log.past_annotators, *in_log, *people])
    return Names(
        arms=_numbered("person", ids) if observed else {i: i for i in ids},
        groups=_group_names(set(values)),
        columns=_numbered("fair column", own),
        annotators=annotators,
        people=frozenset(ids if observed else ()),
        authors=frozenset(annotators),
        everybody=True,
        participants=_numbered("participant", [*(p.participant for p in log.annotators), *seen]),
        links=_numbered("link", (person.link for person in log.annotators)),
        keep=frozenset(keep),
        values={name: {arm.columns.get(name, "") for arm in arms} for name in keep},
        consents=_numbered(
            "text", (body_of(e).version for e in log.events if e.kind == "consented")
        ),
    )


def _numbered(word: str, names: Iterable[str | None]) -> dict[str, str]:
    found = dict.fromkeys(name for name in names if name)
    return {name: f"{word} {number}" for number, name in enumerate(found, start=1)}


def _group_names(groups: set[str]) -> dict[str, str]:
    """Numbered names in the same order; "" and "all", which stand for no group, stay."""
    found = sorted(groups - {"", "all"})
    width = len(str(len(found)))
    new = {  # a capital letter comes before "all"
        name: f"{'Group' if name < 'all' else 'group'} {number:0{width}}"
        for number, name in enumerate(found, start=1)
    }
    return {"": "", "all": "all"} | new
