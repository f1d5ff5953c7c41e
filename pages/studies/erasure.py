"""Erasing a person, an annotator or everybody: a confirmation, and a receipt to print."""

from collections.abc import Callable

import streamlit as st

from dopl_core import studies
from dopl_core.studies import Erasure, Study, StudyConfig, access, printable
from pages.shared.clicks import clicked
from pages.shared.errors import show_errors
from pages.shared.guards import may, store
from pages.studies.people_fields import name_and_id
from pages.studies.print_sheet import print_text

_FOR_GOOD = "Yes, erase this for good. It cannot be undone."


def person(study: Study, coming: StudyConfig) -> None:
    """Choose a person whose data are erased, present or not."""
    if not may(study.id, "owner"):
        return
    _show_receipt("person")
    with st.expander("Erase a person's data", icon=":material/delete_forever:"):
        known = [arm for arm in coming.arms if not studies.is_erased(arm.id, arm.label)]
        names = {arm.id: name_and_id(arm.label, arm.id) for arm in known}
        st.markdown(
            "Id, name, facts on cards, photo, flags and comments about them are erased. They leave "
            "the study. What is known of their states stays without their name."
        )
        who = st.selectbox("Who?", list(names), format_func=names.get, index=None, key="erase-who")
        label = "Also leave the answers about them and their states out of the next lists"
        _erase("person", label, who, lambda answers: _person(study, who, answers))


def annotator(study: Study) -> None:
    """Choose an annotator whose name and comments are erased."""
    if not may(study.id, "owner"):
        return
    _show_receipt("annotator")
    with st.expander("Erase an annotator's data", icon=":material/delete_forever:"):
        st.markdown(
            "Name, link, flags and comments are erased. Their answers stay without their name. "
            "Annotators can also withdraw by themselves, under *My answers*."
        )
        found = studies.answers(store(), study.id).annotator
        links = [one.annotator for one in access.invites(store(), study.id)]
        names = dict.fromkeys([*found, *studies.past_annotators(store(), study.id), *links])
        known = [name for name in names if not studies.is_erased(name)]
        who = st.selectbox("Who?", known, format_func=printable, index=None, key="erase-whom")
        label = "Also leave their answers out of the next lists"
        _erase("annotator", label, who, lambda answers: _annotator(study, who, answers))


def everybody(study: Study) -> None:
    """Erase all personal data when the study has ended."""
    if not may(study.id, "owner"):
        return
    _show_receipt("everybody")
    with st.expander("Erase all personal data of this study", icon=":material/delete_forever:"):
        st.markdown(
            "Use it when the study has ended. All names, ids, facts, photos, links and comments "
            "are erased, and the study is closed. States, times and answers stay. You can still "
            "export the study, without names."
        )
        _erase("all", "", study.id, lambda _: studies.erase_everybody(store(), study.id))


def _person(study: Study, who: str | None, answers: bool) -> Erasure:
    return studies.erase_person(store(), study.id, who or "", answers=answers)


def _annotator(study: Study, who: str | None, answers: bool) -> Erasure:
    return studies.erase_annotator(store(), study.id, who or "", answers=answers)


def _erase(key: str, label: str, who: str | None, do: Callable[[bool], Erasure]) -> None:
    """The choice about answers, the confirmation, and the button.

    Named after whom it is about: nobody confirms one and erases another.
    """
    answers = bool(label) and st.checkbox(label, key=f"erase-answers-{key}-{who}")
    sure = st.checkbox(_FOR_GOOD, key=f"erase-sure-{key}-{who}", disabled=not who)
    if clicked("Erase", key=f"erase-{key}", disabled=not (who and sure)):
        with show_errors():
            done = do(answers)
            st.session_state.receipt = (done.what, studies.receipt_text(done))
            st.rerun()


def _show_receipt(what: str) -> None:
    """The receipt of the last erasure, until the next one; it can be printed.

    The container is always there: expanders below it stay as they are.
    """
    about, words = st.session_state.get("receipt") or ("", "")
    with st.container(border=about == what):
        if about == what:
            st.success("Erased. This is the receipt.", icon=":material/check_circle:")
            st.text(words)
            print_text("Receipt of an erasure", words, "print-receipt")
