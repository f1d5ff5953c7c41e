"""The logic of Home, Studies, Insights and Simulate, and who may see them."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import sqlalchemy as sa
import streamlit as st
from page_words import words
from streamlit.runtime.media_file_manager import MediaFileManager
from streamlit.runtime.memory_media_file_storage import MemoryMediaFileStorage

from dopl_core.experiments import background as simulations
from dopl_core.experiments.learners import LEARNERS
from dopl_core.learning.pair_designs import DESIGNS
from dopl_core.studies import access, service
from pages import _downloads, _duels

ROOT = Path(__file__).resolve().parents[2]
PEOPLE = "How people answer"
PAGES = ("home", "annotate", "studies", "insights", "simulate")


def test_the_entrance_is_home(router):
    app = router.run()
    assert not app.exception
    assert app.button(key="try")


def test_the_settings_that_clicks_depend_on_are_in_force(visit):
    visit("home")
    assert st.get_option("runner.postScriptGC") is False
    assert st.get_option("browser.gatherUsageStats") is False
    assert st.get_option("client.showErrorDetails") == "none"
    assert st.get_option("server.enableXsrfProtection") is True


@pytest.mark.parametrize("name", PAGES)
def test_every_page_opens_on_an_empty_database(visit, name):
    app = visit(name)
    assert not app.exception
    assert words(app)


@pytest.mark.parametrize("name", PAGES)
def test_from_elsewhere_every_page_needs_a_key_or_an_invite(visit, study, come_in, name):
    come_in("made-up")
    app = visit(name, study=study)
    assert app.title[0].value == "You need a link"
    assert not app.button


@pytest.mark.parametrize("name", PAGES)
def test_a_session_of_the_owner_opens_every_page_until_there_is_a_new_key(
    visit, store, come_in, name
):
    come_in(access.begin_session(store, access.make_owner_key(store)))
    app = visit(name)
    assert app.title[0].value != "You need a link"
    access.make_owner_key(store)
    assert app.run().title[0].value == "You need a link"


@pytest.mark.parametrize("key", ["pause", "close"])
def test_a_click_of_somebody_who_was_the_owner_does_nothing(visit, store, study, come_in, key):
    come_in(access.begin_session(store, access.make_owner_key(store)))
    app = visit("studies", study=study)
    access.make_owner_key(store)
    app.button(key=key).click().run()
    assert service.get_study(store, study).status == "running"
    assert app.title[0].value == "You need a link"


def test_what_is_downloaded_is_made_for_the_owner_only(store, come_in):
    come_in(access.begin_session(store, access.make_owner_key(store)))
    make = _downloads.made_for_owner(lambda: "the table")
    assert make() == "the table"
    access.make_owner_key(store)
    with pytest.raises(PermissionError):
        make()


def test_what_was_made_is_there_to_be_fetched_whatever_others_draw_meanwhile(monkeypatch):
    manager, drawn = MediaFileManager(MemoryMediaFileStorage("/media")), []
    runtime = SimpleNamespace(media_file_mgr=manager)
    monkeypatch.setattr(_downloads, "get_instance", lambda: runtime)
    monkeypatch.setattr(_downloads, "made_for_owner", lambda make: make)
    monkeypatch.setattr(st, "download_button", lambda *args, **options: drawn.append(args))
    _downloads.made_button("The table", lambda: "a,b", "table.csv", "text/csv")
    [(_, make, name, kind)] = drawn
    address = manager.execute_deferred(manager.add_deferred(make, kind, "here", name))
    for _ in range(3):
        manager.remove_orphaned_files()  # as after each drawing of a page
    file = manager.read_file(address.rpartition("/")[2])
    assert file is not None
    assert file.content == b"a,b"


def test_try_it_makes_a_study_and_opens_its_duels(visit, store, monkeypatch):
    opened = []
    monkeypatch.setattr(_duels, "open_duels", opened.append)
    visit("home").button(key="try").click().run()
    [study] = service.list_studies(store)
    assert study.config.environment_name == "cpap"
    assert opened == [study.id]


def test_a_study_is_made_from_an_environment_as_the_form_says(visit, store):
    app = visit("studies")
    app.selectbox[0].set_value("Maternal health calls").run()
    app.text_input(key="title armman").set_value("Calls in June")
    app.number_input(key="budget armman").set_value(5)
    app.run()
    app.button(key="create").click().run()
    [study] = service.list_studies(store)
    assert (study.title, study.config.budget, study.config.n_arms) == ("Calls in June", 5, 20)
    assert app.title[0].value == "Calls in June"


def test_a_study_is_paused_reopened_and_closed(visit, store, study):
    app = visit("studies", study=study)
    for key, status in (("pause", "paused"), ("reopen", "running"), ("close", "closed")):
        app.button(key=key).click().run()
        assert service.get_study(store, study).status == status


def test_the_list_names_those_to_help_and_why(visit, study):
    app = visit("studies", study=study)
    table = app.dataframe[0].value
    assert len(table) == 4
    assert list(table.columns) == ["id", "name", "group", "state now", "why"]


def test_an_invite_link_is_shown_once_and_revoked(visit, store, study):
    app = visit("studies", study=study)
    app.text_input(key="whose-duels").set_value("Ann").run()
    app.button(key="link-duels").click().run()
    token = re.search(r"/annotate\?invite=(\S+)", app.code[0].value)[1]
    assert access.who(store, token).annotator == "Ann"
    [revoke] = [b for b in app.button if b.key and b.key.startswith("revoke-duels-Ann")]
    revoke.click().run()
    assert access.who(store, token) is None
    assert not app.code


def test_deleting_needs_a_yes(visit, store, study):
    app = visit("studies", study=study)
    assert app.button(key="delete").disabled
    app.checkbox(key="sure").check().run()
    app.button(key="delete").click().run()
    assert service.list_studies(store) == []
    assert app.title[0].value == "Studies"


def test_a_bundle_that_is_none_is_refused_in_words(visit, store):
    app = visit("studies")
    app.file_uploader(key="bundle").set_value(("b.zip", b"not a zip", "application/zip")).run()
    app.button(key="import").click().run()
    assert app.error
    assert service.list_studies(store) == []


def test_insights_have_titles_that_say_the_finding(visit, store, study):
    for number in range(6):
        ask = service.next_duel(store, study, "Ann")
        service.answer(store, ask.impression, "right" if number else "left", response_ms=800)
        service.advance(store, study)
    app = visit("insights", study=study, look=PEOPLE)
    assert not app.exception
    said = words(app).replace("\\", "")
    assert "6 answers so far, by 1 person" in said
    assert "Half of the answers took less than 0.8 s" in said
    assert "Left was chosen 17 % of the time" in said


def test_insights_read_the_answers_once_and_fold_the_log_once(visit, store, study):
    ask = service.next_duel(store, study, "Ann")
    service.answer(store, ask.impression, "left", response_ms=800)
    statements = []
    sa.event.listen(
        store.engine, "before_cursor_execute", lambda *event: statements.append(event[2])
    )
    app = visit("insights", study=study, look=PEOPLE)
    assert not app.exception
    assert "1 answer so far" in words(app)
    assert len([s for s in statements if "FROM impressions" in s]) == 1
    assert len([s for s in statements if "plans.arrays" in s]) == 1


def test_the_owner_leaves_out_somebodys_answers_and_takes_it_back(visit, store, study):
    ask = service.next_duel(store, study, "Ann")
    service.answer(store, ask.impression, "left", response_ms=800)
    for chosen in (["Ann"], []):
        app = visit("insights", study=study, look=PEOPLE)
        assert app.button(key="trust").disabled
        app.multiselect[0].set_value(chosen).run()
        app.button(key="trust").click().run()
        assert not app.exception
        assert "it holds from the next plan on" in app.success[0].value
        assert service.excluded(store, study) == chosen
        assert any("counts" in table.value for table in app.dataframe) == bool(chosen)


def test_answers_of_the_first_sitting_are_among_the_insights(visit, store):
    def said():
        return words(visit("insights", study=study, look=PEOPLE)).replace("\\", "")

    roster = [service.Arm(f"p{n}", f"P{n}", state=("Low", "High")[n % 2]) for n in range(6)]
    rules = {"title": "Ward", "budget": 2, "sitting": 8, "practice": False}
    study = service.create_study(store, service.from_roster(roster, ("Low", "High"), **rules))
    assert "Nobody has answered yet" in said()
    for name in ("Ann", "Bo"):
        ask = service.next_duel(store, study, name)
        service.answer(store, ask.impression, "left", response_ms=800)
    assert "2 answers so far, by 2 people" in said()
    service.exclude(store, study, "Bo")
    assert "1 answer so far, by 1 person" in said()
    assert "Without the 1 answer of those left out: Bo." in said()
    app = visit("insights", study=study, look=PEOPLE)
    assert app.dataframe[0].value.person.tolist() == ["Ann", "Bo"]
    service.exclude(store, study, "Ann")
    app = visit("insights", study=study, look=PEOPLE)
    assert "Everybody's answers are left out" in said()
    assert app.multiselect[0].value == ["Ann", "Bo"]  # and can be counted again


def test_insights_of_weeks_in_which_nobody_was_seen_can_be_looked_at(visit, store):
    roster = [service.Arm(f"p{n}", "Bo Berg", state=("Low", "High")[n % 2]) for n in range(4)]
    rules = {"title": "Ward", "budget": 2, "by_lot": 1, "practice": False}
    study = service.create_study(store, service.from_roster(roster, ("Low", "High"), **rules))
    assert "1 place of every list goes by lot" in words(visit("insights", study=study))
    for _ in range(2):
        service.observe(store, study, dict.fromkeys(service.present_states(store, study)))
        service.advance(store, study)
    for look in ("Is it working?", PEOPLE, "What the learner believes"):
        assert not visit("insights", study=study, look=look).exception


@pytest.mark.parametrize("names", [("arm", "label", "group"), ("Low\u2028", "=1+1", "index")])
def test_insights_can_be_seen_whatever_the_states_are_called(visit, store, names):
    roster = [service.Arm(f"p{n}", f"P{n}", state=names[n % 3]) for n in range(6)]
    config = service.from_roster(roster, names, title="Names", budget=3, practice=False)
    study = service.create_study(store, config)
    ask = service.next_duel(store, study, "Ann")
    service.answer(store, ask.impression, "left", response_ms=800)
    for look in ("Is it working?", "How people answer", "What the learner believes"):
        app = visit("insights", study=study, look=look)
        assert not app.exception
    assert "The plan" in words(app)


def test_learners_and_designs_to_choose_from_are_those_of_their_tables(visit):
    learners = visit("simulate").multiselect[0]
    assert learners.options == [kind.label for kind in LEARNERS.values()]
    design = visit("studies").selectbox(key="des cpap")
    assert design.options == [one.label for one in DESIGNS.values()]
    assert design.value in DESIGNS


def test_a_simulation_without_learners_is_refused_in_words(visit, monkeypatch):
    app = visit("simulate")
    app.multiselect[0].set_value([])
    app.button[0].click().run()
    assert "no learner is chosen" in words(app).replace("\\", "")
    assert simulations.find_all() == []


@pytest.mark.parametrize("content", ["{", "[]", '{"pid": 1}'])
def test_a_broken_simulation_is_shown_and_can_be_deleted(visit, tmp_path, content):
    folder = tmp_path / "runs" / "20260101-000000-aaaa"
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(content)
    app = visit("simulate")
    assert not app.exception
    assert "run.json" in words(app).replace("\\", "")
    app.button(key=f"del-{folder.name}").click().run()
    assert not folder.exists()
    assert not app.exception
