"""The People tab: who joins, leaves and returns."""

from clinic_page import click, keys, open_tab, said

from dopl_core import studies


def test_people_join_leave_and_return_with_the_next_list(visit, store, clinic):
    app = open_tab(visit, clinic, "People")
    app.text_input(key="join-12-id").set_value("p99")
    app.text_input(key="join-12-name").set_value("Zoe")
    app.segmented_control(key="join-12-state").set_value(0)
    app.selectbox(key="join-12-group").set_value("Over a year")
    app = click(app, "join")
    assert "13 patients from the next list on: 1 joins." in said(app).replace("*", "")
    [form] = [one for one in app.expander if one.label == "Add a person"]
    assert "Zoe takes part from the next list on" in form.success[0].value  # where the button was
    app.multiselect(key="leave-13").set_value(["p02"]).run()
    app = click(app, "leave")
    assert "1 joins and 1 leaves" in said(app)
    studies.observe(store, clinic, {})
    studies.advance(store, clinic)
    now = studies.present_states(store, clinic)
    assert now["p99"] == "Low"
    assert "p02" not in now
    app = open_tab(visit, clinic, "People")
    app.selectbox(key="back-who").set_value("p02").run()
    app.segmented_control(key="back-state-p02").set_value(1).run()
    click(app, "come-back")
    studies.observe(store, clinic, {})
    studies.advance(store, clinic)
    assert studies.present_states(store, clinic)["p02"] == "Moderate"


def test_the_owner_reads_who_is_listed_in_the_place_of_somebody_who_left(visit, store, clinic):
    week = studies.read_lists(store, clinic)[-1]
    app = open_tab(visit, clinic, "People")
    app.multiselect(key="leave-12").set_value([week.listed[0].id]).run()
    app = click(app, "leave")
    up = week.reserve[0]
    assert f"{up.label} ({up.id}) is on this list in their place." in said(app)
    app.multiselect(key="leave-11").set_value([week.reserve[-1].id]).run()
    assert "in their place" not in said(click(app, "leave"))


def test_a_file_adds_new_people_and_changes_nobody_else(visit, store, clinic):
    app = open_tab(visit, clinic, "People")
    content = b"Nr,Name,Condition\np01,Amara,Low\nq1,Quin,High\nq2,Rae,\n"
    app.file_uploader(key="newcomers").set_value(("new.csv", content, "text/csv")).run()
    assert "2 new: Quin, Rae" in said(app)
    click(app, "join-file")
    coming = studies.coming_config(store, clinic)
    assert [arm.id for arm in coming.arms[12:]] == ["q1", "q2"]
    assert "Everybody in new.csv takes part already." in said(app)
    assert "join-file" not in keys(app.button)


def test_a_state_misspelt_in_a_file_of_new_people_is_asked_about(visit, store, clinic):
    app = open_tab(visit, clinic, "People")
    content = b"id,state\nq1,Hihg\nq2,Low\n"
    app.file_uploader(key="newcomers").set_value(("new.csv", content, "text/csv")).run()
    [question] = [one for one in app.radio if one.key.startswith("spelt")]  # Low is known
    assert question.label == "“Hihg” (1 row) looks like “High” (0 rows). Which is right?"
    assert "join-file" not in keys(app.button)
    question.set_value(0).run()
    click(app, "join-file")
    assert [arm.state for arm in studies.coming_config(store, clinic).arms[12:]] == ["High", "Low"]


def test_a_person_needs_an_id_to_join(visit, store, clinic):
    app = click(open_tab(visit, clinic, "People"), "join")
    assert "the ID is empty" in said(app)
    assert studies.coming_config(store, clinic).n_arms == 12


def test_nobody_joins_a_group_that_was_not_chosen(visit, store, clinic):
    app = open_tab(visit, clinic, "People")
    app.text_input(key="join-12-id").set_value("p99")
    assert "the group is empty: choose one, or type a new one" in said(click(app, "join"))
    assert studies.coming_config(store, clinic).n_arms == 12
    app.selectbox(key="join-12-group").set_value("Over a year")
    click(app, "join")
    assert studies.coming_config(store, clinic).arms[-1].group == "Over a year"


def test_enough_people_must_remain_for_a_list(visit, store, clinic):
    app = open_tab(visit, clinic, "People")
    everybody = list(studies.present_states(store, clinic))
    app.multiselect(key="leave-12").set_value(everybody[:10]).run()
    app = click(app, "leave")
    assert "2 people would remain, but each list has 3 places" in said(app)
    assert studies.coming_config(store, clinic).present.all()
