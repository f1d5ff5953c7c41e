"""What goes wrong, said to the person in words: nobody sees a crash.

What is wrong with the database may name its host, its user or a folder: that is for the owner, and
for the log.
"""

import functools
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import streamlit as st

from dopl_core.studies.service import StoreError
from pages._who import Check, is_owner
from pages._words import plain

# Errors whose words are meant for people: StudyError, StoreError, CsvError and the like are
# ValueErrors, and the system's own (a full disk, a file that is gone) say what they are about.
EXPECTED = (ValueError, OSError)
UNEXPECTED = "Something went wrong. Nothing that was saved is lost; the server's log says more."
DOWN = "The database cannot be used just now."
SECONDS = 8.0  # that trouble stays on a page which draws itself anew, some do it every second
LOOK_AGAIN = 2.0  # seconds after which a page without its database looks for it


@contextmanager
def said_plainly(stop: bool = False, but: type[Exception] | tuple[()] = ()) -> Iterator[None]:
    """Show in words what is wrong with what a person gave; the page then goes on, or stops.

    but: errors that are left to others
    """
    try:
        yield
    except but:
        raise
    except EXPECTED as error:
        show(error)
        if stop:
            st.stop()


@contextmanager
def with_database() -> Iterator[None]:
    """Say when a page cannot be shown for want of its database, and go on when it is back."""
    try:
        yield
    except StoreError as error:
        said = time.monotonic()

        @st.fragment(run_every=LOOK_AGAIN)
        def look_again() -> None:
            st.caption("This page goes on by itself.")
            if time.monotonic() - said > LOOK_AGAIN / 2:
                st.rerun()

        show(error)
        look_again()
        st.stop()


def safely(do: Callable[..., object], allowed: Check = is_owner) -> Callable[..., None]:
    """A callback for `on_click` that does this, and keeps what goes wrong for `show_trouble`.

    A callback is run before the page's guard, so it asks by itself whether the person may: one who
    may not any more is turned away by the guard a moment later, and nothing is done.

    Session state is left alone until all is done: a click that interrupts another ends it wherever
    it looks there.
    """

    @functools.wraps(do)
    def callback(*args: Any, **options: Any) -> None:
        words = ""
        try:
            if allowed():
                do(*args, **options)
        except StoreError as error:
            words = f"Not saved. {_words_of(error)}"
        except EXPECTED as error:
            words = _words_of(error)
        except Exception:
            logging.getLogger(__name__).exception("%s failed", getattr(do, "__name__", do))
            words = UNEXPECTED
        st.session_state.trouble = {"words": words, "until": None}

    return callback


def show_trouble() -> bool:
    """Show what went wrong in the last callback, if anything; to be called where its button is.

    A callback of a button in a fragment draws only the fragment anew.
    """
    trouble = st.session_state.get("trouble")
    if not trouble or not trouble["words"]:
        return False
    trouble["until"] = trouble["until"] or time.monotonic() + SECONDS
    if time.monotonic() >= trouble["until"]:
        return False
    _show(trouble["words"])
    return True


def show(error: Exception) -> None:
    """Show an error in words."""
    _show(_words_of(error))


def _words_of(error: Exception) -> str:
    """What an error says to this person: nothing of the server's folders and addresses."""
    if isinstance(error, StoreError):
        logging.getLogger(__name__).warning("%s", error)
        return str(error) if _is_surely_owner() else DOWN
    if isinstance(error, OSError) and error.strerror:
        name = Path(str(error.filename)).name if error.filename else ""
        return f"{name}: {error.strerror}" if name else error.strerror
    return str(error)


def _is_surely_owner() -> bool:
    try:
        return is_owner()
    except StoreError:
        return False


def _show(words: str) -> None:
    st.error(plain(words), icon=":material/error:")
