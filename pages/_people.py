"""Who takes part: those here, those who join, leave and come back, and what their cards show."""

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd
import streamlit as st

from dopl_core.studies import lists, roster, service
from dopl_core.studies.service import Arm, Study, StudyConfig
from pages import _roster
from pages._backend import store
from pages._done import say_done
from pages._lists import called, state_control
from pages._report import draft_of
from pages._trouble import said_plainly
from pages._words import plain


def show(study: Study) -> None:
    """Everybody who is here, and four things that can happen."""
    coming = service.coming_config(store(), study.id)
    noun = plain(coming.noun)
    here = [arm for arm in coming.arms if arm.present]
    st.markdown(f"**{len(here)} {noun}s.** {waiting(study.config, coming)}")
    now = service.present_states(store(), study.id)
    rows = [(arm.id, arm.label, arm.group, now.get(arm.id, arm.state) or "unknown") for arm in here]
    table = pd.DataFrame(rows, columns=["id", "name", "group", "state"])
    st.dataframe(table, hide_index=True, height=min(420, 38 + 35 * len(rows)))
    with st.expander("Somebody joins", icon=":material/person_add:"):
        joins(study, coming)
    with st.expander("Several join (CSV)", icon=":material/group_add:"):
        many_join(study, coming)
    with st.expander("Somebody leaves", icon=":material/person_remove:"):
        leaves(study, here, coming.budget)
    gone = [arm for arm in coming.arms if not arm.present]
    if gone:
        with st.expander("Somebody comes back", icon=":material/undo:"):
            comes_back(study, coming, gone)
    with st.expander("Photos on cards", icon=":material/photo_camera:"):
        photos(study, coming)
    if study.episode:
        with st.expander("Change what a card shows", icon=":material/edit:"):
            edit_card(study)


def photos(study: Study, coming: StudyConfig) -> None:
    """Pictures from a zip, and how many there are."""
    having = service.count_photos(store(), study.id)
    upload = st.file_uploader("Photos (zip)", type="zip", key=f"photos-{having}")
    if upload is None:
        st.caption(
            "Pictures named after ids, as p-017.jpg. They are made small, kept in the database, "
            "and seen by this study's annotators only; bundles do not have them."
        )
        if having:
            st.text(f"{having} of {len(coming.arms)} have a photo.")
            if st.button("Remove all photos", key="remove-photos"):
                service.remove_photos(store(), study.id)
                say_done("No card shows a photo any more.")
                st.rerun()
        return
    with said_plainly():
        found = service.read_photos(upload.getvalue(), coming, upload.name)
        st.text(f"{len(found.photos)} photos found.")
        if found.others:
            names = ", ".join(found.others[:10])
            st.text(f"{len(found.others)} files are named after nobody: {names}")
        if st.button("Show these on cards", key="keep-photos", disabled=not found.photos):
            service.keep_photos(store(), study.id, found.photos)
            say_done(f"{len(found.photos)} photos are on cards from now on.")
            st.rerun()


def waiting(config: StudyConfig, coming: StudyConfig) -> str:
    """What the next list will change."""
    here = {arm.id for arm in config.arms if arm.present}
    then = {arm.id for arm in coming.arms if arm.present}
    some = (("join", len(then - here)), ("leave", len(here - then)))
    parts = [f"{number} {word}{'s' * (number == 1)}" for word, number in some if number]
    return f"With the next list {' and '.join(parts)}." if parts else ""


def joins(study: Study, coming: StudyConfig) -> None:
    """One by hand; the fields are empty again when somebody has joined."""
    key = f"join-{coming.n_arms}"
    left, right = st.columns(2)
    arm = left.text_input("Id", key=f"{key}-id").strip()
    label = right.text_input("Name", key=f"{key}-name").strip()
    groups = list(dict.fromkeys(one.group for one in coming.arms))
    group = "all"
    if groups != ["all"]:
        group = left.selectbox("Group", groups, key=f"{key}-group", accept_new_options=True)
    state = state_control(coming, "State now", None, key=f"{key}-state")
    columns = fields(list(dict.fromkeys(c for one in coming.arms for c in one.columns)), {}, key)
    if st.button("Let them join", key="join"):
        with said_plainly():
            if not arm:
                raise ValueError("the id is empty: say who it is")
            let_join(study, [Arm(arm, label or arm, group or "all", state or "", columns)])


def many_join(study: Study, coming: StudyConfig) -> None:
    """The rows of a file that are new."""
    upload = st.file_uploader("Newcomers (CSV)", type=["csv", "txt", "tsv"], key="newcomers")
    if upload is None:
        st.caption("A file like the roster; those who are here already are left alone.")
        return
    with said_plainly():
        sheet = roster.open_sheet(upload.getvalue(), upload.name)
        columns = _roster.choose_columns(sheet, f"newcomers {upload.file_id}")
        if columns is None:
            return
        here = {arm.id for arm in coming.arms if arm.present}
        found = service.read_roster(sheet, coming.states, columns=columns)
        new = [arm for arm in found if arm.id not in here]
        st.text(f"{len(new)} new: {', '.join(arm.label for arm in new[:20])}")
        if st.button(f"Let these {len(new)} join", key="join-file", disabled=not new):
            let_join(study, new)


def let_join(study: Study, arms: Sequence[Arm]) -> None:
    service.join(store(), study.id, arms)
    names = ", ".join(arm.label for arm in arms[:5]) + (" and others" if len(arms) > 5 else "")
    say_done(f"{names}: here from the next list on.")
    st.rerun()


def leaves(study: Study, here: Sequence[Arm], budget: int) -> None:
    """Some of those who are here."""
    names = {arm.id: called(arm.label, arm.id) for arm in here}
    going = st.multiselect(
        "Who?", list(names), format_func=names.get, key=f"leave-{len(here)}", select_all=False
    )
    st.caption("They are in no duel any more and on no list; what is known of them is kept.")
    if st.button("They leave", key="leave", disabled=not going):
        with said_plainly():
            if len(here) - len(going) < budget:
                raise ValueError(
                    f"{len(here) - len(going)} would be left, and {budget} are helped at a time: "
                    "lower that in Settings first"
                )
            service.leave(store(), study.id, going)
            say_done(f"{', '.join(names[arm] for arm in going)}: on no list from now on.")
            st.rerun()


def comes_back(study: Study, coming: StudyConfig, gone: Sequence[Arm]) -> None:
    """One of those who had left, with the same number and all that is known."""
    arms = {arm.id: arm for arm in gone}
    names = {arm.id: called(arm.label, arm.id) for arm in gone}
    who = st.selectbox("Who?", list(names), format_func=names.get, index=None, key="back-who")
    if who is None:
        return
    state = state_control(coming, "State now", None, key=f"back-state-{who}")
    if st.button("Welcome back", key="come-back"):
        with said_plainly():
            let_join(study, [replace(arms[who], state=state or "", present=True)])


def edit_card(study: Study) -> None:
    """Fresh texts for one card; they come with the next report, as its columns do."""
    cards = lists.read_cards(store(), study.id)
    draft = draft_of(study)
    names = {arm.id: called(arm.label, arm.id) for arm in study.config.arms if arm.present}
    who = st.selectbox(
        "Whose card?", list(names), format_func=names.get, index=None, key="whose-card"
    )
    if who is None:
        st.caption("What you change is sent with your next report, and is on cards from then on.")
        return
    known = cards[who] | draft.columns.get(who, {})
    if not known:
        st.markdown("The roster has no columns for cards.")
        return
    fresh = fields(list(known), known, f"fresh-{who}")
    if st.button("Keep for the next report", key="edit-card"):
        draft.columns[who] = {c: text for c, text in fresh.items() if text != cards[who].get(c)}
        say_done(f"{names[who]}: the card changes with the next report.")
        st.rerun()


def fields(columns: Sequence[str], known: dict[str, str], key: str) -> dict[str, str]:
    """A field for each column of a card."""
    places = st.columns(3)
    return {
        column: places[n % 3].text_input(
            plain(column), known.get(column, ""), key=f"{key}-column-{column}"
        )
        for n, column in enumerate(columns)
    }
