"""Printable HTML pages: a list with its date and room for notes, a text; the button that prints."""

from datetime import UTC, datetime
from html import escape

import streamlit as st

from dopl_core import studies
from dopl_core.studies import Study, StudyConfig, WeekList, people
from dopl_core.wording import LANGUAGE, _, direction, format_day, format_number, numbered_week
from pages.shared.button_style import BUTTON_STYLE
from pages.shared.guards import store
from pages.studies.list_table import list_table

_STYLE = """
@page { margin: 12mm; }
body { font: 10pt/1.3 system-ui, sans-serif; color: #1d2733; background: #fff; margin: 0; }
h1 { font: 600 16pt "Source Serif", Georgia, serif; margin: 0; } p { margin: 2pt 0 8pt; }
table { border-collapse: collapse; width: 100%; } thead { display: table-header-group; }
th, td { border-bottom: 1px solid #b5ada0; padding: 3pt 5pt; text-align: start;
vertical-align: top; }
thead th { border-bottom: 2px solid #0f766e; } tr { break-inside: avoid; }
.part th { padding-top: 8pt; color: #0b5f58; } .name { font-weight: 600; }
small { display: inline-block; font-weight: 400; color: #4a5661; } .why { font-size: 8.5pt; }
.name { overflow-wrap: anywhere; min-width: 30mm; } .reason { break-after: avoid; }
.notes { width: 16%; border: 1px solid #b5ada0; } .now { width: 10%; border: 1px solid #b5ada0; }
.number, .state:not(:has(.unknown)), .fact:nth-of-type(4) { white-space: nowrap; }
.tick { font-size: 14pt; line-height: 1; text-align: center; }
.dopl-chip { display: inline-block; padding: 0 5pt; border: 1px solid #4a5661; border-radius: 8pt;
print-color-adjust: exact; -webkit-print-color-adjust: exact; }
.dopl-mark { font-size: 8.5pt; font-weight: 400; font-style: italic; white-space: nowrap; }
.level-0 { background: #f6d5c3; } .level-1 { background: #f7e6c4; }
.level-2 { background: #ecebe3; } .level-3 { background: #dcece4; }
.level-4 { background: #c5e5dc; } .unknown { border-style: dashed; }
"""
# The sheet is printed from a frame of its own, so the page around it stays as it is.
_PRINT = """export default ({data, parentElement, setTriggerValue}) => {
  const button = parentElement.querySelector("button")
  button.textContent = data.label
  button.onclick = () => {
    document.getElementById("dopl-sheet")?.remove()
    const frame = Object.assign(document.createElement("iframe"), {id: "dopl-sheet"})
    frame.style.cssText = "position:fixed;width:0;height:0;border:0"
    frame.setAttribute("aria-hidden", "true")
    frame.srcdoc = data.sheet
    frame.onload = () => frame.contentWindow.print()
    document.body.append(frame)
    setTriggerValue("printed", true)
  }
}"""
_printer = st.components.v2.component(
    "dopl_print", html="<button></button>", css=BUTTON_STYLE, js=_PRINT
)


def print_button(study: Study, week: WeekList) -> None:
    """A button that opens the browser's print dialogue for the sheet of a list."""
    printed = _printer(
        data={"sheet": sheet(study.title, study.config, week), "label": _("Print")},
        key=f"print-{week.week}",
        width="content",
        on_printed_change=lambda: None,
    )
    if printed.printed:
        studies.print_list(store(), study.id, week.week)


def print_text(title: str, words: str, key: str) -> None:
    """A button that prints lines of text under a title."""
    lines = "".join(f"<p>{escape(line)}</p>" for line in words.splitlines())
    page = (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style><h1>{escape(title)}</h1>{lines}</html>"
    )
    shown = {"sheet": page, "label": _("Print")}
    _printer(data=shown, key=key, width="content", on_printed_change=lambda: None)


def sheet(title: str, config: StudyConfig, week: WeekList) -> str:
    """The page as HTML; all text from the owner's files is escaped."""
    title, name = config.own_words(title), numbered_week(week.word, week.week)
    head = _("{week}: {people} to help").format(week=name, people=people(config.noun))
    about = _("List of {day}, {listed} in all, the most urgent first.")
    about = about.format(day=date(week), listed=format_number(len(week.listed)))
    lot = _("Ties were broken at random.") if week.all_equal else ""
    return (
        f'<!doctype html><html lang="{LANGUAGE.get()}" dir="{direction()}"><meta charset="utf-8">'
        f"<title>{escape(title)}, {escape(name)}</title><style>{_STYLE}</style>"
        f"<h1>{escape(title)}</h1><p><b>{escape(head)}</b>. {escape(f'{about} {lot}'.strip())}</p>"
        f"{list_table(week, config.own_words, to_print=True)}</html>"
    )


def date(week: WeekList) -> str:
    """The day on which a list was made."""
    return format_day(datetime.fromtimestamp(week.made_at / 1000, UTC).date())
