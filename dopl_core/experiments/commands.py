"""The commands of simulated mode: simulate, reproduce."""

import argparse
import signal
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from dopl_core.experiments.learners import LEARNERS
from dopl_core.learning.pair_designs import DESIGNS
from dopl_core.learning.planning import ENGINES

Adder = Callable[[str, Callable[[argparse.Namespace], None]], argparse.ArgumentParser]

_SETTINGS = (
    *("confidence", "engine", "design", "ties", "history", "episodes", "horizon"),
    *("restart", "environment_seed", "temperature"),
    *("history_epochs", "sitting", "answers", "ordered"),
)


def add(command: Adder) -> None:
    """Add the commands to the parser."""
    sub = command("simulate", simulate)
    option = sub.add_argument
    option("environments", nargs="+", metavar="ENV", help="names, or paths of TOML files")
    option("--learner", nargs="+", default=["dopl"], metavar="NAME", help=_known(LEARNERS, "dopl"))
    option("--confidence", default="calibrated", help="of dopl: calibrated (default) or paper")
    option("--engine", default="lagrangian", help=_known(ENGINES, "lagrangian"))
    option("--design", default="star", help=f"which duels: {_known(DESIGNS, 'star')}")
    option("--ties", default="advantage", help="equal indices: by advantage (default), or paper")
    option("--history", default="all", help="duels MLE learners fit: all, or the last episode's")
    option("--episodes", type=int, help="the environment's own by default")
    option("--horizon", type=int, help="epochs an episode; the environment's own by default")
    option("--seeds", type=int, default=1, help="how many: 0, 1, ... (default 1)")
    option("--jobs", type=int, default=1, help="local processes (default 1)")
    option("--restart", action="store_true", help="draw new states in every episode")
    option("--environment-seed", type=int, default=0, help="what ranges are drawn from")
    option("--temperature", type=float, default=1.0, help="of answers: 1 is the paper's oracle")
    option("--history-epochs", type=int, default=0, help="past epochs, helped by lot")
    option("--sitting", type=int, default=0, help="answers of a first sitting, before any plan")
    option("--answers", type=int, default=0, help="of dopl: wanted an epoch, B-1 if that is more")
    option("--ordered", action="store_true", help="dopl is told that states go from worst to best")
    option("--out", default="results", metavar="DIR", help="where; continues what stopped there")
    option("--dask", metavar="ADDRESS", help="play on this Dask cluster instead")
    sub = command("reproduce", reproduce)
    option = sub.add_argument
    option("environment", metavar="ENV", help="app_marketing, cpap or armman")
    option("--scale", type=float, default=1.0, help="a share of the paper's episodes, e.g. 0.05")
    option("--ours", action="store_true", help="add DOPL calibrated, with ties by advantage")
    option("--history", default="episode", help="duels MLE learners fit: episode (paper), or all")
    option("--seeds", type=int, default=3, help="how many (default 3)")
    option("--jobs", type=int, default=2, help="local processes (default 2)")
    option("--out", metavar="DIR", help="results/ENV by default; continues what stopped there")
    option("--dask", metavar="ADDRESS", help="play on this Dask cluster instead")


def _known(names: Iterable[str], default: str) -> str:
    return f"{', '.join(names)} (default {default})"


def simulate(args: argparse.Namespace) -> None:
    """Play learners in simulated worlds: episodes.csv, a row an episode."""
    from dopl_core.experiments import sweep  # pandas and joblib are slow to import

    _end_politely()
    settings = {name: getattr(args, name) for name in _SETTINGS}
    runs = sweep.grid(args.environments, args.learner, range(args.seeds), **settings)
    table = sweep.run(runs, args.out, jobs=args.jobs, dask=args.dask)
    print(sweep.summary(table).to_string(float_format="{:.3f}".format))
    print(f"{len(table)} episodes in {Path(args.out) / 'episodes.csv'}")


def reproduce(args: argparse.Namespace) -> None:
    """Make the paper's figure of an environment: six learners, CSV and PNG."""
    from dopl_core.experiments import reproduce as paper  # matplotlib is slow to import
    from dopl_core.experiments import sweep

    _end_politely()
    started = time.perf_counter()
    name = args.environment + ("-all" if args.history == "all" else "")
    name += f"-{args.scale:g}" if args.scale != 1 else ""
    out = Path(args.out or Path("results") / (name + ("-ours" if args.ours else "")))
    options = {"scale": args.scale, "seeds": args.seeds, "history": args.history, "ours": args.ours}
    table = paper.reproduce(
        paper.runs(args.environment, **options), out, jobs=args.jobs, dask=args.dask
    )
    print(sweep.summary(table).to_string(float_format="{:.3f}".format))
    print(f"{out}: episodes.csv, reward_regret.png, errors.png")
    print(f"{(time.perf_counter() - started) / 60:.1f} minutes")


def _end_politely() -> None:
    """A sweep that is told to end ends its workers too."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
