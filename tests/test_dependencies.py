"""Dependencies: each has a reason, no known holes, and a locked version for servers."""

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
PYPROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
LOCK = (ROOT / "data" / "guides" / "server" / "requirements.lock").read_text(encoding="utf-8")


def locked() -> dict[str, str]:
    """Package -> version of the lock file; each has hashes."""
    entries = re.findall(r"^([\w.-]+)(?:\[[\w,]+\])?==(\S+) \\\n((?: .*\n)+)", LOCK, re.MULTILINE)
    assert all(re.fullmatch(r"(    --hash=sha256:[0-9a-f]{64}( \\)?\n)+", e[2]) for e in entries)
    assert len(entries) == LOCK.count("==")
    return {str(canonicalize_name(name)): version for name, version, _ in entries}


def needed() -> list[Requirement]:
    """What a server with PostgreSQL and sign-in installs."""
    project = tomllib.loads(PYPROJECT)["project"]
    extras = project["optional-dependencies"]
    return [
        Requirement(one) for one in project["dependencies"] + extras["postgres"] + extras["signin"]
    ]


def test_the_lock_file_has_a_version_within_bounds_for_every_dependency() -> None:
    versions = locked()
    for one in needed():
        version = versions[canonicalize_name(one.name)]
        assert one.specifier.contains(version), f"{one} is locked at {version}"


def test_the_lock_file_names_no_index() -> None:
    assert not re.search(r"://|--index|--extra-index|--find-links|--trusted-host", LOCK)


def test_servers_get_the_versions_that_ci_tests() -> None:
    pinned = re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / ".ci/constraints.txt").read_text(), re.M)
    tested = {str(canonicalize_name(name)): version for name, version in pinned}
    assert locked().items() <= tested.items()


def test_no_dependency_may_be_a_version_with_known_holes() -> None:
    holes = {"pillow": "12.3.0", "starlette": "1.3.0", "authlib": "1.7.0"}
    bounds = {one.name: one.specifier for one in needed()}
    for name, version in holes.items():
        assert not bounds[name].contains(Version(version)), name


def test_every_dependency_has_its_reason() -> None:
    section = PYPROJECT.partition("dependencies = [\n")[2].partition("\n]")[0]
    assert [line for line in section.splitlines() if not re.search(r'",\s+# \w', line)] == []


def test_the_audit_gives_up_within_five_seconds_and_ci_runs_it() -> None:
    audit = (ROOT / ".ci" / "audit").read_text()
    assert "! timeout 5 python3" in audit.partition("pip-audit: skipped")[0]
    assert "requirements.lock" in audit
    assert "\n.ci/audit\n" in (ROOT / ".ci" / "run").read_text()
