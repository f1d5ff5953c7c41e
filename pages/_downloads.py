"""Files to take home."""

from collections.abc import Callable
from itertools import cycle
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.runtime import get_instance

from dopl_core.studies import csvtext
from pages._who import owners_check

_PLACES = cycle(range(8))  # for the files made last


def csv_button(
    label: str, table: pd.DataFrame | Callable[[], pd.DataFrame], name: str, **options: Any
) -> None:
    """A button that downloads a table; one given as a function is made when the button is clicked.

    options: of st.download_button
    """
    if callable(table):
        made_button(label, lambda: csv(table()), name, "text/csv", **options)
    else:
        st.download_button(label, csv(table), name, "text/csv", on_click="ignore", **options)


def made_button(
    label: str, make: Callable[[], str | bytes], name: str, kind: str, **options: Any
) -> None:
    """A button that downloads a file for the owner, made when the button is clicked.

    Streamlit throws away how a file is made when the page is drawn anew, so a click doesn't do
    that; and the file itself after any two pages were drawn, so it is held until it was fetched.
    """
    made = made_for_owner(make)

    def content() -> bytes:
        file = made()
        file = file.encode() if isinstance(file, str) else file
        place = f"download-{next(_PLACES)}"
        get_instance().media_file_mgr.add(file, kind, place, name, is_for_static_download=True)
        return file

    st.download_button(label, content, name, kind, on_click="ignore", **options)


def made_for_owner(make: Callable[[], str | bytes]) -> Callable[[], str | bytes]:
    """What a button downloads, made when it is clicked; and only if the owner still is the owner.

    It is made outside of the page, whose guard is not asked then.
    """
    check = owners_check()

    def content() -> str | bytes:
        if not check():
            raise PermissionError("only the owner downloads this")
        return make()

    return content


def csv(table: pd.DataFrame) -> str:
    """A table as CSV in which no spreadsheet finds a formula to run."""
    cells = table.astype(object).where(table.notna(), None)
    return csvtext.write(list(table.columns), cells.itertuples(index=False))
