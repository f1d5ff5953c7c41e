"""The commands about studies: each is one line for cron, and says in one line what it did.

What they need is imported when they run, so that other commands start without it.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

Adder = Callable[[str, Callable[[argparse.Namespace], None]], argparse.ArgumentParser]


def add(command: Adder) -> None:
    """Add the commands to the parser."""
    _add_living(command)
    command("studies", studies)
    command("doctor", doctor)
    sub = command("export", export)
    sub.add_argument("study", metavar="STUDY", help="its id, as `dopl studies` has it")
    sub.add_argument("--out", type=Path, metavar="FILE", help="default STUDY.zip")
    sub.add_argument(
        "--pseudonyms", action="store_true", help='"annotator 1" in place of names, and so on'
    )
    sub = command("import", import_)
    sub.add_argument("bundle", type=Path, metavar="FILE")
    sub = command("replay", replay)
    sub.add_argument("what", metavar="FILE|STUDY", help="a bundle, or a study's id")
    sub = command("rehearse", rehearse)
    option = sub.add_argument
    option("study", nargs="?", metavar="STUDY", help="the study to play; or --environment")
    option("--environment", metavar="ENV", help="play a new study of this environment")
    option("--annotators", type=int, default=8, help="how many play at once (default 8)")
    option("--answers", type=int, default=500, help="when to stop (default 500)")
    option("--think", type=float, default=0.0, metavar="SECONDS", help="mean time an answer takes")
    option("--slips", type=float, default=0.05, help="share answered at random (default 0.05)")
    option("--walk-aways", type=float, default=0.0, help="share left until the lease has run out")
    option("--seed", type=int, default=0)
    option("--anyway", action="store_true", help="even where people have answered already")


def _add_living(command: Adder) -> None:
    """The commands about real studies, week by week."""
    sub = command("new", new)
    option = sub.add_argument
    option("roster", type=Path, metavar="ROSTER.csv", help="id, state, and what cards show")
    option("--states", required=True, help="from worst to best, separated by commas")
    option("--budget", type=int, required=True, help="how many can be helped at a time")
    option("--title", required=True)
    option("--question", default="Which of these two is doing better?")
    option("--noun", default="case", help="one of them is called a ... (default case)")
    option("--sitting", type=int, default=100, help="answers before the first list (default 100)")
    option("--answers", type=int, default=30, help="answers wanted a week (default 30)")
    option("--history", type=Path, metavar="FILE", help="past records: id, when, state, helped")
    option("--seed", type=int, default=0)
    for name, run, file in (
        ("report", report, "WEEK.csv: id, state, helped; an empty state is unknown"),
        ("correct", correct, "WEEK.csv: the rows that were wrong, as they should have been"),
        ("people", people, "ROSTER.csv: rows that are new join"),
        ("history", history, "HISTORY.csv: id, when, state, helped; before the first list"),
        ("photos", photos, "PHOTOS.zip: pictures for cards, each named after an id"),
    ):
        sub = command(name, run)
        sub.add_argument("study", metavar="STUDY", help="its id, as `dopl studies` has it")
        sub.add_argument("file", type=Path, metavar="FILE", help=file)
        if name == "people":
            sub.add_argument("--left", action="store_true", help="those who are missing leave")
        if name == "correct":
            sub.add_argument("--week", type=int, required=True, help="which; 0 is the roster")
    sub = command("settings", settings)
    sub.add_argument("study", metavar="STUDY", help="its id, as `dopl studies` has it")
    sub.add_argument("settings", nargs="+", metavar="NAME=VALUE", help="budget=5 title=... ...")
    sub = command("list", list_)
    sub.add_argument("study", metavar="STUDY", help="its id, as `dopl studies` has it")
    sub.add_argument("--week", type=int, help="which (default the last)")
    sub.add_argument("--out", type=Path, metavar="FILE", help="CSV; on the terminal by default")


def new(args: argparse.Namespace) -> None:
    """Make a study from a roster; prints its id."""
    from dopl_core.studies import service

    states = [state.strip() for state in args.states.split(",")]
    arms = service.read_roster(args.roster, states)
    config = service.from_roster(
        arms,
        states,
        title=args.title,
        budget=args.budget,
        question=args.question,
        noun=args.noun,
        sitting=args.sitting,
        answers=args.answers,
        seed=args.seed,
    )
    past = None if args.history is None else service.read_history(args.history, config)
    print(service.create_study(service.open_store(), config, past))


def list_(args: argparse.Namespace) -> None:
    """Whom to help, as CSV: this week's list, or an earlier one with what came of it."""
    from dopl_core.studies import csvtext, service

    store = service.open_store()
    if service.get_study(store, args.study).plan_due:
        service.advance(store, args.study)
    found = {one.week: one for one in service.read_lists(store, args.study)}
    if not found:
        raise ValueError(
            f'study "{args.study}" has no list yet: its first sitting comes first, and can end '
            "on its page"
        )
    week = args.week or max(found)
    if week not in found:
        raise ValueError(f"week {week} has no list: 1 to {max(found)} have")
    content = csvtext.write(service.LIST_COLUMNS, service.list_rows(found[week]))
    if args.out is None:
        sys.stdout.write(content)
    else:
        args.out.write_text(content, encoding="utf-8", newline="")
        print(f"{args.out}: week {week}, {len(found[week].listed)} to help")


def report(args: argparse.Namespace) -> None:
    """Say where everybody is and who was helped, and make the next list."""
    from dopl_core.studies import service

    store = service.open_store()
    read = service.read_report(args.file, service.get_study(store, args.study).config)
    lists = service.read_lists(store, args.study, last=1)
    if not lists:
        raise ValueError(f'study "{args.study}" has no list yet: its first sitting comes first')
    now, listed = lists[-1], [one.id for one in lists[-1].listed]
    helped = listed if read.helped is None else read.helped
    before = service.present_states(store, args.study)
    due = service.observe(store, args.study, read.states, read.columns, helped=helped)
    print(
        f"{args.study}: {now.word} {now.week} reported: "
        f"{service.report_words(before, read.states, listed, helped)}"
    )
    if due and service.advance(store, args.study):
        [last] = service.read_lists(store, args.study, last=1)
        print(
            f"{args.study}: the list of {last.word} {last.week} is made, {len(last.listed)} to help"
        )


def correct(args: argparse.Namespace) -> None:
    """Put right what was reported; the next list is made with it, and nothing is overwritten."""
    from dopl_core.studies import service

    store = service.open_store()
    read = service.read_report(args.file, service.coming_config(store, args.study))
    marks = None
    if read.helped is not None:
        marks = {arm: arm in read.helped for arm in read.states}
    service.correct(store, args.study, args.week, read.states, marks)
    print(f"{args.study}: week {args.week} is corrected; the next list is made with it")


def settings(args: argparse.Namespace) -> None:
    """Change words and numbers of a study; they hold from the next list on."""
    from dopl_core.studies import service

    store = service.open_store()
    now = service.coming_config(store, args.study)
    new = {}
    for pair in args.settings:
        name, _, text = pair.partition("=")
        new[name] = _value(name, text, getattr(now, name, ""))
    service.change_settings(store, args.study, **new)
    print(f"{args.study}: {', '.join(new)} changed; from the next list on")


def _value(name: str, text: str, now: object) -> object:
    """A setting as what it is now: a yes or no, a number, or words."""
    if isinstance(now, bool):
        return text.casefold() in ("1", "yes", "true")
    if not isinstance(now, int | float):
        return text
    try:
        return type(now)(text)
    except ValueError:
        raise ValueError(f'{name} is "{text}": a number needed, as {now} is') from None


def people(args: argparse.Namespace) -> None:
    """Let those join who are new in a roster; with --left those leave who are not in it."""
    from dopl_core.studies import service

    store = service.open_store()
    config = service.coming_config(store, args.study)
    roster = service.read_roster(args.file, config.states)
    here = {arm.id for arm in config.arms if arm.present}
    coming = [arm for arm in roster if arm.id not in here]
    going = sorted(here - {arm.id for arm in roster}) if args.left else []
    if coming:
        service.join(store, args.study, coming)
    if going:
        service.leave(store, args.study, going)
    print(f"{args.study}: {len(coming)} joined, {len(going)} left; from the next list on")


def history(args: argparse.Namespace) -> None:
    """Give a study past records, before its first list."""
    from dopl_core.studies import service

    store = service.open_store()
    past = service.read_history(args.file, service.coming_config(store, args.study))
    service.add_history(store, args.study, past)
    print(f"{args.study}: {past.moves} moves of {past.arms} found, {past.gaps} gaps")


def photos(args: argparse.Namespace) -> None:
    """Show photos on cards; they are made small, and only annotators of the study get them."""
    from dopl_core.studies import csvtext, service

    store = service.open_store()
    found = service.read_photos(args.file, service.coming_config(store, args.study))
    service.keep_photos(store, args.study, found.photos)
    print(f"{args.study}: {len(found.photos)} photos kept")
    if found.others:
        names = csvtext.printable(", ".join(found.others[:10]))
        print(f"{len(found.others)} files are nobody's: {names}", file=sys.stderr)


def studies(args: argparse.Namespace) -> None:
    """One line a study, its id first."""
    from dopl_core.studies import csvtext, service

    store = service.open_store()
    for broken in service.list_unreadable(store):
        print(f"{broken.id}  cannot be read: {csvtext.printable(broken.why)}", file=sys.stderr)
    for study in service.list_studies(store):
        print(
            f"{study.id}  {study.status}  {study.answers} answers by {study.annotators} people  "
            f"plan {study.episode} ({study.config.engine})  waits for {study.waits_for}  "
            f"{csvtext.printable(study.title)}"
        )


def doctor(args: argparse.Namespace) -> None:
    """Look at what dopl needs, and say what is wrong: one screen to send with a bug report."""
    from dopl_core.studies import csvtext
    from dopl_core.studies.doctor import examine

    findings = examine()
    for one in findings:
        mark = "WRONG" if one.is_wrong else "ok"
        print(f"{mark:5} {one.thing:11} {csvtext.printable(one.found)}")
    wrong = sum(one.is_wrong for one in findings)
    print("Nothing is wrong." if not wrong else f"{wrong} of these {len(findings)} need help.")
    sys.exit(1 if wrong else 0)


def export(args: argparse.Namespace) -> None:
    """Write a study into a zip of CSV files."""
    from dopl_core.studies import service

    content = service.export_bundle(service.open_store(), args.study, args.pseudonyms)
    out = args.out or Path(f"{args.study}.zip")
    out.write_bytes(content)
    print(f"{out}: {len(content):,} bytes")


def import_(args: argparse.Namespace) -> None:
    """Read a study from such a zip, all of it or nothing."""
    from dopl_core.studies import service

    print(service.import_bundle(service.open_store(), args.bundle))


def replay(args: argparse.Namespace) -> None:
    """Compute everything again from the start, of a bundle or a study, and compare it."""
    from dopl_core.studies import service

    how: list[str] = []
    if Path(args.what).is_file():
        learner = service.replay_bundle(Path(args.what), how.append)
    else:
        learner = service.replay_study(service.open_store(), args.what, how.append)
    counts = f"{learner.episode} plans and {learner.counts.total():.0f} answers replayed"
    print(f"{args.what}: {counts}; {how[0]}")


def rehearse(args: argparse.Namespace) -> None:
    """Let simulated annotators play a study through the real store."""
    import numpy as np

    from dopl_core.studies import service
    from dopl_core.studies.rehearse import Habits, people_in
    from dopl_core.studies.rehearse import rehearse as play

    if (args.study is None) == (args.environment is None):
        raise ValueError("name a study, or an environment with --environment")
    habits = Habits(args.think, args.slips, walk_aways=args.walk_aways)
    store = service.open_store()
    study = args.study
    if study is None:
        config = service.from_environment(args.environment, practice=False, seed=args.seed)
        study = service.create_study(store, config)
    elif not args.anyway and (people := people_in(store, study)):
        raise ValueError(
            f'study "{study}" has answers by people ({people[0]}), which made-up ones would spoil: '
            "rehearse before inviting them, or add --anyway"
        )
    print(f"{study}: {args.annotators} annotators play", file=sys.stderr)
    done = play(
        store,
        study,
        annotators=args.annotators,
        answers=args.answers,
        habits=habits,
        seed=args.seed,
    )
    print(
        f"{study}  {done.answers} answers in {done.seconds:.1f} s, {done.plans} plans, "
        f"{done.walk_aways} walked away"
    )
    if done.click_seconds:
        p50, p95 = np.percentile(done.click_seconds, [50, 95]) * 1000
        print(f"next duel and answer: median {p50:.1f} ms, 95 % under {p95:.1f} ms")
