"""Environments are TOML files: the paper's three, an example of its appendix, or a researcher's."""

import tomllib
from pathlib import Path
from typing import Any

import numpy as np

from dopl_core.learning.bandit import Bandit, FloatArray, State
from dopl_core.learning.streams import Stream, generator

FOLDER = Path(__file__).resolve().parent.parent / "data" / "environments"

_REQUIRED = {"name", "title", "question", "noun", "budget", "states", "groups"}
_OPTIONAL = {"episodes", "horizon", "epsilon", "pays"}
_GROUP = {"name", "arms", "rewards", "wait", "act"}


class BadEnvironmentError(ValueError):
    """An environment file that breaks a rule: says which key, which row, and why."""


def names() -> list[str]:
    """The environments that come with the project."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load(name_or_path: str | Path, seed: int = 0) -> Bandit:
    """The bandit of a shipped environment or of a TOML file; ranges are drawn from `seed`."""
    path = Path(name_or_path)
    if path.suffix != ".toml":
        path = FOLDER / f"{name_or_path}.toml"
        if str(name_or_path) not in names():
            raise BadEnvironmentError(
                f'environment "{name_or_path}" is not one of {", ".join(names())}, '
                "nor the path of a .toml file"
            )
    try:
        text = path.read_text(encoding="utf-8")
        data = tomllib.loads(text)
    except FileNotFoundError:
        raise BadEnvironmentError(f"{path}: no such file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadEnvironmentError(f"{path.name}: not a TOML file: {error}") from None
    try:
        return parse(data, seed)
    except ValueError as error:
        raise BadEnvironmentError(f"{path.name}: {error}") from None


def parse(data: dict[str, Any], seed: int = 0) -> Bandit:
    """The bandit that a parsed environment file describes."""
    _check_keys(data, _REQUIRED, _OPTIONAL, "the file")
    states = [_state(entry, i) for i, entry in enumerate(_tables(data, "states"))]
    groups = _tables(data, "groups")
    S = len(states)
    transitions: list[FloatArray] = []
    rewards: list[list[float]] = []
    of_group: list[str] = []
    for group in groups:
        _check_keys(group, _GROUP, set(), f'group "{group.get("name", "?")}"')
        where = f'group "{group["name"]}"'
        count = group["arms"]
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            raise ValueError(f"{where}: arms is {count!r}: a whole number of at least 1 needed")
        if not isinstance(group["rewards"], list) or len(group["rewards"]) != S:
            raise ValueError(f"{where}: rewards needs {S} numbers, one for each state")
        for number in group["rewards"]:
            _number(number, f"{where}: rewards")
        for _ in range(count):
            # A generator of its own for each arm: adding a group leaves the others as they were.
            rng = generator(Stream.ENVIRONMENT, seed, len(transitions))
            P = np.array([_matrix(group[action], S, rng, f"{where}: {action}") for action in _AS])
            transitions.append(P.transpose(1, 0, 2))
            rewards.append(group["rewards"])
            of_group.append(str(group["name"]))
    presets = {key: data[key] for key in _OPTIONAL & data.keys()}
    return Bandit(
        transitions=np.array(transitions),
        rewards=np.array(rewards, dtype=float),
        budget=_whole(data["budget"], "budget"),
        name=str(data["name"]),
        title=str(data["title"]),
        question=str(data["question"]),
        noun=str(data["noun"]),
        states=tuple(states),
        groups=tuple(of_group),
        **presets,
    )


_AS = ("wait", "act")


def _check_keys(table: Any, required: set[str], optional: set[str], where: str) -> None:
    if not isinstance(table, dict):
        raise ValueError(f"{where}: a table of keys needed, {table!r} given")
    if missing := required - table.keys():
        raise ValueError(f'{where}: key "{sorted(missing)[0]}" is missing')
    if unknown := table.keys() - required - optional:
        known = ", ".join(sorted(required | optional))
        raise ValueError(f'{where}: key "{sorted(unknown)[0]}" is unknown; known keys: {known}')


def _tables(data: dict[str, Any], key: str) -> list[dict[str, Any]]:
    if not isinstance(data[key], list) or not data[key]:
        raise ValueError(f"{key}: at least one [[{key}]] table needed")
    return data[key]


def _state(entry: Any, position: int) -> State:
    _check_keys(entry, {"label"}, {"description"}, f"state {position + 1}")
    return State(str(entry["label"]), str(entry.get("description", "")))


def _whole(value: Any, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{where} is {value!r}: a whole number needed")
    return value


def _number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{where}: {value!r} is not a number")
    return float(value)


def _matrix(rows: Any, S: int, rng: np.random.Generator, where: str) -> FloatArray:
    if not isinstance(rows, list) or len(rows) != S:
        raise ValueError(f"{where}: {S} rows needed, one for each state")
    return np.array([_row(row, S, rng, f"{where}, row {s + 1}") for s, row in enumerate(rows)])


def _row(row: Any, S: int, rng: np.random.Generator, where: str) -> list[float]:
    """One row of P: numbers, ranges [low, high] drawn here, and at most one "rest"."""
    if not isinstance(row, list) or len(row) != S:
        raise ValueError(f"{where}: {S} entries needed, one for each next state")
    if row.count("rest") > 1:
        raise ValueError(f'{where}: only one entry can be "rest"')
    values = [0.0 if entry == "rest" else _entry(entry, rng, where) for entry in row]
    total = sum(values)
    if "rest" in row:
        if total > 1 + 1e-9:
            raise ValueError(f'{where}: the entries beside "rest" sum to {total:.6g}, over 1')
        values[row.index("rest")] = max(0.0, 1.0 - total)
    elif abs(total - 1) > 1e-6:
        raise ValueError(f"{where}: the row sums to {total:.6g}, not 1")
    return values


def _entry(entry: Any, rng: np.random.Generator, where: str) -> float:
    if isinstance(entry, list):
        if len(entry) != 2:
            raise ValueError(f"{where}: a range is [low, high], {entry!r} given")
        low, high = (_number(end, where) for end in entry)
        if low > high:
            raise ValueError(f"{where}: range [{low:g}, {high:g}] is upside down")
        value = float(rng.uniform(low, high))
        in_range = low >= 0 and high <= 1
    elif isinstance(entry, str):
        raise ValueError(f'{where}: "{entry}" is not a number, a range or "rest"')
    else:
        value = _number(entry, where)
        in_range = 0 <= value <= 1
    if not in_range:
        raise ValueError(f"{where}: {entry!r} is not a probability between 0 and 1")
    return value
