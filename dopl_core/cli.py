"""The `dopl` command: it reads the command line and calls one function."""

import argparse
import importlib.util
import os
import socket
import sys
import traceback
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NoReturn

from dopl_core.experiments import cli as experiment_commands
from dopl_core.paths import ROOT
from dopl_core.studies import cli as study_commands
from dopl_core.studies.model.errors import BackupNeededError
from dopl_core.studies.model.safe_csv import printable

BENCHMARKS = ROOT / "tests" / "benchmarks"
TAKE_A_FOLDER = ("answers", "reliability", "trials")

Command = Callable[[argparse.Namespace], None]


def main(argv: list[str] | None = None) -> None:
    """Run one command. An error of its user is one line, without a traceback."""
    commands = parser()
    args, more = commands.parse_known_args(argv)
    run: Command = args.run
    if run is app:
        args.streamlit = more
    elif more:
        commands.error(f"unrecognized arguments: {' '.join(more)}")
    try:
        _run(run, args)
        sys.stdout.flush()
    except BrokenPipeError:  # `dopl list STUDY | head` has read enough; the rest goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(args.error_code)
    except (ValueError, OSError) as error:
        words = str(error)
        if isinstance(error, OSError) and error.filename:
            words = f"{error.filename}: {error.strerror}"
        _fail(f"dopl: {printable(words)}", args.error_code)
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception:
        if args.error_code == 1:  # as Python ends by itself
            raise
        _fail(traceback.format_exc(), args.error_code)


def _fail(words: str, code: int) -> NoReturn:
    """End with these words on standard error."""
    if code == 1:
        sys.exit(words)
    print(words, file=sys.stderr)
    sys.exit(code)


def _run(run: Command, args: argparse.Namespace) -> None:
    """Run a command; ask for a backup before tables in PostgreSQL change."""
    try:
        run(args)
    except BackupNeededError as error:
        if not sys.stdin.isatty():
            raise
        print(f"{printable(str(error))}.")
        if input('Is there a backup? Type "yes" to bring the tables up to date: ') != "yes":
            raise
        os.environ["DOPL_MIGRATE"] = "yes"
        run(args)


def app(args: argparse.Namespace) -> None:
    """Start the web app. On any address other than localhost, the owner needs a key."""
    command = [sys.executable, "-m", "streamlit", "run", str(ROOT / "streamlit_app.py")]
    address = _option(args.streamlit, "server.address")
    environment = os.environ | _from_here()
    if args.key or address not in (None, "localhost", "127.0.0.1", "::1"):
        from dopl_core import studies
        from dopl_core.studies import access

        environment["DOPL_ASK_FOR_KEY"] = "1"
        if made := access.first_owner_key(studies.open_store()):
            _print_link(made, "localhost" if address is None else address, args.streamlit)
        else:
            print("The owner's link was printed when it was made. `dopl key` makes a new one.")
    os.chdir(ROOT)
    # In place of this process, so that signals reach the server.
    os.execve(sys.executable, command + args.streamlit, environment)  # noqa: S606


def _from_here() -> dict[str, str]:
    """Environment variables that name files, with full paths: the app runs in another folder."""
    from dopl_core.studies.store.database import full_address

    found = {}
    if url := os.environ.get("DOPL_DATABASE_URL"):
        found["DOPL_DATABASE_URL"] = full_address(url)
    if runs := os.environ.get("DOPL_RUNS"):
        found["DOPL_RUNS"] = str(Path(runs).absolute())
    return found


def key(args: argparse.Namespace) -> None:
    """Make a new key for the owner, and end all sessions of the old key."""
    from dopl_core import studies
    from dopl_core.studies import access

    store = studies.open_store().acting_as(studies.COMMAND_LINE)
    _print_link(access.make_owner_key(store), args.address, [])


def _print_link(key: str, address: str | None, options: list[str]) -> None:
    if address is not None and "://" in address:
        site = address.rstrip("/")
    else:
        host = socket.gethostname() if address in ("0.0.0.0", "::", "", None) else address  # noqa: S104
        site = f"http://{host}:{_option(options, 'server.port') or '8501'}"
    print(f"The owner's link, shown only now:\n\n    {site}/?key={key}\n", flush=True)


def _option(options: list[str], name: str) -> str | None:
    """The value of a Streamlit option, from its command line or from the environment."""
    for i, word in enumerate(options):
        if word.startswith(f"--{name}="):
            return word.partition("=")[2]
        if word == f"--{name}" and i + 1 < len(options):
            return options[i + 1]
    return os.environ.get(f"STREAMLIT_{name.replace('.', '_').upper()}")


def translate(args: argparse.Namespace) -> None:
    """Write the file in which a translator fills in the pages' sentences in one language."""
    from dopl_core import catalogues

    path, missing = catalogues.translate(args.language)
    print(f"{path}: {missing} sentences without a translation")


def bench(args: argparse.Namespace) -> None:
    """Run the benchmarks of a checkout and print their results."""
    known = sorted(path.stem for path in BENCHMARKS.glob("[a-z]*.py"))
    if not known:
        raise ValueError("benchmarks need a checkout: an installed wheel does not contain tests")
    for name, given in _benchmarks(args.names or known, known):
        spec = importlib.util.spec_from_file_location(f"bench_{name}", BENCHMARKS / f"{name}.py")
        if spec is None or spec.loader is None:
            raise ValueError(f"{BENCHMARKS / name}.py cannot be loaded")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        module.main(*given)


def _benchmarks(words: list[str], known: list[str]) -> list[tuple[str, list[str]]]:
    """Benchmarks and what is given to each: some take a folder."""
    found: list[tuple[str, list[str]]] = []
    for word in words:
        if word in known:
            found.append((word, []))
        elif found and found[-1][0] in TAKE_A_FOLDER and not found[-1][1]:
            found[-1][1].append(word)
        else:
            raise ValueError(f'benchmark "{word}" is not one of {", ".join(known)}')
    return found


def _version() -> str:
    try:
        return version("dopl")
    except PackageNotFoundError:
        return "of a checkout that is not installed"


def parser() -> argparse.ArgumentParser:
    """The command line of `dopl`: one sub-parser for each command, with its function as `run`."""
    top = argparse.ArgumentParser(
        prog="dopl",
        description="Whom to help next, learned from which-of-these-two answers.",
        epilog="`dopl COMMAND --help` explains a command. `dopl app` has guides on its Help page.",
    )
    top.add_argument("--version", action="version", version=f"dopl {_version()}")
    commands = top.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Command) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=run.__doc__, description=run.__doc__)
        sub.set_defaults(run=run, error_code=1)
        return sub

    sub = command("app", app)
    sub.epilog = "All other options are Streamlit's, for example --server.port 8600."
    sub.add_argument(
        "--key",
        action="store_true",
        help="ask for the owner's key on this computer too; use it behind a proxy or a tunnel",
    )
    sub = command("key", key)
    sub.add_argument(
        "--address",
        help="address of the app, for the link: clinic.example or https://clinic.example",
    )
    experiment_commands.add(command)
    study_commands.add(command)
    sub = command("translate", translate)
    sub.add_argument("language", metavar="LANG", help="code of the language: de, hi, it")
    sub = command("bench", bench)
    sub.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="benchmarks to run (default: all); answers, reliability and trials take a folder:"
        " answers FOLDER",
    )
    return top


if __name__ == "__main__":
    main()
