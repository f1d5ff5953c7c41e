"""The files of a registered export: protocol, analysis, methods, and the software that made them.

protocol.json  the protocol as it was fixed; its SHA-256 is the digest in the log
analysis.json  the promised analysis, with the version and the digest of the software
methods.md     the same in words, to paste
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import msgspec

from dopl_core.studies.exchange import trial_text
from dopl_core.studies.exchange.bundle_csv import iso
from dopl_core.studies.exchange.trial_analysis import ANALYSIS, TrialAnalysis, analyse
from dopl_core.studies.model.errors import ReplayError
from dopl_core.studies.model.protocol import to_json
from dopl_core.studies.model.study_log import StudyLog

PROTOCOL, RESULTS, METHODS = FILES = ("protocol.json", "analysis.json", "methods.md")
_DIGITS = 6  # of shares and probabilities
_SOFTWARE = ("software", "source")


def files(log: StudyLog) -> dict[str, str]:
    """The files of a study with a protocol, by name; none without."""
    found = analyse(log)
    if found is None:
        return {}
    return {
        PROTOCOL: to_json(found.protocol).decode(),
        RESULTS: json.dumps(results(log.study, found), indent=1, ensure_ascii=False) + "\n",
        METHODS: trial_text.methods(found, f"dopl {_version()}, source digest {_source()}"),
    }


def results(study: str, found: TrialAnalysis) -> dict[str, Any]:
    """What analysis.json says."""
    said = {
        "study": study,
        "protocol": found.digest,
        "fixed_at": iso(found.fixed_at),
        "analysis": ANALYSIS,
        "software": f"dopl {_version()}",
        "source": _source(),
        "weeks": found.weeks,
        "planned_weeks": found.protocol.weeks,
        "next_look": found.next_look,
        "looks": found.looks,
        "flow": found.flow,
        "deviations": found.deviations,
    }
    return dict(_rounded(msgspec.to_builtins(said)))


def compare(log: StudyLog, exported: Mapping[str, bytes]) -> str:
    """One sentence on the promised analysis of a log; "" if the log has no protocol.

    A protocol, an analysis or methods that the log does not lead to are refused. Sentences of
    another version of the software may have other words, so they are not compared.
    exported: the files of a bundle by name, those of FILES that it has
    """
    made = files(log)
    if not made:
        if exported:
            raise ReplayError(
                f"{min(exported)}: the log has no protocol, so it is not of this study"
            )
        return ""
    if exported.get(PROTOCOL) not in (None, made[PROTOCOL].encode()):
        raise ReplayError(f"{PROTOCOL}: not the protocol that the log fixed")
    if RESULTS not in exported:
        return f"The promised analysis was computed; there is no {RESULTS} to compare it with."
    before, now = _read(exported[RESULTS]), json.loads(made[RESULTS])
    if before.get("analysis") != ANALYSIS:
        return f"{RESULTS} is of another version of the analysis and was not compared."
    same = all(before.get(key) == now[key] for key in _SOFTWARE)
    by = "" if same else f"; it was made by {_brief(before.get('software'))}, from another source"
    known = [one if same else _figures(one) for one in (before, now)]
    for path, old, new in _differences(known[0], known[1]):
        raise ReplayError(f"{RESULTS}: {path} is {_brief(old)}, computed again {_brief(new)}{by}")
    if same and exported.get(METHODS) not in (None, made[METHODS].encode()):
        raise ReplayError(f"{METHODS}: not what the analysis says")
    said = f"The promised analysis is as in {RESULTS}."
    if same:
        return said
    return f"{said} Only figures were compared: {by[2:]}."


def _figures(results: Mapping[str, Any]) -> dict[str, Any]:
    """The results without the software and the words, which differ by version."""
    said = {key: value for key, value in results.items() if key not in (*_SOFTWARE, "deviations")}
    if isinstance(flow := said.get("flow"), list):
        said["flow"] = [
            {key: value for key, value in row.items() if key != "what"}
            if isinstance(row, dict)
            else row
            for row in flow
        ]
    return said


def _read(content: bytes) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ReplayError(f"{RESULTS}: not a JSON object")
    return found


def _differences(one: object, two: object, path: str = "") -> Iterator[tuple[str, object, object]]:
    """Where two JSON values differ, beyond rounding: the path and both values."""
    if isinstance(one, dict) and isinstance(two, dict):
        for key in sorted(one.keys() | two.keys()):
            yield from _differences(one.get(key), two.get(key), f"{path}.{key}" if path else key)
    elif isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
        for number, pair in enumerate(zip(one, two, strict=True), start=1):
            yield from _differences(*pair, f"{path} {number}")
    elif isinstance(one, float) and isinstance(two, float | int):
        if not abs(one - two) <= 2 * 10.0**-_DIGITS:
            yield path, one, two
    elif one != two:
        yield path, one, two


def _brief(value: object) -> str:
    if isinstance(value, list | dict):
        return f"{len(value)} values"
    return json.dumps(value, ensure_ascii=False)[:80]


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(one) for one in value]
    return round(value, _DIGITS) if isinstance(value, float) else value


def _version() -> str:
    try:
        return version("dopl")
    except PackageNotFoundError:
        return "of a checkout"


@cache
def _source() -> str:
    """SHA-256 of the source of dopl_core: the names and contents of its modules, in order."""
    sha, root = hashlib.sha256(), Path(__file__).resolve().parents[2]
    for path in sorted(root.rglob("*.py")):
        sha.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return sha.hexdigest()
