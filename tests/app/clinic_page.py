"""The page of a clinic's study, opened and clicked in AppTest."""

from pathlib import Path

from page_words import words

from dopl_core import studies

ROOT = Path(__file__).resolve().parents[2]
ROSTER = (ROOT / "data" / "rosters" / "clinic.csv").read_bytes()
STATES = ["Low", "Moderate", "High"]


def make(store, **rules):
    arms = studies.read_roster(ROSTER, STATES)
    given = {"title": "Clinic", "noun": "patient", "budget": 3, "answers": 4, "practice": False}
    return studies.create_study(store, studies.from_roster(arms, STATES, **(given | rules)))


def open_tab(visit, study, tab="List"):
    return visit("studies", study=study, tab=tab)


def said(app):
    extra = [str(one.value) for place in (app.success, app.info) for one in place]
    return "\n".join([words(app), *extra]).replace("\\", "").replace("\u2060", "")


def keys(elements):
    return [element.key for element in elements if element.key]


def click(app, key):
    app.button(key=key).click().run()
    assert not app.exception
    return app
