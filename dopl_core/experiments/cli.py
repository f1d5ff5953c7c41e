"""The commands of experiments: simulate, arena, reproduce, check."""

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import fields
from pathlib import Path

from dopl_core.experiments import learners
from dopl_core.experiments.runs import OBJECTS, Run
from dopl_core.learning.pairs.pair_designs import DESIGNS
from dopl_core.learning.planning import ENGINES

Adder = Callable[[str, Callable[[argparse.Namespace], None]], argparse.ArgumentParser]

_SETTINGS = {field.name for field in fields(Run)} - {"environment", "learner", "seed", *OBJECTS}
_LEARNER = f"{', '.join(learners.LEARNERS)}, one of an installed package, or package.module:Class"


def add(command: Adder) -> None:
    """Add the commands to the parser."""
    _simulate_options(command("simulate", simulate).add_argument)
    _reproduce_options(command("reproduce", reproduce).add_argument)
    _arena_options(command("arena", arena).add_argument)
    command("check", check).add_argument("learner", metavar="LEARNER", help=_LEARNER)


def _simulate_options(option: Callable[..., object]) -> None:
    option("environments", nargs="+", metavar="ENV", help="names, or paths of TOML files")
    option("--learner", nargs="+", default=["dopl"], metavar="NAME", help=_LEARNER)
    option("--confidence", default="calibrated", help="of dopl: calibrated (default) or paper")
    option("--engine", default="lagrangian", help=_known(ENGINES, "lagrangian"))
    option("--design", default="star", help=f"which duels: {_known(DESIGNS, 'star')}")
    option(
        "--ties", default="advantage", help="break ties by advantage (default) or as the paper does"
    )
    option("--memory", default="all", help="duels that MLE learners fit: all, or episode")
    option("--episodes", type=int, help="default: the environment's")
    option("--horizon", type=int, help="epochs in an episode; default: the environment's")
    option("--seeds", type=int, default=1, help="number of seeds: 0, 1, ... (default 1)")
    option("--jobs", type=int, default=1, help="local processes (default 1)")
    option("--restart", action="store_true", help="draw new states in every episode")
    option("--environment-seed", type=int, default=0, help="seed of ranges in an environment")
    option("--temperature", type=float, default=1.0, help="of simulated answers; 1 is the paper's")
    option("--history-epochs", type=int, default=0, help="past epochs with random help")
    option("--sitting", type=int, default=0, help="answers before the first plan")
    option("--answers", type=int, default=0, help="of dopl: wanted in an epoch, at least B-1")
    option("--ordered", action="store_true", help="tell dopl that states go from worst to best")
    option(
        "--no-columns",
        dest="columns",
        action="store_false",
        help="do not tell dopl the environment's columns",
    )
    option(
        "--out",
        default="results",
        metavar="DIR",
        help="folder of results; continues a sweep that stopped",
    )
    option("--dask", metavar="ADDRESS", help="run on this Dask cluster")


def _reproduce_options(option: Callable[..., object]) -> None:
    option("environment", metavar="ENV", help="app_marketing, cpap or armman")
    option("--scale", type=float, default=1.0, help="share of the paper's episodes, e.g. 0.05")
    option(
        "--ours",
        action="store_true",
        help="add DOPL calibrated, ties by advantage, and worst first",
    )
    option(
        "--memory", default="episode", help="duels that MLE learners fit: episode (paper), or all"
    )
    option("--seeds", type=int, default=3, help="number of seeds (default 3)")
    option("--jobs", type=int, default=2, help="local processes (default 2)")
    option(
        "--out", metavar="DIR", help="folder (default results/ENV); continues a sweep that stopped"
    )
    option("--dask", metavar="ADDRESS", help="run on this Dask cluster")


def _arena_options(option: Callable[..., object]) -> None:
    option("learners", nargs="+", metavar="LEARNER", help=_LEARNER)
    option("--environments", nargs="+", metavar="ENV", help="default: all, and drawn worlds")
    option("--starts", nargs="+", metavar="START", help="default: all; see the guide")
    option("--confidence", default="calibrated", help="of dopl: calibrated (default) or paper")
    option("--episodes", type=int, default=40, help="plans (default 40)")
    option("--horizon", type=int, default=1, help="epochs in an episode (default 1)")
    option("--seeds", type=int, default=4, help="number of seeds: 0, 1, ... (default 4)")
    option("--jobs", type=int, default=os.cpu_count(), help="local processes (default: all cores)")
    option("--out", default="results/arena", metavar="DIR", help="folder of results")
    option("--dask", metavar="ADDRESS", help="run on this Dask cluster")


def _known(names: Iterable[str], default: str) -> str:
    return f"{', '.join(names)} (default {default})"


def simulate(args: argparse.Namespace) -> None:
    """Play learners in simulated worlds, and write episodes.csv: one row for each episode."""
    from dopl_core.experiments import sweep  # pandas and joblib are slow to import

    _stop_workers_on_sigterm()
    _import_from_here()
    settings = {name: getattr(args, name) for name in _SETTINGS}
    runs = sweep.grid(args.environments, args.learner, range(args.seeds), **settings)
    table = sweep.run(runs, args.out, jobs=args.jobs, dask=args.dask)
    print(sweep.summary(table).to_string(float_format="{:.3f}".format))
    print(f"{len(table)} episodes in {Path(args.out) / 'episodes.csv'}")


def reproduce(args: argparse.Namespace) -> None:
    """Reproduce the paper's figure of an environment: six learners, CSV and PNG."""
    from dopl_core.experiments import reproduce as paper  # matplotlib is slow to import
    from dopl_core.experiments import sweep

    _stop_workers_on_sigterm()
    started = time.perf_counter()
    name = args.environment + ("-all" if args.memory == "all" else "")
    name += f"-{args.scale:g}" if args.scale != 1 else ""
    out = Path(args.out or Path("results") / (name + ("-ours" if args.ours else "")))
    options = {"scale": args.scale, "seeds": args.seeds, "memory": args.memory, "ours": args.ours}
    table = paper.reproduce(
        paper.runs(args.environment, **options), out, jobs=args.jobs, dask=args.dask
    )
    print(sweep.summary(table).to_string(float_format="{:.3f}".format))
    print(f"{out}: episodes.csv, reward_regret.png, errors.png")
    print(f"{(time.perf_counter() - started) / 60:.1f} minutes")


def arena(args: argparse.Namespace) -> None:
    """Compare learners in many environments and from several starts: CSV, table and figure."""
    from dopl_core.experiments import arena as all_worlds  # pandas and matplotlib are slow

    _stop_workers_on_sigterm()
    _import_from_here()
    places = args.environments or all_worlds.everywhere(), args.starts or list(all_worlds.STARTS)
    names = ("seeds", "jobs", "dask", "episodes", "horizon", "confidence")
    settings = {name: getattr(args, name) for name in names}
    table = all_worlds.play(args.learners, *places, args.out, **settings)
    print(table.to_string(index=False, float_format="{:.3f}".format))
    print(f"{args.out}: arena.csv, table.csv, arena.png")


def check(args: argparse.Namespace) -> None:
    """Check that a learner keeps the contract: shapes, budget, determinism, restore, forgetting."""
    from dopl_core.experiments import contract

    _import_from_here()
    found = contract.check(args.learner)
    for name, trouble in found.items():
        rule = (contract.CHECKS[name].__doc__ or "").partition("\n")[0]
        print(f"{name:12} {'ok' if not trouble else 'FAILED'}  {rule}")
        if trouble:
            print(f"{'':12} {trouble}")
    if failed := sum(map(bool, found.values())):
        raise ValueError(f"{failed} of {len(found)} checks failed")


def _import_from_here() -> None:
    """Let package.module:Class be a file of the present folder."""
    if (here := os.getcwd()) not in sys.path:
        sys.path.insert(0, here)


def _stop_workers_on_sigterm() -> None:
    """Let SIGTERM interrupt a sweep, so that its workers end too."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
