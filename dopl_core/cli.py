"""The `dopl` command: one function for each thing it does."""

import argparse
import importlib.util
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BENCHMARKS = ROOT / "tests" / "benchmarks"

Command = Callable[[argparse.Namespace], None]


def main(argv: list[str] | None = None) -> None:
    """Run one command; what its user did wrong is said in one line, without a traceback."""
    args = _parser().parse_args(argv)
    run: Command = args.run
    try:
        run(args)
    except (ValueError, OSError) as error:
        sys.exit(f"dopl: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


def app(args: argparse.Namespace) -> None:
    """Start the web app."""
    command = [sys.executable, "-m", "streamlit", "run", str(ROOT / "streamlit_app.py")]
    sys.exit(subprocess.call(command + args.streamlit, cwd=ROOT))


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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="dopl", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Command) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=run.__doc__, description=run.__doc__)
        sub.set_defaults(run=run)
        return sub

    sub = command("app", app)
    sub.add_argument("streamlit", nargs=argparse.REMAINDER, help="options for streamlit run")
    sub = command("bench", bench)
    sub.add_argument("names", nargs="*", metavar="NAME", help="which ones; all by default")
    return parser
