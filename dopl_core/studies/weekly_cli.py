"""The commands for the list, the report and the answers of a week, and how commands speak."""

import argparse
import csv
import io
import sys
import time
from typing import Any

from dopl_core import studies
from dopl_core.paths import write_private
from dopl_core.studies import StudyError, one_line, printable


def open_store() -> studies.Store:
    """The database, for the owner at the command line."""
    return studies.open_store().acting_as(studies.COMMAND_LINE)


def say(words: str, **options: Any) -> None:
    """Print a line; text from rosters, names and comments cannot send codes to the terminal."""
    print(one_line(words), **options)


def list_(args: argparse.Namespace) -> None:
    """Whom to help, as CSV: this week's list, or an earlier list and its outcome."""
    store = open_store()
    _make_due_list(store, args.study)
    if args.remove or args.add or args.because:
        change = {"remove": args.remove, "add": args.add, "because": args.because}
        studies.change_list(store, args.study, week=args.week, **change)
    found = {one.week: one for one in studies.read_lists(store, args.study)}
    if not found:
        raise _no_list(args.study)
    week = args.week or max(found)
    if week not in found:
        raise StudyError(f"week {week} has no list: the latest is of week {max(found)}")
    content = studies.write_csv(studies.list_columns(found[week]), studies.list_rows(found[week]))
    if args.out is None:
        _print_csv(content)
    else:
        write_private(args.out, content.encode("utf-8-sig"))  # for Excel
        say(f"{args.out}: week {week}, {len(found[week].listed)} to help")


def due(args: argparse.Namespace) -> None:
    """Who is asked for how many answers now, as CSV, for reminders by mail."""
    rows = studies.due_rows(studies.due(open_store(), args.study))
    _print_csv(studies.write_csv(studies.DUE_COLUMNS, rows))
    if not rows:
        say(f"{args.study}: nobody with a link is asked for answers now", file=sys.stderr)


def _print_csv(content: str) -> None:
    """Print a CSV; its cells cannot send codes to the terminal."""
    for row in csv.reader(io.StringIO(content, newline="")):
        csv.writer(sys.stdout).writerow(printable(cell) for cell in row)


def _no_list(study: str) -> StudyError:
    return StudyError(
        f'study "{study}" has no list yet: it is made after the first round, which its page can end'
    )


def _make_due_list(store: studies.Store, study: str) -> str:
    """Make the list that is due, or wait for the process that makes it.

    "" where none was due, "here" where this process made it, else "elsewhere".
    """
    made = ""
    while studies.get_study(store, study).plan_due:
        if studies.advance(store, study):
            return "here"
        made = "elsewhere"
        time.sleep(0.1)
    return made


def _say_list(store: studies.Store, study: str) -> None:
    last = studies.read_lists(store, study, last=1)[0]
    say(f"{study}: list of {last.word} {last.week} made, {len(last.listed)} to help")


def _read_report(
    store: studies.Store, args: argparse.Namespace, config: studies.StudyConfig, week: int
) -> studies.Report:
    """The report in a file; its columns as the owner chose them on the page, if they did."""
    sheet = studies.open_sheet(args.file)
    columns = studies.remembered_columns(store, args.study, "report", sheet)
    return studies.read_report(sheet, config, columns=columns, week=week)


def report(args: argparse.Namespace) -> None:
    """Report everybody's state and who was helped, and make the next list; or undo a report."""
    store = open_store()
    if args.undo:
        undo_report(store, args)
        return
    if args.file is None:
        raise StudyError("which file has the report? Write dopl report STUDY FILE")
    made = _make_due_list(store, args.study)
    if made == "here":  # the last run was stopped after its week was recorded
        _say_list(store, args.study)
    lists = studies.read_lists(store, args.study, last=1)
    if not lists:
        raise _no_list(args.study)
    now, listed = lists[-1], [one.id for one in lists[-1].listed]
    this, week = f"{now.word} {now.week}", now.week if args.week is None else args.week
    about = week - (made == "here" and args.week is None)  # the week before, if that was stopped
    read = _read_report(store, args, studies.report_config(store, args.study), about)
    said, helped = (read.states, read.columns), read.who_was_helped(args.empty_helped)
    if made and args.week in (None, now.week - 1):
        if made == "here" and studies.is_last_report(store, args.study, *said, helped):
            say(f"{args.study}: {now.word} {now.week - 1} was reported with this file already")
            return
        raise StudyError(
            f"{now.word} {now.week - 1} was reported before, and the list of {this} is new: to "
            f"report {this}, add --week {now.week}; to change what was reported, use dopl correct"
        )
    before, again = studies.present_states(store, args.study), args.week is not None
    due = studies.observe(store, args.study, *said, helped=helped, week=week, again=again)
    who = listed if helped is None else helped
    words = studies.report_words(before, read.states, listed, who)
    cards = f"; new on cards: {', '.join(read.news)}" if read.news else ""
    say(f"{args.study}: {this} reported: {words}{cards}")
    if due and _make_due_list(store, args.study):
        _say_list(store, args.study)


def undo_report(store: studies.Store, args: argparse.Namespace) -> None:
    """Undo the latest report, if it is of the week that is named."""
    last = studies.last_report(store, args.study)
    if args.file is not None or (args.week is None and last is not None):
        week = args.week if last is None else last.week
        raise StudyError(f"to undo the latest report, write --undo --week {week}, without a file")
    studies.undo_report(store, args.study, args.week or 1)
    say(
        f"{args.study}: the report of week {args.week} is undone, and its list is open again; "
        "answers given since stay counted"
    )


def correct(args: argparse.Namespace) -> None:
    """Correct a report; the next list uses it, and nothing is overwritten."""
    store = open_store()
    read = _read_report(store, args, studies.coming_config(store, args.study), args.week)
    studies.correct(store, args.study, args.week, read.states, read.help_marks)
    say(f"{args.study}: week {args.week} corrected; from the next list on")
