"""Checks of data from outside, by msgspec, with errors in sentences of our own.

Rules are annotations: `budget: Annotated[int, whole(0, 100)]`. `check` holds a dataclass against
its annotations, and `convert` makes a dataclass or Struct of what JSON or TOML says.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Annotated, Any, NoReturn, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta, inspect

T = TypeVar("T")
Places = Mapping[str, Callable[[int, Any], str]]  # list -> (number from 1, entry) -> its name

# Neither databases nor CSV files can hold a zero byte or half a character.
_STORABLE = r"[^\x00\ud800-\udfff]*\Z"


def text(most: int, *, blank: bool = True) -> Meta:
    """Text of at most `most` characters; `blank=False` refuses text without a visible character."""
    return Meta(max_length=most, pattern=r"\A" + ("" if blank else r"(?=\s*\S)") + _STORABLE)


def whole(least: int, most: int) -> Meta:
    """A whole number from `least` to `most`."""
    return Meta(ge=least, le=most)


def brief(value: Any) -> str:
    """A value in an error message: short, whatever it is."""
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    if isinstance(value, int) and abs(value) > 10**18:
        return "a huge number"
    shown = repr(value if not isinstance(value, str) else value[:60])
    return shown if len(shown) <= 80 else f"{shown[:77]}..."


def check(value: Any, error: type[ValueError] = ValueError) -> None:
    """Refuse a dataclass with a field that its annotation does not allow."""
    kind: Any = type(value)
    convert(values(value), _rules(kind), "", error)


def values(value: Any) -> dict[str, Any]:
    """A dataclass's fields; msgspec leaves defaults in the class, so `vars` would miss them."""
    return {field.name: getattr(value, field.name) for field in fields(value)}


def check_value(what: str, value: Any, rule: Any, error: type[ValueError] = ValueError) -> None:
    """Refuse a single value, called `what`, that the annotation `rule` does not allow."""
    convert(value, rule, what, error)


def convert(
    value: Any,
    kind: type[T],
    what: str,
    error: type[ValueError] = ValueError,
    places: Places | None = None,
) -> T:
    """Plain data (of JSON or TOML) as `kind`; errors call it `what`, and name the place in it.

    Keys that `kind` does not have are dropped, unless it is a Struct that forbids them.
    """
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        _explain(value, kind, what, error, places or {})
    except UnicodeEncodeError:  # half a character, as JSON can spell it
        raise error(f"{what}: a text has a character that cannot be kept") from None


@cache
def _rules(kind: Any) -> Any:
    """A Struct with the annotations of a dataclass: msgspec does not look into instances."""
    hints = get_type_hints(kind, include_extras=True)
    return msgspec.defstruct(kind.__name__, [(one.name, hints[one.name]) for one in fields(kind)])


def _fits(value: Any, kind: Any) -> bool:
    try:
        msgspec.convert(value, kind)
    except (msgspec.ValidationError, UnicodeEncodeError):
        return False
    return True


def _explain(value: Any, kind: Any, what: str, error: type[ValueError], places: Places) -> NoReturn:
    """Say which part of a value is wrong, and what is needed there."""
    plain = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    parts = get_args(plain)
    inside = f"{what}: " if what else ""
    if isinstance(value, dict) and (is_dataclass(plain) or _is_struct(plain)):
        _explain_fields(value, plain, what, error, places)
    elif isinstance(value, dict) and get_origin(plain) is dict:
        for key, entry in value.items():
            if not _fits(key, parts[0]):
                _explain(key, parts[0], f"{inside}a name", error, places)
            if not _fits(entry, parts[1]):
                _explain(entry, parts[1], f'{inside}"{key[:80]}"', error, places)
    elif isinstance(value, list | tuple) and get_origin(plain) in (list, tuple):
        name = places.get(what, lambda number, entry: f"{inside}number {number}")
        for number, entry in enumerate(value, start=1):
            if not _fits(entry, parts[0]):
                _explain(entry, parts[0], name(number, entry), error, places)
    raise error(f"{what} {_problem(value, inspect.type_info(kind))}")


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _explain_fields(
    value: dict[str, Any], kind: Any, what: str, error: type[ValueError], places: Places
) -> None:
    """Say which key of a table is wrong."""
    inside = f"{what}: " if what else ""
    hints = get_type_hints(kind, include_extras=True)
    info: Any = inspect.type_info(kind)
    known = {field.name: field.required for field in info.fields}
    if missing := sorted(
        name for name, required in known.items() if required and name not in value
    ):
        raise error(f'{inside}key "{missing[0]}" is missing')
    unknown = sorted(value.keys() - known.keys())
    if unknown and getattr(info, "forbid_unknown_fields", False):
        keys = ", ".join(sorted(known))
        raise error(f'{inside}key "{unknown[0][:80]}" is unknown; known keys: {keys}')
    for name in known:
        if name in value and not _fits(value[name], hints[name]):
            in_root = what in ("", "the file")
            _explain(value[name], hints[name], name if in_root else inside + name, error, places)
    kind(**{name: msgspec.convert(value[name], hints[name]) for name in known if name in value})


def _problem(value: Any, info: Any) -> str:
    """What is wrong with a value that has no parts, and what is needed."""
    match info:
        case inspect.StrType() if isinstance(value, str):
            if not value.strip() and info.pattern and r"\S" in info.pattern:
                return "is empty"
            if info.max_length is not None and len(value) > info.max_length:
                return f"has {len(value)} characters: at most {info.max_length} can be kept"
            return "has a character that cannot be kept"
        case inspect.LiteralType():
            shown = value[:80] if isinstance(value, str) else brief(value)
            return f'is "{shown}": it must be one of {", ".join(map(str, info.values))}'
        case _:
            return f"is {brief(value)}: {_needed(info)} needed"


def _needed(info: Any) -> str:
    match info:
        case inspect.BoolType():
            return "true or false"
        case inspect.IntType():
            return f"a whole number{_range(info)}"
        case inspect.FloatType():
            return f"a number{_range(info)}"
        case inspect.StrType():
            return "text"
        case inspect.ListType() | inspect.VarTupleType():
            return "a list" + (f" of at most {info.max_length}" if info.max_length else "")
        case inspect.DictType():
            return "a table" + (f" of at most {info.max_length}" if info.max_length else "")
        case inspect.UnionType():  # a value, or none
            return " or ".join(
                _needed(one) for one in info.types if not isinstance(one, inspect.NoneType)
            )
        case _:
            return "a table of keys"


def _range(info: Any) -> str:
    if info.ge is not None and info.le is not None:
        return f" from {info.ge} to {info.le}"
    ends = {"at least": info.ge, "above": info.gt, "at most": info.le, "below": info.lt}
    said = [f"{word} {end:.12g}" for word, end in ends.items() if end is not None]
    return " " + " and ".join(said) if said else ""
