"""The Invite tab says who judges whom, and limits it; Insights warn."""

from clinic_page import click, make, open_tab, said
from page_words import words

from dopl_core import studies
from dopl_core.studies import access


def warned(app):
    return " ".join(str(one.value) for one in app.warning).replace("\\", "")


def test_a_limit_is_set_by_clicks_before_the_link_is_used(visit, store):
    study = make(store)
    access.invite(store, study, "Ann")
    app = open_tab(visit, study, "Invite")
    app.selectbox(key="judge").set_value("Ann").run()
    app.multiselect(key="judge-columns Ann").set_value(["group"]).run()
    assert app.button(key="save-judge").disabled  # until a value is chosen
    wards = studies.judging(store, study).columns["group"]
    app.multiselect(key="judge-values Ann group").set_value([wards[0]]).run()
    app.multiselect(key="judge-never Ann").set_value(["p01"]).run()
    click(app, "save-judge")
    limit = studies.coming_config(store, study).limits["Ann"]
    assert (limit.only, limit.never) == ({"group": {wards[0]}}, {"p01"})
    assert f"Ann: group {wards[0]}, never p01. " in said(app)
    app.selectbox(key="judge").set_value("Ann").run()  # the form begins with what holds
    assert app.multiselect(key="judge-values Ann group").value == [wards[0]]
    app.multiselect(key="judge-columns Ann").set_value([]).run()
    app.multiselect(key="judge-never Ann").set_value([]).run()
    click(app, "save-judge")
    assert studies.coming_config(store, study).limits == {}


def test_invite_and_insights_warn_of_groups_that_nobody_connects(visit, store):
    study = make(store, sitting=10)
    north, south, *_ = studies.judging(store, study).columns["group"]
    for name, ward in (("Ann", north), ("Bo", south)):
        access.invite(store, study, name)
        studies.limit_annotator(store, study, name, {"group": [ward]})
    for page in (
        open_tab(visit, study, "Invite"),
        visit("insights", study=study, look="How people answer"),
    ):
        assert "open comparisons. Let somebody judge more people" in warned(page)
        assert "group: no answer connects" in warned(page)
        assert "Choose “Ask only what they may judge” on Invite" in warned(page)
    app = open_tab(visit, study, "Invite")
    app.checkbox(key="limited-pairs False").check().run()
    assert studies.coming_config(store, study).limited_pairs
    assert "Ask only what they may judge" not in warned(app)
    app.checkbox(key="limited-pairs True").uncheck().run()
    assert not studies.coming_config(store, study).limited_pairs


def test_an_annotator_without_a_pair_reads_that_there_is_nothing_for_them(visit, store, come_in):
    study = make(store)
    token = access.invite(store, study, "Ann")
    everybody = [arm.id for arm in studies.coming_config(store, study).arms]
    studies.limit_annotator(store, study, "Ann", {}, everybody[1:])
    come_in()
    nothing = "There is no comparison for you right now. "
    assert f"{nothing}More may come with the next list." in words(visit("annotate", invite=token))
    access.invite(store, study, "Bo")
    assert f"{nothing}Colleagues answer the rest" in words(visit("annotate", invite=token))
