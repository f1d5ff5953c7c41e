"""Help: the guides in data/guides, one at a time."""

import re

import streamlit as st

from dopl_core.paths import GUIDES
from pages.shared.guards import only

only("owner", "coordinator")

FIRST = ("owner", "coordinator", "researcher", "server", "security", "how_it_learns", "promises")


def read_guides() -> dict[str, str]:
    """The text of every guide by its name, those for beginners first."""
    files = {file.stem: file for file in sorted(GUIDES.glob("*.md"))}
    names = [name for name in FIRST if name in files] + [n for n in files if n not in FIRST]
    return {name: files[name].read_text(encoding="utf-8") for name in names}


def split(guide: str) -> tuple[str, str]:
    """A guide's title, which is its first heading, and the text below it."""
    heading, _, text = guide.partition("\n")
    return heading.removeprefix("#").strip(), text


def linked(text: str, names: list[str]) -> str:
    """The text with links to other guides that work on this page."""
    return re.sub(rf"\]\(({'|'.join(names)})\.md", r"](help?guide=\1", text)


guides = read_guides()
names = list(guides)
if not names:
    st.title("Help", anchor=False)
    st.markdown("No guides are installed.")
    st.stop()
asked = st.query_params.get("guide", "")
chosen = st.segmented_control(
    "Guide",
    names,
    default=asked if asked in names else names[0],
    format_func=lambda name: split(guides[name])[0],
    required=True,
    label_visibility="collapsed",
)
st.query_params["guide"] = chosen
title, text = split(guides[chosen])
st.title(title, anchor=False)
st.markdown(linked(text, names))
