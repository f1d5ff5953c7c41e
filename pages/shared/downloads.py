"""Buttons that download files."""

from collections.abc import Callable, Iterator
from itertools import cycle
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.runtime import get_instance

from dopl_core import studies
from dopl_core.studies import write_csv, write_xlsx
from pages.shared.guards import acting_as, store, visitors_check

XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
_PLACES = cycle(range(8))  # names under which the last files are held


def csv_button(
    label: str,
    table: pd.DataFrame | Callable[[], pd.DataFrame],
    name: str,
    study: str | None = None,
    **options: Any,
) -> None:
    """A button that downloads a table; a function is called when the button is clicked.

    study: the study of the data, or ALL_STUDIES, for the audit trail
    options: of st.download_button
    """
    if callable(table):
        file_button(label, lambda: csv(table()), name, "text/csv", study, **options)
    elif study is not None:
        file_button(label, lambda: csv(table), name, "text/csv", study, **options)
    else:
        st.download_button(label, csv(table), name, "text/csv", on_click="ignore", **options)


def file_button(
    label: str,
    make: Callable[[], str | bytes],
    name: str,
    kind: str,
    study: str | None = None,
    **options: Any,
) -> None:
    """A button that downloads a file for a member, made when the button is clicked.

    A click does not draw the page again, because Streamlit would drop the function before it is
    called. The file is held until it was fetched: Streamlit drops it after any two page runs.
    study: as of csv_button
    """
    made = for_visitor(make, study, name)

    def content() -> bytes:
        file = made()
        file = file.encode() if isinstance(file, str) else file
        place = f"download-{next(_PLACES)}"
        get_instance().media_file_mgr.add(file, kind, place, name, is_for_static_download=True)
        return file

    st.download_button(label, content, name, kind, on_click="ignore", **options)


def for_visitor(
    make: Callable[[], str | bytes], study: str | None = None, name: str = ""
) -> Callable[[], str | bytes]:
    """A function that makes the file only if the visitor still may have it, and records that.

    It runs outside of the page, so the page's guard does not protect it.
    """
    check = visitors_check()

    def content() -> str | bytes:
        actor = check()
        if not actor.roles:
            raise PermissionError("only members may download this")
        with acting_as(actor):
            if study is not None:
                studies.download(store(), study, name)
            return make()

    return content


def xlsx_button(label: str, table: pd.DataFrame, name: str, study: str | None = None) -> None:
    """A button that downloads a table as a spreadsheet; study: as of csv_button."""
    file_button(label, lambda: write_xlsx(list(table.columns), _cells(table)), name, XLSX, study)


def csv(table: pd.DataFrame) -> str:
    """A table as CSV without cells that a spreadsheet would run as formulas.

    It begins with a byte-order mark, by which Excel knows that it is UTF-8.
    """
    return "\ufeff" + write_csv(list(table.columns), _cells(table))


def _cells(table: pd.DataFrame) -> Iterator[tuple[Any, ...]]:
    """The rows of a table, with None where a cell is empty."""
    return table.astype(object).where(table.notna(), None).itertuples(index=False)
