"""The page of a study of real people: four steps, lists, reports, people, settings."""

import re
from pathlib import Path

import pytest
from page_words import words

from dopl_core.studies import access, lists, service
from pages import _report

ROOT = Path(__file__).resolve().parents[2]
ROSTER = (ROOT / "data" / "rosters" / "clinic.csv").read_bytes()
STATES = ["Low", "Moderate", "High"]


@pytest.fixture
def clinic(store):
    """A clinic's study: a list of three, no first sitting."""
    return make(store)


def make(store, **rules):
    arms = service.read_roster(ROSTER, STATES)
    given = {"title": "Clinic", "noun": "patient", "budget": 3, "answers": 4, "practice": False}
    return service.create_study(store, service.from_roster(arms, STATES, **(given | rules)))


def open_tab(visit, study, tab="List"):
    return visit("studies", study=study, tab=tab)


def said(app):
    extra = [str(one.value) for place in (app.success, app.info) for one in place]
    return "\n".join([words(app), *extra]).replace("\\", "").replace("\u2060", "")


def keys(elements):
    return [element.key for element in elements if element.key]


def click(app, key):
    app.button(key=key).click().run()
    assert not app.exception
    return app


def report(app, states, rest="as before", unhelped=()):
    """Click what is given (number of the row -> state's number), check, and say it is right."""
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


# --- the strip


def test_the_strip_says_where_the_study_is_and_has_the_one_primary_button(visit, clinic):
    app = open_tab(visit, clinic)
    assert not app.exception
    assert "Week 1. Help the 3 on the list, then report how everybody is." in said(app).replace(
        "*", ""
    )
    assert "this week's answers shape the list of week 2" in said(app)
    assert [b.key for b in app.button if b.proto.type == "primary"] == ["to-report"]
    app = click(app, "to-report")
    assert app.session_state.tab == "Report"
    assert [b.key for b in app.button if b.proto.type == "primary"] == ["check"]


def test_a_first_sitting_is_said_and_can_be_ended(visit, store):
    study = make(store, sitting=10)
    for _ in range(4):
        ask = service.next_duel(store, study, "Ann")
        service.answer(store, ask.impression, "left", response_ms=900)
    app = open_tab(visit, study)
    assert "First sitting: 4 of 10 answers." in said(app)
    assert "The first list is made when the first sitting ends." in said(app)
    app = click(app, "first-list")
    assert service.get_study(store, study).episode == 1
    assert "Week 1: 3 of 12 patients to help" in said(app).replace("*", "")


def test_a_closed_study_says_so_and_asks_for_nothing(visit, store, clinic):
    app = click(open_tab(visit, clinic, "Settings"), "close")
    assert "Closed. Nobody is asked and no list is made" in said(app).replace("*", "")
    assert not [b.key for b in app.button if b.proto.type == "primary"]
    assert "reopen it in Settings to report" in said(open_tab(visit, clinic, "Report")).replace(
        "*", ""
    )
    app = click(open_tab(visit, clinic, "Settings"), "reopen")
    assert [b.key for b in app.button if b.proto.type == "primary"] == ["to-report"]


def test_words_are_the_owners(visit, store):
    app = open_tab(visit, make(store, epoch_word="month"))
    assert "Month 1" in said(app)
    assert "Report month 1" in app.button(key="to-report").label.replace("\\", "")
    for word in ("arm", "epoch", "episode", "log odds", "plan "):
        assert not re.search(rf"\b{word}", said(app)), word


def test_a_simulated_world_keeps_its_page(visit, study):
    app = visit("studies", study=study)
    assert {tab.label for tab in app.tabs} == {"Whom to help now", "Invite", "Rehearse", "Data"}


# --- lists


def test_a_list_says_who_and_why_and_that_equals_were_picked_by_chance(visit, store, clinic):
    app = open_tab(visit, clinic)
    [week] = service.read_lists(store, clinic)
    for one in week.listed:
        assert f"{one.label} ({one.id})" in said(app)
        assert lists.why(one, week) in said(app)
    assert ("picked by chance" in said(app)) == any(one.equal for one in week.listed)


def test_lists_of_all_weeks_stay_readable_with_what_came_of_them(visit, store, clinic):
    listed = [one.id for one in service.read_lists(store, clinic)[0].listed]
    service.observe(store, clinic, {listed[0]: "High"}, helped=listed[:2])
    service.advance(store, clinic)
    app = open_tab(visit, clinic)
    app.selectbox(key="week of 2").set_value(1).run()
    assert "Helped; then High." in said(app)
    assert "Not helped; then unknown." in said(app)


def test_unknown_states_are_marked_on_the_list(visit, store, clinic):
    service.observe(store, clinic, {})
    service.advance(store, clinic)
    assert "one week ago" in said(open_tab(visit, clinic))


# --- reports


def test_a_report_is_clicked_summed_up_and_counts_when_confirmed(visit, store, clinic):
    config = service.get_study(store, clinic).config
    listed = [one.id for one in service.read_lists(store, clinic)[0].listed]
    numbers = [config.arm_number(arm) for arm in listed]
    app = open_tab(visit, clinic, "Report")
    before = service.present_states(store, clinic)
    number = next(n for n, arm in enumerate(config.arms) if before[arm.id] == "Low")
    other = next(n for n in range(12) if n != number and n not in numbers)
    app = report(app, {number: 2, other: -1}, unhelped=numbers[:1])
    assert "1 moved, 10 as before, 1 unknown, 2 of 3 helped." in said(app)
    assert f"On the list, but not helped: {config.arms[numbers[0]].label}" in said(app)
    assert service.get_study(store, clinic).episode == 1  # nothing has counted yet
    app = click(app, "report")
    assert service.get_study(store, clinic).episode == 2
    first = lists.read_week(store, clinic, 1)
    assert first[config.arms[number].id].state == "High"
    assert first[config.arms[other].id].state is None
    assert sorted(arm for arm, one in first.items() if one.helped) == sorted(listed[1:])
    assert "Week 1 is reported." in said(app)
    assert app.session_state.tab == "List"


def test_nothing_is_assumed_of_those_who_were_not_said(visit, clinic):
    app = report(open_tab(visit, clinic, "Report"), {0: 1}, rest=None)
    assert app.button(key="report").disabled
    app.segmented_control(key="rest").set_value("unknown").run()
    assert "11 unknown" in said(app)
    assert not app.button(key="report").disabled


def test_what_was_clicked_survives_a_reload_and_another_tab_sees_it(visit, clinic):
    app = open_tab(visit, clinic, "Report")
    [key] = [k for k in keys(app.segmented_control) if k.endswith("-5")]
    app.segmented_control(key=key).set_value(-1).run()
    again = open_tab(visit, clinic, "Report")
    assert again.segmented_control(key=key).value == -1


def test_a_week_is_reported_once_whoever_clicks_again(visit, store, clinic):
    """Two owners look at the same summary and both click."""
    one = report(open_tab(visit, clinic, "Report"), {})
    other = report(open_tab(visit, clinic, "Report"), {})
    click(one, "report")
    click(other, "report")
    assert "week 1 is reported already" in said(other)
    assert service.get_study(store, clinic).episode == 2
    assert len(service.read_lists(store, clinic)) == 2


def test_those_on_the_list_come_first_and_anybody_can_be_searched(visit, store, clinic):
    listed = [one.label for one in service.read_lists(store, clinic)[0].listed]
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
    assert service.get_study(store, clinic).episode == 1
    click(app, "report")
    assert lists.read_week(store, clinic, 1)["p01"] == lists.Standing("Low", True)
    assert lists.read_cards(store, clinic)["p01"]["age"] == "63"


def test_a_report_file_that_is_wrong_is_refused_by_row(visit, clinic):
    app = open_tab(visit, clinic, "Report")
    app.segmented_control(key="how-to-report").set_value("By file").run()
    content = b"id,state\np01,Hihg\n"
    app.file_uploader(key="file-1").set_value(("w.csv", content, "text/csv")).run()
    assert 'w.csv row 2: state "Hihg" is not one of' in said(app)
    assert "report" not in keys(app.button)


# --- corrections


def test_an_earlier_report_is_corrected_from_its_list(visit, store, clinic):
    service.observe(store, clinic, service.present_states(store, clinic))
    service.advance(store, clinic)
    app = open_tab(visit, clinic)
    app.selectbox(key="week of 2").set_value(1).run()
    app.selectbox(key="who-1").set_value("p01").run()
    was = lists.read_week(store, clinic, 1)["p01"]
    app.segmented_control(key="really-1-p01").set_value(-1).run()
    app.checkbox(key="was-helped-1-p01").set_value(not was.helped).run()
    app = click(app, "correct-1")
    assert lists.read_week(store, clinic, 1)["p01"] == lists.Standing(None, not was.helped)
    assert "The next list is made with it." in said(app)


# --- people and settings


def test_a_report_tells_namesakes_apart_and_who_was_seen_again_from_who_moved(visit, store):
    states = ("Low", "High", "", "Low")
    arms = [
        service.Arm(f"p{n}", "Bo Berg" if n < 2 else f"P{n}", state=s) for n, s in enumerate(states)
    ]
    rules = {"title": "Ward", "budget": 2, "practice": False}
    study = service.create_study(store, service.from_roster(arms, ["Low", "High"], **rules))
    where = list(service.present_states(store, study))
    app = report(open_tab(visit, study, "Report"), {where.index("p0"): 1, where.index("p2"): 0})
    assert "Moved: Bo Berg (p0): Low → High" in said(app)
    assert "Seen again: P2: Low" in said(app)


def test_people_join_leave_and_come_back_from_the_next_list_on(visit, store, clinic):
    app = open_tab(visit, clinic, "People")
    app.text_input(key="join-12-id").set_value("p99")
    app.text_input(key="join-12-name").set_value("Zoe")
    app.segmented_control(key="join-12-state").set_value(0)
    app = click(app, "join")
    assert "13 patients. With the next list 1 joins." in said(app).replace("*", "")
    app.multiselect(key="leave-13").set_value(["p02"]).run()
    app = click(app, "leave")
    assert "1 joins and 1 leaves" in said(app)
    service.observe(store, clinic, {})
    service.advance(store, clinic)
    now = service.present_states(store, clinic)
    assert now["p99"] == "Low"
    assert "p02" not in now
    app = open_tab(visit, clinic, "People")
    app.selectbox(key="back-who").set_value("p02").run()
    app.segmented_control(key="back-state-p02").set_value(1).run()
    click(app, "come-back")
    service.observe(store, clinic, {})
    service.advance(store, clinic)
    assert service.present_states(store, clinic)["p02"] == "Moderate"


def test_newcomers_come_by_file_and_those_here_are_left_alone(visit, store, clinic):
    app = open_tab(visit, clinic, "People")
    content = b"Nr,Name,Condition\np01,Amara,Low\nq1,Quin,High\nq2,Rae,\n"
    app.file_uploader(key="newcomers").set_value(("new.csv", content, "text/csv")).run()
    assert "2 new: Quin, Rae" in said(app)
    click(app, "join-file")
    coming = service.coming_config(store, clinic)
    assert [arm.id for arm in coming.arms[12:]] == ["q1", "q2"]


def test_somebody_without_an_id_cannot_join(visit, store, clinic):
    app = click(open_tab(visit, clinic, "People"), "join")
    assert "the id is empty" in said(app)
    assert service.coming_config(store, clinic).n_arms == 12


def test_nobody_leaves_whom_the_budget_needs(visit, store, clinic):
    app = open_tab(visit, clinic, "People")
    everybody = list(service.present_states(store, clinic))
    app.multiselect(key="leave-12").set_value(everybody[:10]).run()
    app = click(app, "leave")
    assert "2 would be left, and 3 are helped at a time: lower that in Settings" in said(app)
    assert service.coming_config(store, clinic).present.all()


def test_a_card_that_was_changed_comes_with_the_next_report(visit, store, clinic):
    app = open_tab(visit, clinic, "People")
    app.selectbox(key="whose-card").set_value("p01").run()
    app.text_input(key="fresh-p01-column-age").set_value("99").run()
    click(app, "edit-card")
    app = report(open_tab(visit, clinic, "Report"), {})
    click(app, "report")
    assert lists.read_cards(store, clinic)["p01"]["age"] == "99"


def test_settings_hold_from_the_next_list_on(visit, store, clinic):
    app = open_tab(visit, clinic, "Settings")
    assert app.button(key="save").disabled
    app.number_input(key="set budget").set_value(5)
    app.text_input(key="set question").set_value("Who sleeps better?").run()
    app = click(app, "save")
    assert "from the next list on" in said(app)
    assert service.get_study(store, clinic).config.budget == 3
    service.observe(store, clinic, {})
    service.advance(store, clinic)
    config = service.get_study(store, clinic).config
    assert (config.budget, config.question) == (5, "Who sleeps better?")


# --- readers


def test_a_reader_sees_the_list_and_nothing_else(visit, store, clinic):
    token = access.invite(store, clinic, "Colleague", "list")
    app = visit("list", read=token)
    assert not app.exception
    assert "Week 1: 3 of 12 patients to help" in said(app).replace("*", "")
    assert not app.button
    assert not app.text_input
    access.revoke(store, clinic, "Colleague", "list")
    assert "This link opens nothing any more." in said(visit("list", read=token))


@pytest.mark.parametrize("parameters", [{}, {"read": "wrong"}, {"read": ""}])
def test_without_a_link_nobody_reads_a_list(visit, clinic, parameters):
    app = visit("list", study=clinic, **parameters)
    assert app.title[0].value == "You need a link"
    assert "patients" not in said(app)


def test_a_link_to_read_is_shown_once_and_revoked(visit, store, clinic):
    app = open_tab(visit, clinic)
    app.text_input(key="whose-list").set_value("Dr Bo").run()
    app.button(key="link-list").click().run()
    token = re.search(r"/list\?read=(\S+)", app.code[0].value)[1]
    assert access.who(store, token, "list").annotator == "Dr Bo"
    [revoke] = [key for key in keys(app.button) if key.startswith("revoke-list-")]
    click(app, revoke)
    assert access.who(store, token, "list") is None
    assert not app.code


def test_drafts_are_forgotten_when_they_are_sent(visit, clinic):
    app = report(open_tab(visit, clinic, "Report"), {})
    assert _report._drafts()
    click(app, "report")
    assert not _report._drafts()
