"""The commands that erase personal data."""

import argparse
import sys
from collections import Counter
from collections.abc import Callable

from dopl_core import studies
from dopl_core.studies import StudyError, plural
from dopl_core.studies.weekly_cli import open_store, say

Command = Callable[[argparse.Namespace], None]
Adder = Callable[[str, Command], argparse.ArgumentParser]


def add(command: Adder) -> None:
    """Add the commands to the parser."""
    sub = command("erase", erase)
    sub.add_argument("study", metavar="STUDY", help="its id, as `dopl studies` prints it")
    who = sub.add_mutually_exclusive_group(required=True)
    who.add_argument("--person", metavar="ID", help="somebody in the roster; they leave the study")
    who.add_argument("--annotator", metavar="NAME", help="somebody who answers; their link ends")
    who.add_argument("--all", action="store_true", help="everybody; the study is closed")
    option = sub.add_argument
    option("--answers", action="store_true", help="what was counted leaves the next lists too")
    option("--yes", action="store_true", help="do not ask")
    sub = command("retain", retain)
    sub.add_argument("--dry-run", action="store_true", help="say what is due, and change nothing")


def erase(args: argparse.Namespace) -> None:
    """Erase a person, an annotator or everybody from a study for good, and print a receipt."""
    store = open_store()
    studies.get_study(store, args.study)
    if args.all and args.answers:
        raise StudyError("--all keeps the answers without names: leave --answers out")
    if not args.yes:
        _confirm(args)
    if args.person is not None:
        done = studies.erase_person(store, args.study, args.person, answers=args.answers)
    elif args.annotator is not None:
        done = studies.erase_annotator(store, args.study, args.annotator, answers=args.answers)
    else:
        done = studies.erase_everybody(store, args.study)
    for line in studies.receipt_text(done).splitlines():
        say(line)


def _confirm(args: argparse.Namespace) -> None:
    who = "everybody" if args.all else args.person or args.annotator
    if not sys.stdin.isatty():
        raise StudyError("an erasure cannot be undone: add --yes if that is meant")
    say(f"This erases {who} from {args.study} and cannot be undone.")
    if input('Type "yes" to go on: ').strip().lower() != "yes":
        raise StudyError("nothing was changed")


def retain(args: argparse.Namespace) -> None:
    """Erase what studies keep no longer, by their setting keep_weeks; for cron."""
    store = open_store()
    due = Counter((one.study, one.what) for one in studies.due_erasures(store))
    for (study, what), many in due.items():
        people = plural("person") if many > 1 else "person"
        who = (
            "everybody, as the study ended" if what == "everybody" else f"{many} {people} who left"
        )
        say(f"{study}: {who}: {'due' if args.dry_run else 'to be erased'}")
    if args.dry_run:
        say("nothing was changed" if due else "nothing is due")
        return
    for done in studies.retain(store):
        say(f"{done.study}: erased {done.name or 'everybody'}, {done.events} events rewritten")
    forgotten = studies.forget_audit(store)
    say(f"{len(due) or 'nothing'} due; {forgotten} rows of the audit trail deleted")
