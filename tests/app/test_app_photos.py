"""Photos on cards: upload, display and removal."""

from page_words import words

from dopl_core import studies

STATES = ("Low", "High")
ROSTER = b"id,state\np1,Low\np2,High\n"


def photos_on(app) -> list[str]:
    return [image.url for found in app.get("image") for image in found.proto.imgs]


def a_study(store) -> str:
    arms = studies.read_roster(ROSTER, STATES)
    rules = {"title": "Ward", "budget": 2, "practice": False}
    return studies.create_study(store, studies.from_roster(arms, STATES, **rules))


def test_cards_show_photos_of_their_own_study_only(visit, store):
    study, other = a_study(store), a_study(store)
    studies.keep_photos(store, study, {"p1": b"one", "p2": b"two"})
    shown = photos_on(visit("annotate", study=study))
    assert sorted(shown) == ["data:image/jpeg;base64,b25l", "data:image/jpeg;base64,dHdv"]
    assert photos_on(visit("annotate", study=other)) == []


def test_the_owner_sees_the_number_of_photos_and_can_remove_them(visit, store):
    study = a_study(store)
    studies.keep_photos(store, study, {"p1": b"one"})
    app = visit("studies", study=study, tab="People")
    assert "1 of 2 people have a photo." in words(app)
    app.button(key="remove-photos").click().run()
    assert not app.exception
    assert studies.count_photos(store, study) == 0
