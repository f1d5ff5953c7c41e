"""Clicks on buttons are kept until the page has acted on them."""

import re
from pathlib import Path

from streamlit.runtime.state import session_state

from dopl_core import studies

PAGES = Path(__file__).resolve().parents[2] / "pages"


def test_a_click_counts_although_an_earlier_run_ends_after_it_came(visit, store, monkeypatch):
    arms = [studies.Arm(f"p{n}", f"P {n}", "all", "Low") for n in range(4)]
    config = studies.from_roster(arms, ["Low", "High"], title="Ward", budget=2)
    study = studies.create_study(store, config)
    app = visit("studies", study=study, tab="Settings")
    app.checkbox(key="hide_state set").check().run()
    begin = session_state.SessionState.on_script_will_rerun

    def begin_while_another_run_ends(state, *args, **options):
        begin(state, *args, **options)
        state.on_script_finished(frozenset(), remove_stale_widgets=False)

    monkeypatch.setattr(
        session_state.SessionState, "on_script_will_rerun", begin_while_another_run_ends
    )
    app.button(key="save").click().run()
    assert studies.coming_config(store, study).hide_state
    assert "Saved" in app.success[0].value


def test_a_click_that_no_page_acted_on_is_forgotten(router):
    router.session_state["clicked"] = "delete"
    assert "clicked" not in router.run().session_state


def test_pages_ask_whether_a_button_was_clicked_in_one_way_only():
    asked = re.compile(r"\b(if|and|or|not|=|return) *\(?[\w.]*\b(form_submit_)?button\(")
    for file in {*PAGES.rglob("*.py")} - {PAGES / "shared" / "clicks.py"}:
        assert not asked.search(file.read_text()), file
