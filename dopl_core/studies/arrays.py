"""Arrays as bytes for the database and for bundles, and their digests."""

import hashlib
import io
import zipfile
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dopl_core.learning.bandit import UNKNOWN, IntArray

_LAST_BYTE = 255

Arrays = dict[str, NDArray[Any]]


def digest(arrays: Arrays) -> str:
    """The same for equal arrays and only for them: names, types, shapes and every bit."""
    sha = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        sha.update(f"{name} {array.dtype.str} {array.shape} ".encode())
        sha.update(array.tobytes())
    return sha.hexdigest()


def pack(arrays: Arrays) -> bytes:
    """Arrays as npz bytes, the same each time."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **{name: arrays[name] for name in sorted(arrays)})  # type: ignore[arg-type]
    return buffer.getvalue()


def unpack(content: bytes) -> Arrays:
    """The arrays of npz bytes; nothing in them is ever run. ValueError where they are damaged."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except (OSError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"not arrays, or damaged ones: {error}") from None


def unpack_whole(content: bytes | None, expected: str) -> Arrays | None:
    """The arrays, if they are those whose digest was kept."""
    try:
        arrays = unpack(content or b"")
    except ValueError:
        return None
    return arrays if digest(arrays) == expected else None


def pack_states(states: IntArray) -> bytes:
    """States [N], a byte each; UNKNOWN, -1, is the last byte there is."""
    return states.astype(np.uint8).tobytes()


def unpack_states(content: bytes) -> IntArray:
    states = np.frombuffer(content, dtype=np.uint8).astype(np.int64)
    states[states == _LAST_BYTE] = UNKNOWN
    return states


def pack_arms(arms: IntArray) -> bytes:
    """Arm numbers, four bytes each."""
    return arms.astype("<i4").tobytes()


def unpack_arms(content: bytes) -> IntArray:
    return np.frombuffer(content, dtype="<i4").astype(np.int64)
