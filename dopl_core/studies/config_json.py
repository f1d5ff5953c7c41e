"""A study's configuration as JSON: the same text each time, and what is wrong with a text."""

import hashlib
import json
from dataclasses import MISSING, fields
from typing import Any, NoReturn

from dopl_core import environments
from dopl_core.environments import brief
from dopl_core.learning.bandit import State
from dopl_core.studies.config import MOST_STATES, Arm, StudyConfig
from dopl_core.studies.store import StudyError


def to_json(config: StudyConfig) -> str:
    """The configuration as JSON, the same text each time; arms are many, so a line has one each."""
    about = {field.name: getattr(config, field.name) for field in fields(config)}
    about["states"] = [vars(state) for state in config.states]
    arms = ",\n".join(json.dumps(vars(arm), ensure_ascii=False) for arm in about.pop("arms"))
    rest = json.dumps(about, ensure_ascii=False, indent=1)
    return f'{{\n "arms": [\n{arms}\n ],{rest[1:]}'


def from_json(content: str) -> StudyConfig:
    """The configuration that `to_json` wrote; fields added since take their defaults.

    The first edition had no number.
    """
    data = read_json(content)
    if not data:
        raise StudyError("config is empty")
    about = _of_fields(StudyConfig, data, "config")
    about.setdefault("edition", 1)
    about["arms"] = read_arms(about["arms"])
    states = _list(about["states"], "states", MOST_STATES)
    about["states"] = tuple(State(**_of_fields(State, one, "state")) for one in states)
    return StudyConfig(**about)


def read_arms(content: Any) -> tuple[Arm, ...]:
    """Arms as JSON has them; their fields are checked where they become a study's."""
    return tuple(
        Arm(**_of_fields(Arm, one, "arm")) for one in _list(content, "arms", environments.MOST_ARMS)
    )


def read_json(content: str) -> Any:
    """What a JSON text says, or where it is none; NaN is not JSON."""
    try:
        return json.loads(content, parse_constant=_no_constant)
    except RecursionError:
        raise StudyError("not JSON: nested too deep") from None
    except json.JSONDecodeError as error:
        raise StudyError(f"line {error.lineno}: not JSON: {error.msg}") from None
    except ValueError as error:  # a number with thousands of digits
        raise StudyError(f"not JSON: {error}") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def _list(content: Any, what: str, most: int) -> list[Any]:
    if not isinstance(content, list) or len(content) > most:
        raise StudyError(f"{what} is {brief(content)}: a list of at most {most} needed")
    return content


def _of_fields(kind: Any, content: Any, what: str) -> dict[str, Any]:
    """JSON of a dataclass: all its fields that have no default, and none that it has not."""
    if not isinstance(content, dict):
        raise StudyError(f"{what} is {brief(content)}: an object needed")
    known = {f.name: f for f in fields(kind)}
    if unknown := sorted(content.keys() - known.keys()):
        raise StudyError(f'{what}: "{unknown[0][:80]}" is not known')
    for name, one in known.items():
        if name not in content and one.default is MISSING and one.default_factory is MISSING:
            raise StudyError(f'{what}: "{name}" is missing')
    return dict(content)


def digest_of(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()
