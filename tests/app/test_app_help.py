"""The Help page shows the guides, and links of other pages lead to them."""

import re
from pathlib import Path

import pytest
from page_words import words

from dopl_core.paths import GUIDES

ROOT = Path(__file__).resolve().parents[2]
NAMES = sorted(file.stem for file in GUIDES.glob("*.md"))


def heading(name: str) -> str:
    return (GUIDES / f"{name}.md").read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")


@pytest.mark.parametrize("name", NAMES)
def test_every_guide_is_shown_under_its_heading(visit, name):
    app = visit("help", guide=name)
    assert not app.exception
    assert words(app).startswith(heading(name))


@pytest.mark.parametrize("name", ["", "nonsense", "../../pyproject"])
def test_without_a_known_name_the_first_guide_is_shown(visit, name):
    assert words(visit("help", guide=name)).startswith(heading("owner"))


@pytest.mark.parametrize("name", NAMES)
def test_guides_fetch_nothing_and_link_only_to_guides_that_exist(name):
    text = (GUIDES / f"{name}.md").read_text(encoding="utf-8")
    assert not re.search(r"!\[|<img|<script|<iframe", text)
    for guide in re.findall(r"\]\((\w+)\.md", text):
        assert guide in NAMES


def test_links_to_guides_lead_to_guides_that_exist():
    linked = set()
    for page in (ROOT / "pages").rglob("*.py"):
        linked |= set(re.findall(r'help_link\(\s*"(\w+)"', page.read_text(encoding="utf-8")))
    assert {"owner", "coordinator"} <= linked <= set(NAMES)
