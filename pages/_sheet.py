"""A dated sheet to print: a list with room for notes, and no app around it."""

from datetime import UTC, datetime
from html import escape

from dopl_core.studies import lists
from dopl_core.studies.lists import Listed, WeekList
from dopl_core.studies.service import StudyConfig

_STYLE = """
@page { margin: 14mm; }
body { font: 11pt/1.35 sans-serif; color: #000; background: #fff; margin: 1.5rem; }
h1 { font-size: 16pt; margin: 0; } p { margin: .2rem 0 1rem; }
table { border-collapse: collapse; width: 100%; } thead { display: table-header-group; }
th, td { border: 1px solid #777; padding: .4rem .5rem; text-align: left; vertical-align: top; }
th { background: #eee; } tr { break-inside: avoid; }
td.box { width: 2.2rem; font-size: 14pt; text-align: center; } td.notes { width: 26%; }
small { color: #333; } @media print { body { margin: 0; } button { display: none; } }
@media (max-width: 640px) { table, tbody, tr, td { display: block; width: auto; } thead
{ display: none; } td { border-width: 0 0 1px; } td.box, td.notes { width: auto; text-align: left; }
tr { border: 1px solid #777; margin-bottom: .6rem; } }
@media print { table { display: table; } tbody { display: table-row-group; }
tr { display: table-row; } td { display: table-cell; } thead { display: table-header-group; } }
"""


def sheet(title: str, config: StudyConfig, week: WeekList) -> str:
    """The sheet as an HTML file; everything from the owner's files is escaped."""
    head = f"{week.word.capitalize()} {week.week}: {config.noun}s to help"
    rows = "".join(_row(one, week) for one in week.listed)
    lot = " Picked by chance among equals." if week.all_equal else ""
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}, {escape(week.word)} {week.week}</title><style>{_STYLE}</style>"
        f"<h1>{escape(title)}</h1><p><strong>{escape(head)}</strong>, list of {date(week)}, "
        f"{len(week.listed)} in all, the most urgent first.{lot}</p>"
        "<table><thead><tr><th>Helped</th><th>Who</th><th>State</th><th>Why</th><th>Notes</th>"
        f"</tr></thead><tbody>{rows}</tbody></table></html>"
    )


def date(week: WeekList) -> str:
    """The day on which a list was made."""
    return datetime.fromtimestamp(week.made_at / 1000, UTC).strftime("%-d %B %Y")


def _row(one: Listed, week: WeekList) -> str:
    who = f"{escape(one.label)}<br><small>{escape(one.id)}"
    who += f", {escape(one.group)}</small>" if one.group != "all" else "</small>"
    state = escape(lists.whereabouts_words(one, week.word))
    return (
        f'<tr><td class="box">{"&#9745;" if one.helped else "&#9744;"}</td><td>{who}</td>'
        f"<td>{state}</td><td>{escape(lists.why(one, week))}</td>"
        '<td class="notes">&nbsp;</td></tr>'
    )
