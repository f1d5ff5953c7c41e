"""The commands about members and the audit trail."""

import argparse
import csv
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from dopl_core import studies
from dopl_core.paths import write_private
from dopl_core.studies import ALL_STUDIES, ROLES, StudyError
from dopl_core.studies.weekly_cli import open_store, say

Command = Callable[[argparse.Namespace], None]
Adder = Callable[[str, Command], argparse.ArgumentParser]


def add(command: Adder) -> None:
    """Add the commands to the parser."""
    sub = command("member", member)
    _add_study(sub)
    option = sub.add_argument
    option("--add", metavar="VALUE", help="give the --role to this email address, group, ...")
    option("--remove", metavar="VALUE", help="take the role away")
    option("--claim", default="email", help="what the provider calls it (default email)")
    option("--role", choices=ROLES, help="the role that --add gives")
    sub = command("audit", audit)
    _add_study(sub)
    sub.add_argument("--csv", type=Path, metavar="FILE", help="write it to a file")
    sub.add_argument("--keep-days", type=int, metavar="N", help="keep the audit trail for N days")


def _add_study(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("study", nargs="?", metavar="STUDY", help="its id; or --all")
    sub.add_argument("--all", action="store_true", help="all studies, those to come as well")


def _study(args: argparse.Namespace) -> str:
    """The study that is named, or ALL_STUDIES."""
    if (args.study is None) != args.all:
        raise StudyError("name a study, or all studies with --all")
    return args.study or ALL_STUDIES


def member(args: argparse.Namespace) -> None:
    """List the people who sign in and their roles in a study or in all; add or remove some."""
    store, study = open_store(), _study(args)
    where = args.study or "all studies"
    if args.add is not None:
        if args.role is None:
            raise StudyError(f"which role? Add --role {'|'.join(ROLES)}")
        studies.add_member(store, study, args.add, args.role, args.claim)
        say(f"{where}: {args.claim} {args.add} is {args.role}")
    if args.remove is not None:
        if not studies.remove_member(store, study, args.remove, args.claim):
            raise StudyError(f"{where}: {args.claim} {args.remove} has no role")
        say(f"{where}: {args.claim} {args.remove} has no role any more")
    if args.add is None and args.remove is None:
        for one in studies.list_members(store, study):
            say(f"{one.role}  {one.claim}  {one.value}")


def audit(args: argparse.Namespace) -> None:
    """Print who looked at what, changed what or was refused in a study or in all, as CSV."""
    store, study = open_store(), _study(args)
    if args.keep_days is not None:
        if not args.all:
            raise StudyError("--keep-days holds for all studies: write dopl audit --all")
        studies.keep_audit(store, args.keep_days)
        say(f"the audit trail is kept for {args.keep_days} days")
        return
    found = studies.read_audit(store, study)
    rows = studies.audit_rows(found)
    if args.csv is None:
        csv.writer(sys.stdout).writerows([studies.AUDIT_COLUMNS, *map(_printable, rows)])
    else:
        content = studies.write_csv(studies.AUDIT_COLUMNS, rows)
        write_private(args.csv, content.encode("utf-8-sig"))  # for Excel
        say(f"{args.csv}: {len(found)} rows")


def _printable(row: Sequence[object]) -> list[str]:
    """Cells that cannot send codes to the terminal."""
    return [studies.printable(str(cell)) for cell in row]
