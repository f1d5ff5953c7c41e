"""The List tab: the table, the owner's changes, why and why not."""

from dataclasses import replace
from html import escape

import pytest
from clinic_page import click, make, open_tab, said

from dopl_core import studies
from dopl_core.learning.dopl import Dopl
from dopl_core.studies import access, assessment_text
from dopl_core.studies.analysis.assessment import AnswersChanged
from pages.studies import invitations, list_tab, print_sheet


def table_of(app) -> str:
    [table] = [one.proto.body for one in app.get("html") if "dopl-list" in one.proto.body]
    return table


def test_a_list_gives_a_reason_where_it_differs_from_the_row_above(visit, store, clinic):
    app = open_tab(visit, clinic)
    [week] = studies.read_lists(store, clinic)
    rows = [row for row in table_of(app).split("<tr>") if 'class="name"' in row]
    assert len(rows) == len(week.everybody) == 5
    above = ""
    for one, row in zip(week.everybody, rows, strict=True):
        assert f"{escape(one.label)} <small>{one.id}" in row
        why = studies.why_listed(one, week).removeprefix("Next in line. ")
        assert (escape(why) in row) == (why != above and not (one.reserve and why in above))
        above = why
    assert "Next in line." not in table_of(app)  # it is the title of their rows
    assert ("chosen at random" in said(app)) == week.all_equal


def test_the_list_names_who_waits_by_lot(visit, store, monkeypatch):
    study = make(store, by_lot=1)
    [week] = studies.read_lists(store, study)
    [waiting] = week.left_out
    title = "Chosen at random to wait this week: please do not help them yet</th>"
    _, rows = table_of(open_tab(visit, study)).split(title)
    assert f"{escape(waiting.label)} <small>{waiting.id}" in rows
    monkeypatch.setattr(list_tab, "MOST_ROWS", 2)  # a longer list is shown as a table
    app = open_tab(visit, study)
    assert f"Chosen at random to wait this week: {waiting.label} ({waiting.id})." in said(app)
    assert app.dataframe[0].value.iloc[-1][["id", "waits"]].tolist() == [waiting.id, 1]


def test_a_mark_beside_a_name_says_who_was_chosen_at_random_or_is_there_to_find_out(
    visit, store, monkeypatch
):
    everybody = lambda self, states, listed, where=None: listed  # noqa: E731
    monkeypatch.setattr(Dopl, "finds_out", everybody, raising=False)
    study = make(store, by_lot=1, find_out=1, budget=4)
    [week] = studies.read_lists(store, study)
    marks = {one.id: "chosen at random" for one in week.listed if one.by_lot}
    marks |= {one.id: "to find out" for one in week.listed if one.to_find_out}
    assert sorted(marks.values()) == ["chosen at random", *["to find out"] * 3]
    printed = print_sheet.sheet("Clinic", studies.get_study(store, study).config, week)
    for table in (table_of(open_tab(visit, study)), printed):
        rows = [row for row in table.split("<tr>") if 'class="name"' in row]
        for one, row in zip((*week.everybody, *week.left_out), rows, strict=True):
            mark = f'<span class="dopl-mark">{marks.get(one.id)}</span></td>'
            assert (mark in row) == (one.id in marks)
            assert ("dopl-mark" in row) == (one.id in marks)
    for one in week.listed:
        why = f"Listed to find out what help does in &quot;{one.state}&quot;. The report will show"
        assert one.by_lot or why in printed


def test_the_list_shows_the_facts_that_the_owner_chose_and_escapes_them(visit, store):
    study = make(store, list_columns="age, nothing", budget=1)
    studies.observe(store, study, {}, {"p01": {"age": "<script>alert(1)</script>"}})
    studies.advance(store, study)
    studies.change_list(store, study, **on_list(store, study, "p01"), because="<b>why</b>")
    app = open_tab(visit, study)
    assert "Week 2: help this one of 12 patients. Made on" in said(app).replace("*", "")
    table = table_of(app)
    assert "<th>age</th>" in table
    assert "nothing" not in table
    assert "&lt;script&gt;alert(1)" in table
    assert "&lt;b&gt;why&lt;/b&gt;" in table
    assert "<script" not in table


def on_list(store, study: str, arm: str) -> dict[str, list[str]]:
    """What puts a person on the list, or takes them off if they are on it."""
    [week] = studies.read_lists(store, study, last=1)
    return {"remove" if arm in {one.id for one in week.listed} else "add": [arm]}


def test_the_owner_changes_the_list_and_it_is_said_where_the_button_was(visit, store, clinic):
    [week] = studies.read_lists(store, clinic)
    gone, moves_up = week.listed[0], week.reserve[0]
    app = open_tab(visit, clinic)
    [off] = [one for one in app.multiselect if one.label == "Take off"]
    off.set_value([gone.id]).run()
    app = click(app, "change-list")
    assert "Please write why" in said(app)
    [because] = [one for one in app.text_input if one.label == "Why, in a few words"]
    because.set_value("on holiday").run()
    app = click(app, "change-list")
    [change] = [one for one in app.expander if one.label == "Change this list"]
    assert f"{gone.label} ({gone.id}) is off" in " ".join(plain_text(change))
    [week] = studies.read_lists(store, clinic)
    assert moves_up.id in {one.id for one in week.listed}
    assert "Taken off the list by the owner: on holiday" in table_of(app)


def plain_text(block) -> list[str]:
    return [one.value.replace("\\", "") for one in block.success]


def test_anybody_can_be_asked_about(visit, store, clinic):
    [week] = studies.read_lists(store, clinic)
    off = [arm.id for arm in studies.get_study(store, clinic).config.arms]
    off = [arm for arm in off if arm not in {one.id for one in week.everybody}]
    app = open_tab(visit, clinic)
    app.selectbox(key="why").set_value(off[0]).run()
    assert "Not on the list: number " in said(app)
    assert "Your team has not compared them in this state yet." in said(app)
    assert "they would be number" in said(app)


def test_earlier_lists_show_their_outcomes(visit, store, clinic):
    listed = [one.id for one in studies.read_lists(store, clinic)[0].listed]
    studies.observe(store, clinic, {listed[0]: "High"}, helped=listed[:2])
    studies.advance(store, clinic)
    app = open_tab(visit, clinic)
    app.selectbox(key="week of 2").set_value(1).run()
    table = table_of(app)
    assert '<td class="helped">Helped</td><td class="then">High</td>' in table
    assert '<td class="helped">Not helped</td><td class="then">unknown</td>' in table


def test_unknown_states_are_marked_on_the_list(visit, store, clinic):
    studies.observe(store, clinic, {})
    studies.advance(store, clinic)
    assert "1 week ago" in table_of(open_tab(visit, clinic))


def test_several_colleagues_get_links_and_a_valid_link_is_not_replaced_silently(
    visit, store, clinic
):
    app = open_tab(visit, clinic)
    app.text_input(key="whose-list-0").set_value("Dr Bo, Dr Cy").run()
    app.button(key="link-list").click().run()
    made = [one.value for one in app.code]
    assert [one.count("/list?read=") for one in made] == [1, 1]
    app.text_input(key="whose-list-2").set_value("Dr Bo").run()
    assert [one.value for one in app.code] == made  # still there to be copied
    assert "Dr Bo: a link is valid already" in app.warning[0].value.replace("\\", "")
    assert app.button(key="link-list").label == "Replace the link"


@pytest.mark.parametrize(
    ("address", "opens"),
    [("http://localhost:8501", "on this computer only"), ("https://clinic.example", "")],
)
def test_new_links_come_with_a_qr_code_and_a_text_to_send(
    visit, clinic, monkeypatch, address, opens
):
    monkeypatch.setattr(invitations, "address", lambda: address)
    app = open_tab(visit, clinic, "Invite")
    app.text_input(key="whose-duels-0").set_value("Ann <b>").run()
    app.button(key="link-duels").click().run()
    link = app.code[0].value
    assert link.startswith(f"{address}/annotate?invite=")
    [text] = [one.value for one in app.text if one.value.startswith("Hello Ann <b>,")]
    assert "“Clinic”" in text
    assert "two patients at a time" in text
    assert text.endswith(link)
    [picture] = [one.proto.body for one in app.get("html") if "dopl-qr" in one.proto.body]
    assert "Ann" not in picture
    assert "data:image/svg+xml" in picture
    assert [opens in one.value for one in app.warning] == [True] * bool(opens)


def test_links_made_before_a_wrong_name_are_shown(visit, store, clinic):
    app = open_tab(visit, clinic, "Invite")
    app.text_input(key="whose-duels-0").set_value("Ann, Owner").run()
    app.button(key="link-duels").click().run()
    assert "reserved for the owner" in app.error[0].value
    token = app.code[0].value.rpartition("=")[2]
    assert access.find_invite(store, token).annotator == "Ann"


def test_flags_name_people_show_their_cards_and_can_be_done(visit, store, clinic):
    ask = studies.next_duel(store, clinic, "Ann")
    arm, key = ask.left.arm, ask.impression
    studies.flag(store, key, "Ann", "wrong age", arm)
    names = {one.id: one.label for one in studies.get_study(store, clinic).config.arms}
    app = open_tab(visit, clinic)
    assert f"Ann, about {names[arm]}: wrong age" in said(app)
    assert "Annotators flagged 1 comparison" in [one.label for one in app.expander]
    assert names[ask.right.arm] not in [one.value for one in app.text]
    app.toggle(key=f"flagged-{key}").set_value(True).run()
    assert {names[arm], names[ask.right.arm]} <= {one.value for one in app.text}
    app.button(key=f"flag-done-{key}").click().run()
    assert studies.flags(store, clinic).done.tolist() == [True]
    assert "wrong age" not in said(app)
    assert "All flags (CSV)" in [
        one.label for one in open_tab(visit, clinic, "Data").download_button
    ]


@pytest.mark.parametrize(
    ("changed", "words"),
    [(None, ""), (0, "changed none of the places"), (2, "changed 2 of the 3 places on the list.")],
)
def test_the_list_speaks_of_the_newest_answers_and_insights_of_all(store, clinic, changed, words):
    [week] = studies.read_lists(store, clinic)
    said = list_tab.answers_text(replace(week, by_answers=changed))
    assert said.startswith("The newest answers" if words else "")
    assert words in said
    assert assessment_text.answers_text(AnswersChanged(2, 3, True), 3).startswith(
        "All your answers"
    )


def test_people_of_the_same_name_have_their_ids_beside_it_on_a_phone_too(visit, store):
    arms = [studies.Arm(f"p{n}", "Ada", state="Low") for n in range(2)]
    arms += [studies.Arm("p2", "Bo", state="Low")]
    rules = {"title": "Ward", "budget": 2, "practice": False, "sitting": 0}
    study = studies.create_study(store, studies.from_roster(arms, ["Low", "High"], **rules))
    [week] = studies.read_lists(store, study)
    page = open_tab(visit, study)
    [table] = [one.proto.body for one in page.get("html") if "dopl-list" in one.proto.body]
    for one in (*week.listed, *week.reserve):
        name = "Bo <small>p2</small>" if one.label == "Bo" else f"Ada ({one.id})"
        assert f'<td class="name">{name}</td>' in table


def test_a_list_of_a_closed_study_cannot_be_changed(visit, store, clinic):
    assert "Change this list" in [one.label for one in open_tab(visit, clinic).expander]
    studies.close_study(store, clinic)
    assert "Change this list" not in [one.label for one in open_tab(visit, clinic).expander]
