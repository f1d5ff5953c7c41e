"""Data from outside is refused in a sentence that names the thing, the place and the remedy."""

import re
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta, Struct

from dopl_core.validation import brief, check, check_value, convert, text, values, whole


@dataclass(frozen=True)
class Person:
    name: Annotated[str, text(10, blank=False)]
    age: Annotated[int, whole(0, 120)] = 30
    cells: Annotated[dict[Annotated[str, text(5)], str], Meta(max_length=2)] = field(
        default_factory=dict
    )

    def __post_init__(self) -> None:
        if self.name == "Nobody":
            raise ValueError("nobody cannot join")


class Team(Struct, forbid_unknown_fields=True):
    people: Annotated[list[Person], Meta(max_length=3)]
    colour: Literal["red", "blue"] = "red"
    share: Annotated[float, Meta(gt=0, le=1)] = 0.5
    is_open: bool = True
    most: Annotated[int, whole(1, 9)] | None = None


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (5, "team is 5: a table of keys needed"),
        ({}, 'team: key "people" is missing'),
        ({"people": [], "color": 1}, 'team: key "color" is unknown; known keys: colour, is_open'),
        ({"people": "all"}, "team: people is 'all': a list of at most 3 needed"),
        ({"people": [{}] * 4}, 'people: number 1: key "name" is missing'),
        ({"people": [{"name": "A"}] * 4}, "people is a list of 4: a list of at most 3 needed"),
        ({"people": [{"name": "A"}, {"name": " "}]}, "people: number 2: name is empty"),
        ({"people": [{"name": "Nobody"}]}, "nobody cannot join"),
        ({"people": [{"name": "A" * 11}]}, "name has 11 characters: at most 10 can be kept"),
        ({"people": [{"name": "A\0"}]}, "name has a character that cannot be kept"),
        ({"people": [{"name": "A\ud800"}]}, "name has a character that cannot be kept"),
        ({"people": [{"name": 7}]}, "name is 7: text needed"),
        ({"people": [{"name": "A", "age": 121}]}, "age is 121: a whole number from 0 to 120"),
        ({"people": [{"name": "A", "age": 1.0}]}, "age is 1.0: a whole number from 0 to 120"),
        ({"people": [{"name": "A", "age": True}]}, "age is True: a whole number from 0 to 120"),
        ({"people": [{"name": "A", "age": 10**400}]}, "age is a huge number: a whole number"),
        ({"people": [{"name": "A", "cells": {"a": 1}}]}, 'cells: "a" is 1: text needed'),
        ({"people": [{"name": "A", "cells": {"abcdef": ""}}]}, "cells: a name has 6 characters"),
        ({"people": [], "colour": "green"}, 'colour is "green": it must be one of blue, red'),
        ({"people": [], "share": float("nan")}, "share is nan: a number above 0 and at most 1"),
        ({"people": [], "share": 10**400}, "share is a huge number: a number above 0"),
        ({"people": [], "most": 10}, "team: most is 10: a whole number from 1 to 9 needed"),
        ({"people": [], "is_open": 1}, "is_open is 1: true or false needed"),
    ],
)
def test_an_error_names_the_thing_the_place_and_the_remedy(data: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        convert(data, Team, "team")


def test_a_dataclass_is_held_against_its_annotations() -> None:
    check(Person("Ann"))
    with pytest.raises(ValueError, match=r"^age is -1: a whole number from 0 to 120 needed$"):
        check(Person("Ann", -1))


def test_keys_that_a_dataclass_does_not_have_are_dropped_and_defaults_are_filled_in() -> None:
    ann = convert({"name": "Ann", "height": 2}, Person, "person")
    assert values(ann) == {"name": "Ann", "age": 30, "cells": {}}


def test_the_caller_chooses_the_error_and_the_names_of_entries() -> None:
    class OurError(ValueError):
        pass

    with pytest.raises(OurError, match=r"^the word is empty$"):
        check_value("the word", "\n", Annotated[str, text(10, blank=False)], OurError)
    places = {"team: people": lambda number, entry: f"person {number}"}
    with pytest.raises(ValueError, match=r'^person 2: key "name" is missing$'):
        convert({"people": [{"name": "A"}, {}]}, Team, "team", places=places)


def test_a_value_in_an_error_is_short() -> None:
    for value in ("x" * 10**6, [1] * 10**6, {"a": 1}, 10**400, -(10**30), object()):
        assert len(brief(value)) <= 80


def test_half_a_character_where_words_are_fixed_is_refused_in_a_sentence() -> None:
    class Note(Struct):
        colour: Literal["red", "blue"]

    with pytest.raises(ValueError, match="note: a text has a character that cannot be kept"):
        convert({"colour": "\ud800"}, Note, "note")
