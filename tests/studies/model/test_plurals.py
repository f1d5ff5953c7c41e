"""The plural of the owner's noun."""

import pytest

from dopl_core import studies


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
