"""What randomised trials found of help, by its kind: the table data/effects.toml."""

import tomllib
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from msgspec import Meta

from dopl_core.paths import ROOT
from dopl_core.validation import brief, convert, text

FILE = ROOT / "data" / "effects.toml"

HelpKind = Literal["message", "call", "visit", "treatment", "money", "other"]
KINDS: tuple[HelpKind, ...] = get_args(HelpKind)

_Line = Annotated[str, text(200, blank=False)]


class BadEffectsError(ValueError):
    """A table of trials that breaks a rule; names the entry and what it needs."""


@dataclass(frozen=True)
class TrialEffect:
    """What help did to people in one state, in one trial.

    help: its kind;  horizon: from help to the outcome
    state: the one they were in before; a trial with several states between has an entry for each
    effect: of those who would not be in the best state otherwise, the share whom help brings there,
        or keeps there if they were in it: (p_help - p_without) / (1 - p_without), where p is the
        share in the best state afterwards
    error: its standard error, None where the source gives none
    reached: "better" where the effect is about any better state, not the best one
    """

    name: _Line
    help: HelpKind
    horizon: _Line
    state: Literal["worst", "middle", "best"]
    effect: Annotated[float, Meta(ge=-1, le=1)]
    source: _Line
    error: Annotated[float, Meta(gt=0, le=1)] | None = None
    reached: Literal["best", "better"] = "best"


@cache
def trials() -> tuple[TrialEffect, ...]:
    """Everything in the table, in its order."""
    return read(FILE)


def read(file: Path) -> tuple[TrialEffect, ...]:
    """The entries of such a table; errors name the entry and the remedy."""
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadEffectsError(f"{file}: file not found; install dopl again") from None
    except ValueError as error:
        raise BadEffectsError(f"{file}: not a TOML file: {error}") from None
    entries = data.get("trials")
    if not isinstance(entries, list) or not entries or data.keys() != {"trials"}:
        raise BadEffectsError(f"{file}: only [[trials]] tables, and at least one, are needed")
    found = tuple(_entry(number, entry) for number, entry in enumerate(entries, start=1))
    _check_states(found)
    return found


def _entry(number: int, entry: Any) -> TrialEffect:
    if not isinstance(entry, dict):
        raise BadEffectsError(f"trial {number} is {brief(entry)}: a [[trials]] table needed")
    name = entry.get("name")
    where = f'trial {number} "{name[:80]}"' if isinstance(name, str) else f"trial {number}"
    known = [field.name for field in fields(TrialEffect)]
    for key in entry:
        if key not in known:
            raise BadEffectsError(
                f'{where}: key "{key[:80]}" is unknown; known keys: {", ".join(known)}'
            )
    return convert(entry, TrialEffect, where, BadEffectsError)


def _check_states(found: tuple[TrialEffect, ...]) -> None:
    """Of a trial, the worst and the best state have at most one entry each."""
    seen: set[tuple[str, str]] = set()
    for number, one in enumerate(found, start=1):
        if one.state != "middle" and (one.name, one.state) in seen:
            raise BadEffectsError(
                f'trial {number} "{one.name}": its {one.state} state is there twice; remove one '
                'entry, or call the state "middle"'
            )
        seen.add((one.name, one.state))
