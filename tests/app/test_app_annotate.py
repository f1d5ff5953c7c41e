"""The logic of the Annotate page."""

import pytest
from page_words import words

from dopl_core import environments
from dopl_core.learning.bandit import State
from dopl_core.studies import access, findings, service
from pages import _duels


def press(app, start: str):
    """Press the button whose key starts so."""
    [button] = [b for b in app.button if b.key and b.key.startswith(start)]
    return button.click().run()


def everything(app) -> str:
    """All that was sent to the browser."""
    return "".join(str(element.proto) for element in app._tree.main)


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
    pair = [t.value for t in app.text if t.value.startswith("Patient")]
    press(app, "left-")
    assert "was doing better" in words(app)
    assert "adherence is better than" in words(app)
    assert [t.value for t in app.text if t.value.startswith("Patient")] == pair  # it stays
    press(app, "next-")
    assert [t.value for t in app.text if t.value.startswith("Patient")] != pair
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
    app.button(key="to-paused").click().run()
    assert "Your answers are saved" in words(app)
    assert not [b for b in app.button if b.key.startswith("left-")]
    app.button(key="go-on").click().run()
    assert [b for b in app.button if b.key.startswith("left-")]


def test_an_invite_says_who_answers(visit, store, study):
    token = access.invite(store, study, "Ann")
    app = visit("annotate", invite=token)
    app.button(key="begin").click().run()
    press(app, "left-")
    assert list(findings.given(service.answers(store, study)).annotator) == ["Ann"]


def test_who_comes_first_is_told_who_asks_and_how_much_and_who_comes_back_goes_on(visit, store):
    about = {"title": "Sleep *clinic*", "why": "We can call four.\nYou say whom.", "quota": 20}
    config = service.from_environment("cpap", practice=False, **about)
    token = access.invite(store, service.create_study(store, config), "Ann")
    app = visit("annotate", invite=token)
    assert "Sleep \\*clinic\\*" in words(app)
    assert config.why in words(app)
    assert "20 answers: about 3 minutes" in words(app)
    app.button(key="begin").click().run()
    press(app, "left-")
    assert [b for b in visit("annotate", invite=token).button if b.key.startswith("left-")]


def test_a_quota_ends_with_the_panels_code_for_each_participant(visit, store):
    rules = {"practice": False, "quota": 2, "completion_code": "C0DE-7"}
    study = service.create_study(store, service.from_environment("cpap", **rules))
    token = access.invite(store, study, "Panel")
    for participant in ("5f3a", "77bc"):
        app = visit("annotate", invite=token, PROLIFIC_PID=participant)
        app.button(key="begin").click().run()
        for _ in range(2):
            assert "C0DE-7" not in str([e.proto for e in app._tree.main])
            press(app, "left-")
        assert "Thank you!" in words(app)
        assert [c.value for c in app.code] == ["C0DE-7"]
    said = service.answers(store, study)
    assert said.groupby("annotator").size().to_dict() == {"Panel 5f3a": 2, "Panel 77bc": 2}
    assert sorted(said.participant.unique()) == ["5f3a", "77bc"]


def test_an_answer_can_be_looked_at_and_changed(visit, store, study):
    app = visit("annotate", study=study)
    press(app, "left-")
    press(app, "to-own")
    assert "you said" in words(app)
    press(app, "look-")
    press(app, "change-right-")
    assert given(store, study) == ["right"]
    press(app, "back")
    assert [b for b in app.button if b.key.startswith("left-")]


def test_a_flag_is_sent_to_the_owner_who_reads_it_on_the_studys_page(visit, store, study):
    app = visit("annotate", study=study)
    press(app, "to-flag")
    press(app, "send-flag")
    assert "0 characters" in words(app)
    app.text_input(key="flag-words").input("<b>old</b> photo").run()
    press(app, "send-flag")
    assert "The owner will read it" in words(app)
    assert list(service.flags(store, study).comment) == ["<b>old</b> photo"]
    assert "<b>old</b> photo" in words(visit("studies", study=study))


def test_the_browsers_times_are_kept_and_what_cannot_be_true_is_not(visit, store, study):
    app = visit("annotate", study=study)
    for trip in (41, -3):
        shown = service.next_duel(store, study, access.OWNER).impression
        said = {"impression": shown, "response": 0, "trip": trip, "narrow": True}
        app.session_state["clock"] = {"said": said}
        press(app, "left-")
    said = findings.given(service.answers(store, study))
    assert said.trip_ms.fillna(-1).tolist() == [41, -1]
    assert said.narrow.tolist() == [1, 1]


def test_a_simulated_week_that_passes_is_said_and_a_rounds_end_too(visit, store):
    study = _duels.trial()
    assert _duels.trial() == study  # one for all who try it
    service.skip_practice(store, study, access.OWNER)
    app = visit("annotate", study=study)
    for _ in range(7):
        press(app, "left-")
    assert "A week has passed; 8 were helped" in words(app).replace("\\", "")
    for _ in range(14):
        press(app, "left-")
    assert "21 answers in it were yours" in words(app)
    assert "Learnt so far" in words(app)
    assert "of 60 decisions" in words(app)
    assert "Now on the list: Patient" in words(app)
    press(app, "go-on")
    assert "A week has passed" in words(app)


def test_what_a_round_of_real_people_has_changed_is_told_with_the_next_list(visit, store):
    arms = [service.Arm(f"p{n}", f"P{n}", state=("Low", "High")[n % 2]) for n in range(6)]
    rules = {"budget": 2, "answers": 10, "sitting": 0, "practice": False, "tell_results": True}
    rules |= {"title": "Ward"}
    study = service.create_study(store, service.from_roster(arms, ["Low", "High"], **rules))
    token = access.invite(store, study, "Ann")
    app = visit("annotate", invite=token)
    press(app, "begin")
    for _ in range(10):
        press(app, "left-")
    assert "have changed is told here once the next list is made" in words(app)
    service.observe(store, study, dict.fromkeys(service.present_states(store, study), "Low"))
    service.advance(store, study)
    app = visit("annotate", invite=token)  # a week later, in another browser
    assert "10 answers in it were yours" in words(app)
    assert "Now on the list: P" in words(app)
    press(app, "go-on")
    assert "A week has passed; this is how they are now" in words(app).replace("\\", "")


def test_a_hidden_state_is_nowhere_in_what_is_sent(visit, store):
    names = ("Qz1", "Qz2", "Qz3")
    arms = [
        service.Arm(f"p{n}", f"P{n}", state=names[n % 3], columns={"age": str(50 + n)})
        for n in range(9)
    ]
    states = [State(name, f"{name} means so") for name in names]
    rules = {"title": "Ward", "budget": 5, "quota": 3, "question": "Who?"}
    study = service.create_study(store, service.from_roster(arms, states, **rules))
    token = access.invite(store, study, "Ann")
    app = visit("annotate", invite=token)
    for key in ("begin", "left-", "next-", "skip-practice", "left-", "to-own", "look-", "back"):
        press(app, key)
        assert not app.exception
        assert "Qz" not in everything(app), key
    for key in ("back", "to-flag", "back", "right-", "right-"):
        press(app, key)
        assert "Qz" not in everything(app), key
    assert "Thank you!" in words(app)


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


def test_a_long_sitting_leaves_no_more_behind_than_a_short_one(visit, store):
    """Streamlit keeps every key as long as a tab is open, so there must not be ever new ones."""
    config = service.from_environment("cpap", practice=False, horizon=12)
    app = visit("annotate", study=service.create_study(store, config))
    keys, before = set(), ""
    for _ in range(40):
        [now] = [b.key for b in app.button if b.key.startswith("left-")]
        assert now != before
        keys |= {b.key for b in app.button}
        press(app, "left-")
        before = now
    assert len(keys) < 80
