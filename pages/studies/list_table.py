"""The table of a list as HTML, for the page and the printed sheet.

Every text from the owner's files is escaped here and nowhere else.
"""

from collections.abc import Iterator, Sequence
from html import escape

from dopl_core.studies import Listed, OwnWords, WeekList, state_words, this_week, why_listed
from dopl_core.wording import _

LEVELS = 4  # chips have colours from 0 (worst) to LEVELS (best)


def list_table(week: WeekList, words: OwnWords, *, to_print: bool = False) -> str:
    """The people to help, the next in line, those taken off and those who wait by lot.

    words: the owner's words in the reader's language
    to_print: with room for notes, and each reason in a line of its own above its people
    """
    heads = ["", _("Name"), _("State"), *map(words, week.facts)]
    heads += [_("Why")] if not to_print else []
    heads += [_("State now"), _("Helped"), _("Notes")] if to_print else []
    heads += [_("Helped"), _("State afterwards")] if week.reported and not to_print else []
    waits = _("Chosen at random to wait {this_week}")
    if not week.reported:
        waits = _("Chosen at random to wait {this_week}: please do not help them yet")
    parts = [
        ("", week.listed, 1),
        (_("Next in line, if somebody is not there"), week.reserve, len(week.listed) + 1),
        (_("Taken off this list"), week.removed, 0),
        (waits.format(this_week=this_week(week.word)), week.left_out, 0),
    ]
    body = "".join(
        _part(title, people, first, week, words, to_print, len(heads))
        for title, people, first in parts
        if people
    )
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    return f'<table class="dopl-list"><thead><tr>{head}</tr></thead>{body}</table>'


def _part(
    title: str,
    people: Sequence[Listed],
    first: int,
    week: WeekList,
    words: OwnWords,
    to_print: bool,
    width: int,
) -> str:
    """Rows under a title; first: the number of the first row, 0 for rows without numbers."""
    head = f'<tr class="part"><th colspan="{width}">{escape(title)}</th></tr>' if title else ""
    rows = "".join(
        _reason_line(why, width) * to_print
        + _row(str(first + number) if first else "", one, why, week, words, to_print)
        for number, (one, why) in enumerate(zip(people, _reasons(people, week, words), strict=True))
    )
    return f"<tbody>{head}{rows}</tbody>"


def _reasons(people: Sequence[Listed], week: WeekList, words: OwnWords) -> Iterator[str]:
    """The reason of each row where it differs from that of the row above, else nothing.

    For people next in line, only what the rows above do not say: their title says the rest.
    """
    above = ""
    for one in people:
        why = why_listed(one, week, words)
        if one.reserve:
            above = above or (why_listed(week.listed[-1], week, words) if week.listed else "")
            why = why.removeprefix(_("Next in line.")).strip()
            yield "" if why in above else why
        else:
            yield "" if why == above else why
        above = why


def _reason_line(why: str, width: int) -> str:
    if not why:
        return ""
    return f'<tr class="reason"><td class="why" colspan="{width}">{escape(why)}</td></tr>'


def _row(
    number: str, one: Listed, why: str, week: WeekList, words: OwnWords, to_print: bool
) -> str:
    name = f"{one.label} ({one.id})" if one.namesake else one.label  # a phone hides what is small
    about = [one.id] * (one.id != one.label and not one.namesake)
    about += [one.group] * (one.group != "all")
    small = f" <small>{escape(', '.join(about))}</small>" if about else ""
    cells = [
        ("number", number),
        ("name", f"{escape(name)}{small}{_mark(one)}"),
        ("state", _chip(one, week, words)),
        *(("fact", escape(one.facts.get(name, ""))) for name in week.facts),
    ]
    if to_print:
        tick = "&#9745;" if one.helped else "&#9744;"
        now = escape(words(one.then or ""))
        cells += [("now", now), ("tick", tick), ("notes", "")]
    else:
        cells += [("why", escape(why))]
    if week.reported and not to_print:
        helped = _("Helped") if one.helped else _("Not helped")
        then = words(one.then) if one.then else _("unknown")
        cells += [("helped", escape(helped)), ("then", escape(then))]
    return "<tr>" + "".join(f'<td class="{kind}">{text}</td>' for kind, text in cells) + "</tr>"


def _mark(one: Listed) -> str:
    """A place that has a purpose of its own."""
    words = _("chosen at random") if one.by_lot else _("to find out") if one.to_find_out else ""
    return f' <span class="dopl-mark">{escape(words)}</span>' if words else ""


def _chip(one: Listed, week: WeekList, words: OwnWords) -> str:
    """The state in a colour from worst to best."""
    kind = "unknown"
    if one.state in week.states:
        best = max(1, len(week.states) - 1)
        kind = f"level-{round(LEVELS * week.states.index(one.state) / best)}"
    return f'<span class="dopl-chip {kind}">{escape(state_words(one, week.word, words))}</span>'
