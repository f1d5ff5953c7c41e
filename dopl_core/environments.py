"""Environments are TOML files: the paper's three, an example of its appendix, or a researcher's."""

import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dopl_core.learning.bandit import Bandit, FloatArray, State
from dopl_core.learning.streams import Stream, generator
from dopl_core.places import ROOT

FOLDER = ROOT / "data" / "environments"

MOST_ARMS = 100_000
MOST_ENTRIES = 20_000_000  # of all arms' transitions, 8 bytes each
_LARGEST = 2 << 20  # bytes of a file: 255 states take 0.8 MB
_LONGEST = 10_000  # characters of a text
_GROUP = {"name", "arms", "rewards", "wait", "act"}
_STATE = {"label", "description"}
_AS = ("wait", "act")

# tomllib takes a time that grows with the square of a key's parts; no environment has three.
_KEY_PART = r"""(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')"""
_DEEP_KEY = re.compile(rf"(?<![A-Za-z0-9_-]){_KEY_PART}(?:[ \t]*\.[ \t]*{_KEY_PART}){{30}}")


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
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)
        return parse(read_toml(content.decode()), seed)
    except FileNotFoundError:
        raise BadEnvironmentError(f"{path}: no such file") from None
    except OSError as error:
        raise BadEnvironmentError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise BadEnvironmentError(f"{path.name}: not a TOML file: {error}") from None
    except BadEnvironmentError as error:
        raise BadEnvironmentError(f"{path.name}: {error}") from None


def read_toml(text: str) -> dict[str, Any]:
    """What the text of an environment file says, before any of it is believed."""
    if len(text) > _LARGEST:
        raise BadEnvironmentError(f"over {_LARGEST >> 20} MB: not an environment")
    if _DEEP_KEY.search(text):
        raise BadEnvironmentError("not an environment: a key has more than 30 parts")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise BadEnvironmentError("not an environment: nested too deep") from None
    except ValueError as error:  # not TOML, or a number with thousands of digits
        raise BadEnvironmentError(f"not a TOML file: {error}") from None


def parse(data: dict[str, Any], seed: int = 0) -> Bandit:
    """The bandit that a parsed environment file describes."""
    n_arms, S = size(data)
    states = [_state(entry, f"state {i + 1}") for i, entry in enumerate(data["states"])]
    transitions = np.empty((n_arms, S, 2, S))
    rewards = np.empty((n_arms, S))
    of_group: list[str] = []
    for group in data["groups"]:
        where = f'group "{_text(group["name"], "group: name")}"'
        first, last = len(of_group), len(of_group) + group["arms"]
        rewards[first:last] = _rewards(group["rewards"], S, where)
        for n in range(first, last if _has_ranges(group) else first + 1):
            # A generator of its own for each arm: adding a group leaves the others as they were.
            rng = generator(Stream.ENVIRONMENT, seed, n)
            for a, action in enumerate(_AS):
                transitions[n, :, a] = _matrix(group[action], S, rng, f"{where}: {action}")
        if not _has_ranges(group):
            transitions[first + 1 : last] = transitions[first]
        of_group += [group["name"]] * group["arms"]
    about = {key: check(data[key], key) for key, check in _ABOUT.items() if key in data}
    try:
        return Bandit(transitions, rewards, states=tuple(states), groups=tuple(of_group), **about)
    except ValueError as error:
        raise BadEnvironmentError(str(error)) from None


def size(data: dict[str, Any]) -> tuple[int, int]:
    """How many arms and states a parsed file describes; refused where nobody could hold them."""
    _check_keys(data, _REQUIRED, _ABOUT.keys() - _REQUIRED, "the file")
    states, groups = _tables(data, "states"), _tables(data, "groups")
    for i, entry in enumerate(states):
        _check_keys(entry, {"label"}, _STATE, f"state {i + 1}")
    for i, group in enumerate(groups):
        name = group.get("name") if isinstance(group, dict) else None
        where = f'group "{name[:80]}"' if isinstance(name, str) else f"group {i + 1}"
        _check_keys(group, _GROUP, set(), where)
        _whole(1, MOST_ARMS)(group["arms"], f"{where}: arms")
    n_arms, n_states = sum(group["arms"] for group in groups), len(states)
    if n_arms > MOST_ARMS or 2 * n_arms * n_states**2 > MOST_ENTRIES:
        raise BadEnvironmentError(
            f"{n_arms} arms with {n_states} states: at most {MOST_ARMS} arms, and "
            f"{MOST_ENTRIES} entries in their transitions, can be held"
        )
    return n_arms, n_states


# --- what each key holds


def _state(entry: dict[str, Any], where: str) -> State:
    words = [entry["label"], entry.get("description", "")]
    return State(_text(words[0], f"{where}: label"), _words(words[1], f"{where}: description"))


def _words(value: Any, where: str) -> str:
    if not isinstance(value, str) or len(value) > _LONGEST:
        raise BadEnvironmentError(
            f"{where} is {brief(value)}: a text of at most {_LONGEST} characters needed"
        )
    return value


def _text(value: Any, where: str) -> str:
    if not _words(value, where).strip():
        raise BadEnvironmentError(f"{where} is empty")
    return str(value)


def _whole(least: int, most: int) -> Callable[[Any, str], int]:
    def check(value: Any, where: str) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise BadEnvironmentError(
                f"{where} is {brief(value)}: a whole number needed, from {least} to {most}"
            )
        return value

    return check


def _share(value: Any, where: str) -> float:
    number = _number(value, where)
    if not 0 < number < 1:
        raise BadEnvironmentError(f"{where} is {number:g}: a number between 0 and 1 needed")
    return number


_ABOUT: dict[str, Callable[[Any, str], Any]] = {
    "name": _text,
    "title": _text,
    "question": _text,
    "noun": _text,
    "budget": _whole(0, MOST_ARMS),  # the bandit knows between what it must lie
    "episodes": _whole(1, 10**9),
    "horizon": _whole(1, 10**9),
    "epsilon": _share,
    "pays": _text,
}
_REQUIRED = {"name", "title", "question", "noun", "budget", "states", "groups"}


def _check_keys(table: Any, required: set[str], optional: set[str], where: str) -> None:
    if not isinstance(table, dict):
        raise BadEnvironmentError(f"{where}: a table of keys needed, {brief(table)} given")
    if missing := required - table.keys():
        raise BadEnvironmentError(f'{where}: key "{sorted(missing)[0]}" is missing')
    if unknown := table.keys() - required - optional:
        known = ", ".join(sorted(required | optional))
        raise BadEnvironmentError(
            f'{where}: key "{sorted(unknown)[0][:80]}" is unknown; known keys: {known}'
        )


def _tables(data: dict[str, Any], key: str) -> list[Any]:
    if not isinstance(data[key], list) or not data[key]:
        raise BadEnvironmentError(f"{key}: at least one [[{key}]] table needed")
    return data[key]


def _number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadEnvironmentError(f"{where}: {brief(value)} is not a number")
    if not abs(value) < 1e9:  # so it is with nan
        raise BadEnvironmentError(f"{where}: {brief(value)} is not a number that can be meant")
    return float(value)


def brief(value: Any) -> str:
    """A value in an error: short, whatever it is."""
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, int) and abs(value) > 10**18:
        return "a huge number"
    shown = repr(value if not isinstance(value, str) else value[:60])
    return shown if len(shown) <= 80 else f"{shown[:77]}..."


def _rewards(values: Any, S: int, where: str) -> list[float]:
    if not isinstance(values, list) or len(values) != S:
        raise BadEnvironmentError(f"{where}: rewards needs {S} numbers, one for each state")
    return [_number(value, f"{where}: rewards") for value in values]


def _has_ranges(group: dict[str, Any]) -> bool:
    """Whether anything of a group is drawn: else its arms are all alike."""
    rows = [row for a in _AS if isinstance(group[a], list) for row in group[a]]
    return any(isinstance(entry, list) for row in rows if isinstance(row, list) for entry in row)


def _matrix(rows: Any, S: int, rng: np.random.Generator, where: str) -> FloatArray:
    if not isinstance(rows, list) or len(rows) != S:
        raise BadEnvironmentError(f"{where}: {S} rows needed, one for each state")
    return np.array([_row(row, S, rng, f"{where}, row {s + 1}") for s, row in enumerate(rows)])


def _row(row: Any, S: int, rng: np.random.Generator, where: str) -> list[float]:
    """One row of P: numbers, ranges [low, high] drawn here, and at most one "rest"."""
    if not isinstance(row, list) or len(row) != S:
        raise BadEnvironmentError(f"{where}: {S} entries needed, one for each next state")
    if row.count("rest") > 1:
        raise BadEnvironmentError(f'{where}: only one entry can be "rest"')
    values = [0.0 if entry == "rest" else _entry(entry, rng, where) for entry in row]
    total = sum(values)
    if "rest" in row:
        if total > 1 + 1e-9:
            raise BadEnvironmentError(
                f'{where}: the entries beside "rest" sum to {total:.6g}, over 1'
            )
        values[row.index("rest")] = max(0.0, 1.0 - total)
    elif abs(total - 1) > 1e-6:
        raise BadEnvironmentError(f"{where}: the row sums to {total:.6g}, not 1")
    return values


def _entry(entry: Any, rng: np.random.Generator, where: str) -> float:
    """A probability, or one drawn from a range of them."""
    if isinstance(entry, str):
        raise BadEnvironmentError(f'{where}: "{entry[:60]}" is not a number, a range or "rest"')
    if isinstance(entry, list) and len(entry) != 2:
        raise BadEnvironmentError(f"{where}: a range is [low, high], {brief(entry)} given")
    ends = [_number(end, where) for end in (entry if isinstance(entry, list) else [entry])]
    for end in ends:
        if not 0 <= end <= 1:
            raise BadEnvironmentError(f"{where}: {end!r} is not a probability between 0 and 1")
    if len(ends) == 1:
        return ends[0]
    low, high = ends
    if low > high:
        raise BadEnvironmentError(f"{where}: range [{low:g}, {high:g}] is upside down")
    return float(rng.uniform(low, high))


# --- rules for what comes in, here and in studies: each refuses with a ValueError


Rule = Callable[[str, Any], None]


def text(most: int, least: int = 0) -> Rule:
    """Text of at most so many characters; `least` 1 where blanks do not do."""

    def check(what: str, value: Any) -> None:
        if not isinstance(value, str):
            raise ValueError(f"{what} is {brief(value)}: text needed")
        if least and not value.strip():
            raise ValueError(f"{what} is empty")
        if len(value) > most:
            raise ValueError(f"{what} has {len(value)} characters: at most {most} can be kept")
        if "\0" in value or (
            not value.isascii() and value != value.encode(errors="ignore").decode()
        ):
            raise ValueError(f"{what} has a character that cannot be kept")

    return check


def whole(least: int, most: int) -> Rule:
    def check(what: str, value: Any) -> None:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ValueError(
                f"{what} is {brief(value)}: a whole number from {least} to {most} needed"
            )

    return check


def seconds(most: float) -> Rule:
    def check(what: str, value: Any) -> None:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not 0 < value <= most:
            raise ValueError(
                f"{what} is {brief(value)}: it must be above 0, and at most {most:.0f}"
            )

    return check


def one_of(*allowed: str) -> Rule:
    def check(what: str, value: Any) -> None:
        if value not in allowed:
            shown = value[:80] if isinstance(value, str) else brief(value)
            raise ValueError(f'{what} is "{shown}": it must be one of {", ".join(allowed)}')

    return check


def switch(what: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise ValueError(f"{what} is {brief(value)}: true or false needed")


def all_of(kind: type, rules: Mapping[str, Rule], most: int) -> Rule:
    """A tuple of dataclasses with a rule for each of their fields."""

    def check(what: str, value: Any) -> None:
        if not isinstance(value, tuple) or len(value) > most:
            raise ValueError(f"{what} is {brief(value)}: at most {most} can be kept")
        for number, one in enumerate(value, start=1):
            if not isinstance(one, kind):
                raise ValueError(f"{what}: number {number} is {brief(one)}")
            try:
                for name, rule in rules.items():
                    rule(name, getattr(one, name))
            except ValueError as error:
                raise ValueError(f"{what}: number {number}: {error}") from None

    return check
