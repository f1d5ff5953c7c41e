"""Tables that can be taken home as CSV files."""

from collections.abc import Callable
from typing import Any

import pandas as pd
import streamlit as st

from dopl_core.studies import csvtext
from pages._who import owners_check


def csv_button(
    label: str, table: pd.DataFrame | Callable[[], pd.DataFrame], name: str, **options: Any
) -> None:
    """A button that downloads a table; one given as a function is made when the button is clicked.

    options: of st.download_button
    """
    content = made_for_owner(lambda: csv(table())) if callable(table) else csv(table)
    st.download_button(label, content, name, "text/csv", **options)


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
