"""Who judges whom: limits of colleagues, and warnings about what nobody judges."""

import streamlit as st

from dopl_core import studies
from dopl_core.studies import Judging, Study, printable
from pages.shared.clicks import clicked
from pages.shared.errors import show_errors
from pages.shared.flash import flash, show_flash
from pages.shared.guards import store
from pages.shared.markdown import plain
from pages.studies.people_fields import name_and_id


def show(study: Study) -> None:
    """What each colleague judges, and a form that changes it."""
    found = studies.judging(store(), study.id)
    show_warnings(study, found)
    show_flash("judges")
    limited = [judge for judge in found.judges if judge.limit]
    with st.expander("Who judges whom", icon=":material/visibility:", expanded=bool(limited)):
        st.markdown(
            "Everybody judges all people, unless you limit them. A limit holds at once. You can "
            "set it before you send a link. A panel's link limits all its participants."
        )
        for judge in found.judges if limited else ():
            st.text(printable(studies.judge_text(judge, found, study.config.noun)))
        if limited:
            _limited_pairs(study, found.limited_pairs)
        _form(study, found)


def _limited_pairs(study: Study, now: bool) -> None:
    """Whether only pairs are asked that somebody who is limited may judge."""
    about = studies.SETTINGS["limited_pairs"].about
    if st.checkbox(about.label, now, key=f"limited-pairs {now}", help=about.help) != now:
        with show_errors():
            studies.limit_pairs(store(), study.id, not now)
            flash(
                "Saved. It holds from the next list on, or at once if nobody has answered yet.",
                "judges",
            )
            st.rerun()


def show_warnings(study: Study, found: Judging) -> None:
    """Comparisons that nobody may judge, and groups that no answer connects."""
    for warning in studies.judging_warnings(found, study.config.noun):
        st.warning(plain(warning), icon=":material/visibility_off:")


def _form(study: Study, found: Judging) -> None:
    """Choose a colleague, and whose cards they see."""
    limits = {judge.name: judge.limit for judge in found.judges}
    who = st.selectbox(
        "Colleague",
        list(limits),
        index=None,
        key="judge",
        format_func=printable,
        accept_new_options=True,
        placeholder="Choose a name, or type a new one",
    )
    if not who:
        return
    now = limits.get(who)
    only = dict(now.only) if now else {}
    offered = {name: list(values) for name, values in found.columns.items()}
    for name, values in only.items():  # as they were chosen, though nobody has them any more
        offered[name] = sorted({*offered.get(name, ()), *values})
    columns = st.multiselect("Limit by", list(offered), list(only), key=f"judge-columns {who}")
    chosen = {
        name: st.multiselect(
            f"Judges only people whose {plain(name)} is",
            offered[name],
            sorted(only.get(name, ())),
            format_func=lambda value: value or "(empty)",
            key=f"judge-values {who} {name}",
        )
        for name in columns
    }
    arms = {arm.id: arm for arm in studies.coming_config(store(), study.id).arms}
    never = st.multiselect(
        "Never sees the cards of",
        list(arms),
        sorted(now.never) if now else [],
        format_func=lambda arm: name_and_id(arms[arm].label, arm),
        key=f"judge-never {who}",
    )
    if clicked("Save", key="save-judge", disabled=not all(chosen.values())):
        with show_errors():
            studies.limit_annotator(store(), study.id, who, chosen, never)
            flash("Saved. It holds at once.", "judges")
            st.rerun()
