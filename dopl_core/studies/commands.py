"""The commands about studies: studies, export, import, replay, rehearse.

What they need is imported when they run, so that other commands start without it.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

Adder = Callable[[str, Callable[[argparse.Namespace], None]], argparse.ArgumentParser]


def add(command: Adder) -> None:
    """Add the commands to the parser."""
    command("studies", studies)
    sub = command("export", export)
    sub.add_argument("study", metavar="STUDY", help="its id, as `dopl studies` has it")
    sub.add_argument("--out", type=Path, metavar="FILE", help="default STUDY.zip")
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


def studies(args: argparse.Namespace) -> None:
    """One line a study, its id first."""
    from dopl_core.studies import service

    for study in service.list_studies(service.open_store()):
        print(
            f"{study.id}  {study.status}  {study.answers} answers by {study.annotators} people  "
            f"plan {study.episode} ({study.config.engine})  waits for {study.waits_for}  "
            f"{' '.join(study.title.split())}"
        )


def export(args: argparse.Namespace) -> None:
    """Write a study into a zip of CSV files."""
    from dopl_core.studies import service

    content = service.export_bundle(service.open_store(), args.study)
    out = args.out or Path(f"{args.study}.zip")
    out.write_bytes(content)
    print(f"{out}: {len(content):,} bytes")


def import_(args: argparse.Namespace) -> None:
    """Read a study from such a zip, all of it or nothing."""
    from dopl_core.studies import service

    print(service.import_bundle(service.open_store(), args.bundle))


def replay(args: argparse.Namespace) -> None:
    """Compute everything again from the start, of a bundle or a study, and compare every bit."""
    from dopl_core.studies import service

    if Path(args.what).is_file():
        learner = service.replay_bundle(Path(args.what))
    else:
        learner = service.replay_study(service.open_store(), args.what)
    print(
        f"{args.what}: {learner.episode} plans and {int(learner.wins.sum())} answers replayed; "
        "everything comes out the same"
    )


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
