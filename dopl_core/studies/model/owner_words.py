"""The owner's noun and word for a week inside of sentences.

English forms them from the owner's words. Other languages have genders and cases that nobody can
guess: there the noun is "people", and a week is one of the words below or "time".
"""

from dopl_core.studies.model.plurals import plural
from dopl_core.wording import LANGUAGE, SOURCE, _, format_number, gettext_noop, ngettext

# The words of most owners: in "chosen to wait this week", and in "better the next week".
_WEEKS = {
    "day": (gettext_noop("this day"), gettext_noop("the next day")),
    "week": (gettext_noop("this week"), gettext_noop("the next week")),
    "month": (gettext_noop("this month"), gettext_noop("the next month")),
    "visit": (gettext_noop("at this visit"), gettext_noop("at the next visit")),
}


def people(noun: str) -> str:
    """Several of them: patients; people in other languages than English."""
    return plural(noun) if LANGUAGE.get() == SOURCE else _("people")


def people_first(noun: str) -> str:
    """Several of them at the start of a sentence."""
    words = people(noun) if LANGUAGE.get() == SOURCE else _("People")
    return words[:1].upper() + words[1:]


def counted_people(noun: str, count: int) -> str:
    """So many of them: 8 patients; 8 people in other languages than English."""
    if LANGUAGE.get() == SOURCE:
        return f"{format_number(count)} {noun if count == 1 else plural(noun)}"
    return ngettext("{count} person", "{count} people", count).format(count=format_number(count))


def this_week(word: str) -> str:
    """When something is: this week."""
    if LANGUAGE.get() == SOURCE:
        return f"this {word}"
    return _(_WEEKS[word.casefold()][0]) if word.casefold() in _WEEKS else _("this time")


def the_next_week(word: str) -> str:
    """When something will be: the next week."""
    if LANGUAGE.get() == SOURCE:
        return f"the next {word}"
    return _(_WEEKS[word.casefold()][1]) if word.casefold() in _WEEKS else _("the next time")


def many_weeks(word: str, count: int) -> str:
    """A length of time: 3 weeks."""
    forms = {
        "day": ngettext("{count} day", "{count} days", count),
        "week": ngettext("{count} week", "{count} weeks", count),
        "month": ngettext("{count} month", "{count} months", count),
        "visit": ngettext("{count} visit", "{count} visits", count),
    }
    if form := forms.get(word.casefold()):
        return form.format(count=format_number(count))
    if LANGUAGE.get() == SOURCE:
        return f"{format_number(count)} {word if count == 1 else plural(word)}"
    return f"{format_number(count)} × {word}"
