"""The instructions of data/guides/server/Containerfile, for tests that do the same without it."""

import json
import re
import shlex
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "data" / "guides" / "server" / "Containerfile"

Instruction = tuple[str, str]


def stages() -> list[list[Instruction]]:
    """The instructions of each stage: the word, and the rest of the line."""
    text = re.sub(r"^#.*\n", "", FILE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    found: list[list[Instruction]] = []
    for line in text.replace("\\\n", " ").splitlines():
        word, _, rest = line.strip().partition(" ")
        if word == "FROM":
            found.append([])
        if word:
            found[-1].append((word, re.sub(r"\s+", " ", rest)))
    return found


def rest_of(stage: list[Instruction], word: str) -> list[str]:
    """What follows a word, each time that it is used."""
    return [rest for name, rest in stage if name == word]


def environment() -> dict[str, str]:
    """The variables that the image sets."""
    words = (pair for rest in rest_of(stages()[-1], "ENV") for pair in shlex.split(rest))
    return dict(pair.split("=", 1) for pair in words)


def command() -> list[str]:
    """What the image starts."""
    [rest] = rest_of(stages()[-1], "CMD")
    return list(json.loads(rest))


def health_check() -> list[str]:
    """The command that tells whether the app is well."""
    [rest] = rest_of(stages()[-1], "HEALTHCHECK")
    return list(json.loads(rest.partition("CMD ")[2]))


def copy_sources(folder: Path) -> None:
    """Copy what the first stage copies from the checkout."""
    for rest in rest_of(stages()[0], "COPY"):
        *sources, target = rest.split()
        for source in sources:
            to = folder / target / Path(source).name if target.endswith("/") else folder / target
            to.parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, to, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / source, to)
