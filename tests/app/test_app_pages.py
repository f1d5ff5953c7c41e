"""The logic of Home, Studies, Insights, Simulate and Help, and who may see them."""

import re
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import sqlalchemy as sa
import streamlit as st
from page_words import simulated_form, words
from streamlit.runtime.media_file_manager import MediaFileManager
from streamlit.runtime.memory_media_file_storage import MemoryMediaFileStorage

from dopl_core import environments, studies
from dopl_core.experiments import background as simulations
from dopl_core.experiments.learners import LEARNERS
from dopl_core.learning.pairs.pair_designs import DESIGNS
from dopl_core.studies import access
from pages.shared import downloads, duel_cards

ROOT = Path(__file__).resolve().parents[2]
PEOPLE = "How people answer"
PAGES = ("home", "annotate", "studies", "insights", "simulate", "help", "audit")


def test_the_app_opens_with_home(router):
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
def test_from_another_computer_every_page_needs_a_key_or_an_invitation(visit, study, come_in, name):
    come_in("made-up")
    app = visit(name, study=study)
    assert app.title[0].value == "You need a link"
    assert not app.button


@pytest.mark.parametrize("name", PAGES)
def test_a_session_of_the_owner_ends_with_a_new_key(visit, store, come_in, name):
    come_in(access.begin_session(store, access.make_owner_key(store), "clinic.example"))
    app = visit(name)
    assert app.title[0].value != "You need a link"
    access.make_owner_key(store)
    assert app.run().title[0].value == "You need a link"


@pytest.mark.parametrize("key", ["pause", "close"])
def test_a_click_with_an_expired_session_does_nothing(visit, store, study, come_in, key):
    come_in(access.begin_session(store, access.make_owner_key(store), "clinic.example"))
    app = visit("studies", study=study)
    access.make_owner_key(store)
    app.button(key=key).click().run()
    assert studies.get_study(store, study).status == "running"
    assert app.title[0].value == "You need a link"


def test_only_the_owner_downloads_files(store, come_in):
    come_in(access.begin_session(store, access.make_owner_key(store), "clinic.example"))
    make = downloads.for_visitor(lambda: "the table")
    assert make() == "the table"
    access.make_owner_key(store)
    with pytest.raises(PermissionError):
        make()


def test_a_file_stays_available_while_other_pages_are_drawn(monkeypatch):
    manager, drawn = MediaFileManager(MemoryMediaFileStorage("/media")), []
    runtime = SimpleNamespace(media_file_mgr=manager)
    monkeypatch.setattr(downloads, "get_instance", lambda: runtime)
    monkeypatch.setattr(downloads, "for_visitor", lambda make, *_: make)
    monkeypatch.setattr(st, "download_button", lambda *args, **options: drawn.append(args))
    downloads.file_button("The table", lambda: "a,b", "table.csv", "text/csv")
    [(_, make, name, kind)] = drawn
    address = manager.execute_deferred(manager.add_deferred(make, kind, "here", name))
    for _ in range(3):
        manager.remove_orphaned_files()  # as after each drawing of a page
    file = manager.read_file(address.rpartition("/")[2])
    assert file is not None
    assert file.content == b"a,b"


def test_try_it_creates_a_study_and_opens_its_comparisons(visit, store, monkeypatch):
    opened = []
    monkeypatch.setattr(duel_cards, "open_duels", opened.append)
    visit("home").button(key="try").click().run()
    [study] = studies.list_studies(store)
    assert study.config.environment_name == "cpap"
    assert opened == [study.id]


def test_a_study_is_created_from_an_environment_with_the_settings_of_the_form(visit, store):
    app = simulated_form(visit)
    app.selectbox[0].set_value("Maternal health calls").run()
    app.text_input(key="title armman").set_value("Calls in June")
    app.number_input(key="budget armman").set_value(5)
    app.run()
    app.button(key="create").click().run()
    [study] = studies.list_studies(store)
    assert (study.title, study.config.budget, study.config.n_arms) == ("Calls in June", 5, 20)
    assert app.title[0].value == "Calls in June"


def test_a_study_is_paused_reopened_and_closed(visit, store, study):
    app = visit("studies", study=study)
    for key, status in (("pause", "paused"), ("reopen", "running"), ("close", "closed")):
        app.button(key=key).click().run()
        assert studies.get_study(store, study).status == status


def test_the_list_has_names_and_reasons(visit, study):
    app = visit("studies", study=study)
    table = app.dataframe[0].value
    assert len(table) == 4
    assert list(table.columns) == ["id", "name", "group", "state now", "why"]


def test_an_invitation_is_shown_once_and_can_be_revoked(visit, store, study):
    app = visit("studies", study=study)
    app.text_input(key="whose-duels-0").set_value("Ann").run()
    app.button(key="link-duels").click().run()
    token = re.search(r"/annotate\?invite=(\S+)", app.code[0].value)[1]
    assert access.find_invite(store, token).annotator == "Ann"
    [reminder] = [text.value for text in app.text if "Answers that we ask you for" in text.value]
    assert re.search(r"^Ann: \d+$", reminder, re.MULTILINE)
    [revoke] = [b for b in app.button if b.key and b.key.startswith("revoke-duels-Ann")]
    revoke.click().run()
    assert access.find_invite(store, token) is None
    assert not app.code


def test_deleting_needs_a_confirmation(visit, store, study):
    app = visit("studies", study=study)
    assert app.button(key="delete").disabled
    app.checkbox(key="sure").check().run()
    app.button(key="delete").click().run()
    assert studies.list_studies(store) == []
    assert app.title[0].value == "Studies"


def test_a_file_that_is_not_a_bundle_is_refused(visit, store):
    app = visit("studies")
    app.file_uploader(key="bundle").set_value(("b.zip", b"not a zip", "application/zip")).run()
    app.button(key="import").click().run()
    assert app.error
    assert studies.list_studies(store) == []


def test_insights_have_titles_that_say_the_finding(visit, store, study):
    for number in range(6):
        ask = studies.next_duel(store, study, "Ann")
        studies.answer(store, ask.impression, "right" if number else "left", response_ms=800)
        studies.advance(store, study)
    app = visit("insights", study=study, look=PEOPLE)
    assert not app.exception
    said = words(app).replace("\\", "")
    assert "6 answers so far, by 1 person" in said
    assert "Half of the answers took at most 0.8 s" in said
    assert "Left was chosen in 1 of 6 answers (17 %, 95 % interval 3 to 56 %)" in said


def test_insights_read_the_answers_once_and_fold_the_log_once(visit, store, study):
    ask = studies.next_duel(store, study, "Ann")
    studies.answer(store, ask.impression, "left", response_ms=800)
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
    ask = studies.next_duel(store, study, "Ann")
    studies.answer(store, ask.impression, "left", response_ms=800)
    for chosen in (["Ann"], []):
        app = visit("insights", study=study, look=PEOPLE)
        assert app.button(key="trust").disabled
        app.multiselect[0].set_value(chosen).run()
        app.button(key="trust").click().run()
        assert not app.exception
        assert "It takes effect with the next plan" in app.success[0].value
        assert studies.excluded_annotators(store, study) == chosen
        assert any("counted" in table.value for table in app.dataframe) == bool(chosen)


def test_insights_say_who_agreed_to_the_consent_text(visit, store, study):
    studies.change_settings(store, study, consent="We keep your answers.")
    studies.agree(store, study, "Ann", studies.coming_config(store, study).consent_version)
    app = visit("insights", study=study, look=PEOPLE)
    assert "Who agreed to the consent text" in [box.label for box in app.expander]
    assert app.dataframe[0].value.annotator.tolist() == ["Ann"]


def test_answers_of_the_first_sitting_are_among_the_insights(visit, store):
    def said():
        return words(visit("insights", study=study, look=PEOPLE)).replace("\\", "")

    roster = [studies.Arm(f"p{n}", f"P{n}", state=("Low", "High")[n % 2]) for n in range(6)]
    rules = {"title": "Ward", "budget": 2, "sitting": 8, "practice": False}
    study = studies.create_study(store, studies.from_roster(roster, ("Low", "High"), **rules))
    assert "Nobody has answered yet" in said()
    for name in ("Ann", "Bo"):
        ask = studies.next_duel(store, study, name)
        studies.answer(store, ask.impression, "left", response_ms=800)
    assert "2 answers so far, by 2 people" in said()
    studies.exclude(store, study, "Bo")
    assert "1 answer so far, by 1 person" in said()
    assert "Without 1 answer by excluded people: Bo." in said()
    app = visit("insights", study=study, look=PEOPLE)
    assert app.dataframe[0].value.person.tolist() == ["Ann", "Bo"]
    studies.exclude(store, study, "Ann")
    app = visit("insights", study=study, look=PEOPLE)
    assert "Everybody is excluded" in said()
    assert app.multiselect[0].value == ["Ann", "Bo"]  # and can be counted again


def test_insights_work_with_weeks_of_unknown_states(visit, store):
    roster = [studies.Arm(f"p{n}", "Bo Berg", state=("Low", "High")[n % 2]) for n in range(4)]
    rules = {"title": "Ward", "budget": 2, "by_lot": 1, "practice": False}
    study = studies.create_study(store, studies.from_roster(roster, ("Low", "High"), **rules))
    assert "1 place of every list is chosen at random" in words(visit("insights", study=study))
    for _ in range(2):
        studies.observe(store, study, dict.fromkeys(studies.present_states(store, study)))
        studies.advance(store, study)
    for look in ("Is it working?", PEOPLE, "What was learned"):
        app = visit("insights", study=study, look=look)
        assert not app.exception
    assert "No comparison of these people has been answered yet" in words(app)
    assert "estimated to win" not in words(app)  # no figure without an answer


def test_insights_show_what_past_records_say_as_the_first_list_does(visit, store):
    roster = [studies.Arm(f"p{n}", "Bo", state="Low") for n in range(4)]
    rules = {"title": "Ward", "noun": "patient", "budget": 2, "practice": False, "sitting": 0}
    config = studies.from_roster(roster, ("Low", "High"), **rules)
    records = b"id,when,state,helped\np0,1,Low,1\np0,2,High,0\np1,1,Low,0\np1,2,Low,0\n"
    study = studies.create_study(store, config, studies.read_history(records, config))
    [week] = studies.read_lists(store, study)
    seen = 'Patients in "Low" were better off the next week 1 of 1 time with help (100 %) and'
    assert seen in studies.why_listed(week.listed[0], week)
    assert seen in words(visit("insights", study=study)).replace("\\", "")


def test_columns_have_no_probability_before_anybody_has_moved(visit, store, clinic):
    look = {"study": clinic, "look": "What was learned"}
    assert "No column of the roster is known yet" not in words(visit("insights", **look))
    studies.observe(store, clinic, studies.present_states(store, clinic))
    studies.advance(store, clinic)
    assert "No column of the roster is known yet" in words(visit("insights", **look))


def test_insights_show_one_chart_and_fold_the_rest(visit, store):
    roster = [studies.Arm(f"p{n}", "Bo Berg", state=("Low", "High")[n % 2]) for n in range(4)]
    rules = {"title": "Ward", "budget": 2, "practice": False}
    study = studies.create_study(store, studies.from_roster(roster, ("Low", "High"), **rules))
    for _ in range(2):
        studies.observe(store, study, studies.present_states(store, study))
        studies.advance(store, study)
    app = visit("insights", study=study)
    assert app.selectbox[0].options == ["Ward"]  # no id, as no other study has this title
    folded = [one.label for one in app.expander]
    assert folded[:2] == ["People helped and not helped", "What help does in each state"]
    assert not any(one.proto.expanded for one in app.expander)
    inside = sum(len(one.get("vega_lite_chart")) for one in app.expander)
    assert len(app.get("vega_lite_chart")) - inside == 1


def test_insights_show_the_effect_of_a_trial_at_its_looks_only(visit, store):
    roster = [studies.Arm(f"p{n}", "Bo", state=("Low", "High")[n % 2]) for n in range(6)]
    rules = {"title": "Ward", "budget": 2, "by_lot": 1, "practice": False, "confidence": "paper"}
    config = studies.from_roster(roster, ("Low", "High"), horizon=1, **rules)
    promised = studies.Protocol(
        **{"question": "Do calls help?", "people": 6, "budget": 2, "by_lot": 1, "effect": 0.2},
        **{"weeks": 2, "looks": (1, 2)},
    )
    study = studies.create_study(store, config, protocol=promised)
    app = visit("insights", study=study)
    assert "The first look at the trial is after week 1" in words(app)
    folded = [one.label for one in app.expander]
    assert "Places chosen at random" not in folded
    assert "Looks and flow of people" not in folded  # nobody was seen yet
    assert "All reports: not part of the trial" in folded  # the trial's answer stands alone
    assert len(app.subheader) == 1
    assert "Of 100" not in words(app)
    studies.observe(store, study, studies.present_states(store, study))
    app = visit("insights", study=study)
    assert not app.exception
    assert "The next look is after week 2" in words(app)
    assert "drawn to wait" in app.table[1].value.step.tolist()


@pytest.mark.parametrize("names", [("arm", "label", "group"), ("Low\u2028", "=1+1", "index")])
def test_insights_can_be_seen_whatever_the_states_are_called(visit, store, names):
    roster = [studies.Arm(f"p{n}", f"P{n}", state=names[n % 3]) for n in range(6)]
    config = studies.from_roster(roster, names, title="Names", budget=3, practice=False)
    study = studies.create_study(store, config)
    ask = studies.next_duel(store, study, "Ann")
    studies.answer(store, ask.impression, "left", response_ms=800)
    for look in ("Is it working?", "How people answer", "What was learned"):
        app = visit("insights", study=study, look=look)
        assert not app.exception
    assert "The plan" in words(app)


def test_the_forms_offer_all_learners_and_pair_designs(visit):
    learners = visit("simulate").multiselect[0]
    assert learners.options == [kind.label for kind in LEARNERS.values()]
    design = simulated_form(visit).selectbox(key="design cpap")
    assert design.options == [one.label for one in DESIGNS.values()]
    assert design.value in DESIGNS


def test_the_simulate_page_offers_a_learner_of_an_installed_package(visit, tmp_path, monkeypatch):
    installed = tmp_path / "losing-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: losing\nVersion: 1.0\n")
    offers = "[dopl.learners]\nlosers_first = losing.first:LosersFirst\n"
    (installed / "entry_points.txt").write_text(offers)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert visit("simulate").multiselect[0].options[-1] == "losers_first"


def test_a_simulation_needs_a_learner(visit, monkeypatch):
    app = visit("simulate")
    app.multiselect[0].set_value([])
    app.button[0].click().run()
    assert "no learner is chosen" in words(app).replace("\\", "")
    assert simulations.find_all() == []


def test_the_simulate_page_plays_an_uploaded_world_and_shows_the_table_of_the_arena(visit):
    app = visit("simulate")
    content = (environments.FOLDER / "cpap.toml").read_bytes()
    app.file_uploader[0].set_value(("mine.toml", content, "application/toml"))
    app.number_input[0].set_value(1)
    app.number_input[1].set_value(2)
    app.button[0].click().run()
    [run] = simulations.find_all()
    while simulations.find(run.id).status == "running":
        time.sleep(0.1)
    app.run()
    assert "mine, calibrated: dopl, random" in words(app).replace("\\", "")
    assert app.multiselect[1].options == [run.label]
    [table] = [frame.value for frame in app.dataframe]
    assert list(table.learner) == ["dopl", "random"]
    assert {"gain", "gain_se", "difference", "difference_se"} <= set(table.columns)


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
