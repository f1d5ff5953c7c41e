"""Sentences in the reader's language: gettext catalogues, plurals, numbers and dates.

A sentence stands in English where it is used: `_("Saved.")`. `dopl translate LANG` collects all of
them into data/locale/LANG/LC_MESSAGES/dopl.po, where they are translated. A sentence without a
translation stays English.

The language belongs to one visit. It is a context variable, so threads that serve different
visitors never share it; commands, exports and the owner's pages never set it and stay English.
"""

import functools
import math
import re
from collections.abc import Callable
from contextvars import ContextVar
from datetime import date
from gettext import GNUTranslations, NullTranslations
from io import BytesIO
from typing import ParamSpec, TypeVar

from dopl_core.paths import ROOT

SOURCE = "en"  # the language of the sentences in the code
CATALOGUES = ROOT / "data" / "locale"

P = ParamSpec("P")
T = TypeVar("T")
_BRITISH = "en_GB"  # how English numbers and dates are written
_ACCEPTED = re.compile(r"\s*([A-Za-z]{2,3})(?:-[\w-]*)?\s*(?:;\s*q=([01](?:\.\d+)?)\s*)?")
LANGUAGE: ContextVar[str] = ContextVar("language", default=SOURCE)


def speak(code: str) -> None:
    """Use this language from here on in this thread; English if there is no catalogue for it."""
    LANGUAGE.set(code if code in languages() else SOURCE)


def in_this_language(do: Callable[P, T]) -> Callable[P, T]:
    """The same function, run in the language in use now, whenever and in whatever thread it runs.

    For callbacks and fragments: Streamlit runs them without the page around them.
    """
    code = LANGUAGE.get()

    @functools.wraps(do)
    def spoken(*args: P.args, **options: P.kwargs) -> T:
        LANGUAGE.set(code)
        return do(*args, **options)

    return spoken


def _(sentence: str) -> str:
    """The sentence in the language in use."""
    return _catalogue(LANGUAGE.get()).gettext(sentence)


def ngettext(one: str, many: str, count: int) -> str:
    """The form of a sentence for this count: of two in English, of as many as a language has."""
    return _catalogue(LANGUAGE.get()).ngettext(one, many, count)


def gettext_noop(sentence: str) -> str:
    """The sentence as it is; marks it for translation where `_` is called with it later."""
    return sentence


def format_number(value: float) -> str:
    """A number as the language writes it: 1,234 or 1.234; with one decimal at most, below 10."""
    if math.isnan(value):
        return "–"
    code = LANGUAGE.get()
    shown = round(value, 1 if abs(value) < 10 else 0)
    return _formatter()(shown, locale=_BRITISH if code == SOURCE else code)


@functools.cache
def _formatter() -> Callable[..., str]:
    """Babel's formatter of numbers. It remembers what it wrote: a card has dozens of numbers."""
    from babel.numbers import format_decimal

    return functools.lru_cache(maxsize=4_096)(format_decimal)


def format_percent(share: float) -> str:
    """A share from 0 to 1 in percent."""
    return _("{number} %").format(number=format_number(round(100 * share)))


def format_day(when: date) -> str:
    """A day: 18 November 2026."""
    from babel.dates import format_date

    code = LANGUAGE.get()
    return format_date(when, "long", _BRITISH if code == SOURCE else code)


# The name of a week, by the owner's word for it.
_WEEKS = {
    "day": gettext_noop("Day {number}"),
    "week": gettext_noop("Week {number}"),
    "month": gettext_noop("Month {number}"),
    "visit": gettext_noop("Visit {number}"),
}


def numbered_week(word: str, week: int) -> str:
    """The name of a week: Week 3; word: the owner's for a week."""
    known = _WEEKS.get(word.casefold())
    return f"{word[:1].upper()}{word[1:]} {week}" if known is None else _(known).format(number=week)


@functools.cache
def languages() -> dict[str, str]:
    """The languages that have a catalogue, and English: code -> what its speakers call it."""
    from babel import Locale

    codes = {path.parents[1].name for path in CATALOGUES.glob("*/LC_MESSAGES/dopl.po")} | {SOURCE}
    names = {code: Locale.parse(code).get_language_name() or code for code in codes}
    return {code: names[code][:1].upper() + names[code][1:] for code in sorted(codes)}


def direction() -> str:
    """The direction of writing of the language in use: ltr, or rtl for right to left."""
    from babel import Locale

    return str(Locale.parse(LANGUAGE.get()).text_direction)


def choose(*wanted: str) -> str:
    """The first language that has a catalogue; wanted: codes, or Accept-Language headers."""
    for header in wanted:
        for code in _accepted(header):
            if code in languages():
                return code
    return SOURCE


def _accepted(header: str) -> list[str]:
    """The languages of an Accept-Language header, the most wanted first, without regions."""
    found = []
    for part in header[:1_000].split(","):
        match = _ACCEPTED.fullmatch(part)
        if match and (weight := float(match[2] or 1)) > 0:
            found.append((-weight, match[1].lower()))
    return [code for _weight, code in sorted(found, key=lambda one: one[0])]


@functools.cache
def _catalogue(code: str) -> NullTranslations:
    """The sentences of a language, read once from its .po file and compiled in memory."""
    if code == SOURCE:
        return NullTranslations()
    from babel.messages.mofile import write_mo
    from babel.messages.pofile import read_po

    with open(CATALOGUES / code / "LC_MESSAGES" / "dopl.po", "rb") as file:
        sentences = read_po(file, locale=code)
    for one in sentences:
        if isinstance(one.string, tuple) and not all(one.string):
            one.string = ""  # a plural without all its forms is not translated yet
    compiled = BytesIO()
    write_mo(compiled, sentences)
    compiled.seek(0)
    return GNUTranslations(compiled)
