"""What goes wrong, said to the person in words: nobody sees a crash."""

import functools
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import streamlit as st

from pages._words import plain

# Errors whose words are meant for people: StudyError, StoreError, CsvError and the like are
# ValueErrors, and the system's own (a full disk, a file that is gone) say what they are about.
EXPECTED = (ValueError, OSError)
UNEXPECTED = "Something went wrong. Nothing that was saved is lost; the server's log says more."
SECONDS = 8.0  # that trouble stays on a page which draws itself anew, some do it every second


@contextmanager
def said_plainly(stop: bool = False) -> Iterator[None]:
    """Show in words what is wrong with what a person gave; the page then goes on, or stops."""
    try:
        yield
    except EXPECTED as error:
        _show(_words_of(error))
        if stop:
            st.stop()


def safely(do: Callable[..., object]) -> Callable[..., None]:
    """A callback for `on_click` that does this, and keeps what goes wrong for `show_trouble`.

    Session state is left alone until all is done: a click that interrupts another ends it wherever
    it looks there.
    """

    @functools.wraps(do)
    def callback(*args: Any, **options: Any) -> None:
        words = ""
        try:
            do(*args, **options)
        except EXPECTED as error:
            words = _words_of(error)
        except Exception:
            logging.getLogger(__name__).exception("%s failed", getattr(do, "__name__", do))
            words = UNEXPECTED
        st.session_state.trouble = {"words": words, "until": None}

    return callback


def show_trouble() -> None:
    """Show what went wrong in the last callback; to be called where its button is drawn.

    A callback of a button in a fragment draws only the fragment anew.
    """
    trouble = st.session_state.get("trouble")
    if not trouble or not trouble["words"]:
        return
    trouble["until"] = trouble["until"] or time.monotonic() + SECONDS
    if time.monotonic() < trouble["until"]:
        _show(trouble["words"])


def _words_of(error: Exception) -> str:
    """What an error says, without the folders of the server."""
    if isinstance(error, OSError) and error.strerror:
        name = Path(str(error.filename)).name if error.filename else ""
        return f"{name}: {error.strerror}" if name else error.strerror
    return str(error)


def _show(words: str) -> None:
    st.error(plain(words), icon=":material/error:")
