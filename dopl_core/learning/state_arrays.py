"""Dataclasses as plain named arrays, and back: the form in which a learner's state is kept."""

from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray


def pack(name: str, value: Any) -> dict[str, NDArray[Any]]:
    """A dataclass as arrays: `name.field`, and `name.field.key` of a dictionary; without Nones."""
    packed: dict[str, NDArray[Any]] = {}
    for field in fields(value) if value is not None else ():
        content = getattr(value, field.name)
        for key, item in content.items() if isinstance(content, dict) else ((None, content),):
            if item is not None:
                packed[f"{name}.{field.name}" + (f".{key}" if key else "")] = np.array(item)
    return packed


def unpack(kind: Any, name: str, state: dict[str, NDArray[Any]]) -> Any:
    """The dataclass that `pack` took apart, or None if the state has none of that name."""
    values: dict[str, Any] = {}
    for path, array in state.items():
        head, _, rest = path.partition(".")
        if head == name:
            field, _, key = rest.partition(".")
            item = array.item() if array.ndim == 0 else array
            if key:
                values.setdefault(field, {})[key] = item
            else:
                values[field] = item
    if not values:
        return None
    missing = {
        field.name: None
        for field in fields(kind)
        if field.default is None or field.name in ("reference", "covariance", "common", "start")
    }
    return kind(**(missing | values))
