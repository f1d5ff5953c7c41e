"""The People tab: who takes part, who joins, leaves and returns, and what cards show."""

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd
import streamlit as st

from dopl_core import studies
from dopl_core.studies import Arm, Study, StudyConfig
from pages.shared.clicks import clicked
from pages.shared.errors import show_errors
from pages.shared.flash import flash, show_flash
from pages.shared.guards import store
from pages.shared.markdown import plain
from pages.studies import erasure, roster_mapping
from pages.studies.people_fields import name_and_id, state_control
from pages.studies.report_tab import change_draft, draft_of


def show(study: Study) -> None:
    """The people in the study, and what can change."""
    coming = studies.coming_config(store(), study.id)
    nouns = plain(studies.plural(coming.noun))
    here = [arm for arm in coming.arms if arm.present]
    st.markdown(f"**{len(here)} {nouns}**{next_changes(study.config, coming)}.")
    now = studies.present_states(store(), study.id)
    rows = [(arm.id, arm.label, arm.group, now.get(arm.id, arm.state) or "unknown") for arm in here]
    table = pd.DataFrame(rows, columns=["ID", "Name", "Group", "State"])
    if set(table.Group) == {"all"}:
        table = table.drop(columns="Group")
    st.dataframe(table, hide_index=True, height=min(420, 38 + 35 * len(rows)))
    with st.expander("Add a person", icon=":material/person_add:"):
        joins(study, coming)
    with st.expander("Add several people (CSV or XLSX)", icon=":material/group_add:"):
        many_join(study, coming)
    with st.expander("A person leaves", icon=":material/person_remove:"):
        leaves(study, here, coming.budget)
    show_flash("back")
    left = (arm for arm in coming.arms if not arm.present)
    gone = [arm for arm in left if not studies.is_erased(arm.id, arm.label)]
    if gone:
        with st.expander("A person returns", icon=":material/undo:"):
            comes_back(study, coming, gone)
    with st.expander("Photos on cards", icon=":material/photo_camera:"):
        photos(study, coming)
    erasure.person(study, coming)
    if study.episode and study.epoch < study.config.horizon:  # not while the next list is made
        with st.expander("Change what a card shows", icon=":material/edit:"):
            edit_card(study)


def photos(study: Study, coming: StudyConfig) -> None:
    """Upload photos from a zip, or remove them."""
    show_flash("photos")
    having = studies.count_photos(store(), study.id)
    upload = st.file_uploader("Photos (zip)", type="zip", key=f"photos-{having}")
    if upload is None:
        st.caption(
            "Name each picture by its ID, such as p-017.jpg. Photos are made smaller and stored in "
            "the database. Only annotators of this study see them. Bundles do not contain them."
        )
        if having:
            st.text(f"{having} of {len(coming.arms)} people have a photo.")
            if clicked("Remove all photos", key="remove-photos"):
                studies.remove_photos(store(), study.id)
                flash("All photos are removed.", "photos")
                st.rerun()
        return
    with show_errors():
        found = studies.read_photos(upload.getvalue(), coming, upload.name)
        st.text(f"{len(found.photos)} photos found.")
        if found.unmatched:
            names = ", ".join(found.unmatched[:10])
            st.text(f"{len(found.unmatched)} files match no ID: {names}")
        if clicked("Show these photos on cards", key="keep-photos", disabled=not found.photos):
            studies.keep_photos(store(), study.id, found.photos)
            flash(f"Cards now show {len(found.photos)} photos.", "photos")
            st.rerun()


def next_changes(config: StudyConfig, coming: StudyConfig) -> str:
    """How many people join and leave with the next list."""
    here = {arm.id for arm in config.arms if arm.present}
    then = {arm.id for arm in coming.arms if arm.present}
    counts = (("join", len(then - here)), ("leave", len(here - then)))
    parts = [f"{number} {word}{'s' * (number == 1)}" for word, number in counts if number]
    return f" from the next list on: {' and '.join(parts)}" if parts else ""


def joins(study: Study, coming: StudyConfig) -> None:
    """Add one person; the fields are empty again afterwards.

    A form sends all fields with the click: a field left just before it cannot redraw the page.
    """
    show_flash("join")
    key = f"join-{coming.n_arms}"
    with st.form(key, border=False, enter_to_submit=False):
        left, right = st.columns(2)
        arm = left.text_input("ID", key=f"{key}-id").strip()
        label = right.text_input("Name", key=f"{key}-name").strip()
        groups = list(dict.fromkeys(one.group for one in coming.arms))
        group = "all"
        if groups != ["all"]:
            group = st.selectbox(
                "Group",
                groups,
                index=None,  # a group that nobody chose would count
                key=f"{key}-group",
                placeholder="Choose a group, or type a new one",
                accept_new_options=True,
            )
        state = state_control(coming, "State now", None, key=f"{key}-state")
        names = list(dict.fromkeys(c for one in coming.arms for c in one.columns))
        columns = fields(names, {}, key)
        done = clicked("Add this person", "join", st.form_submit_button)
    if done:
        with show_errors():
            if not arm:
                raise ValueError("the ID is empty: every person needs one")
            if not group:
                raise ValueError("the group is empty: choose one, or type a new one")
            add(study, [Arm(arm, label or arm, group, state or "", columns)], "join")


def many_join(study: Study, coming: StudyConfig) -> None:
    """Add the new people in a file."""
    show_flash("join-file")
    with show_errors():
        uploaded = roster_mapping.upload_table("New people", "newcomers")
        if uploaded is None:
            st.caption("Upload a file like the roster. People who take part are not changed.")
            return
        sheet, key = uploaded
        last = studies.remembered_columns(store(), study.id, "roster", sheet)
        columns = roster_mapping.choose_columns(sheet, key, last=last)
        if columns is None:
            return
        here = {arm.id for arm in coming.arms if arm.present}
        states = [state.label for state in coming.states]
        counts = studies.count_states(sheet, columns=columns)
        spelt = roster_mapping.settle_spelling(counts, f"{key} {columns.state}", states)
        if spelt is None:
            return
        found = studies.read_roster(sheet, states, columns=columns, spelt=spelt)
        new = [arm for arm in found if arm.id not in here]
        if not new:
            st.text(f"Everybody in {sheet.name} takes part already.")
            return
        st.text(f"{len(new)} new: {some_names([arm.label for arm in new], 20)}")
        if clicked(f"Add these {len(new)}", key="join-file"):
            studies.remember_columns(store(), study.id, "roster", columns)
            add(study, new, "join-file")


def add(study: Study, arms: Sequence[Arm], place: str) -> None:
    """Let people join; place: where to say so."""
    studies.join(store(), study.id, arms)
    names = some_names([arm.label for arm in arms], 5)
    verb = "takes" if len(arms) == 1 else "take"
    flash(f"{names} {verb} part from the next list on.", place)
    st.rerun()


def some_names(names: Sequence[str], most: int) -> str:
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def leaves(study: Study, here: Sequence[Arm], budget: int) -> None:
    """Choose people who leave the study."""
    show_flash("leave")
    names = {arm.id: name_and_id(arm.label, arm.id) for arm in here}
    going = st.multiselect(
        "Who leaves?",
        list(names),
        format_func=names.get,
        key=f"leave-{len(here)}",
        select_all=False,
    )
    st.caption("They are no longer compared or listed. Their data are kept.")
    if clicked("Remove from the study", key="leave", disabled=not going):
        with show_errors():
            if len(here) - len(going) < budget:
                raise ValueError(
                    f"{len(here) - len(going)} people would remain, but each list has {budget} "
                    "places: lower that number in Settings first"
                )
            before = listed_now(study)
            studies.leave(store(), study.id, going)
            left = some_names([names[arm] for arm in going], 5)
            said = f"{left} will not be on any list from now on."
            if moved_up := [name for arm, name in listed_now(study).items() if arm not in before]:
                verb = "is" if len(moved_up) == 1 else "are"
                said += f" {some_names(moved_up, 5)} {verb} on this list in their place."
            flash(said, "leave")
            st.rerun()


def listed_now(study: Study) -> dict[str, str]:
    """The names of the people on the newest list, by id."""
    weeks = studies.read_lists(store(), study.id, last=1)
    return {one.id: name_and_id(one.label, one.id) for week in weeks for one in week.listed}


def comes_back(study: Study, coming: StudyConfig, gone: Sequence[Arm]) -> None:
    """Re-admit a person who left, with all that is known about them."""
    arms = {arm.id: arm for arm in gone}
    names = {arm.id: name_and_id(arm.label, arm.id) for arm in gone}
    who = st.selectbox(
        "Who returns?", list(names), format_func=names.get, index=None, key="back-who"
    )
    if who is None:
        return
    state = state_control(coming, "State now", None, key=f"back-state-{who}")
    if clicked("Re-admit", key="come-back"):
        with show_errors():
            add(study, [replace(arms[who], state=state or "", present=True)], "back")


def edit_card(study: Study) -> None:
    """Change the text of a card; the change is part of the next report."""
    show_flash("card")
    cards = studies.read_cards(store(), study.id)
    draft = draft_of(study)
    names = {arm.id: name_and_id(arm.label, arm.id) for arm in study.config.arms if arm.present}
    who = st.selectbox(
        "Whose card?", list(names), format_func=names.get, index=None, key="whose-card"
    )
    if who is None:
        st.caption("Cards and lists show the change after your next report.")
        return
    known = cards[who] | draft.columns.get(who, {})
    if not known:
        st.markdown("Your roster has no columns for cards.")
        return
    fresh = fields(list(known), known, f"fresh-{who}")
    if clicked("Save for the next report", key="edit-card"):
        changed = {c: text for c, text in fresh.items() if text != cards[who].get(c)}
        with show_errors():
            change_draft(study, lambda draft: draft.columns.update({who: changed}))
            flash(f"The card of {names[who]} changes with the next report.", "card")
            st.rerun()


def fields(columns: Sequence[str], known: dict[str, str], key: str) -> dict[str, str]:
    """A text field for each column of a card."""
    filled_in = {}
    for start in range(0, len(columns), 3):  # row by row, which is also the order on a phone
        for column, place in zip(columns[start : start + 3], st.columns(3), strict=False):
            given = (plain(column), known.get(column, ""))
            filled_in[column] = place.text_input(*given, key=f"{key}-column-{column}")
    return filled_in
