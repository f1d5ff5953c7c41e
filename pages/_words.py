"""Text that others wrote, made safe for the places that read Markdown."""

import re


def plain(text: str) -> str:
    """The text on one line, escaped so that Markdown shows it as it is."""
    one_line = " ".join(text.split())
    # Addresses become links and -> an arrow even where they are escaped: an invisible joiner parts
    # them.
    parted = re.sub(
        r"(?<=[<>=~-])(?=[<>=~-])|(?<=:)(?=//)|(?<=www)(?=\.)|(?=@)", "\u2060", one_line
    )
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", parted)
