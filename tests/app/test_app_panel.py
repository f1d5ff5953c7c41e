"""Participants of a panel: one link, an id each, kept by the browser that first used it."""

import pytest
from page_words import words
from streamlit.testing.v1 import AppTest

from dopl_core import studies
from dopl_core.studies import access
from pages.shared import browser_cookie, guards

RULES = {"practice": False, "quota": 2, "completion_code": "C0DE-7"}


def press(app: AppTest, key: str) -> None:
    next(b for b in app.button if (b.key or "").startswith(key)).click().run()
    assert not app.exception


def sent(app: AppTest) -> str:
    """Everything on the page."""
    return str([element.proto for element in app._tree.main])


@pytest.fixture
def browse(monkeypatch):
    """Use another browser, which keeps a token of its own, or none."""

    def change(token: str) -> None:
        sent = {"Host": "localhost:8501", "Origin": "http://localhost:8501"}
        if token:
            sent["Cookie"] = f"a=b; {browser_cookie.COOKIE}={token * 32}; c=d"
        monkeypatch.setattr(guards, "_handshake", lambda: (sent, None))

    return change


@pytest.fixture
def panel(store):
    study = studies.create_study(store, studies.from_environment("cpap", **RULES))
    return study, access.invite(store, study, "Panel")


def test_each_participant_of_a_panel_gets_the_code_after_their_quota(visit, store, panel, browse):
    study, token = panel
    for participant in ("5f3a", "77bc"):
        browse(participant[0])
        app = visit("annotate", invite=token, PROLIFIC_PID=participant)
        assert "At most 1 answer may be" in words(app)
        app.button(key="begin").click().run()
        for _ in range(2):
            assert "C0DE-7" not in sent(app)
            press(app, "left-")
        assert "Thank you!" in words(app)
        assert [c.value for c in app.code] == ["C0DE-7"]
    said = studies.answers(store, study)
    names = [studies.participant_name("Panel", one) for one in ("5f3a", "77bc")]
    assert said.groupby("annotator").size().to_dict() == dict.fromkeys(names, 2)
    assert sorted(said.participant.unique()) == ["5f3a", "77bc"]


def test_the_id_of_another_browser_shows_and_changes_nothing(visit, store, panel, browse):
    study, token = panel
    browse("a")
    mine = visit("annotate", invite=token, participant="BBB")
    press(mine, "begin")
    press(mine, "left-")
    before = studies.last_event(store, study)
    browse("z")
    theirs = visit("annotate", invite=token, participant="BBB")
    assert "used this participant id in another browser" in words(theirs)
    assert not theirs.button
    assert studies.last_event(store, study) == before
    browse("a")
    again = visit("annotate", invite=token, participant="BBB")  # a reload, or a second tab
    assert "Yours so far: 1 of 2" in sent(again)


def test_an_open_page_ends_when_the_owner_gives_its_id_to_another_browser(
    visit, store, panel, browse
):
    study, token = panel
    browse("a")
    mine = visit("annotate", invite=token, participant="BBB")
    press(mine, "begin")
    assert access.release_seat(store, study, "Panel", "BBB")
    browse("z")
    theirs = visit("annotate", invite=token, participant="BBB")
    assert [b for b in theirs.button if b.key == "begin"] == []  # they go on where BBB was
    browse("a")
    press(mine, "left-")
    assert "in another browser" in words(mine)
    assert studies.answers(store, study).outcome.isna().all()


@pytest.mark.parametrize(
    ("participant", "say"),
    [
        (None, "This link has no participant id"),
        ("", "The participant id is empty"),
        ("x" * 101, "longer than 100 characters"),
        ("a b", "has a blank in it"),
        ("{{%PROLIFIC_PID%}}", "may have letters, digits"),
        ("５f3a", "may have letters, digits"),
    ],
)
def test_bad_ids_are_refused_in_words(visit, store, panel, participant, say):
    study, token = panel
    given = {} if participant is None else {"participant": participant}
    app = visit("annotate", invite=token, **given)
    assert say in words(app).replace("\\", "")
    assert not app.button
    assert studies.get_study(store, study).annotators == 0


def test_a_browser_without_cookies_is_told_to_allow_them(visit, panel, browse):
    browse("")
    app = visit("annotate", invite=panel[1], participant="BBB")
    assert "Allow cookies for this site" in words(app)
    assert not app.button


def test_a_colleague_needs_no_id_and_a_panels_link_does(visit, store):
    study = studies.create_study(store, studies.from_environment("cpap", practice=False))
    token = access.invite(store, study, "Ann")
    app = visit("annotate", invite=token)
    press(app, "begin")
    press(app, "left-")
    other = access.invite(store, study, "Panel")
    visit("annotate", invite=other, participant="BBB").button(key="begin").click().run()
    assert "has no participant id" in words(visit("annotate", invite=other))
    assert [b for b in visit("annotate", invite=token).button if b.key.startswith("left-")]


def test_taking_answers_back_takes_the_code_back(visit, store, panel):
    study, token = panel
    app = visit("annotate", invite=token, participant="BBB")
    press(app, "begin")
    press(app, "left-")
    press(app, "skip-")
    assert [c.value for c in app.code] == ["C0DE-7"]
    for answer in studies.own_answers(store, study, "Panel, participant BBB"):
        studies.change(store, answer.impression, "Panel, participant BBB", "skip")
    app = visit("annotate", invite=token, participant="BBB")
    assert not app.code
    assert "Yours so far: 1 of 2" in sent(app)


def test_too_many_skips_end_without_a_code_and_say_why(visit, panel):
    app = visit("annotate", invite=panel[1], participant="BBB")
    press(app, "begin")
    for _ in range(4):
        press(app, "skip-")
    assert "chose *can't tell* too often" in words(app)
    assert not app.code


def test_a_participant_without_enough_comparisons_is_told_what_to_do(visit, store):
    arms = [studies.Arm(f"p{n}", f"P{n}", state="Low") for n in range(3)]
    rules = RULES | {"title": "Ward", "budget": 2, "quota": 9}
    study = studies.create_study(store, studies.from_roster(arms, ["Low", "High"], **rules))
    token = access.invite(store, study, "Panel")
    app = visit("annotate", invite=token, participant="BBB")
    press(app, "begin")
    while [b for b in app.button if b.key.startswith("left-")]:
        press(app, "left-")
    assert "of 9 answers, so there is no completion code yet" in words(app)
    assert not app.code


def test_the_owner_sees_participants_and_releases_their_ids(visit, store, panel, browse):
    study, token = panel
    assert "Participants" not in sent(visit("studies", study=study))
    for participant in ("BBB", "CCC"):
        press(visit("annotate", invite=token, participant=participant), "begin")
    app = visit("studies", study=study)
    assert "Participants: 2" in sent(app)
    app.selectbox(key="participant").select(1).run()
    press(app, "release")
    assert "Another browser can now use the id CCC" in sent(app)
    browse("z")
    assert "in another browser" in words(visit("annotate", invite=token, participant="BBB"))
    press(visit("annotate", invite=token, participant="CCC"), "left-")


def test_a_code_without_a_number_of_answers_is_named_as_useless(visit, store):
    rules = {"completion_code": "C", "practice": False}
    study = studies.create_study(store, studies.from_environment("cpap", **rules))
    assert "Nobody sees the completion code" in sent(visit("studies", study=study))


def test_a_cookie_is_set_only_for_participants_and_only_once():
    def reply(query: str, cookie: str = "", method: str = "GET") -> list[tuple[bytes, bytes]]:
        headers = [(b"cookie", cookie.encode())] if cookie else []
        scope = {"type": "http", "method": method, "scheme": "https", "headers": headers}
        message = {"type": "http.response.start", "status": 200, "headers": []}
        browser_cookie.add_browser_cookie(scope | {"query_string": query.encode()}, message)
        return message["headers"]

    for query in ("invite=x&participant=5f3a", "invite=x&PROLIFIC_PID="):
        [(_, cookie), caching] = reply(query)
        assert caching == (b"cache-control", b"no-store")
        said = cookie.decode()
        assert all(word in said for word in ("HttpOnly", "SameSite=lax", "Secure", "Path=/"))
        token = browser_cookie.browser_token({"Cookie": said.partition(";")[0]})
        assert len(token) == 32
        assert reply(query, said.partition(";")[0]) == []
        assert reply(query, method="HEAD") == []
    assert reply("invite=x") == reply("participant=5f3a") == []
