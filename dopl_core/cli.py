"""The `dopl` command: one function for each thing it does."""

import argparse
import importlib.util
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from dopl_core.studies import commands as study_commands

ROOT = Path(__file__).resolve().parent.parent
BENCHMARKS = ROOT / "tests" / "benchmarks"

Command = Callable[[argparse.Namespace], None]


def main(argv: list[str] | None = None) -> None:
    """Run one command; what its user did wrong is said in one line, without a traceback."""
    parser = _parser()
    args, more = parser.parse_known_args(argv)
    run: Command = args.run
    if run is app:
        args.streamlit = more
    elif more:
        parser.error(f"unrecognized arguments: {' '.join(more)}")
    try:
        run(args)
    except (ValueError, OSError) as error:
        sys.exit(f"dopl: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


def app(args: argparse.Namespace) -> None:
    """Start the web app; on any address but this computer's own, the owner needs a key."""
    command = [sys.executable, "-m", "streamlit", "run", str(ROOT / "streamlit_app.py")]
    address = _option(args.streamlit, "server.address")
    if address not in (None, "localhost", "127.0.0.1", "::1"):
        from dopl_core.studies import access, service

        if access.has_owner_key(store := service.open_store()):
            print("The owner's link was printed when it was made; `dopl key` makes a new one.")
        else:
            _print_link(access.make_owner_key(store), address, args.streamlit)
    sys.exit(subprocess.call(command + args.streamlit, cwd=ROOT))


def key(args: argparse.Namespace) -> None:
    """Make a new key for the owner; the one before opens nothing any more."""
    from dopl_core.studies import access, service

    _print_link(access.make_owner_key(service.open_store()), args.address, [])


def _print_link(key: str, address: str | None, options: list[str]) -> None:
    host = socket.gethostname() if address in ("0.0.0.0", "::", "", None) else address  # noqa: S104
    port = _option(options, "server.port") or "8501"
    print(f"The owner's link, shown only now:\n\n    http://{host}:{port}/?key={key}\n", flush=True)


def _option(options: list[str], name: str) -> str | None:
    """What streamlit will take this option to be, from its command line or the environment."""
    for i, word in enumerate(options):
        if word.startswith(f"--{name}="):
            return word.partition("=")[2]
        if word == f"--{name}" and i + 1 < len(options):
            return options[i + 1]
    return os.environ.get(f"STREAMLIT_{name.replace('.', '_').upper()}")


def bench(args: argparse.Namespace) -> None:
    """Run the benchmarks: each is a file of tests/benchmarks with a main()."""
    known = sorted(path.stem for path in BENCHMARKS.glob("[a-z]*.py"))
    for name in args.names or known:
        if name not in known:
            raise ValueError(f'benchmark "{name}" is not one of {", ".join(known)}')
        spec = importlib.util.spec_from_file_location(f"bench_{name}", BENCHMARKS / f"{name}.py")
        if spec is None or spec.loader is None:
            raise ValueError(f"{BENCHMARKS / name}.py cannot be loaded")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        module.main()


def simulate(args: argparse.Namespace) -> None:
    """Play learners in simulated worlds: episodes.csv, a row an episode."""
    _before_numpy()
    from dopl_core.experiments import sweep

    settings = {name: getattr(args, name) for name in _SETTINGS}
    runs = sweep.grid(args.environments, args.learner, range(args.seeds), **settings)
    table = sweep.run(runs, args.out, jobs=args.jobs, dask=args.dask)
    print(sweep.summary(table).to_string(float_format="{:.3f}".format))
    print(f"{len(table)} episodes in {Path(args.out) / 'episodes.csv'}")


def reproduce(args: argparse.Namespace) -> None:
    """Make the paper's figure of an environment: six learners, CSV and PNG."""
    _before_numpy()
    from dopl_core.experiments import reproduce as paper
    from dopl_core.experiments import sweep

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


def _before_numpy() -> None:
    """Linear algebra on one thread, as the arrays are small; ended politely, workers end too."""
    for library in ("OMP", "OPENBLAS", "MKL"):
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")
    signal.signal(signal.SIGTERM, signal.default_int_handler)


_LEARNERS = "dopl, oracle, random, mle_lp, mle_wibql, mle_qwic (default dopl)"
_SETTINGS = (
    *("confidence", "engine", "design", "ties", "history", "episodes", "horizon"),
    *("restart", "environment_seed", "temperature"),
)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="dopl", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Command) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=run.__doc__, description=run.__doc__)
        sub.set_defaults(run=run)
        return sub

    command("app", app).epilog = "All options are streamlit's: --server.port 8600 ..."
    sub = command("key", key)
    sub.add_argument("--address", help="where the app can be reached, for the link")
    sub = command("simulate", simulate)
    option = sub.add_argument
    option("environments", nargs="+", metavar="ENV", help="names, or paths of TOML files")
    option("--learner", nargs="+", default=["dopl"], metavar="NAME", help=_LEARNERS)
    option("--confidence", default="calibrated", help="of dopl: calibrated (default) or paper")
    option("--engine", default="lagrangian", help="cbc, highs or lagrangian (default)")
    option("--design", default="star", help="which duels: star (default), tree or informative")
    option("--ties", default="advantage", help="equal indices: by advantage (default), or paper")
    option("--history", default="all", help="duels MLE learners fit: all, or the last episode's")
    option("--episodes", type=int, help="the environment's own by default")
    option("--horizon", type=int, help="epochs an episode; the environment's own by default")
    option("--seeds", type=int, default=1, help="how many: 0, 1, ... (default 1)")
    option("--jobs", type=int, default=1, help="local processes (default 1)")
    option("--restart", action="store_true", help="draw new states in every episode")
    option("--environment-seed", type=int, default=0, help="what ranges are drawn from")
    option("--temperature", type=float, default=1.0, help="of answers: 1 is the paper's oracle")
    option("--out", default="results", metavar="DIR", help="where; continues what stopped there")
    option("--dask", metavar="ADDRESS", help="play on this Dask cluster instead")
    study_commands.add(command)
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
    sub = command("bench", bench)
    sub.add_argument("names", nargs="*", metavar="NAME", help="which ones; all by default")
    return parser


if __name__ == "__main__":
    main()
