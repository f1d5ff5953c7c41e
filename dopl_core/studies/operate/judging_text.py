"""Sentences about who judges whom, for the pages of those who run a study."""

from dopl_core.studies.model.annotator_limits import Limit
from dopl_core.studies.model.plurals import count, plural
from dopl_core.studies.operate.judging import Apart, Judge, Judging

_MOST_NAMES = 8  # in a sentence
_REMEDY = (
    " Choose “Ask only what they may judge” on Invite, and there are none from the next list on, "
    "or at once if nobody has answered yet."
)


def judge_text(judge: Judge, judging: Judging, noun: str) -> str:
    """Whom somebody judges: Ann: ward North or South, never p-17. 12 of 45 patients."""
    people = f"{judge.people} of {judging.people} {plural(noun)}"
    whom = "everybody" if judge.limit is None else f"{limit_text(judge.limit)}. {people}"
    return f"{judge.name}: {whom}." + ("" if judge.comes else " No link.")


def limit_text(limit: Limit) -> str:
    """Whose cards a limit lets through, in words."""
    only = [f"{column} {_either(sorted(cells))}" for column, cells in limit.only.items()]
    never = [f"never {_names(sorted(limit.never), 'or')}"] if limit.never else []
    return ", ".join(only + never)


def judging_warnings(judging: Judging, noun: str) -> list[str]:
    """What the limits leave without answers, each with what to do about it."""
    found = [
        f"{judge.name} may judge {count(judge.people, noun)}, so "
        "we ask them nothing. Let them judge at least two."
        for judge in judging.judges
        if judge.comes and judge.people < 2
    ]
    if judging.unjudged:
        found.append(_unjudged(judging))
    return found + [_apart(one) for one in judging.apart]


def _unjudged(judging: Judging) -> str:
    """Comparisons that nobody who comes may judge: whom to invite, and what else to do."""
    invite = "".join(
        f" {judge.name} may judge {judge.lacking} of them but has no link: invite {judge.name}."
        for judge in judging.judges
        if judge.lacking
    )
    told = (
        f"Nobody {'with a link ' if invite else ''}may judge {judging.unjudged} of the "
        f"{judging.open_duels} open comparisons.{invite}"
    )
    if not judging.unnamed:
        return told
    rest = f" Nobody else may judge the other {judging.unnamed}." if invite else ""
    return (
        f"{told}{rest} Let somebody judge more people, or do not wait for these answers."
        f"{'' if judging.limited_pairs else _REMEDY}"
    )


def _apart(one: Apart) -> str:
    parts = [" with ".join(f"“{group or '(empty)'}”" for group in part) for part in one.parts]
    told = (
        f"{one.column}: no answer connects {_names(parts, 'and')}. People of different groups are "
        "then compared mostly by their states. "
    )
    if one.able:
        return f"{told}Ask {_names(one.able, 'or')} for answers about both."
    if one.uninvited:
        who = _names(one.uninvited, "or")
        return f"{told}Invite {who}: they may judge people of several of these groups."
    return f"{told}Let somebody judge people of all these groups."


def _either(cells: list[str]) -> str:
    return _names([cell or "(empty)" for cell in cells], "or") if cells else "(none)"


def _names(names: tuple[str, ...] | list[str], word: str) -> str:
    """Names in a sentence: North, South and West."""
    some = list(names[:_MOST_NAMES])
    if (more := len(names) - _MOST_NAMES) > 0:
        some.append(f"{more} more")
    *first, last = some
    return f"{', '.join(first)} {word} {last}" if first else last
