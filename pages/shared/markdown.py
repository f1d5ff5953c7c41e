"""Markdown escaping for text from users."""

import re


def plain(text: str) -> str:
    """The text on one line, escaped so that Markdown shows it as it is."""
    one_line = " ".join(text.split())
    # Escaping does not stop addresses from becoming links, nor -> from becoming an arrow: an
    # invisible character between their parts does.
    parted = re.sub(
        r"(?<=[<>=~-])(?=[<>=~-])|(?<=:)(?=//)|(?<=www)(?=\.)|(?=@)", "\u2060", one_line
    )
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", parted)
