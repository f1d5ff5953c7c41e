"""The language of a visit: how it is chosen, the switch on the page, and what the browser is told.

The order: what the person chose on this page or what the link names (`lang=hi`; the switch writes
its choice there), else the study's setting, else the browser's languages, else English.
"""

import streamlit as st

from dopl_core import wording
from dopl_core.wording import _

PARAMETER = "lang"
_KEY = "language"


def choose_language(of_study: str = "") -> None:
    """Use the language of this visit; of_study: the study's setting."""
    wanted = (st.query_params.get(PARAMETER, ""), of_study, _accepted_by_browser())
    wording.speak(wording.choose(*wanted))


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


def declare_language() -> None:
    """Tell the browser the page's language and direction: for voices, hyphens and mirroring."""
    code, way = wording.LANGUAGE.get(), wording.direction()
    page = "document.documentElement"
    script = f"{page}.lang = '{code}'; {page}.dir = '{way}'"
    st.html(f"<script>{script}</script>", unsafe_allow_javascript=True)


def _switch() -> None:
    st.query_params[PARAMETER] = st.session_state[_KEY]


def _accepted_by_browser() -> str:
    """The header in which the browser names its languages."""
    return st.context.headers.get("Accept-Language") or ""
