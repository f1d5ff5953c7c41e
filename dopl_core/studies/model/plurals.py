"""The plural of a noun, and numbers with their nouns."""

import re

_OWN = {"person": "people", "child": "children", "man": "men", "woman": "women"}


def plural(noun: str) -> str:
    """Several of them: patients, families, people, young women."""
    *before, last = noun.split(" ")
    if last in _OWN:
        return " ".join([*before, _OWN[last]])
    if re.search("[^aeiou]y$", noun):
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "x", "ch", "sh")) else f"{noun}s"


def count(number: int, noun: str) -> str:
    """A number with its noun: 1 week, 2 weeks."""
    return f"{number:,} {noun if number == 1 else plural(noun)}"
