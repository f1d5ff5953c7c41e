"""README and guides: their commands run, their links resolve, their names exist.

The language of a fence says what a test does with it: `bash` and `python` blocks run, those of one
document in order and in one folder; `toml` blocks are saved under the name in the line before;
`text` blocks are only shown.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from dopl_core import cli, studies
from dopl_core.experiments.learners import LEARNERS
from dopl_core.experiments.worlds import WORLDS
from dopl_core.experiments.worlds.trials import PREFIX

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
GUIDES = sorted((ROOT / "data" / "guides").glob("*.md"))
DOCUMENTS = [README, *GUIDES]
SERVER = ROOT / "data" / "guides" / "server"
MOST_WORDS = 1_600

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_SPAN = re.compile(r"`([^`\n]+)`")
_COMMAND = re.compile(r"(?:^|bin/|\$\(|&& )dopl ([a-z]+)(.*)", re.MULTILINE)

each_document = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
each_guide = pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.name)


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def blocks(path: Path, language: str) -> list[str]:
    """The fenced blocks of a document in one language."""
    return [body for info, body in _FENCE.findall(read(path)) if info == language]


def code(path: Path) -> list[str]:
    """Everything in a document that is shown as code."""
    text = read(path)
    return [body for _, body in _FENCE.findall(text)] + _SPAN.findall(_FENCE.sub("", text))


def commands(path: Path) -> list[tuple[str, str]]:
    """The `dopl` commands in a document, and the rest of their lines."""
    joined = (part.replace("\\\n", " ") for part in code(path))
    return [found for part in joined for found in _COMMAND.findall(part)]


def parsers() -> dict[str, argparse.ArgumentParser]:
    """The parser of each command of `dopl`."""
    [actions] = [
        action for action in cli.parser()._actions if isinstance(action, argparse._SubParsersAction)
    ]
    return dict(actions.choices)


# --- what can be run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the example files and a command `dopl` of this checkout."""
    shutil.copytree(ROOT / "data" / "rosters", tmp_path / "data" / "rosters")
    (tmp_path / "bin").mkdir()
    dopl = tmp_path / "bin" / "dopl"
    dopl.write_text(f'#!/bin/bash\nexec {sys.executable} -m dopl_core.cli "$@"\n')
    dopl.chmod(0o755)
    return tmp_path


def run(folder: Path, *command: str) -> str:
    """The output of a command that must succeed."""
    environment = os.environ | {
        "DOPL_DATABASE_URL": f"sqlite:///{folder}/dopl.db",
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
    }
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run_document(folder: Path, document: Path) -> str:
    """The output of all bash blocks of a document, run as one script."""
    saved = re.findall(r"as `([\w.]+)`:\n\n```toml\n(.*?)^```$", read(document), re.DOTALL | re.M)
    assert len(saved) == len(blocks(document, "toml"))
    for name, content in saved:
        (folder / name).write_text(content, encoding="utf-8")
    return run(folder, "bash", "-euo", "pipefail", "-c", "\n".join(blocks(document, "bash")))


@pytest.mark.long
@pytest.mark.parametrize(
    "document",
    [path for path in DOCUMENTS if blocks(path, "bash") and path.name != "owner.md"],
    ids=lambda path: path.name,
)
def test_every_command_that_can_be_run_succeeds(folder: Path, document: Path) -> None:
    run_document(folder, document)


@pytest.mark.long
def test_the_six_weeks_of_the_owners_guide_run_as_written(folder: Path) -> None:
    output = run_document(folder, ROOT / "data" / "guides" / "owner.md")
    assert "week 2 reported: " in output
    assert "2 unknown" in output
    assert re.search("week 2 (is )?corrected", output)
    assert "2 joined, 0 left" in output
    assert "0 joined, 1 left" in output
    assert "list of week 6 made, 3 to help" in output
    assert (folder / "data" / "rosters" / "six_weeks" / "clinic.zip").is_file()


@pytest.mark.parametrize(
    "document",
    [path for path in DOCUMENTS if blocks(path, "python")],
    ids=lambda path: path.name,
)
def test_python_examples_run(folder: Path, document: Path) -> None:
    run(folder, sys.executable, "-c", "\n".join(blocks(document, "python")))


@each_document
def test_every_fence_names_its_language(document: Path) -> None:
    languages = [info for info, _ in _FENCE.findall(read(document))]
    assert set(languages) <= {"bash", "python", "toml", "text"}
    assert read(document).count("\n```") == 2 * len(languages)


# --- what exists and what is mentioned


def test_every_command_is_documented_and_every_documented_command_exists() -> None:
    mentioned = {name for document in DOCUMENTS for name, _ in commands(document)}
    assert mentioned == parsers().keys()


def test_the_readme_lists_every_command() -> None:
    assert {name for name, _ in commands(README)} == parsers().keys()


@each_document
def test_options_in_commands_exist(document: Path) -> None:
    known = parsers()
    for name, line in commands(document):
        if name == "app":  # its other options are Streamlit's
            continue
        for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", line.partition("#")[0]):
            assert option in known[name]._option_string_actions, f"dopl {name}{line}"


@each_document
def test_options_named_alone_exist(document: Path) -> None:
    known = {option for parser in parsers().values() for option in parser._option_string_actions}
    spans = _SPAN.findall(_FENCE.sub("", read(document)))
    named = {word for span in spans if span.startswith("--") for word in span.split()}
    assert {word for word in named if word.startswith("--")} <= known


@pytest.mark.parametrize("name", sorted(parsers()))
def test_the_help_of_every_command_is_a_sentence(name: str) -> None:
    description = parsers()[name].description
    assert description
    assert description.endswith(".")


def test_the_owners_guide_explains_every_setting_that_can_change() -> None:
    section = read(ROOT / "data" / "guides" / "owner.md").partition("## Settings")[2]
    rows = re.findall(r"^\| ([\w, ]+) \|", section.partition("\n## ")[0], re.MULTILINE)
    names = [name for row in rows[1:] for name in row.split(", ")]
    changeable = [name for name, one in studies.SETTINGS.items() if one.about.changes != "never"]
    assert sorted(names) == sorted(changeable)


def test_the_researchers_guide_names_every_learner() -> None:
    named = _SPAN.findall(read(ROOT / "data" / "guides" / "researcher.md"))
    assert LEARNERS.keys() <= set(named)


def test_the_researchers_guide_names_every_drawn_world() -> None:
    section = read(ROOT / "data" / "guides" / "researcher.md").partition("| world | meaning |")[2]
    named = set(_SPAN.findall(section.partition("\n\n")[0]))
    assert WORLDS.keys() <= named
    assert f"{PREFIX}NAME" in named


@pytest.mark.parametrize("name", ["owner", "coordinator"])
def test_labels_in_a_guide_are_on_the_pages(name: str) -> None:
    """Labels are in italics and start with a capital."""
    shown = "".join(read(path) for path in (ROOT / "pages").rglob("*.py"))
    shown += "".join(one.about.label + "\n" for one in studies.SETTINGS.values())
    shown += "\n".join(studies.SECTIONS.values())
    text = _FENCE.sub("", read(ROOT / "data" / "guides" / f"{name}.md")).replace("**", "")
    labels = re.findall(r"\*([A-Z][^*\n]+)\*", text)
    assert labels
    assert [label for label in labels if label.rstrip(".") not in shown] == []


def test_tests_named_in_documents_exist() -> None:
    source = "".join(read(path) for path in (ROOT / "tests").rglob("test_*.py"))
    for document in DOCUMENTS:
        for name in re.findall(r"`(test_\w+)`", read(document)):
            assert f"def {name}(" in source, f"{document.name} names {name}: was it renamed?"


@each_document
def test_paths_in_documents_exist(document: Path) -> None:
    places = [
        span for span in code(document) if re.fullmatch(r"(data|tests|dopl_core)/[\w./]+", span)
    ]
    for place in places:
        assert (ROOT / place).exists(), f"{document.name} names {place}"


@each_document
def test_relative_links_resolve(document: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", read(document)):
        if not target.startswith("https://"):
            assert (document.parent / target.partition("#")[0]).exists(), target


@each_guide
def test_a_guide_has_a_title_and_links_to_other_guides_only(guide: Path) -> None:
    """The Help page shows guides alone: no pictures, and no files beside them."""
    text = _FENCE.sub("", read(guide))
    assert re.match(r"# \w.*\n\n", text)
    assert text.count("\n# ") == 0
    assert "![" not in text
    names = {path.name for path in GUIDES}
    for target in re.findall(r"\]\(([^)]+)\)", text):
        assert target in names, target


def test_the_readme_links_every_guide_and_has_at_most_1600_words() -> None:
    text = read(README)
    assert len(text.split()) <= MOST_WORDS
    for guide in GUIDES:
        assert f"](data/guides/{guide.name})" in text, guide.name


def test_the_readme_shows_the_folders_that_there_are() -> None:
    [tree] = [block for block in blocks(README, "text") if block.startswith("streamlit_app.py")]
    shown = set(re.findall(r"(\w+)/", tree)) | set(re.findall(r"\w+\.py", tree))
    existing = {path.name for path in ROOT.rglob("*") if ".git" not in path.parts}
    assert shown <= existing
    for parent in (ROOT / "dopl_core", ROOT / "dopl_core" / "studies", ROOT / "pages"):
        folders = {path.parent.name for path in parent.glob("*/*.py")}
        assert folders <= shown, f"{folders - shown} of {parent.name} is missing"


def test_ci_runs_the_tests_as_the_readme_says() -> None:
    section = read(README).partition("## How to test")[2]
    lines = [line.partition("#")[0].strip() for line in _FENCE.findall(section)[0][1].splitlines()]
    tests = [line for line in lines if line.startswith("pytest")]
    assert tests == ["pytest", "pytest -m long"]
    assert set(tests) <= set(read(ROOT / ".ci" / "run").splitlines())


def test_the_version_is_the_same_everywhere(capsys: pytest.CaptureFixture[str]) -> None:
    project = tomllib.loads(read(ROOT / "pyproject.toml"))["project"]
    with pytest.raises(SystemExit, match="0"):
        cli.main(["--version"])
    assert capsys.readouterr().out == f"dopl {project['version']}\n"
    citation = yaml.safe_load(read(ROOT / "CITATION.cff"))
    assert citation["version"] == project["version"]
    assert citation["license"] == project["license"]
    assert f"Version\n> {project['version']}" in read(README)
    newest = re.search(r"^## (\S+),", read(ROOT / "CHANGELOG.md"), re.MULTILINE)
    assert newest is not None
    assert newest[1] == project["version"]


def test_the_readme_and_the_citation_file_name_the_same_paper() -> None:
    paper = yaml.safe_load(read(ROOT / "CITATION.cff"))["preferred-citation"]
    section = re.sub(r"[*>\s]+", " ", read(README).partition("## How to cite")[2])
    assert paper["title"] in section
    for author in paper["authors"]:
        assert f"{author['given-names']} {author['family-names']}" in section


def test_the_contributors_page_is_one_screen() -> None:
    assert len(read(ROOT / "data" / "guides" / "contributing.md").splitlines()) <= 50


# --- the files for a server

_DIRECTIVES = {
    *("map", "upstream", "hash", "server", "listen", "server_name", "ssl_certificate"),
    *("ssl_certificate_key", "client_max_body_size", "add_header", "location", "proxy_pass"),
    *("proxy_http_version", "proxy_set_header", "proxy_read_timeout", "default"),
    *("proxy_buffer_size", "proxy_buffers"),
    *("limit_req_zone", "limit_req", "limit_req_status"),
    *("limit_conn_zone", "limit_conn", "limit_conn_status", "log_format", "access_log"),
}


def upload_limit() -> int:
    """The largest file that the app takes, in MB."""
    found = re.search(r"maxUploadSize = (\d+)", read(ROOT / ".streamlit" / "config.toml"))
    assert found is not None
    return int(found[1])


def test_the_proxys_file_has_balanced_braces_and_known_directives() -> None:
    text = re.sub(r'"[^"\n]*"', "TEXT", re.sub(r"#.*", "", read(SERVER / "nginx.conf")))
    depth = 0
    for character in text:
        depth += {"{": 1, "}": -1}.get(character, 0)
        assert depth >= 0
    assert depth == 0
    statements = [part.strip() for part in re.split(r"[;{}]", text) if part.strip()]
    assert {statement.split()[0] for statement in statements} <= _DIRECTIVES | {"TEXT"}


def test_the_proxy_limits_rates_and_connections_and_passes_on_the_port() -> None:
    text = read(SERVER / "nginx.conf")
    zones = set(re.findall(r"limit_(?:req|conn)_zone \$binary_remote_addr zone=(\w+):", text))
    used = set(re.findall(r"limit_req zone=(\w+)", text)) | set(
        re.findall(r"limit_conn (\w+) \d", text)
    )
    assert zones == used
    assert len(zones) == 3
    assert "proxy_set_header Host $http_host;" in text


def test_the_proxys_log_has_no_keys_and_no_links() -> None:
    text = read(SERVER / "nginx.conf")
    [logged] = re.findall(r"log_format dopl '(.*)';", text)
    assert "$uri" in logged.split()
    assert not {"$request", "$request_uri", "$args", "$http_referer"} & set(logged.split())
    assert re.findall(r"access_log \S+ (\w+);", text) == ["dopl"]


def test_the_proxy_takes_no_server_out_that_failed() -> None:
    """nginx lets one request in a while try it, which as a websocket ends only with the visit."""
    found = re.findall(r"^ +server [\d.:]+ (.*);", read(SERVER / "nginx.conf"), re.MULTILINE)
    assert found == ["max_fails=0"] * 2


def test_the_proxy_lets_the_largest_upload_through() -> None:
    found = re.search(r"client_max_body_size (\d+)m;", read(SERVER / "nginx.conf"))
    assert found is not None
    assert upload_limit() < int(found[1]) <= upload_limit() + 5


def test_the_guide_of_promises_states_the_upload_limit() -> None:
    assert f"{upload_limit()} MB a file" in read(ROOT / "data" / "guides" / "promises.md")


def test_the_unit_starts_the_app_with_a_key() -> None:
    lines = dict(
        line.split("=", 1)
        for line in read(SERVER / "dopl@.service").splitlines()
        if "=" in line and not line.startswith("#")
    )
    command, *arguments = lines["ExecStart"].split()
    assert command == "/opt/dopl/bin/dopl"
    known, _ = cli.parser().parse_known_args(arguments)
    assert known.key


def test_the_environment_file_names_variables_that_the_guide_explains() -> None:
    guide = read(ROOT / "data" / "guides" / "server.md")
    lines = [
        line for line in read(SERVER / "dopl.env.example").splitlines() if not line.startswith("#")
    ]
    names = {line.partition("=")[0] for line in lines}
    assert names == {"DOPL_DATABASE_URL", "FORWARDED_ALLOW_IPS"}
    assert all(f"| `{name}` |" in guide for name in names)
