"""Reports and corrections by file on the pages of a study."""

import pytest
from test_app_owner import click, keys, make, open_tab, said

from dopl_core import studies


@pytest.fixture
def clinic(store):
    return make(store)


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
    assert "New on cards: age" in said(app)
    assert "Joined since the list was made; no change is counted: new" in said(app)
    click(app, "report")
    assert studies.present_states(store, clinic)["new"] == "High"
    assert studies.read_week(store, clinic, 1)["p02"] == studies.Standing("Low", False)


def test_a_file_of_another_week_is_refused_and_the_last_report_is_named(visit, store, clinic):
    content = b"week,id,state,helped\n1,p01,Low,1\n"
    click(upload(visit, clinic, content), "report")
    app = upload(visit, clinic, content, week=2)
    assert "this is about week 1, but week 2 is reported" in said(app)
    assert "report" not in keys(app.button)
    app = upload(visit, clinic, content.replace(b"\n1,", b"\n,"), week=2)
    [warning] = app.warning
    assert "This is the report of week 1 again" in warning.value
