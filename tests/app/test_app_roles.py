"""Pages as each role sees them: of this study, of another, of a member who was removed."""

import pytest
import streamlit as st
from clinic_page import click, keys, make, open_tab, said

from dopl_core import studies
from dopl_core.studies import ALL_STUDIES, access
from pages.shared import downloads, guards
from pages.shared.visitors import has_role

PAGES = ("home", "annotate", "studies", "insights", "simulate", "help", "list", "audit", "account")
CLOSED = ("You need a link", "This page is closed to you")
OPENS = {
    "owner": {"annotate", "studies", "insights", "help", "list", "audit"},
    "coordinator": {"studies", "insights", "help", "list"},
    "reader": {"list"},
    "annotator": {"annotate"},
}
NAME = "ann@clinic.example"
HOST = "clinic.example"


def sign_in(store, come_in, role, study):
    """Visit from another computer as somebody who has signed in and has a role in a study."""
    studies.add_member(store, study, NAME, role)
    come_in(access.begin_member_session(store, NAME, {"email": NAME}, HOST))


def is_open(app):
    assert not app.exception
    return not (app.title and app.title[0].value in CLOSED)


@pytest.fixture
def switched(monkeypatch):
    """The pages that home opens in its place."""
    found = []

    def switch(page, **_):
        found.append(page)
        st.stop()

    monkeypatch.setattr(st, "switch_page", switch)
    return found


@pytest.mark.parametrize("role", OPENS)
def test_a_role_opens_its_pages_in_its_own_study(visit, store, clinic, come_in, switched, role):
    other = make(store, title="Another clinic")
    sign_in(store, come_in, role, clinic)
    for name in set(PAGES) - {"home"}:
        app = visit(name, study=clinic)
        assert is_open(app) == (name in OPENS[role] | {"account"}), name
        assert "Another clinic" not in said(app)
        if name in OPENS[role] - {"help", "audit", "insights"}:  # the others show what is theirs
            app = visit(name, study=other)
            assert "This needs the role" in said(app)
            assert "patients" not in said(app)
    visit("home")
    first = {"reader": "list.py", "annotator": "annotate/page.py"}.get(role, "studies/page.py")
    assert switched == [f"pages/{first}"]


@pytest.mark.parametrize("role", OPENS)
def test_roles_of_another_study_and_removed_members_see_nothing(
    visit, store, clinic, come_in, role
):
    other = make(store, title="Another clinic")
    sign_in(store, come_in, role, other)
    own = {"reader": "list", "annotator": "annotate"}.get(role, "studies")
    app = visit(own, study=other)
    assert is_open(app)
    assert "This needs the role" in said(visit(own, study=clinic))
    studies.remove_member(store, other, NAME)
    assert app.run().title[0].value == "You need a link"
    assert not app.button
    for name in PAGES:
        assert visit(name, study=clinic).title[0].value == "You need a link"


def test_a_coordinator_has_the_tabs_of_a_week_and_no_settings(visit, store, clinic, come_in):
    sign_in(store, come_in, "coordinator", clinic)
    app = visit("studies")
    assert keys(app.button) == [f"open-{clinic}"]
    assert not app.tabs
    app = open_tab(visit, clinic)
    assert [tab.label for tab in app.tabs] == ["List", "Report", "People", "Invite"]
    assert "answer" not in keys(app.button)
    for tab in ("Report", "People", "Invite"):
        assert is_open(open_tab(visit, clinic, tab))
    app = visit("studies", study=clinic, tab="Settings")
    assert "save" not in keys(app.button)


def test_an_owner_of_one_study_sees_its_settings_and_makes_no_study(visit, store, clinic, come_in):
    sign_in(store, come_in, "owner", clinic)
    app = open_tab(visit, clinic, "Settings")
    assert [tab.label for tab in app.tabs][4:] == ["Settings", "Members", "Data"]
    assert "save" in keys(app.button)
    assert keys(visit("studies").button) == [f"open-{clinic}"]


def test_a_click_acts_with_the_present_role(visit, store, clinic, come_in):
    sign_in(store, come_in, "owner", clinic)
    app = open_tab(visit, clinic, "Settings")
    studies.add_member(store, clinic, NAME, "coordinator")
    app.button(key="pause").click().run()
    assert studies.get_study(store, clinic).status == "running"
    assert "This needs the role owner in this study" in said(app)
    assert ("study paused", True) in {
        (one.act, one.refused) for one in studies.read_audit(store, clinic)
    }


def test_an_annotator_who_signed_in_answers_under_their_name(visit, store, study, come_in):
    sign_in(store, come_in, "annotator", study)
    app = visit("annotate")
    assert keys(app.button) == [f"open-{study}"]
    app = visit("annotate", study=study)
    app.button(key="begin").click().run()
    [button] = [one for one in app.button if one.key and one.key.startswith("left-")]
    button.click().run()
    assert set(studies.answers(store, study).annotator) == {NAME}


def test_owners_give_and_take_roles_on_the_page(visit, store, clinic):
    app = open_tab(visit, clinic, "Members")
    app.text_input(key=f"value-{clinic}").set_value(NAME)
    app.selectbox(key=f"role-{clinic}").set_value("coordinator")
    [add, _] = [one for one in app.button if one.label == "Add the member"]
    add.click().run()
    assert not app.exception
    [member] = studies.list_members(store, clinic)
    assert (member.value, member.role) == (NAME, "coordinator")
    click(app, f"remove-{clinic}-email-{NAME}")
    assert studies.list_members(store, clinic) == []


def test_the_audit_page_filters_by_study_person_act_and_time(visit, store, clinic):
    access.begin_session(store, "wrong", HOST)
    studies.pause_study(store.acting_as(studies.COMMAND_LINE), clinic)
    app = visit("audit")

    def shown():
        return app.dataframe[0].value

    assert set(shown().act) >= {"sign-in", "study paused"}
    app.selectbox(key="audit-study").set_value(clinic).run()
    assert set(shown().study) == {clinic}
    app.selectbox(key="audit-study").set_value(ALL_STUDIES).run()
    app.multiselect(key="act").set_value(["sign-in"]).run()
    assert shown()[["about", "refused"]].to_numpy().tolist() == [["wrong key", True]]
    app.multiselect(key="act").set_value([]).run()
    app.multiselect(key="who").set_value(["Owner (command line)"]).run()
    assert set(shown().act) == {"study paused"}
    day = shown().time.dt.date.iloc[0]
    app.date_input(key="days").set_value((day, day)).run()
    assert len(shown()) == 1
    app.checkbox(key="refused").check().run()
    assert len(shown()) == 0
    app.number_input(key="audit-days").set_value(90).run()
    click(app, "save-audit-days")
    assert studies.audit_days(store) == 90


def test_a_page_that_is_drawn_again_is_one_look(visit, store, clinic):
    app = open_tab(visit, clinic)
    before = studies.read_audit(store, clinic)
    assert {(one.who, one.act, one.about) for one in before} >= {
        ("Owner (local)", "list", "week 1")
    }
    app.run()
    assert studies.read_audit(store, clinic) == before


def test_downloads_are_recorded_and_need_the_role(store, clinic, come_in):
    sign_in(store, come_in, "reader", clinic)
    make_file = downloads.for_visitor(lambda: "the list", clinic, "week-1.csv")
    assert make_file() == "the list"
    newest = studies.read_audit(store, clinic)[0]
    assert (newest.who, newest.act, newest.about) == (
        f"{NAME} (signed in)",
        "download",
        "week-1.csv",
    )
    studies.add_member(store, clinic, NAME, "annotator")
    with pytest.raises(studies.RefusedError):
        make_file()
    studies.remove_member(store, clinic, NAME)
    with pytest.raises(PermissionError):
        make_file()


def test_dead_links_are_recorded(visit, store, clinic, come_in):
    come_in()
    token = access.invite(store, clinic, "Bo", "list")
    access.revoke(store, clinic, "Bo", "list")
    visit("list", read=token)
    visit("annotate", invite="made-up")
    found = {(one.study, one.about, one.refused) for one in studies.read_audit(store, ALL_STUDIES)}
    assert found == {
        (clinic, "link to the list: revoked", True),
        ("", "link to comparisons: unknown", True),
    }


def test_without_a_guard_the_database_acts_for_nobody(store, clinic):
    with pytest.raises(studies.RefusedError):
        studies.read_lists(guards.store(), clinic)
    assert not has_role(studies.NOBODY, "owner", "coordinator", "reader", "annotator")


@pytest.mark.parametrize("role", OPENS)
def test_the_navigation_has_the_pages_of_the_role(
    router, store, clinic, come_in, monkeypatch, role
):
    offered = []
    navigate = st.navigation

    def navigation(pages, **options):
        offered.append({page.title.lower() for page in pages})
        return navigate(pages, **options)

    monkeypatch.setattr(st, "navigation", navigation)
    sign_in(store, come_in, role, clinic)
    router.run()
    lists = set() if role == "reader" else {"list"}  # the others see lists in Studies
    assert offered[0] == OPENS[role] - lists | {"home", "account"}


def test_the_page_of_a_study_needs_the_role_in_this_study(router, store, clinic, come_in):
    """A coordinator elsewhere who reads lists here opens it."""
    sign_in(store, come_in, "coordinator", make(store, title="Another clinic"))
    studies.add_member(store, clinic, NAME, "reader")
    app = router.run().switch_page("pages/studies/page.py")
    app.query_params["study"] = clinic
    app.run()
    assert not app.exception
    assert app.title[0].value == "This page is closed to you"
    [newest, *_] = studies.read_audit(store, clinic)
    assert (newest.act, newest.refused) == ("page", True)


def test_a_refusal_that_no_page_expected_is_a_sentence(router, store, clinic, come_in):
    """An annotator elsewhere who reads lists here opens the comparisons of this study."""
    sign_in(store, come_in, "annotator", make(store, title="Another clinic"))
    studies.add_member(store, clinic, NAME, "reader")
    app = router.run().switch_page("pages/annotate/page.py")
    app.query_params["study"] = clinic
    app.run()
    assert not app.exception
    assert "This needs the role owner or annotator in this study" in said(app)
