"""A study's configuration as JSON: the same text each time, and what is wrong with a text."""

import hashlib
import json
from typing import Annotated, Any, NoReturn

from msgspec import Meta

from dopl_core import environments
from dopl_core.studies.model.errors import StudyError
from dopl_core.studies.model.study_config import Arm, StudyConfig
from dopl_core.validation import convert, values

_Arms = Annotated[tuple[Arm, ...], Meta(max_length=environments.MOST_ARMS)]


def to_json(config: StudyConfig) -> str:
    """The configuration as JSON, the same text each time, with one line for each arm."""
    about = values(config)
    about["states"] = [values(state) for state in config.states]
    return fields_to_json(about | {"arms": [values(arm) for arm in about["arms"]]})


def fields_to_json(content: dict[str, Any]) -> str:
    """The text that `to_json` wrote, from its fields: other versions have others."""
    arms = ",\n".join(json.dumps(arm, ensure_ascii=False) for arm in content.get("arms", ()))
    rest = {name: value for name, value in content.items() if name != "arms"}
    return f'{{\n "arms": [\n{arms}\n ],{json.dumps(rest, ensure_ascii=False, indent=1)[1:]}'


def from_json(content: str) -> StudyConfig:
    """The configuration that `to_json` wrote, in this version or an earlier one.

    Fields that were added since take their defaults, and keys that were removed are dropped.
    """
    return convert(read_json(content), StudyConfig, "config", StudyError)


def read_arms(content: Any) -> tuple[Arm, ...]:
    """Arms as JSON has them."""
    return convert(content, _Arms, "arms", StudyError)


def read_json(content: str) -> Any:
    """What a JSON text says; NaN and infinity are not JSON."""
    try:
        return json.loads(content, parse_constant=_refuse_constant)
    except RecursionError:
        raise StudyError("not JSON: nested too deep") from None
    except json.JSONDecodeError as error:
        raise StudyError(f"line {error.lineno}: not JSON: {error.msg}") from None
    except ValueError as error:  # a number with thousands of digits
        raise StudyError(f"not JSON: {error}") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def digest_of(content: str) -> str:
    """SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(content.encode()).hexdigest()
