"""Reports and corrections by file on the pages of a study."""

import pytest
from clinic_page import click, keys, open_tab, said

from dopl_core import studies


def upload(visit, clinic, content, week=1):
    app = open_tab(visit, clinic, "Report")
    app.segmented_control(key="how-to-report").set_value("By file").run()
    file = ("w.csv", content, "text/csv")
    return app.file_uploader(key=f"file-{week}").set_value(file).run()


def test_a_file_is_asked_about_before_it_counts(visit, store, clinic):
    studies.join(store, clinic, [studies.Arm("new", "Newcomer", "all", "Low")])
    content = b"id,state,helped,age\np01,Low,1,63\np02,Low,,74\nnew,High,0,50\n"
    app = upload(visit, clinic, content)
    assert "You left 1 cell for help empty" in app.segmented_control(key="blank-1").label
    assert "report" not in keys(app.button)
    app.segmented_control(key="blank-1").set_value("no").run()
    assert "New on cards (1): age" in said(app)
    assert "Joined since the list was made; no change is counted (1): Newcomer" in said(app)
    click(app, "report")
    assert studies.present_states(store, clinic)["new"] == "High"
    assert studies.read_week(store, clinic, 1)["p02"] == studies.Standing("Low", False)


def test_somebody_who_joined_since_the_list_was_made_is_reported_by_hand(visit, store, clinic):
    studies.join(store, clinic, [studies.Arm("new", "Newcomer", "all", "Low")])
    app = open_tab(visit, clinic, "Report")
    assert "**Joined since the list was made** (1)" in said(app)
    assert f"helped-{clinic}-1-12" not in keys(app.checkbox)
    app.segmented_control(key=f"state-{clinic}-1-12").set_value(2).run()
    click(app, "check")
    app.segmented_control(key="rest").set_value("as before").run()
    assert "Joined since the list was made; no change is counted (1): Newcomer" in said(app)
    click(app, "report")
    assert studies.present_states(store, clinic)["new"] == "High"
    assert studies.load_learner(store, clinic).visits[12].sum() == 0


def test_a_file_of_another_week_is_refused_and_the_last_report_is_named(visit, store, clinic):
    content = b"week,id,state,helped\n1,p01,Low,1\n"
    click(upload(visit, clinic, content), "report")
    app = upload(visit, clinic, content, week=2)
    assert "this is about week 1, but week 2 is reported" in said(app)
    assert "report" not in keys(app.button)
    app = upload(visit, clinic, content.replace(b"\n1,", b"\n,"), week=2)
    again, recent = app.warning
    assert "This is the report of week 1 again" in again.value
    assert recent.value == "Less than a minute ago you sent the report of week 1. Is week 2 over?"
    assert app.button(key="report").disabled
    app.checkbox(key=f"over-{clinic}-2").check().run()
    click(app, "report")
    assert studies.last_report(store, clinic).week == 2


def test_nobody_is_asked_whether_the_week_is_over_an_hour_after_the_last_report(
    visit, store, clinic
):
    studies.observe(store, clinic, {"p01": "Low"})
    studies.advance(store, clinic)
    store.clock.now += 3600
    app = upload(visit, clinic, b"id,state\np01,High\n", week=2)
    assert not app.warning
    assert not app.button(key="report").disabled
    assert "undo-report-now" not in keys(app.button)
    click(app, "undo-report-tab")
    assert "The report of week 1 is undone." in said(app)


@pytest.mark.parametrize("tab", ["List", "Report"])
def test_a_report_is_undone_from_the_page(visit, store, clinic, tab):
    before = studies.read_lists(store, clinic)
    studies.observe(store, clinic, {"p01": "Low"})
    studies.advance(store, clinic)
    app = open_tab(visit, clinic, tab)
    assert "Less than a minute ago you sent the report of week 1." in said(app)
    assert "undo-report-tab" not in keys(app.button)  # it is offered once
    click(app, "undo-report-now")
    assert "The report of week 1 is undone. The list of week 1 is open again." in said(app)
    assert studies.read_lists(store, clinic) == before
    assert not {"undo-report-now", "undo-report-tab"} & {*keys(app.button)}


def correct_by_file(visit, clinic, content):
    app = open_tab(visit, clinic)
    [weeks] = [one for one in app.selectbox if one.key.startswith("week of")]
    weeks.set_value(1).run()
    app.segmented_control(key="how-to-correct-1").set_value("By file").run()
    file = ("fix.csv", content, "text/csv")
    return app.file_uploader(key="correction-1-0").set_value(file).run()


def test_several_people_are_corrected_by_file_after_a_summary(visit, store, clinic):
    studies.observe(store, clinic, {"p01": "Low", "p02": "Low", "p03": "High"}, helped=["p01"])
    studies.advance(store, clinic)
    content = "id;state;helped;age\np01;High;0;9\np02;Low;1;9\np03;;;9\n"
    app = correct_by_file(visit, clinic, content.encode("utf-8-sig"))
    assert (
        "Changed state (2):\nAmara Okafor (p01): Low → High\nChiara Russo (p03): High → unknown"
        in said(app)
    )
    assert "Now counted as helped (1): Ben Lindqvist (p02)" in said(app)
    assert "Now counted as not helped (1): Amara Okafor (p01)" in said(app)
    assert "Not changed, because cards change with reports: age" in said(app)
    assert studies.read_week(store, clinic, 1)["p01"] == studies.Standing("Low", True)
    click(app, "correct-file-1")
    assert "The report of week 1 is corrected for 3 people. The next list uses it." in said(app)
    week = studies.read_week(store, clinic, 1)
    assert week["p01"] == studies.Standing("High", False)
    assert week["p02"] == studies.Standing("Low", True)
    assert week["p03"] == studies.Standing(None, False)


def test_a_file_that_corrects_nothing_or_names_a_stranger_is_refused(visit, store, clinic):
    studies.observe(store, clinic, {"p01": "Low"})
    studies.advance(store, clinic)
    for content, reason in (
        (b"id,state\np01,Low\n", "The report already says this"),
        (b"id,state\nxx,Low\n", "xx"),
        (b"week,id,state\n2,p01,High\n", "this is about week 2"),
    ):
        app = correct_by_file(visit, clinic, content)
        assert reason in said(app)
        assert "correct-file-1" not in keys(app.button)


def test_before_the_first_report_the_roster_is_corrected(visit, store, clinic):
    app = open_tab(visit, clinic)
    who = app.selectbox(key="who-0")
    assert who.label == "Whose state is wrong?"
    who.set_value("p01").run()
    app.segmented_control(key="really-0-p01").set_value(0).run()
    app = click(app, "correct-0")
    assert "The roster is corrected for Amara Okafor (p01). The next list uses it." in said(app)
    assert studies.read_week(store, clinic, 0)["p01"].state == "Low"
