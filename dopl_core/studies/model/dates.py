"""Dates as people write them in tables: ISO 8601, numbers, and days with points or slashes."""

import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from math import isfinite

from dopl_core.studies.model.errors import CsvError

_SHORT = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})")  # 31.12.2026, 12/31/2026


def moment(text: str) -> float:
    """A date or a time as the number of its day and the share of the day; or a number."""
    try:
        at = datetime.fromisoformat(text)
        at = at.astimezone(UTC).replace(tzinfo=None) if at.tzinfo else at
        midnight = datetime(at.year, at.month, at.day)
        return at.toordinal() + (at - midnight) / timedelta(days=1)
    except (ValueError, OverflowError):
        pass
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not isfinite(number):
        raise CsvError(f'when is "{text[:80]}": a date (2026-01-31) or a number needed')
    return number


def is_day_first(texts: Iterable[str]) -> bool | None:
    """Whether short dates begin with the day; None if they can be read both ways.

    Dates with points do. Otherwise a first number above 12 is a day, and a second one too.
    """
    found = [short for text in texts if (short := _SHORT.fullmatch(text))]
    if any(short[2] == "." or int(short[1]) > 12 for short in found):
        return True
    if any(int(short[3]) > 12 for short in found) or not found:
        return False
    return None


def to_iso(text: str, day_first: bool) -> str:
    """A short date in ISO 8601; any other text as it is."""
    short = _SHORT.fullmatch(text)
    if short is None:
        return text
    first, second, year = int(short[1]), int(short[3]), int(short[4])
    day, month = (first, second) if day_first else (second, first)
    try:
        return date(year, month, day).isoformat()
    except ValueError:
        raise CsvError(f'when is "{text}": there is no such date') from None
