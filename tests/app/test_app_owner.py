"""The page of a study of real people: four steps, lists, reports, settings."""

import re

import pytest
from clinic_page import click, keys, make, open_tab, said

from dopl_core import studies
from dopl_core.studies import access
from pages.shared import downloads
from pages.studies import common_tabs


def report(app, states, rest="as before", unhelped=()):
    """Choose states (row number -> state number), and open the summary."""
    for number, state in states.items():
        [key] = [k for k in keys(app.segmented_control) if k.endswith(f"-{number}")]
        app.segmented_control(key=key).set_value(state).run()
    for number in unhelped:
        [key] = [k for k in keys(app.checkbox) if k.endswith(f"-{number}")]
        app.checkbox(key=key).uncheck().run()
    click(app, "check")
    if rest:
        app.segmented_control(key="rest").set_value(rest).run()
    return app


# --- the steps of a week


def test_the_page_says_what_to_do_next_and_has_one_primary_button(visit, clinic):
    app = open_tab(visit, clinic)
    assert not app.exception
    assert "Week 1. Help the people on the list. Then report how everybody is doing." in said(
        app
    ).replace("*", "")
    assert "they shape the list for week 2" in said(app)
    assert [b.key for b in app.button if b.proto.type == "primary"] == ["to-report"]
    app = click(app, "to-report")
    assert app.session_state.tab == "Report"
    assert [b.key for b in app.button if b.proto.type == "primary"] == ["check"]


def test_the_owner_can_end_the_first_round_early(visit, store):
    study = make(store, sitting=10)
    for _ in range(4):
        ask = studies.next_duel(store, study, "Ann")
        studies.answer(store, ask.impression, "left", response_ms=900)
    app = open_tab(visit, study)
    assert "First round: 4 of 10 answers." in said(app)
    assert "The first list is made after the first round." in said(app)
    app = click(app, "first-list")
    assert studies.get_study(store, study).episode == 1
    assert "Week 1: help these 3 of 12 patients" in said(app).replace("*", "")


def test_a_closed_study_asks_for_nothing(visit, store, clinic):
    app = click(open_tab(visit, clinic, "Settings"), "close")
    assert "Closed. No answers are collected and no lists are made" in said(app).replace("*", "")
    assert not [b.key for b in app.button if b.proto.type == "primary"]
    assert "To report, reopen it in Settings" in said(open_tab(visit, clinic, "Report")).replace(
        "*", ""
    )
    app = click(open_tab(visit, clinic, "Settings"), "reopen")
    assert [b.key for b in app.button if b.proto.type == "primary"] == ["to-report"]


def test_the_page_uses_the_owners_words(visit, store):
    app = open_tab(visit, make(store, epoch_word="month"))
    assert "Month 1" in said(app)
    assert "Report month 1" in app.button(key="to-report").label.replace("\\", "")
    for word in ("arm", "epoch", "episode", "log odds", "plan "):
        assert not re.search(rf"\b{word}", said(app)), word


def test_a_simulated_study_has_its_own_tabs(visit, study):
    app = visit("studies", study=study)
    assert {tab.label for tab in app.tabs} == {
        *("Whom to help now", "Invite", "Members", "Rehearse", "Data")
    }


@pytest.mark.parametrize("world", ["observed", "simulated"])
def test_after_a_rehearsal_begins_the_page_says_that_it_shows_the_copy(
    visit, store, clinic, study, monkeypatch, world
):
    begun = []
    monkeypatch.setattr(common_tabs, "run_in_background", lambda *words: begun.append(words[1]))
    app = open_tab(visit, clinic if world == "observed" else study, "Rehearse")
    app = click(app, "rehearse")
    assert [app.query_params["study"]] == begun
    assert "This is the copy." in said(app)


def test_the_owner_exports_without_names_and_keeps_some_columns(visit, store, clinic, monkeypatch):
    drawn = {}

    def file_button(label, make_file, *_, **__):
        drawn[label] = downloads.for_visitor(make_file)

    monkeypatch.setattr(common_tabs, "file_button", file_button)
    app = open_tab(visit, clinic, "Data")
    assert drawn.popitem()[1]() == studies.export_bundle(store, clinic)
    app.checkbox(key="without-names").check().run()
    assert drawn.popitem()[1]() == studies.export_bundle(store, clinic, without_names=True)
    assert "states, times, answers, lists and the number of people" in said(app)
    chosen = app.multiselect(key="keep-columns")
    assert chosen.value == []
    assert chosen.options == ["age", *(f"hours_{n}" for n in range(1, 8))]
    chosen.set_value(["age"]).run()
    label, make_file = drawn.popitem()
    assert label == "Bundle without names (zip)"
    content = make_file()
    assert content == studies.export_bundle(store, clinic, without_names=True, keep=["age"])


# --- reports


def test_a_report_counts_after_its_summary_is_confirmed(visit, store, clinic):
    config = studies.get_study(store, clinic).config
    listed = [one.id for one in studies.read_lists(store, clinic)[0].listed]
    numbers = [config.arm_number(arm) for arm in listed]
    app = open_tab(visit, clinic, "Report")
    before = studies.present_states(store, clinic)
    number = next(n for n, arm in enumerate(config.arms) if before[arm.id] == "Low")
    other = next(n for n in range(12) if n != number and n not in numbers)
    app = report(app, {number: 2, other: -1}, unhelped=numbers[:1])
    assert "1 moved, 10 as before, 1 unknown, 2 of 3 helped." in said(app)
    assert f"On the list but not helped (1): {config.arms[numbers[0]].label}" in said(app)
    assert studies.get_study(store, clinic).episode == 1  # the report does not count yet
    app = click(app, "report")
    assert studies.get_study(store, clinic).episode == 2
    first = studies.read_week(store, clinic, 1)
    assert first[config.arms[number].id].state == "High"
    assert first[config.arms[other].id].state is None
    assert sorted(arm for arm, one in first.items() if one.helped) == sorted(listed[1:])
    assert "Week 1 is reported." in said(app)
    assert app.session_state.tab == "List"


def test_the_owner_decides_how_blank_entries_count(visit, clinic):
    app = report(open_tab(visit, clinic, "Report"), {0: 1}, rest=None)
    assert app.button(key="report").disabled
    app.segmented_control(key="rest").set_value("unknown").run()
    assert "11 unknown" in said(app)
    assert not app.button(key="report").disabled


def test_a_draft_survives_a_reload_and_is_shared_between_tabs(visit, clinic):
    app = open_tab(visit, clinic, "Report")
    [key] = [k for k in keys(app.segmented_control) if k.endswith("-5")]
    app.segmented_control(key=key).set_value(-1).run()
    again = open_tab(visit, clinic, "Report")
    assert again.segmented_control(key=key).value == -1


def test_a_week_is_reported_only_once(visit, store, clinic):
    """Two owners confirm the same summary."""
    one = report(open_tab(visit, clinic, "Report"), {})
    other = report(open_tab(visit, clinic, "Report"), {})
    click(one, "report")
    click(other, "report")
    assert "week 1 is reported already" in said(other)
    assert studies.get_study(store, clinic).episode == 2
    assert len(studies.read_lists(store, clinic)) == 2


def test_people_on_the_list_come_first_and_everybody_can_be_searched(visit, store, clinic):
    listed = [one.label for one in studies.read_lists(store, clinic)[0].listed]
    app = open_tab(visit, clinic, "Report")
    names = [text.value.split(" (")[0] for text in app.text if ", was " in text.value]
    assert names[:3] == listed
    assert len(names) == 12
    app.text_input(key="search").set_value("amara").run()
    assert len([text for text in app.text if ", was " in text.value]) == 1


def test_a_report_by_file_has_the_same_summary_before_it_counts(visit, store, clinic):
    app = open_tab(visit, clinic, "Report")
    app.segmented_control(key="how-to-report").set_value("By file").run()
    content = b"id,state,helped,age\np01,Low,1,63\np02,,0,74\n"
    app.file_uploader(key="file-1").set_value(("w.csv", content, "text/csv")).run()
    assert "1 moved, 0 as before, 11 unknown, " in said(app)
    assert studies.get_study(store, clinic).episode == 1
    click(app, "report")
    assert studies.read_week(store, clinic, 1)["p01"] == studies.Standing("Low", True)
    assert studies.read_cards(store, clinic)["p01"]["age"] == "63"


def test_an_error_in_a_report_file_names_its_row(visit, clinic):
    app = open_tab(visit, clinic, "Report")
    app.segmented_control(key="how-to-report").set_value("By file").run()
    content = b"id,state\np01,Hihg\n"
    app.file_uploader(key="file-1").set_value(("w.csv", content, "text/csv")).run()
    assert 'w.csv row 2: state "Hihg" is not one of' in said(app)
    assert "report" not in keys(app.button)


# --- corrections


def test_an_earlier_report_is_corrected_from_its_list(visit, store, clinic):
    studies.observe(store, clinic, studies.present_states(store, clinic))
    studies.advance(store, clinic)
    app = open_tab(visit, clinic)
    app.selectbox(key="week of 2").set_value(1).run()
    app.selectbox(key="who-1").set_value("p01").run()
    was = studies.read_week(store, clinic, 1)["p01"]
    app.segmented_control(key="really-1-p01").set_value(-1).run()
    app.checkbox(key="was-helped-1-p01").set_value(not was.helped).run()
    app = click(app, "correct-1")
    assert studies.read_week(store, clinic, 1)["p01"] == studies.Standing(None, not was.helped)
    assert "The next list uses it." in said(app)


# --- summaries and settings


def test_a_summary_tells_namesakes_apart(visit, store):
    states = ("Low", "High", "", "Low")
    arms = [
        studies.Arm(f"p{n}", "Bo Berg" if n < 2 else f"P{n}", state=s) for n, s in enumerate(states)
    ]
    rules = {"title": "Ward", "budget": 2, "practice": False}
    study = studies.create_study(store, studies.from_roster(arms, ["Low", "High"], **rules))
    where = list(studies.present_states(store, study))
    app = report(open_tab(visit, study, "Report"), {where.index("p0"): 1, where.index("p2"): 0})
    assert "Changed state (1):\nBo Berg (p0): Low → High" in said(app)
    assert "Now known (1):\nP2: Low" in said(app)


def test_a_changed_card_is_part_of_the_next_report(visit, store, clinic):
    app = open_tab(visit, clinic, "People")
    app.selectbox(key="whose-card").set_value("p01").run()
    app.text_input(key="fresh-p01-column-age").set_value("99").run()
    click(app, "edit-card")
    app = report(open_tab(visit, clinic, "Report"), {})
    click(app, "report")
    assert studies.read_cards(store, clinic)["p01"]["age"] == "99"


def test_settings_apply_from_the_next_list_on(visit, store, clinic):
    app = open_tab(visit, clinic, "Settings")
    assert app.button(key="save").disabled
    app.number_input(key="budget set").set_value(5)
    app.text_input(key="question set").set_value("Who sleeps better?").run()
    app = click(app, "save")
    assert "from the next list on" in said(app)
    assert studies.get_study(store, clinic).config.budget == 3
    studies.observe(store, clinic, {})
    studies.advance(store, clinic)
    config = studies.get_study(store, clinic).config
    assert (config.budget, config.question) == (5, "Who sleeps better?")


# --- readers


def test_a_read_only_link_shows_the_list_and_nothing_else(visit, store, clinic):
    token = access.invite(store, clinic, "Colleague", "list")
    app = visit("list", read=token)
    assert not app.exception
    assert "Week 1: help these 3 of 12 patients" in said(app).replace("*", "")
    assert not app.button
    assert not app.text_input
    access.revoke(store, clinic, "Colleague", "list")
    assert "This link is no longer valid." in said(visit("list", read=token))


@pytest.mark.parametrize("parameters", [{}, {"read": "wrong"}, {"read": ""}])
def test_a_list_needs_a_valid_link(visit, clinic, come_in, parameters):
    come_in()
    app = visit("list", study=clinic, **parameters)
    assert app.title[0].value == "You need a link"
    assert "patients" not in said(app)


def test_a_read_only_link_is_shown_once_and_can_be_revoked(visit, store, clinic):
    app = open_tab(visit, clinic)
    app.text_input(key="whose-list-0").set_value("Dr Bo").run()
    app.button(key="link-list").click().run()
    token = re.search(r"/list\?read=(\S+)", app.code[0].value)[1]
    assert access.find_invite(store, token, "list").annotator == "Dr Bo"
    [revoke] = [key for key in keys(app.button) if key.startswith("revoke-list-")]
    click(app, revoke)
    assert access.find_invite(store, token, "list") is None
    assert not app.code


def test_a_draft_is_deleted_when_its_report_is_sent(visit, store, clinic):
    app = report(open_tab(visit, clinic, "Report"), {})
    assert studies.read_draft(store, clinic, 1) == studies.Draft(rest="as before")
    click(app, "report")
    assert studies.read_draft(store, clinic, 1) == studies.Draft()


def test_an_owner_whose_key_was_replaced_cannot_change_a_draft(visit, store, clinic, come_in):
    come_in(access.begin_session(store, access.make_owner_key(store), "clinic.example"))
    app = report(open_tab(visit, clinic, "Report"), {5: 1}, rest=None)
    click(app, "back")
    before = studies.read_draft(store, clinic, 1)
    assert len(before.states) == 1
    access.make_owner_key(store)
    [key] = [k for k in keys(app.segmented_control) if k.endswith("-6")]
    app.segmented_control(key=key).set_value(0)
    [key] = [k for k in keys(app.checkbox) if k.endswith("-7")]
    app.checkbox(key=key).check().run()
    assert studies.read_draft(store, clinic, 1) == before
    assert app.title[0].value == "You need a link"


def test_a_list_that_was_left_open_shows_the_newer_one_and_says_so(visit, store, clinic):
    app = visit("list", read=access.invite(store, clinic, "Colleague", "list"))
    studies.observe(store, clinic, studies.present_states(store, clinic))
    studies.advance(store, clinic)
    assert "There is a newer list" not in said(app)
    app.run()
    assert "There is a newer list. This page now shows it." in said(app)
    assert "Week 2: help these 3 of 12 patients" in said(app).replace("*", "")
    studies.undo_report(store, clinic, 1)
    app.run()
    assert "The owner undid the last report" in said(app)
    assert "Week 1: help these 3 of 12 patients" in said(app).replace("*", "")
