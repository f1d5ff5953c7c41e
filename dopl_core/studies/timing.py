"""What a browser says of the time an answer took, believed as far as it can be true."""

from dataclasses import dataclass
from typing import Any

_LONGEST_MS = 24 * 3600 * 1000
_SLACK_MS = 250  # clocks do not run alike


@dataclass(frozen=True)
class Timing:
    """See history.Impression; what is not known is None."""

    response_ms: int
    trip_ms: int | None = None
    narrow: bool | None = None


def heard(said: Any, impression: int, server_ms: int) -> Timing:
    """The times of an answer, from what its browser said, which may be anything.

    server_ms: from drawing the cards to the click by the server's clock, the way there and back
        included: nobody can have looked at them longer, and it is the fallback
    """
    if not isinstance(said, dict) or said.get("impression") != impression:
        return Timing(max(0, server_ms))
    response, trip = (_whole(said.get(what)) for what in ("response", "trip"))
    narrow = said.get("narrow")
    if response is None or response > server_ms + _SLACK_MS:
        return Timing(max(0, server_ms))
    return Timing(response, trip, narrow if isinstance(narrow, bool) else None)


def _whole(value: Any) -> int | None:
    """Milliseconds, if it is a number of them that can be."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if number and 0 <= value <= _LONGEST_MS else None
