"""The language of a visit: how it is chosen, the switch on the page, and what the browser is told.

The order: what the person chose on this page or what the link names (`lang=hi`; the switch writes
its choice there), else the study's setting, else the browser's languages, else English.
"""

from contextvars import ContextVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dopl_core import wording
from dopl_core.wording import _

PARAMETER = "lang"
_KEY = "language"
# The place of the script that tells the browser: one in a run, however often a language is chosen.
_declared: ContextVar[DeltaGenerator | None] = ContextVar("declared", default=None)


def prepare_language() -> None:
    """Choose a language before anything is known of the visitor; guards and pages choose again."""
    _declared.set(st.empty())
    choose_language()


def choose_language(of_study: str = "") -> None:
    """Use the language of this visit; of_study: the study's setting."""
    wanted = (st.query_params.get(PARAMETER, ""), of_study, _accepted_by_browser())
    _use(wording.choose(*wanted))


def use_english() -> None:
    """Use English: the owner's pages are not translated yet."""
    _use(wording.SOURCE)


def _use(code: str) -> None:
    """Use a language, and tell the browser: for voices, hyphens, and writing from right to left."""
    wording.speak(code)
    if (place := _declared.get()) is not None:
        page, way = "document.documentElement", wording.direction()
        script = f"{page}.lang = '{wording.LANGUAGE.get()}'; {page}.dir = '{way}'"
        place.html(f"<script>{script}</script>", unsafe_allow_javascript=True)


def show_language_switch() -> None:
    """A choice of languages; the address keeps what was chosen, also when the page is reloaded."""
    names = wording.languages()
    st.selectbox(
        _("Language"),
        list(names),
        index=list(names).index(wording.LANGUAGE.get()),
        format_func=lambda code: names[code],
        key=_KEY,
        on_change=_switch,
        width=220,
    )


def _switch() -> None:
    st.query_params[PARAMETER] = st.session_state[_KEY]


def _accepted_by_browser() -> str:
    """The header in which the browser names its languages."""
    return st.context.headers.get("Accept-Language") or ""
