"""The plural of a noun, and numbers with their nouns."""

import pytest

from dopl_core import studies
from dopl_core.studies.model.plurals import count


@pytest.mark.parametrize(
    ("noun", "nouns"),
    [
        ("patient", "patients"),
        ("person", "people"),
        ("young woman", "young women"),
        ("family", "families"),
        ("boy", "boys"),
        ("class", "classes"),
        ("चिकित्सा", "चिकित्साs"),
    ],
)
def test_nouns_have_their_plural(noun: str, nouns: str) -> None:
    assert studies.plural(noun) == nouns


def test_one_stands_with_the_singular_and_thousands_have_a_comma() -> None:
    assert [count(n, "family") for n in (0, 1, 2000)] == [
        "0 families",
        "1 family",
        "2,000 families",
    ]
