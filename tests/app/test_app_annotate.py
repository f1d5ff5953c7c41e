"""The logic of the Annotate page."""

import pytest
from page_words import words

from dopl_core import environments
from dopl_core.studies import access, findings, service


def press(app, start: str):
    """Press the button whose key starts so."""
    [button] = [b for b in app.button if b.key and b.key.startswith(start)]
    return button.click().run()


def given(store, study):
    return list(findings.given(service.answers(store, study)).outcome)


def test_a_click_is_saved_and_the_next_duel_shown(visit, store, study):
    app = visit("annotate", study=study)
    before = [b.key for b in app.button if b.key.startswith("left-")]
    press(app, "left-")
    assert not app.exception
    assert given(store, study) == ["left"]
    assert "Saved." in words(app)
    assert [b.key for b in app.button if b.key.startswith("left-")] != before


def test_response_time_is_that_since_the_cards_were_drawn(visit, store, study):
    press(visit("annotate", study=study), "right-")
    said = findings.given(service.answers(store, study))
    assert said.response_ms.between(0, 10_000).all()


def test_the_last_answer_of_a_round_has_the_next_plan_made(visit, store, study):
    app = visit("annotate", study=study)
    for _ in range(4):
        press(app, "left-")
    assert service.get_study(store, study).episode == 2
    assert given(store, study) == ["left"] * 4


def test_undo_brings_the_duel_back(visit, store, study):
    app = visit("annotate", study=study)
    names = [b.label for b in app.button if b.key.startswith(("left-", "right-"))]
    press(app, "left-")
    press(app, "undo-")
    assert given(store, study) == []
    assert [b.label for b in app.button if b.key.startswith(("left-", "right-"))] == names


def test_practice_is_answered_with_feedback_and_can_be_skipped(visit, store):
    study = service.create_study(store, service.from_environment("cpap"))
    app = visit("annotate", study=study)
    assert "Practice" in words(app)
    press(app, "left-")
    assert "was doing better" in words(app)
    app.button(key="skip-practice").click().run()
    assert "Practice" not in words(app)
    assert given(store, study) == []


def test_ties_are_offered_only_where_allowed(visit, store, study):
    assert not [b for b in visit("annotate", study=study).button if b.key.startswith("tie-")]
    config = service.from_environment("app_marketing", practice=False, ties_allowed=True)
    allowing = service.create_study(store, config)
    press(visit("annotate", study=allowing), "tie-")
    assert given(store, allowing) == ["tie"]


def test_annotators_are_never_told_what_the_learner_thinks(visit, store, study):
    said = words(visit("annotate", study=study)).lower()
    for word in ("index", "advantage", "chance", "probability", "plan"):
        assert word not in said


def test_a_copy_of_an_environment_with_one_more_state_is_shown_in_words(visit, store, tmp_path):
    states = (environments.FOLDER / "cpap.toml").read_text().partition("[[groups]]")[0]
    rows = [[0.25] * 4] * 4
    copy = tmp_path / "cpap.toml"
    copy.write_text(
        f'{states}[[states]]\nlabel = "Full adherence"\ndescription = "Every night, all night."\n'
        f'[[groups]]\nname = "All"\narms = 20\nrewards = [0.0, 0.3, 0.6, 1.0]\n'
        f"wait = {rows}\nact = {rows}\n"
    )
    config = service.from_environment(copy, practice=False)
    app = visit("annotate", study=service.create_study(store, config))
    cards = set()
    for _ in range(30):
        assert not app.exception
        assert "Hours of CPAP" not in words(app)
        cards |= {s for s in config.states if f"{s.label}\n{s.description}" in words(app)}
        press(app, "left-")
    assert cards == set(config.states)


@pytest.mark.parametrize(("status", "say"), [("paused", "has paused"), ("closed", "Thank you")])
def test_a_study_that_is_not_running_says_so(visit, store, study, status, say):
    {"paused": service.pause_study, "closed": service.close_study}[status](store, study)
    assert say in words(visit("annotate", study=study))


def test_a_pause_hides_the_duel_until_one_goes_on(visit, study):
    app = visit("annotate", study=study)
    app.button(key="pause").click().run()
    assert "Your answers are saved" in words(app)
    assert not [b for b in app.button if b.key.startswith("left-")]
    app.button(key="go-on").click().run()
    assert [b for b in app.button if b.key.startswith("left-")]


def test_an_invite_says_who_answers(visit, store, study):
    token = access.invite(store, study, "Ann")
    press(visit("annotate", invite=token), "left-")
    assert list(findings.given(service.answers(store, study)).annotator) == ["Ann"]


def test_a_link_that_is_no_invite_opens_nothing(visit, store, study):
    token = access.invite(store, study, "Ann")
    access.revoke(store, study, "Ann")
    for link in (token, "made-up"):
        app = visit("annotate", invite=link)
        assert "opens nothing any more" in words(app)
        assert not app.button


def test_the_owner_without_a_study_chooses_one(visit, study):
    app = visit("annotate")
    assert "App marketing" in words(app)
    assert app.button(key=f"open-{study}")


def test_an_unknown_study_is_said_in_words(visit):
    app = visit("annotate", study="gone")
    assert 'there is no study "gone"' in words(app).replace("\\", "")
    assert not app.exception


def test_a_study_that_is_deleted_meanwhile_is_said_in_words(visit, store, study):
    app = visit("annotate", study=study)
    service.delete_study(store, study)
    press(app, "left-")
    assert "there is no study" in words(app)
    assert not app.exception
