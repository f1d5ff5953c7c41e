"""A new study from an owner's own file: its columns, its slips of spelling, states in order."""

from pathlib import Path

import pytest
from page_words import words

from dopl_core import studies
from dopl_core.studies.collect import cards

ROOT = Path(__file__).resolve().parents[2]
ROSTER = (ROOT / "data" / "rosters" / "clinic.csv").read_bytes()
WARD = """Bett;Full name;Condition;Ward;age;note;hours_1;hours_2;hours_3
1;Ada Müller;poor;A;61;new;1;2;3
2;Bo;good;A;44;;6;7;6
3;Cy;fair;B;58;;4;4;5
4;Di;fiar;B;39;;4;5;4
5;Eve;fair;B;71;;0;0;1
"""


@pytest.fixture
def upload(visit):
    """The form for a new study, with a roster in it."""

    def with_roster(content: bytes, name: str = "ward.csv"):
        app = visit("studies")
        app.file_uploader(key="roster").set_value((name, content, "text/csv")).run()
        assert not app.exception
        return app

    return with_roster


def said(app):
    info = "\n".join(str(one.value) for one in app.info)
    return (words(app) + "\n" + info).replace("\\", "").replace("*", "").replace("\u2060", "")


def widget(elements, begin):
    [found] = [one for one in elements if (one.key or "").startswith(begin)]
    return found


def can_create(app):
    return any(button.key == "create" for button in app.button)


def order(app, states):
    widget(app.multiselect, "order of").set_value(states).run()
    assert not app.exception
    return app


def test_states_are_in_the_order_that_the_owner_says_and_no_other(upload, store):
    app = upload(ROSTER, "clinic.csv")
    assert widget(app.multiselect, "order of").value == []
    assert not can_create(app)
    order(app, ["Low", "Moderate"])
    assert "Still to place: High." in said(app)
    assert not can_create(app)
    order(app, ["Low", "Moderate", "High"])
    widget(app.text_input, "means Low").set_value("seldom").run()
    app.button(key="create").click().run()
    [study] = studies.list_studies(store)
    assert [state.label for state in study.config.states] == ["Low", "Moderate", "High"]
    assert study.config.states[0].description == "seldom"
    assert study.config.world == "observed"
    assert study.config.ordered
    assert (study.config.sitting, study.config.answers) == (100, 30)
    assert "First round: 0 of" in said(app)


def test_column_names_are_the_owners_and_cards_show_what_was_chosen(upload, store):
    app = upload(WARD.encode("cp1252"))
    assert "was read as Windows text" in said(app)
    chosen = [box.value for box in app.selectbox if " of " in (box.key or "")]
    assert chosen == [None, "Condition", "Full name", "Ward"]
    assert "Choose the column for ID: each person's own number" in said(app)
    widget(app.selectbox, "id of").set_value("Bett").run()
    shown = widget(app.multiselect, "shown of")
    shown.set_value(["note", "age"]).run()
    widget(app.radio, "spelt").set_value(0).run()
    order(app, ["poor", "fair", "good"])
    assert can_create(app)
    app.number_input(key="sitting roster").set_value(0).run()
    app.button(key="create").click().run()
    [study] = studies.list_studies(store)
    ada = study.config.arms[0]
    assert (ada.id, ada.label, ada.group, ada.state) == ("1", "Ada Müller", "A", "poor")
    assert set(ada.columns) == {"note", "age"}
    assert study.config.arms[3].state == "fair"
    assert study.episode == 1


def test_cards_show_their_columns_in_the_order_that_was_chosen(upload, store):
    app = upload(WARD.replace("fiar", "fair").replace("Bett", "id").encode())
    widget(app.multiselect, "shown of").set_value(["note", "age"]).run()
    order(app, ["poor", "fair", "good"]).button(key="create").click().run()
    [study] = studies.list_studies(store)
    facts = cards.from_roster(study.config.arms[0].columns).facts
    assert [fact.label for fact in facts] == ["Note", "Age"]


def test_misspellings_are_asked_about_and_not_accepted(upload):
    app = upload(WARD.replace("Bett", "id").encode())
    question = widget(app.radio, "spelt")
    assert "“fiar” (1 row) looks like “fair” (2 rows)" in question.label
    assert question.options[:2] == ["“fair” is right", "“fiar” is right"]
    assert not [one for one in app.multiselect if one.key.startswith("order of")]
    question.set_value(2).run()
    order(app, ["poor", "fair", "fiar", "good"])
    assert can_create(app)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"id,state\na,Low\na,Low", "x.csv row 3"),
        (b"id,state\na,Low\n", "has one row"),
        (b"id,state\n", "has no rows"),
        (b"", "x.csv is empty"),
        (b"PK\x03\x04\0\0", "x.csv: this spreadsheet is damaged"),
    ],
)
def test_a_roster_that_cannot_be_used_is_refused_in_words(upload, store, content, reason):
    app = upload(content, "x.csv")
    if places := [one for one in app.multiselect if one.key.startswith("order of")]:
        places[0].set_value(["Low", "High"]).run()
    assert not app.exception
    assert reason in said(app)
    assert not can_create(app)
    assert studies.list_studies(store) == []


def test_a_column_of_many_texts_is_not_taken_for_states(upload):
    rows = "\n".join(f"{n},text {n}x{n}" for n in range(30))
    app = upload(f"id,state\n{rows}\n".encode())
    assert "that column has 30 different values" in said(app)


def test_a_number_that_is_not_allowed_blocks_the_study(upload, store):
    app = order(upload(ROSTER, "clinic.csv"), ["Low", "Moderate", "High"])
    app.number_input(key="budget roster").set_value(0).run()
    assert "budget" in said(app)
    assert not can_create(app)
    app.number_input(key="budget roster").set_value(3).run()
    assert can_create(app)


def test_a_large_roster_begins_with_a_short_list(upload):
    rows = "\n".join(f"{n},{('Low', 'High')[n % 2]},{n % 7}" for n in range(400))
    app = order(upload(f"id,state,age\n{rows}\n".encode()), ["Low", "High"])
    assert app.number_input(key="budget roster").value == 20


def test_a_roster_of_states_alone_is_told_that_cards_will_be_empty(upload):
    app = order(upload(b"id,state\na,Low\nb,High\nc,Low\n"), ["Low", "High"])
    assert "annotators have nothing to judge by" in "".join(one.value for one in app.warning)
    app = order(upload(ROSTER, "clinic.csv"), ["Low", "Moderate", "High"])
    assert not app.warning


def test_a_spreadsheet_is_a_roster_and_is_shown(upload, store):
    rows = [["p1", "Low", "Jürgen"], ["p2", "High", "मीरा"], ["p3", "Low", "Ann"]]
    app = upload(studies.write_xlsx(["id", "state", "name"], rows), "ward.xlsx")
    assert app.dataframe[0].value.name.tolist() == ["Jürgen", "मीरा", "Ann"]
    order(app, ["Low", "High"]).button(key="create").click().run()
    [study] = studies.list_studies(store)
    assert [arm.label for arm in study.config.arms] == ["Jürgen", "मीरा", "Ann"]


def test_dates_that_can_be_read_both_ways_are_asked_about(upload):
    app = order(upload(ROSTER, "clinic.csv"), ["Low", "Moderate", "High"])
    history = b"id,date,state,called\np01,02/03/2026,Low,0\np01,09/03/2026,High,1\n"
    app.file_uploader(key="history").set_value(("h.csv", history, "text/csv")).run()
    widget(app.radio, "dates of").set_value("Day first (31/12/2026)").run()
    assert "1 move of 1 person found, no gaps." in said(app)


def test_columns_of_the_roster_mean_the_same_in_past_records_and_reports(upload, store):
    roster = b"mrn,usage,age,phone\n7,Low,50,1\n8,High,60,2\n9,,70,3\n"
    app = upload(roster)
    widget(app.selectbox, "id of roster").set_value("mrn").run()
    widget(app.selectbox, "state of roster").set_value("usage").run()
    order(app, ["Low", "High"])
    assert "1 of 3 has no state, which counts as unknown." in said(app)
    history = b"mrn,when,usage,helped\n7,1,Low,0\n7,2,High,1\n"
    app.file_uploader(key="history").set_value(("h.csv", history, "text/csv")).run()
    assert "1 move of 1 person found" in said(app)
    app.button(key="create").click().run()
    [study] = studies.list_studies(store)
    report = studies.open_sheet(b"mrn,usage,called\n7,Low,1\n")
    expected = studies.Columns("mrn", "usage", helped="called")
    assert studies.remembered_columns(store, study.id, "report", report) == expected


def test_past_records_say_how_many_moves_and_gaps_were_found(upload, store):
    app = order(upload(ROSTER, "clinic.csv"), ["Low", "Moderate", "High"])
    history = (
        b"id,when,state,helped\np01,1,Low,0\np01,2,High,1\np01,3,High,0\nold,1,Low,0\nold,2,Low,0\n"
        b"p02,1,Low,0\np02,5,Low,0\n"
    )
    app.file_uploader(key="history").set_value(("h.csv", history, "text/csv")).run()
    assert "3 moves of 3 people found; not counted: 1 gap." in said(app)
    app.number_input(key="sitting roster").set_value(0).run()
    app.button(key="create").click().run()
    [study] = studies.list_studies(store)
    assert studies.load_learner(store, study.id).visits.sum() == 3


def test_past_answers_are_counted_in_the_state_of_their_time(upload, store):
    app = order(upload(ROSTER, "clinic.csv"), ["Low", "Moderate", "High"])
    history = b"id,when,state,helped\np01,2026-01-05,Low,0\np01,2026-01-12,High,1\n"
    app.file_uploader(key="history").set_value(("h.csv", history, "text/csv")).run()
    answers = b"annotator,winner,loser,when\nmodel,p01,p02,2026-01-06\nAnn,p03,p01,\n"
    wrong = answers + b"Ann,p01,nobody,\n"
    app.file_uploader(key="past answers").set_value(("a.csv", wrong, "text/csv")).run()
    assert 'a.csv row 4: "nobody" is not in the roster' in said(app)
    assert not can_create(app)
    app.file_uploader(key="past answers").set_value(("a.csv", answers, "text/csv")).run()
    assert "2 answers of 2 annotators found" in said(app)
    app.number_input(key="sitting roster").set_value(0).run()
    app.button(key="create").click().run()
    [study] = studies.list_studies(store)
    learner = studies.load_learner(store, study.id)
    assert learner.counts.table().winner.tolist()[0] == 0  # p01 in the state Low
    assert studies.plans(store, study.id).answers.tolist() == [2]


def test_the_kind_of_help_is_one_choice_that_may_be_left_as_it_is(upload, visit, store):
    app = order(upload(ROSTER, "clinic.csv"), ["Low", "Moderate", "High"])
    field = app.selectbox(key="help_kind roster")
    assert field.label == "What kind of help is it?"
    assert field.options == ["a message", "a call", "a visit", "a treatment", "money", "other"]
    assert field.value == "other"
    field.set_value("call").run()
    app.button(key="create").click().run()
    [study] = studies.list_studies(store)
    assert study.config.help_kind == "call"
    app = visit("studies", study=study.id, tab="Settings")
    app.selectbox(key="help_kind set").set_value("visit").run()
    app.button(key="save").click().run()
    assert studies.coming_config(store, study.id).help_kind == "visit"


def test_places_to_find_out_are_chosen_by_default_or_by_the_owner(upload, visit, store):
    app = order(upload(ROSTER, "clinic.csv"), ["Low", "Moderate", "High"])
    field = app.text_input(key="find_out roster")
    assert "by default" in field.label
    assert "By default it is one place in eight, over time." in field.help
    assert (field.value, field.placeholder) == ("", "by default")
    for typed, reason in (("99", "it must be less than the budget"), ("few", "a whole number")):
        app.text_input(key="find_out roster").set_value(typed).run()
        assert reason in said(app)
        assert not can_create(app)
    app.text_input(key="find_out roster").set_value("0").run()
    app.button(key="create").click().run()
    [study] = studies.list_studies(store)
    assert study.config.find_out == 0
    for typed, places in (("2", 2), ("few", 2), ("", None)):
        app = visit("studies", study=study.id, tab="Settings")
        app.text_input(key="find_out set").set_value(typed).run()
        app.button(key="save").click().run()
        assert not app.exception
        assert ("a whole number from 0" in said(app)) == (typed == "few")
        assert studies.coming_config(store, study.id).find_out == places


def test_the_word_for_an_epoch_is_the_owners(upload, store):
    app = order(upload(ROSTER, "clinic.csv"), ["Low", "Moderate", "High"])
    app.text_input(key="epoch_word roster").set_value("month")
    app.number_input(key="sitting roster").set_value(0).run()
    app.button(key="create").click().run()
    assert studies.list_studies(store)[0].config.epoch_word == "month"
    assert "Month 1" in said(app)


def test_a_trial_has_its_power_computed_and_its_protocol_fixed(upload, visit, store, monkeypatch):
    monkeypatch.setattr("dopl_core.studies.analysis.power.CLINICS", 20)
    monkeypatch.setattr("dopl_core.studies.analysis.power.WEEKS", (6, 39))
    app = order(upload(ROSTER, "clinic.csv"), ["Low", "Moderate", "High"])
    app.number_input(key="budget roster").set_value(4).run()
    app.checkbox(key="publish").check().run()
    assert app.button(key="create").disabled
    assert "A trial needs places chosen at random. Compute the power first" in said(app)
    app.text_input(key="publish-question").set_value("Do *calls* help?")
    app.number_input(key="publish-weeks").set_value(30)
    app.button(key="compute-power").click().run()
    assert not app.exception
    table = app.dataframe[-1].value
    assert list(table.columns) == ["Places at random", "6 weeks", "30 weeks", "39 weeks"]
    assert "If help improves 20 more people in 100" in said(app)
    assert "of at most 30 weeks" in said(app)
    app.button(key="use-design").click().run()
    assert not app.exception
    assert app.number_input(key="by_lot roster").value in (1, 2)
    weeks = app.number_input(key="publish-weeks").value
    assert "Nobody can change it afterwards" in said(app)
    app.button(key="create").click().run()
    assert not app.exception
    [study] = studies.list_studies(store)
    fixed = studies.read_protocol(store, study.id)
    assert fixed.protocol.question == "Do *calls* help?"
    assert (fixed.protocol.weeks, fixed.protocol.by_lot) == (weeks, study.config.by_lot)
    assert fixed.protocol.power >= 0.8
    app = visit("studies", study=study.id, tab="Data")
    assert "Do calls help?" in said(app)
    assert fixed.digest in said(app)
    assert "Protocol of the trial, fixed on" in str([box.label for box in app.expander])
