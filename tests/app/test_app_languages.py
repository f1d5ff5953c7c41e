"""The language of a visit: how it is chosen, kept, switched, and never shared."""

import pytest
from clinic_page import make
from page_words import words

from dopl_core import studies
from dopl_core.studies import access
from pages.shared import languages

QUESTION = {"de": "Wem von diesen beiden geht es besser?", "en": "Which of these two is"}
QUESTION["hi"] = "इन दोनों में से किसकी स्थिति बेहतर है?"


@pytest.fixture
def browser(monkeypatch):
    """What the browser says of its languages."""

    def say(header: str) -> None:
        monkeypatch.setattr(languages, "_accepted_by_browser", lambda: header)

    return say


def begin(visit, store, study, **parameters):
    token = access.invite(store, study, "Ann")
    app = visit("annotate", invite=token, **parameters)
    return app.button(key="begin").click().run()


def press(app, prefix):
    [button] = [b for b in app.button if b.key and b.key.startswith(prefix)]
    button.click().run()
    assert not app.exception


@pytest.mark.parametrize(
    ("address", "setting", "header", "code"),
    [
        ("hi", "de", "fr", "hi"),
        ("xx", "de", "hi", "de"),
        ("", "browser", "hi-IN,en;q=0.5", "hi"),
        ("", "browser", "", "en"),
        ("en", "de", "de", "en"),
    ],
)
def test_the_address_comes_before_the_study_and_the_study_before_the_browser(
    visit, store, browser, address, setting, header, code
):
    browser(header)
    app = begin(visit, store, make(store, language=setting), lang=address)
    assert QUESTION[code] in words(app).replace("\\", "")


def test_a_choice_on_the_page_comes_first_and_the_address_keeps_it(visit, store):
    app = begin(visit, store, make(store, language="de"), lang="hi")
    assert app.selectbox(key="language").value == "hi"
    app.selectbox(key="language").select("fr").run()
    assert app.query_params["lang"] in ("fr", ["fr"])
    assert [one.label for one in app.button if one.key == "to-own"] == ["Mes réponses"]


def test_what_a_click_says_is_in_the_language_of_the_visit(visit, store):
    app = begin(visit, store, make(store), lang="de")
    press(app, "left-")
    assert "Gespeichert." in words(app)
    assert [one.label for one in app.button if one.key.startswith("skip-")] == ["Weiß nicht"]
    press(app, "to-flag")
    press(app, "send-flag")
    assert "Bitte schreiben Sie, was nicht stimmt" in words(app).replace("\\", "")


def test_links_that_do_not_work_are_refused_in_the_browsers_language(visit, store, browser):
    browser("pt-BR,en;q=0.3")
    assert "Este link não é mais válido" in words(visit("annotate", invite="gone"))
    assert "Este link não é mais válido" in words(visit("list", read="gone"))
    study = make(store, quota=3, completion_code="OK")
    panel = visit("annotate", invite=access.invite(store, study, "Panel"), participant="a b")
    assert "O identificador de participante contém um espaço" in words(panel)


def test_the_owners_texts_are_shown_in_the_readers_language(visit, store):
    texts = "[de]\ntitle = Klinik\nquestion = Wer?\nLow = Niedrig\nwhy = Darum."
    study = make(store, translations=texts, why="Because.", hide_state=False)
    token = access.invite(store, study, "Ann")
    app = visit("annotate", invite=token, lang="de")
    assert [one.value for one in app.title] == ["Klinik"]
    assert "Darum." in words(app)
    app.button(key="begin").click().run()
    assert [one.value for one in app.header] == ["Wer\\?"]
    assert "Niedrig" in words(app)
    assert "Low" not in [one.value for one in app.text]


def test_a_reader_sees_the_list_in_their_language_and_exports_stay_the_same(visit, store):
    study = make(store, translations="[de]\nLow = Niedrig\n[en]\nLow = Poor", language="de")
    before = studies.export_bundle(store, study)
    app = visit("list", read=access.invite(store, study, "Rose", "list"))
    assert "Woche 1: Helfen Sie diesen 3 von 12 Personen" in words(app)
    [table] = [str(one.value) for one in app.get("html") if "dopl-list" in str(one.value)]
    assert "<th>Warum</th>" in table
    assert ">Niedrig</span>" in table
    assert "Als Nächstes an der Reihe" in table
    assert studies.export_bundle(store, study) == before


def test_the_owners_pages_stay_english(visit, store, browser, router):
    browser("de")
    make(store, language="de")
    assert [one.value for one in visit("annotate", lang="de").title] == ["Annotate"]
    home = router.run()
    [script] = [one.value for one in home.get("html") if "documentElement" in str(one.value)]
    assert "lang = 'en'" in script


def test_the_consent_text_is_translated_from_the_moment_it_holds(visit, store, browser):
    browser("de")
    study = make(store)
    texts = "[de]\nconsent = Wir speichern Ihre Antworten."
    studies.change_settings(store, study, consent="We keep your answers.", translations=texts)
    app = begin(visit, store, study)
    assert "Bevor Sie beginnen" in words(app)
    assert "Wir speichern Ihre Antworten." in [one.value for one in app.text]
    press(app, "decline")
    assert "speichern nicht, dass Sie abgelehnt haben" in words(app)
    press(app, "go-on")
    press(app, "agree")
    version = studies.coming_config(store, study).consent_version
    assert [one.version for one in studies.consents(store, study).itertuples()] == [version]


def test_an_annotator_withdraws_in_their_language(visit, store, browser):
    browser("de")
    study = make(store)
    app = begin(visit, store, study)
    press(app, "left-")
    press(app, "to-own")
    press(app, "to-withdraw")
    assert "endgültig gelöscht" in words(app)
    assert "Meine Antworten zählen nicht mehr" in app.radio(key="withdraw-answers").options
    app.radio(key="withdraw-answers").set_value("My answers no longer count").run()
    app.button(key="withdraw").click().run()
    assert [one.value for one in app.title] == ["Sie sind zurückgetreten"]
    assert studies.excluded_annotators(store, study) == ["erased-annotator-1"]


@pytest.mark.parametrize(("role", "title"), [("reader", "Konto"), ("coordinator", "Account")])
def test_the_account_is_german_for_readers_and_english_for_those_who_run_a_study(
    visit, store, browser, come_in, role, title
):
    browser("de")
    name = "ann@clinic.example"
    studies.add_member(store, make(store), name, role)
    come_in(access.begin_member_session(store, name, {"email": name}, "clinic.example"))
    assert visit("account").title[0].value == title
