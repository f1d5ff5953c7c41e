"""Arrays as bytes for the database and for bundles, and their digests."""

import hashlib
import io
import math
import re
import struct
import zipfile
import zlib
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from dopl_core.learning.bandit import UNKNOWN, Arrays, IntArray

_LAST_BYTE = 255
_LONGEST_HEADER = 500  # characters; ours have about 80


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


# What a zip, its compression or a header in it may complain of; text that is no UTF-8 included.
DAMAGES: tuple[type[Exception], ...] = (
    *(zipfile.BadZipFile, zlib.error, struct.error, NotImplementedError, RuntimeError),
    *(OSError, EOFError, KeyError, ValueError, OverflowError),
)

PLAIN = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # compressions that are read

GONE = {"dynamics.seen"}  # kept with plans before version 10 of the maths; no longer restored

Shape = tuple[str, tuple[int, ...]]  # a type as NumPy writes it, "U" for text, and a shape


def shapes(n_arms: int, n_states: int, n_groups: int = 0) -> tuple[dict[str, Shape], set[str]]:
    """What a learner holds after a plan, and which of it need not be there.

    n_groups: among which places are shared out
    """
    N, S = n_arms, n_states
    known: dict[str, Shape] = {
        **dict.fromkeys(("episode", "budget", "preferences.reference"), ("<i8", ())),
        **dict.fromkeys(("plan.multiplier", "plan.value"), ("<f8", ())),
        **dict.fromkeys(("plan.advantage", "plan.index"), ("<f8", (N, S))),
        **dict.fromkeys(("sharing.floors", "sharing.owed"), ("<f8", (n_groups,))),
        "plan.engine": ("U", ()),
        "plan.prices": ("<f8", (N,)),
        "plan.occupancy": ("<f8", (N, S, 2)),
        "plan.start": ("<f8", (1 + N * S,)),
        "present": ("|b1", (N,)),
        "preferences.covariance": ("<f8", (N * S, N * S)),
        "preferences.common": ("<f8", (N * S, S + 1)),
        "preferences.warm.theta": ("<f8", (N * S,)),
        "preferences.warm.spreads": ("<f8", (2,)),
    }
    for name in ("mean", "sd", "low", "high"):
        known[f"dynamics.{name}"] = ("<f8", (N, S, 2, S))
    known["dynamics.seen"] = ("<i8", (S, 2))
    known["dynamics.effect"] = ("<f8", (S, S))
    known["dynamics.effect_covariance"] = ("<f8", (S, S, S))
    for name in ("mean", "sd", "overestimate"):
        known[f"preferences.{name}"] = ("<f8", (N, S))
    optional = {"budget", "present"}  # not there before people could come and go
    optional |= {*GONE, "plan.prices", "dynamics.effect", "dynamics.effect_covariance"}
    optional |= {"sharing.floors", "sharing.owed"} if not n_groups else set()
    optional |= {f"preferences.{name}" for name in ("reference", "covariance", "common")}
    optional |= {f"preferences.warm.{name}" for name in ("theta", "spreads")}
    return known, optional


def unpack(
    content: bytes, known: Mapping[str, Shape] | None = None, optional: Collection[str] = ()
) -> Arrays:
    """The arrays of npz bytes; nothing in them is ever run. ValueError where they are damaged.

    known: all that may be there; types and shapes are compared before anything is allocated, and
    numbers must be finite
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as members:
            names = [info.filename.removesuffix(".npy") for info in members.infolist()]
            if len(set(names)) < len(names):
                raise ValueError("an array is there twice")
            if known is not None and (missing := known.keys() - {*optional, *names}):
                raise ValueError(f'array "{min(missing)}" is missing')
            return {
                name: _read_array(members, info, None if known is None else (name, known))
                for name, info in zip(names, members.infolist(), strict=True)
            }
    except DAMAGES as error:
        raise ValueError(f"not arrays, or damaged ones: {error}") from None


def _read_array(
    members: zipfile.ZipFile,
    info: zipfile.ZipInfo,
    expected: tuple[str, Mapping[str, Shape]] | None,
) -> NDArray[Any]:
    if info.compress_type not in PLAIN:
        raise ValueError("compressed in a way that is not ours")
    with members.open(info) as file:
        if npy.read_magic(file) != (1, 0):
            raise ValueError("an array of another version")
        shape, fortran, dtype = npy.read_array_header_1_0(file, max_header_size=_LONGEST_HEADER)
        if dtype.hasobject or dtype.kind not in "biufU":
            raise ValueError(f"an array of {dtype}: as with allow_pickle=False, it is not read")
        size = dtype.itemsize * math.prod(shape)
        if expected is not None:
            _check_shape(*expected, dtype, shape)
        elif not 0 <= size <= info.file_size:
            raise ValueError("an array is cut off")
        data = file.read(size + 1)
    if len(data) != size:
        raise ValueError("an array is cut off")
    array = np.frombuffer(data, dtype=dtype).reshape(shape, order="F" if fortran else "C").copy("K")
    if expected is not None and dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError(f'array "{expected[0]}" contains NaN or infinity')
    return array


def _check_shape(
    name: str, known: Mapping[str, Shape], dtype: np.dtype[Any], shape: tuple[int, ...]
) -> None:
    if name not in known:
        raise ValueError(f'array "{name[:80]}" is not known')
    kind, needed = known[name]
    text = re.fullmatch(r"<U([1-9]|1[0-6])", dtype.str) is not None
    if (dtype.str != kind and not (kind == "U" and text)) or shape != needed:
        raise ValueError(
            f'array "{name}" has {dtype.str} {shape}: {kind} {needed} by the configuration'
        )


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
