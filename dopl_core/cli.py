"""The `dopl` command: one function for each thing it does."""

import argparse
import importlib.util
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from dopl_core.experiments import commands as experiment_commands
from dopl_core.places import ROOT
from dopl_core.studies import commands as study_commands
from dopl_core.studies.csvtext import printable

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
        sys.exit(f"dopl: {printable(str(error))}")
    except KeyboardInterrupt:
        sys.exit(130)


def app(args: argparse.Namespace) -> None:
    """Start the web app; on any address but this computer's own, the owner needs a key."""
    command = [sys.executable, "-m", "streamlit", "run", str(ROOT / "streamlit_app.py")]
    address = _option(args.streamlit, "server.address")
    environment = os.environ | _from_here()
    if args.key or address not in (None, "localhost", "127.0.0.1", "::1"):
        from dopl_core.studies import access, service

        environment["DOPL_ASK_FOR_KEY"] = "1"
        if made := access.first_owner_key(service.open_store()):
            _print_link(made, "localhost" if address is None else address, args.streamlit)
        else:
            print("The owner's link was printed when it was made; `dopl key` makes a new one.")
    sys.exit(subprocess.call(command + args.streamlit, cwd=ROOT, env=environment))


def _from_here() -> dict[str, str]:
    """What the environment says of files, for a process that runs in another folder."""
    from dopl_core.studies.store import full_address

    said = {}
    if url := os.environ.get("DOPL_DATABASE_URL"):
        said["DOPL_DATABASE_URL"] = full_address(url)
    if runs := os.environ.get("DOPL_RUNS"):
        said["DOPL_RUNS"] = str(Path(runs).absolute())
    return said


def key(args: argparse.Namespace) -> None:
    """Make a new key for the owner; the one before, and who came in by it, is out."""
    from dopl_core.studies import access, service

    _print_link(access.make_owner_key(service.open_store()), args.address, [])


def _print_link(key: str, address: str | None, options: list[str]) -> None:
    if address is not None and "://" in address:
        site = address.rstrip("/")
    else:
        host = socket.gethostname() if address in ("0.0.0.0", "::", "", None) else address  # noqa: S104
        site = f"http://{host}:{_option(options, 'server.port') or '8501'}"
    print(f"The owner's link, shown only now:\n\n    {site}/?key={key}\n", flush=True)


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
    if not known:
        raise ValueError("the benchmarks are among the tests, which only a checkout has")
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
    sub.epilog = "All other options are streamlit's: --server.port 8600 ..."
    sub.add_argument(
        "--key",
        action="store_true",
        help="ask for the owner's key on this computer too: behind a proxy or a tunnel",
    )
    sub = command("key", key)
    sub.add_argument(
        "--address",
        help="where the app can be reached, for the link: clinic.example, or https://clinic.example",
    )
    experiment_commands.add(command)
    study_commands.add(command)
    sub = command("bench", bench)
    sub.add_argument("names", nargs="*", metavar="NAME", help="which ones; all by default")
    return parser


if __name__ == "__main__":
    main()
