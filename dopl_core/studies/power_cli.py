"""The command that computes the power of a trial before the study."""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dopl_core import studies
from dopl_core.studies import StudyConfig, StudyError
from dopl_core.studies.weekly_cli import say

if TYPE_CHECKING:  # it needs pandas
    from dopl_core.studies.analysis.power import Power

Command = Callable[[argparse.Namespace], None]
Adder = Callable[[str, Command], argparse.ArgumentParser]
QUESTION = "Does help improve how people are doing?"


def add(command: Adder) -> None:
    """Add the command to the parser."""
    option = command("power", compute).add_argument
    option("roster", type=Path, metavar="ROSTER.csv", help="id, state, and what cards show")
    option("--states", required=True, help="from worst to best, separated by commas")
    option("--budget", type=int, required=True, metavar="N", help="how many are helped at a time")
    option("--history", type=Path, metavar="FILE", help="past records: id, when, state, helped")
    option("--effect", type=float, default=0.2, help="share that help improves (default 0.2)")
    for name, words in (("weeks", "durations (default 8 to 52)"), ("by-lot", "places at random")):
        option(f"--{name}", type=int, nargs="+", default=[], metavar="N", help=words)
    option("--looks", type=int, default=2, metavar="N", help="analyses in all (default 2)")
    option("--question", default=QUESTION, metavar="TEXT", help="what the trial asks")
    option("--protocol", type=Path, metavar="FILE", help="write the protocol for `dopl new`")
    option("--seed", type=int, default=0)


def compute(args: argparse.Namespace) -> None:
    """Say how likely a trial is to show an effect, by places at random and weeks."""
    states = [state.strip() for state in args.states.split(",")]
    people = studies.read_roster(args.roster, states)
    of = {"title": "Trial", "noun": "person", "budget": args.budget}
    config = studies.from_roster(people, states, **of)
    past = None if args.history is None else studies.read_history(args.history, config)
    found = studies.power.compute(
        config,
        past,
        effect=args.effect,
        weeks=sorted(set(args.weeks)),
        by_lot=sorted(set(args.by_lot)),
        looks=args.looks,
        seed=args.seed,
        tell=_tell,
    )
    _print_table(found, config)
    say(studies.power_text.advice(found, config, args.effect))
    say(studies.power_text.caveat(found, records=past is not None))
    if args.protocol is not None:
        _write(args, _chosen(found), config)


def _tell(share: float) -> None:
    """Show on a terminal how far it is."""
    if sys.stderr.isatty():
        end = "\n" if share >= 1 else ""
        print(f"\rSimulating {100 * share:3.0f} %", end=end, file=sys.stderr, flush=True)


def _print_table(found: Sequence["Power"], config: StudyConfig) -> None:
    table = [studies.power_text.columns(found), *studies.power_text.rows(found, config.budget)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        cells = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells))


def _chosen(found: Sequence["Power"]) -> "Power":
    """The only design, or the recommended one."""
    best = found[0] if len(found) == 1 else studies.power.recommended(found)
    if best is None:
        raise StudyError(
            "no design has enough power, so no protocol was written: choose one with --weeks N and "
            "--by-lot N"
        )
    return best


def _write(args: argparse.Namespace, best: "Power", config: StudyConfig) -> None:
    made = studies.power.protocol_of(best, config, args.question, args.effect)
    args.protocol.write_bytes(studies.protocol_json(made))
    digest, words = studies.protocol_digest(made), studies.power_text.design(best, config)
    say(f"{args.protocol}: {words}; digest {digest}")
    say(f"Make the study with: dopl new ... --protocol {args.protocol}")
