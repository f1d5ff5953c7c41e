"""Environments are TOML files: the paper's three, an example of its appendix, or your own."""

import re
import tomllib
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from msgspec import Meta, Struct

from dopl_core.learning.bandit import Bandit, FloatArray, Pays, State
from dopl_core.learning.streams import Stream, generator
from dopl_core.paths import ROOT
from dopl_core.validation import brief, convert, text, whole

FOLDER = ROOT / "data" / "environments"

MOST_ARMS = 100_000
MOST_ENTRIES = 20_000_000  # of all arms' transitions, 8 bytes each
_LARGEST = 2 << 20  # bytes of a file: 255 states take 0.8 MB
_LONGEST = 10_000  # characters of a text
_MOST_COLUMNS = 100  # of a group, and texts that one of them is drawn from

# tomllib needs time quadratic in the number of parts of a key; no environment has three parts.
_KEY_PART = r"""(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')"""
_DEEP_KEY = re.compile(rf"(?<![A-Za-z0-9_-]){_KEY_PART}(?:[ \t]*\.[ \t]*{_KEY_PART}){{30}}")


class BadEnvironmentError(ValueError):
    """An environment file that breaks a rule; names the key, the row and the reason."""


Name = Annotated[str, text(_LONGEST, blank=False)]
Number = Annotated[float, Meta(gt=-1e9, lt=1e9)]
Epochs = Annotated[int, whole(1, 10**9)]


class _State(Struct, forbid_unknown_fields=True):
    label: Name
    description: Annotated[str, text(_LONGEST)] = ""


class _Group(Struct, forbid_unknown_fields=True):
    """A group of arms; rows and cells depend on the number of states, and are checked later."""

    name: Name
    arms: Annotated[int, whole(1, MOST_ARMS)]
    rewards: list[Number]
    wait: list[Any]
    act: list[Any]
    columns: Annotated[dict[Name, Any], Meta(max_length=_MOST_COLUMNS)] = {}


class _File(Struct, forbid_unknown_fields=True):
    name: Name
    title: Name
    question: Name
    noun: Name
    budget: Annotated[int, whole(0, MOST_ARMS)]  # the bandit checks it against its arms
    states: list[_State]
    groups: list[_Group]
    episodes: Epochs = Bandit.episodes
    horizon: Epochs = Bandit.horizon
    epsilon: Annotated[float, Meta(gt=0, lt=1)] = Bandit.epsilon
    pays: Pays = Bandit.pays


def _group_name(number: int, group: Any) -> str:
    name = group.get("name") if isinstance(group, dict) else None
    return f'group "{name[:80]}"' if isinstance(name, str) else f"group {number}"


_PLACES = {"states": lambda number, state: f"state {number}", "groups": _group_name}


def names() -> list[str]:
    """The names of the environments in this project."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load(name_or_path: str | Path, seed: int = 0) -> Bandit:
    """The bandit of a named environment or of a TOML file.

    Parameters
    ----------
    name_or_path : str or Path
        A name, such as ``"cpap"``, or the path of your own TOML file.
    seed : int, default 0
        Ranges ``[low, high]`` of the file are drawn from it.

    Returns
    -------
    Bandit
        With ``transitions`` of shape (N, S, 2, S), ``rewards`` (N, S) and ``budget``.

    Examples
    --------
    >>> bandit = load("cpap")
    >>> bandit.transitions.shape, bandit.rewards.shape, bandit.budget
    ((20, 3, 2, 3), (20, 3), 8)
    """
    path = path_of(name_or_path)
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)
        return parse(read_toml(content.decode()), seed)
    except FileNotFoundError:
        raise BadEnvironmentError(f"{path}: file not found") from None
    except OSError as error:
        raise BadEnvironmentError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise BadEnvironmentError(f"{path.name}: not a TOML file: {error}") from None
    except BadEnvironmentError as error:
        raise BadEnvironmentError(f"{path.name}: {error}") from None


def path_of(name_or_path: str | Path) -> Path:
    """The TOML file of a named environment, or the path itself."""
    path = Path(name_or_path)
    if path.suffix == ".toml":
        return path
    if str(name_or_path) not in names():
        raise BadEnvironmentError(
            f'environment "{name_or_path}" is not one of {", ".join(names())}, '
            "nor the path of a .toml file"
        )
    return FOLDER / f"{name_or_path}.toml"


def read_toml(content: str) -> dict[str, Any]:
    """The TOML of an environment file as a dictionary; nothing of it is checked yet."""
    if len(content) > _LARGEST:
        raise BadEnvironmentError(f"over {_LARGEST >> 20} MB: not an environment")
    if _DEEP_KEY.search(content):
        raise BadEnvironmentError("not an environment: a key has more than 30 parts")
    try:
        return tomllib.loads(content)
    except RecursionError:
        raise BadEnvironmentError("not an environment: nested too deep") from None
    except ValueError as error:  # not TOML, or a number with thousands of digits
        raise BadEnvironmentError(f"not a TOML file: {error}") from None


def parse(data: dict[str, Any], seed: int = 0) -> Bandit:
    """The bandit that a parsed environment file describes."""
    file = _read(data)
    n_arms, S = _size(file)
    transitions = np.empty((n_arms, S, 2, S))
    rewards = np.empty((n_arms, S))
    of_group: list[str] = []
    columns: dict[str, list[str]] = {}
    for group in file.groups:
        where = f'group "{group.name[:80]}"'
        first, last = len(of_group), len(of_group) + group.arms
        if len(group.rewards) != S:
            raise BadEnvironmentError(f"{where}: rewards must be {S} numbers, one for each state")
        rewards[first:last] = group.rewards
        _fill(transitions[first:last], group, seed, first)
        rng = generator(Stream.COLUMNS, seed, first)
        for name, cells in group.columns.items():
            texts = _cells(cells, group.arms, rng, f'{where}: columns: "{name[:80]}"')
            columns.setdefault(name, [""] * n_arms)[first:last] = texts
        of_group += [group.name] * group.arms
    try:
        return Bandit(
            transitions,
            rewards,
            states=tuple(State(state.label, state.description) for state in file.states),
            groups=tuple(of_group),
            columns={name: tuple(texts) for name, texts in columns.items()},
            **{key: getattr(file, key) for key in data if key not in ("states", "groups")},
        )
    except ValueError as error:
        raise BadEnvironmentError(str(error)) from None


def size(data: dict[str, Any]) -> tuple[int, int]:
    """The numbers of arms and states in a parsed file; refuses more than fit in memory."""
    return _size(_read(data))


def _read(data: dict[str, Any]) -> _File:
    return convert(data, _File, "the file", BadEnvironmentError, _PLACES)


def _size(file: _File) -> tuple[int, int]:
    for key, tables in (("states", file.states), ("groups", file.groups)):
        if not tables:
            raise BadEnvironmentError(f"{key}: at least one [[{key}]] table is needed")
    n_arms, n_states = sum(group.arms for group in file.groups), len(file.states)
    if n_arms > MOST_ARMS or 2 * n_arms * n_states**2 > MOST_ENTRIES:
        raise BadEnvironmentError(
            f"{n_arms} arms with {n_states} states exceed the limit of {MOST_ARMS} arms and "
            f"{MOST_ENTRIES} entries in their transitions"
        )
    return n_arms, n_states


def _cells(content: Any, n_arms: int, rng: np.random.Generator, where: str) -> list[str]:
    """One text for all arms, or for each arm a number in [low, high] or one of several texts."""
    if isinstance(content, str):
        return [_text(content, where)] * n_arms
    if not isinstance(content, list) or not 0 < len(content) <= _MOST_COLUMNS:
        raise BadEnvironmentError(
            f"{where} is {brief(content)}: a text, a range [low, high] or a list of texts needed"
        )
    if isinstance(content[0], str):
        texts = [_text(one, f"{where}, text {i + 1}") for i, one in enumerate(content)]
        return [texts[at] for at in rng.integers(len(texts), size=n_arms).tolist()]
    drawn = rng.uniform(*_range(content, where), size=n_arms)
    return [f"{value:.6g}" for value in drawn.tolist()]


def _range(ends: list[Any], where: str) -> tuple[float, float]:
    if len(ends) != 2:
        raise BadEnvironmentError(f"{where}: a range is [low, high], {brief(ends)} given")
    low, high = (_number(end, where) for end in ends)
    if low > high:
        raise BadEnvironmentError(f"{where}: range [{low:g}, {high:g}] must go from low to high")
    return low, high


def _text(value: Any, where: str) -> str:
    return convert(value, Name, where, BadEnvironmentError)


def _number(value: Any, where: str) -> float:
    return convert(value, Number, where, BadEnvironmentError)


def _fill(transitions: FloatArray, group: _Group, seed: int, first: int) -> None:
    """Fill in the transitions of a group's arms [arms, S, 2, S]; `first` is its first arm."""
    rows = [row for row in (*group.wait, *group.act) if isinstance(row, list)]
    is_drawn = any(isinstance(entry, list) for row in rows for entry in row)
    for n in range(group.arms if is_drawn else 1):
        # Each arm has its own generator: adding a group leaves the others as they were.
        rng = generator(Stream.ENVIRONMENT, seed, first + n)
        for a, (action, matrix) in enumerate((("wait", group.wait), ("act", group.act))):
            where = f'group "{group.name[:80]}": {action}'
            transitions[n, :, a] = _matrix(matrix, transitions.shape[1], rng, where)
    if not is_drawn:
        transitions[1:] = transitions[0]


def _matrix(rows: list[Any], S: int, rng: np.random.Generator, where: str) -> FloatArray:
    if len(rows) != S:
        raise BadEnvironmentError(f"{where}: must have {S} rows, one for each state")
    return np.array([_row(row, S, rng, f"{where}, row {s + 1}") for s, row in enumerate(rows)])


def _row(row: Any, S: int, rng: np.random.Generator, where: str) -> list[float]:
    """One row of P: numbers, ranges [low, high] drawn here, and at most one "rest"."""
    if not isinstance(row, list) or len(row) != S:
        raise BadEnvironmentError(f"{where}: must have {S} entries, one for each next state")
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
    """A probability, or one drawn from a range."""
    if isinstance(entry, str):
        raise BadEnvironmentError(f'{where}: "{entry[:60]}" is not a number, a range or "rest"')
    ends = _range(entry, where) if isinstance(entry, list) else (_number(entry, where),)
    for end in ends:
        if not 0 <= end <= 1:
            raise BadEnvironmentError(f"{where}: {end!r} is not a probability between 0 and 1")
    return float(rng.uniform(*ends)) if isinstance(entry, list) else ends[0]
