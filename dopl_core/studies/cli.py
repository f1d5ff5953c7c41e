"""The commands about studies. Each says in one line what it did."""

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dopl_core import studies
from dopl_core.paths import write_private
from dopl_core.studies import Setting, StudyError, access, access_cli, erasure_cli, power_cli
from dopl_core.studies.diagnostics import run_checks
from dopl_core.studies.model.plurals import count
from dopl_core.studies.operate.rehearsal import Habits, people_in
from dopl_core.studies.operate.rehearsal import rehearse as play
from dopl_core.studies.weekly_cli import correct, due, list_, open_store, report, say

Command = Callable[[argparse.Namespace], None]
Adder = Callable[[str, Command], argparse.ArgumentParser]


def add(command: Adder) -> None:
    """Add the commands to the parser."""
    _add_new(command("new", new))
    power_cli.add(command)
    _add_weekly(command)
    command("studies", show_studies)
    command("doctor", doctor)
    option = _of_study(command("export", export)).add_argument
    option("--out", type=Path, metavar="FILE", help="default STUDY.zip")
    option("--without-names", "--pseudonyms", action="store_true", help="nobody is named in it")
    option("--keep", action="extend", nargs="+", default=[], metavar="COLUMN", help="leave it in")
    command("import", import_).add_argument("bundle", type=Path, metavar="FILE")
    sub = _of_study(command("enough", enough))
    sub.epilog = "exit code: 0 if the answers are enough, 1 if not yet, 2 on an error"
    sub.set_defaults(error_code=2)
    sub = command("replay", replay)
    sub.add_argument("what", metavar="FILE|STUDY", help="a bundle, or the id of a study")
    sub.add_argument("--seal", metavar="TEXT", help="check that the log contains this seal")
    for one in (sub, _of_study(command("seal", seal))):
        one.add_argument("--key", type=Path, metavar="FILE", help="the owner's key signs the seal")
    _add_rehearse(command("rehearse", rehearse))
    access_cli.add(command)
    for name, run in (("backup", backup), ("restore", restore)):
        command(name, run).add_argument("file", type=Path, metavar="FILE")
    erasure_cli.add(command)


def _of_study(sub: argparse.ArgumentParser) -> argparse.ArgumentParser:
    sub.add_argument("study", metavar="STUDY", help="its id, as `dopl studies` prints it")
    return sub


def _add_new(sub: argparse.ArgumentParser) -> None:
    option = sub.add_argument
    option("roster", type=Path, metavar="ROSTER.csv", help="id, state, and what cards show")
    option("--states", required=True, help="from worst to best, separated by commas")
    option("--history", type=Path, metavar="FILE", help="past records: id, when, state, helped")
    option("--protocol", type=Path, metavar="FILE", help="of a trial, from `dopl power`; for ever")
    for setting in studies.offered_in("observed"):
        option(
            f"--{setting.name.replace('_', '-')}",
            required=setting.is_required,
            default=argparse.SUPPRESS,
            metavar=_metavar(setting),
            help=f"{setting.about.label}{_default(setting)}".replace("%", "%%"),
        )


def _metavar(setting: Setting) -> str:
    if setting.choices:
        return "|".join(setting.choices)
    return {bool: "on|off", str: "TEXT"}.get(setting.kind, "N")


def _default(setting: Setting) -> str:
    if setting.name == "hide_state":
        return " (default on where the roster has more columns than id, state, label and group)"
    if setting.may_be_none:
        return " (default: the learner chooses)"
    if setting.offered in (None, ""):
        return ""
    if setting.kind is bool:
        return f" (default {'on' if setting.offered else 'off'})"
    return f" (default {setting.offered})"


def _add_weekly(command: Adder) -> None:
    """The commands for a study of real people, week by week."""
    files = {
        "correct": (correct, "WEEK.csv: the rows that were wrong, as they should have been"),
        "people": (people, "ROSTER.csv: new rows join"),
        "history": (history, "HISTORY.csv: id, when, state, helped; before the first list"),
        "answers": (answers, "ANSWERS.csv: annotator, winner, loser, when; before the first list"),
        "photos": (photos, "PHOTOS.zip: photos for cards, each named after an id"),
    }
    subs = {}
    for name, (run, file) in files.items():
        subs[name] = _of_study(command(name, run))
        subs[name].add_argument("file", type=Path, metavar="FILE", help=file)
    more = subs["people"].add_argument
    more("--left", action="store_true", help="people who are missing in the file leave")
    more("--yes", action="store_true", help="even if more than a third of all people leave")
    _add_report(_of_study(command("report", report)))
    subs["correct"].add_argument(
        "--week", type=int, required=True, help="the week to correct; 0 is the roster"
    )
    _of_study(command("due", due))
    sub = _of_study(command("settings", change_settings))
    sub.add_argument("settings", nargs="+", metavar="NAME=VALUE", help="for example budget=5")
    sub.formatter_class = argparse.RawDescriptionHelpFormatter
    sub.epilog = _settings_text(studies.SETTINGS.values())
    sub = _of_study(command("list", list_))
    sub.add_argument("--week", type=int, help="default: the last week with a list")
    for option, does in (("remove", "take somebody off"), ("add", "put somebody on")):
        sub.add_argument(
            f"--{option}", action="append", default=[], metavar="ID", help=f"{does} the open list"
        )
    sub.add_argument("--because", default="", metavar="TEXT", help="why, in a few words")
    sub.add_argument("--out", type=Path, metavar="FILE", help="default: print it")


def _add_report(sub: argparse.ArgumentParser) -> None:
    option = sub.add_argument
    file = "WEEK.csv: id, state, helped; an empty state is unknown"
    option("file", type=Path, nargs="?", metavar="FILE", help=file)
    option(
        "--week",
        type=int,
        help="the week that the file is about; any other week is refused (default: the list's "
        "week, and a file that was reported before is refused)",
    )
    option(
        "--empty-helped", choices=("yes", "no"), help="count empty cells of the column helped as"
    )
    option("--undo", action="store_true", help="undo the latest report, which is of this --week")


def _settings_text(settings: Iterable[Setting]) -> str:
    """Every setting, for the help of `dopl settings`."""
    lines = ["settings that may change, from the next list on:"]
    fixed = []
    for one in settings:
        if one.about.changes == "never":
            fixed.append(one.name)
        else:
            lines += [f"  {one.name}: {one.about.label}", f"      {one.needed}"]
    return "\n".join([*lines, f"settings of a new study that never change: {', '.join(fixed)}"])


def _add_rehearse(sub: argparse.ArgumentParser) -> None:
    option = sub.add_argument
    option("study", nargs="?", metavar="STUDY", help="the study to play; or --environment")
    option("--environment", metavar="ENV", help="play a new study of this environment")
    option("--annotators", type=int, default=8, help="how many play at once (default 8)")
    option("--answers", type=int, default=500, help="when to stop (default 500)")
    option("--think", type=float, default=0.0, metavar="SECONDS", help="mean time of an answer")
    option("--slips", type=float, default=0.05, help="share answered at random (default 0.05)")
    option("--walk-aways", type=float, default=0.0, help="share of duels left unanswered")
    option("--seed", type=int, default=0)
    option("--anyway", action="store_true", help="even if people have already answered")


def new(args: argparse.Namespace) -> None:
    """Make a study from a roster; prints its id."""
    states = [state.strip() for state in args.states.split(",")]
    chosen = {}
    for setting in studies.offered_in("observed"):
        if setting.name in args:
            chosen[setting.name] = setting.parse(getattr(args, setting.name))
        elif setting.about.offered is not None:
            chosen[setting.name] = setting.about.offered
    trial = None if args.protocol is None else studies.read_protocol_file(args.protocol)
    if trial is not None and "by_lot" not in args:
        chosen["by_lot"] = trial.by_lot
    config = studies.from_roster(studies.read_roster(args.roster, states), states, **chosen)
    _warn_of_columns(chosen, [arm.columns for arm in config.arms])
    past = None if args.history is None else studies.read_history(args.history, config)
    say(studies.create_study(open_store(), config, past, protocol=trial))


def change_settings(args: argparse.Namespace) -> None:
    """Change settings of a study, and say from when on each counts."""
    new = {}
    for pair in args.settings:
        name, equals, text = pair.partition("=")
        if not equals:
            raise StudyError(f'"{pair[:80]}" has no value: write NAME=VALUE')
        new[name] = studies.parse_setting(name, text)
    store = open_store()
    studies.change_settings(store, args.study, **new)
    _warn_of_columns(new, studies.read_cards(store, args.study).values())
    for when in ("at once", "from the next list on"):
        names = [name for name in new if (when == "at once") == _changes_at_once(name)]
        if names:
            say(f"{args.study}: {', '.join(names)} changed; {when}")
    if {"budget", "by_lot"} & new.keys() and (rules := studies.trial_rules(store, args.study)):
        say(rules, file=sys.stderr)


def _warn_of_columns(chosen: Mapping[str, Any], cards: Iterable[Mapping[str, str]]) -> None:
    """Say which columns nobody has: of a name that is misspelt, cards would show the column."""
    known = list(dict.fromkeys(["group", *(name for card in cards for name in card)]))
    for setting in ("list_columns", "hidden_columns", "unused_columns"):
        for name in filter(None, map(str.strip, chosen.get(setting, "").split(","))):
            if name not in known:
                names = ", ".join(known)
                say(f'{setting}: nobody has a column "{name}" yet, only {names}', file=sys.stderr)


def _changes_at_once(name: str) -> bool:
    return studies.SETTINGS[name].about.changes == "at once"


def people(args: argparse.Namespace) -> None:
    """Add the people who are new in a roster; with --left, remove those who are not in it."""
    store = open_store()
    sheet, states = studies.open_sheet(args.file), studies.coming_config(store, args.study).states
    columns = studies.remembered_columns(store, args.study, "roster", sheet)
    roster = studies.read_roster(sheet, states, columns=columns)
    joined, left = studies.update_people(store, args.study, roster, left=args.left, many=args.yes)
    say(f"{args.study}: {joined} joined, {left} left; from the next list on")


def history(args: argparse.Namespace) -> None:
    """Add past records to a study, before its first list."""
    store = open_store()
    past = studies.read_history(args.file, studies.coming_config(store, args.study))
    studies.add_history(store, args.study, past)
    say(f"{args.study}: {past.moves} moves of {past.arms} people found, {past.gaps} gaps")


def answers(args: argparse.Namespace) -> None:
    """Add past answers to a study, before its first list; give past records first."""
    past = studies.add_answers(open_store(), args.study, args.file)
    say(f"{args.study}: {past.count} answers of {len(past.annotators)} annotators found")


def photos(args: argparse.Namespace) -> None:
    """Add photos to cards; they are made small, and only annotators of the study see them."""
    store = open_store()
    found = studies.read_photos(args.file, studies.coming_config(store, args.study))
    if not found.photos:
        raise StudyError(f"{args.file}: no photo is named after an id: nothing was changed")
    new = studies.keep_photos(store, args.study, found.photos)
    say(f"{args.study}: {new} photos kept, {len(found.photos) - new} were there already")
    if found.unmatched:
        names = ", ".join(found.unmatched[:10])
        say(f"{len(found.unmatched)} files match no ID: {names}", file=sys.stderr)


def show_studies(args: argparse.Namespace) -> None:
    """Print one line for each study, its id first."""
    store = open_store()
    for broken in studies.list_unreadable(store):
        say(f"{broken.id}  cannot be read: {broken.why}", file=sys.stderr)
    for study in studies.list_studies(store):
        say(
            f"{study.id}  {study.status}  {count(study.answers, 'answer')} by "
            f"{count(study.annotators, 'annotator')}  "
            f"plan {study.episode} ({study.config.engine})  waits for {study.waits_for}  "
            f"{study.title}"
        )


def doctor(args: argparse.Namespace) -> None:
    """Check everything that dopl needs: one screen to send with a bug report."""
    checks = run_checks()
    for check in checks:
        mark = "FAIL" if check.failed else "ok"
        say(f"{mark:5} {check.name:11} {check.result}")
    failed = sum(check.failed for check in checks)
    say(f"{failed} of {len(checks)} checks failed." if failed else "All checks passed.")
    sys.exit(1 if failed else 0)


def enough(args: argparse.Namespace) -> None:
    """Say whether the answers are reliable enough, and what more answers would bring."""
    found = studies.reliability.measure_enough(studies.open_store(), args.study)
    text = studies.reliability_text.finding(found)
    say(f"{text.title}. {text.note}".strip())
    sys.exit(0 if found.is_enough else 1)


def export(args: argparse.Namespace) -> None:
    """Write a study into a zip of CSV files."""
    store = open_store()
    content = studies.export_bundle(store, args.study, args.without_names, args.keep)
    write_private(out := args.out or Path(f"{args.study}.zip"), content)
    say(f"{out}: {len(content):,} bytes")


def import_(args: argparse.Namespace) -> None:
    """Read a study from such a zip, all of it or nothing; prints its id."""
    say(studies.import_bundle(open_store(), args.bundle))


def replay(args: argparse.Namespace) -> None:
    """Compute a bundle or a study again from its start, and compare the results."""
    how: list[str] = []
    if args.key is not None:
        studies.check_signature(args.seal or "", args.key.read_text().strip())
    if Path(args.what).is_file():
        learner = studies.replay_bundle(Path(args.what), how.append, args.seal)
    else:
        learner = studies.replay_study(open_store(), args.what, how.append, args.seal)
    answers = f"{learner.counts.total():.0f} answers replayed. {how[0]}"
    say(f"{args.what}: {learner.episode} plans and {answers}")


def backup(args: argparse.Namespace) -> None:
    """Copy the whole database into a new file while the app runs, and replay the copy."""
    _say_contents(args.file, "holds", studies.back_up(args.file))


def restore(args: argparse.Namespace) -> None:
    """Put a backup into an empty database."""
    _say_contents(args.file, "restored:", studies.restore(args.file))


def _say_contents(file: Path, verb: str, found: studies.Contents) -> None:
    studies_in = f"{found.studies} {'study' if found.studies == 1 else 'studies'}"
    say(f"{file} {verb} {studies_in} with {found.answers} answers")
    if found.damaged:
        raise StudyError(f"replay refuses {'; '.join(found.damaged)}")


def seal(args: argparse.Namespace) -> None:
    """Print a line that proves later that nothing before it was changed."""
    store = open_store()
    made = studies.seal_study(store, args.study)
    if args.key is not None:
        key = args.key.read_text().strip()
        if not access.is_owner(store, key):
            raise StudyError(f"{args.key}: not the owner's key, which `dopl key` printed")
        made = studies.sign_seal(made, key)
    say(str(made))


def rehearse(args: argparse.Namespace) -> None:
    """Let simulated annotators play a study in the real database."""
    if (args.study is None) == (args.environment is None):
        raise StudyError("name a study, or an environment with --environment")
    habits = Habits(args.think, args.slips, walk_aways=args.walk_aways)
    store = open_store()
    study = args.study
    if study is None:
        config = studies.from_environment(args.environment, practice=False, seed=args.seed)
        study = studies.create_study(store, config)
    elif not args.anyway and (people := people_in(store, study)):
        raise StudyError(
            f'study "{study}" has answers by people ({people[0]}), which simulated answers would '
            "spoil: rehearse before you invite people, or add --anyway"
        )
    say(f"{study}: {args.annotators} simulated annotators play", file=sys.stderr)
    size = {"annotators": args.annotators, "answers": args.answers, "seed": args.seed}
    done = play(store, study, habits=habits, **size)
    say(
        f"{study}  {done.answers} answers in {done.seconds:.1f} s, {done.plans} plans, "
        f"{done.walk_aways} walked away"
    )
    if done.click_seconds:
        p50, p95 = np.percentile(done.click_seconds, [50, 95]) * 1000
        say(f"next duel and answer: median {p50:.1f} ms, 95 % under {p95:.1f} ms")
