"""Errors, shown to people as sentences: nobody sees a traceback.

An error of the database may name its host, its user or a folder. The owner and the server's log
get that text; everybody else is told that the database is down.
"""

import functools
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import streamlit as st

from dopl_core.studies import RefusedError, Store, StoreError
from dopl_core.wording import LANGUAGE, _, gettext_noop, in_this_language
from pages.shared.clicks import forget_click
from pages.shared.guards import Check, is_member, is_owner, store
from pages.shared.markdown import plain

# Errors whose text is meant for people: StudyError, StoreError and CsvError are ValueErrors, and
# those of the operating system (a full disk, a missing file) name what they are about.
EXPECTED = (ValueError, OSError)
UNEXPECTED = gettext_noop(
    "Something went wrong. Your saved data are safe. The server's log has the details."
)
DOWN = gettext_noop("The database is down at the moment.")
SECONDS = 8.0  # how long an error stays on a page that draws itself again
LOOK_AGAIN = 2.0  # seconds after which a page without its database tries again


@contextmanager
def show_errors(stop: bool = False, but: type[Exception] | tuple[()] = ()) -> Iterator[None]:
    """Show an error in place of a traceback; the page then continues, or stops.

    but: errors that are passed on to the caller
    """
    try:
        yield
    except but:
        raise
    except EXPECTED as error:
        show(error)
        if stop:
            forget_click()
            st.stop()


@contextmanager
def with_database() -> Iterator[None]:
    """Say that the database is down, and draw the page as soon as it is back.

    A refusal by the gate that no page expected is shown as a sentence, too.
    """
    try:
        yield
    except RefusedError as error:
        show(error)
        forget_click()
        st.stop()
    except StoreError as error:
        forget_click()
        shown_at = time.monotonic()

        @st.fragment(run_every=LOOK_AGAIN)
        @in_this_language
        def look_again() -> None:
            st.caption(_("This page continues by itself."))
            if time.monotonic() - shown_at > LOOK_AGAIN / 2:
                st.rerun()

        show(error)
        look_again()
        st.stop()


def safely(do: Callable[..., object], allowed: Check = is_member) -> Callable[..., None]:
    """A callback for `on_click` that calls `do`, and keeps an error for `show_last_error`.

    A callback runs before the page's guard, so it checks by itself whether the person is allowed
    to do this. If not, nothing is done, and the guard turns them away a moment later. A database
    among the arguments acts for the person as they are now, not as they were when it was drawn.

    Session state is not touched before `do` has returned: a second click would interrupt the first
    at any access to it.
    """

    code = LANGUAGE.get()  # callbacks run before the page, so they do not know the language

    @functools.wraps(do)
    def callback(*args: Any, **options: Any) -> None:
        LANGUAGE.set(code)
        words = ""
        try:
            if allowed():
                do(*(store() if isinstance(one, Store) else one for one in args), **options)
        except StoreError as error:
            words = _("Not saved. {reason}").format(reason=_words_of(error))
        except EXPECTED as error:
            words = _words_of(error)
        except Exception:
            logging.getLogger(__name__).exception("%s failed", getattr(do, "__name__", do))
            words = _(UNEXPECTED)
        st.session_state.last_error = {"words": words, "until": None}

    return callback


def show_last_error() -> bool:
    """Show the error of the last callback, if there was one; whether one is shown.

    Call it where the button is: a callback of a button in a fragment draws only the fragment.
    """
    last = st.session_state.get("last_error")
    if not last or not last["words"]:
        return False
    last["until"] = last["until"] or time.monotonic() + SECONDS
    if time.monotonic() >= last["until"]:
        return False
    _show(last["words"])
    return True


def last_click_failed() -> bool:
    """Whether the last callback made by `safely` failed."""
    return bool(st.session_state.last_error["words"])


def show(error: Exception) -> None:
    """Show an error as a sentence."""
    _show(_words_of(error))


def _words_of(error: Exception) -> str:
    """The text of an error for this person, without the server's folders and addresses."""
    if isinstance(error, StoreError):
        logging.getLogger(__name__).warning("%s", error)
        return str(error) if _is_surely_owner() else _(error.public or DOWN)
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
