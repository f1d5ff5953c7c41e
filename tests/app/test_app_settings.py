"""Every setting of the table is a field of the New study form or of the Settings tab."""

import pytest
from page_words import simulated_form
from test_app_create import ROSTER, order, upload  # noqa: F401

from dopl_core import studies

KINDS = ("checkbox", "multiselect", "number_input", "selectbox", "text_input", "text_area")


def fields_of(app) -> dict[str, object]:
    return {one.key: one for kind in KINDS for one in getattr(app, kind) if one.key}


def check_fields(app, world: studies.World, key: str, *, is_new: bool) -> None:
    found = fields_of(app)
    for setting in studies.offered_in(world):
        if is_new or setting.about.changes != "never":
            field = found[f"{setting.name} {key}"]
            assert field.label == setting.about.label
            assert field.help == setting.about.help


def test_the_form_of_a_simulated_world_asks_for_every_setting_it_has(visit):
    check_fields(simulated_form(visit), "simulated", "cpap", is_new=True)


def test_the_form_of_a_roster_asks_for_every_setting_it_has(upload):  # noqa: F811
    app = order(upload(ROSTER, "clinic.csv"), ["Low", "Moderate", "High"])
    check_fields(app, "observed", "roster", is_new=True)


@pytest.mark.parametrize("name", ["hide_state", "weigh_people", "photos_from_web"])
def test_the_settings_tab_offers_every_setting_that_may_change(visit, store, name):
    arms = [studies.Arm(f"p{n}", f"P {n}", "all", "Low") for n in range(4)]
    config = studies.from_roster(arms, ["Low", "High"], title="Ward", budget=2)
    study = studies.create_study(store, config)
    app = visit("studies", study=study, tab="Settings")
    check_fields(app, "observed", "set", is_new=False)
    switch = app.checkbox(key=f"{name} set")
    switch.set_value(not switch.value).run()
    app.button(key="save").click().run()
    assert getattr(studies.coming_config(store, study), name) is not getattr(config, name)


def test_columns_are_chosen_from_those_of_the_study(visit, store, upload):  # noqa: F811
    app = order(upload(ROSTER, "clinic.csv"), ["Low", "Moderate", "High"])
    field = app.multiselect(key="list_columns roster")
    assert {"age", "hours_1"} <= set(field.options)
    field.set_value(["hours_1", "age"]).run()
    app.button(key="create").click().run()
    [study] = studies.list_studies(store)
    assert study.config.list_columns == "hours_1, age"
    app = visit("studies", study=study.id, tab="Settings")
    assert app.button(key="save").disabled
    app.multiselect(key="list_columns set").set_value(["age"]).run()
    app.button(key="save").click().run()
    assert app.success[0].value.replace("\\", "") == "Saved."  # when depends on the setting
    assert studies.coming_config(store, study.id).list_columns == "age"


def test_the_settings_tab_says_what_a_trial_must_keep_until_it_ends(visit, store):
    arms = [studies.Arm(f"p{n}", f"P {n}", "all", "Low") for n in range(6)]
    rules = {"title": "Ward", "budget": 2, "by_lot": 1, "confidence": "paper"}
    config = studies.from_roster(arms, ["Low", "High"], horizon=1, **rules)
    promised = studies.Protocol(
        **{"question": "Do calls help?", "people": 6, "budget": 2, "by_lot": 1, "effect": 0.2},
        **{"weeks": 1, "looks": (1,)},
    )
    study = studies.create_study(store, config, protocol=promised)
    [warning] = visit("studies", study=study, tab="Settings").warning
    words = warning.value.replace("\\", "")
    assert words.startswith("The trial ends after week 1. Until then, keep 2 places, 1 of")
    studies.observe(store, study, studies.present_states(store, study))
    studies.advance(store, study)
    assert not visit("studies", study=study, tab="Settings").warning


def test_the_column_by_which_places_are_shared_is_chosen_from_those_of_the_study(
    visit,
    store,
    upload,  # noqa: F811
):
    app = order(upload(ROSTER, "clinic.csv"), ["Low", "Moderate", "High"])
    field = app.selectbox(key="fair_column roster")
    assert field.options[:2] == ["(none)", "group"]
    assert {"age", "hours_1"} <= set(field.options)
    field.set_value("group").run()
    app.button(key="create").click().run()
    [study] = studies.list_studies(store)
    assert study.config.fair_column == "group"
    app = visit("studies", study=study.id, tab="Settings")
    app.selectbox(key="fair_column set").set_value("").run()
    app.button(key="save").click().run()
    assert studies.coming_config(store, study.id).fair_column == ""


def test_columns_of_another_roster_replace_the_chosen_ones(upload):  # noqa: F811
    app = order(upload(ROSTER, "clinic.csv"), ["Low", "Moderate", "High"])
    app.multiselect(key="list_columns roster").set_value(["age"]).run()
    other = b"id,state,phone\n1,Low,07\n2,High,08\n"
    app.file_uploader(key="roster").set_value(("other.csv", other, "text/csv")).run()
    app = order(app, ["Low", "High"])
    assert not app.exception
    field = app.multiselect(key="list_columns roster")
    assert (field.options, field.value) == (["phone"], [])


def test_insights_show_what_sharing_places_costs(visit, store):
    arms = [
        studies.Arm(f"p{n}", f"P {n}", state="Low", columns={"ward": "ABBB"[n % 4]})
        for n in range(8)
    ]
    rule = {"fair_column": "ward", "fair_rule": "shares", "fair_shares": "A 50"}
    config = studies.from_roster(arms, ["Low", "High"], title="Ward", budget=2, **rule)
    study = studies.create_study(store, config)
    for said, tables in (("in no state were people seen both with help", 0), ("costs", 1)):
        app = visit("insights", study=study)
        assert not app.exception
        [box] = [one for one in app.expander if one.label == "What your rule for groups costs"]
        assert said in box.markdown[0].value
        assert len(box.dataframe) == tables  # before, the places are those of the prior
        studies.observe(store, study, studies.present_states(store, study))
        studies.advance(store, study)
    assert box.dataframe[0].value["group"].tolist() == ["A", "B"]
