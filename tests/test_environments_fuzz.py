"""Environment files spoilt in every way: a bandit comes of them, or an error that says why."""

import copy
import json
import os
import random
import resource
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from dopl_core import environments
from dopl_core.environments import BadEnvironmentError
from dopl_core.learning.bandit import Bandit

COUNT = int(os.environ.get("DOPL_FUZZ", "400"))
SECONDS = 5  # more is a hang

ODD = (None, True, False, 0, -1, 1, 3, 10**9, 10**400, 0.0, -0.5, 0.5, 1e300, 1e-320)
ODD += (float("nan"), float("inf"), float("-inf"), "", " ", "rest", "x" * 20_000, "\u2028", "\0")
ODD += ([], {}, [[]], [0.5, 0.5], [0.9, 0.1], ["rest", "rest"], [[[0.1]]], {"a": {"b": 1}}, [None])


def to_toml(value: object) -> str:
    """A value as an inline TOML value; what TOML cannot say is written as it comes."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return hex(value) if value > 10**300 else str(value)
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {to_toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(to_toml(item) for item in value) + "]"
    return "null"


def places(value: object, path: tuple = ()) -> list[tuple]:
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else ()
    for key, item in enumerate(value) if isinstance(value, list) else items:
        found += places(item, (*path, key))
    return found


def spoil(data: dict, rng: random.Random) -> None:
    """One change at any place: another value, a key less or more, a row cut or doubled."""
    *above, last = rng.choice(places(data))
    holder = data
    for key in above:
        holder = holder[key]
    how = rng.randrange(6)
    if how == 0:
        del holder[last]
    elif how == 1 and isinstance(holder, list):
        holder.insert(last, copy.deepcopy(holder[last]))
    elif how == 2 and isinstance(holder, dict):
        holder[rng.choice(("colour", "", "arms", "wait", "présent"))] = rng.choice(ODD)
    elif how == 3 and isinstance(holder[last], list):
        holder[last] = holder[last][: rng.randrange(len(holder[last]) + 1)]
    elif how == 4:
        other = data
        *way, key = rng.choice(places(data))
        for step in way:
            other = other[step]
        holder[last], other[key] = copy.deepcopy(other[key]), copy.deepcopy(holder[last])
    else:
        holder[last] = copy.deepcopy(rng.choice(ODD))


def spoil_text(content: bytes, rng: random.Random) -> bytes:
    """Bytes changed without regard to what they mean."""
    at = rng.randrange(len(content))
    junk = (b"\xff\xfe", b"\0", b"[" * 3000, b"{a=" * 3000, b"\n", b"'''", b"=", b"9" * 6000)
    return {
        0: lambda: content[:at],
        1: lambda: content[:at] + rng.choice(junk) + content[at:],
        2: lambda: content[:at] + content[at + rng.randrange(1, 60) :],
        3: lambda: content[:at] + bytes([rng.randrange(256)]) + content[at + 1 :],
    }[rng.randrange(4)]()


def hung(*_: object) -> None:
    raise TimeoutError(f"longer than {SECONDS} s")


def tried(path: Path, content: bytes) -> str:
    """What became of a file: bandit, refused, or the name of what went wrong."""
    path.write_bytes(content)
    signal.signal(signal.SIGALRM, hung)
    signal.alarm(SECONDS)
    try:
        bandit = environments.load(path)
    except BadEnvironmentError as error:
        return "refused" if "mine.toml" in str(error) and len(str(error)) < 1000 else str(error)
    finally:
        signal.alarm(0)
    sound = isinstance(bandit, Bandit) and bool(np.isfinite(bandit.transitions).all())
    return "bandit" if sound else "unsound"


def test_a_damaged_file_gives_a_bandit_or_a_plain_error(tmp_path: Path) -> None:
    rng = random.Random(13)
    names = environments.names()
    came = {"bandit": 0, "refused": 0}
    for number in range(COUNT):
        content = (environments.FOLDER / f"{names[number % len(names)]}.toml").read_bytes()
        if number % 4:
            data = environments.read_toml(content.decode())
            for _ in range(rng.choice((1, 1, 1, 2, 4))):
                spoil(data, rng)
            content = "\n".join(f"{json.dumps(k)} = {to_toml(v)}" for k, v in data.items()).encode()
        else:
            content = spoil_text(content, rng)
        came[tried(tmp_path / "mine.toml", content)] += 1
    assert came["bandit"] > COUNT // 100
    assert came["refused"] > COUNT // 2


HEAD = 'name="t"\ntitle="T"\nquestion="?"\nnoun="n"\nbudget=2\nstates=[{label="a"},{label="b"}]\n'
GROUP = '[[groups]]\nname="G"\narms={}\nrewards=[0,1]\nwait=[{},[1,0]]\nact=[[1,0],[1,0]]\n'


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (HEAD + GROUP.format(10**8, "[1,0]"), "arms is 100000000"),
        (
            HEAD + GROUP.format(10**5, "[1,0]") * 2,
            "200000 arms with 2 states exceed the limit of 100000 arms",
        ),
        (
            HEAD + GROUP.format(3, "[[-1e308, 1e308], 0]"),
            "is -1e.308: a number above -1000000000 ",
        ),
        (HEAD + "x = " + "[" * 10**6, "nested too deep"),
        (HEAD + ".".join(["a"] * 500_000) + " = 1", "more than 30 parts"),
        (HEAD + "x = " + "1" * 10**6, "not a TOML file"),
        (HEAD + "#" * (3 << 20), "over 2 MB"),
        (HEAD + "a" * (1 << 20), "not a TOML file"),
        (
            HEAD.replace("]", ',{label="c"}' * 5000 + "]") + GROUP.format(9, "[1,0]"),
            "exceed the limit",
        ),
    ],
)
def test_a_file_that_would_exhaust_memory_is_refused_quickly(
    tmp_path: Path, text: str, reason: str
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(text)
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    with pytest.raises(BadEnvironmentError, match=reason):
        environments.load(file)
    assert time.process_time() - began < 2
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 << 10


def test_100000_equal_arms_are_loaded_quickly(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(HEAD + GROUP.format(10**5, "[0.5,0.5]"))
    began = time.process_time()
    assert environments.load(file).n_arms == 10**5
    assert time.process_time() - began < 2
