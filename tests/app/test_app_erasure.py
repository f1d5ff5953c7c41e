"""Erasing on pages: a confirmation, a receipt to print, and annotators who withdraw."""

from clinic_page import open_tab
from page_words import words

from dopl_core import studies
from dopl_core.studies import access


def test_the_owner_erases_a_person_and_gets_a_receipt(visit, store, clinic):
    app = open_tab(visit, clinic, "People")
    name = studies.coming_config(store, clinic).arms[1].label
    app.selectbox(key="erase-who").set_value("p02").run()
    assert app.button(key="erase-person").disabled
    app.checkbox(key="erase-sure-person-p02").check().run()
    app.button(key="erase-person").click().run()
    assert not app.exception
    receipt = [text.value for text in app.text if "One person" in text.value]
    assert len(receipt) == 1
    assert "who is called erased-1 from now on" in receipt[0]
    assert name not in words(app)
    assert "p02" not in words(app)
    assert "erased-1" in {arm.id for arm in studies.coming_config(store, clinic).arms}


def test_the_owner_erases_an_annotator(visit, store, clinic):
    access.invite(store, clinic, "Ann Lee")
    app = open_tab(visit, clinic, "Invite")
    app.selectbox(key="erase-whom").set_value("Ann Lee").run()
    app.checkbox(key="erase-sure-annotator-Ann Lee").check().run()
    app.button(key="erase-annotator").click().run()
    assert not app.exception
    assert "One annotator" in words(app)
    assert "Ann Lee" not in words(app)


def test_an_annotator_withdraws_and_chooses_what_happens_with_the_answers(
    visit, store, study, come_in
):
    token = access.invite(store, study, "Ann Lee")
    come_in()
    app = visit("annotate", invite=token)
    app.button(key="begin").click().run()
    [left] = [button for button in app.button if (button.key or "").startswith("left-")]
    left.click().run()
    app.button(key="to-own").click().run()
    app.button(key="to-withdraw").click().run()
    app.radio(key="withdraw-answers").set_value("My answers no longer count").run()
    app.button(key="withdraw").click().run()
    assert not app.exception
    assert "You have withdrawn" in words(app)
    assert access.find_invite(store, token) is None
    assert studies.excluded_annotators(store, study) == ["erased-annotator-1"]
    assert studies.answers(store, study).annotator.unique().tolist() == ["erased-annotator-1"]
