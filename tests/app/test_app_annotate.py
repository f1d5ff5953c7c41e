"""The logic of the Annotate page."""

from types import SimpleNamespace

import pytest
from page_words import words

from dopl_core import environments, studies
from dopl_core.learning.bandit import State
from dopl_core.studies import access, chart_text
from pages.annotate import board
from pages.shared import duel_cards, guards, visitors


def press(app, start: str):
    """Click the button whose key starts like this."""
    [button] = [b for b in app.button if b.key and b.key.startswith(start)]
    return button.click().run()


def everything(app) -> str:
    """Everything that was sent to the browser."""
    return "".join(str(element.proto) for element in app._tree.main)


def given(store, study):
    return list(chart_text.learnt_answers(studies.answers(store, study)).outcome)


def test_a_click_is_saved_and_the_next_comparison_is_shown(visit, store, study):
    app = visit("annotate", study=study)
    before = [b.key for b in app.button if b.key.startswith("left-")]
    press(app, "left-")
    assert not app.exception
    assert given(store, study) == ["left"]
    assert "Saved." in words(app)
    assert [b.key for b in app.button if b.key.startswith("left-")] != before


def test_response_time_counts_from_drawing_the_cards(visit, store, study, monkeypatch):
    now = 100.0
    monkeypatch.setattr(board, "time", SimpleNamespace(monotonic=lambda: now))
    app = visit("annotate", study=study)
    for seconds in (1.5, 0.75):
        now += seconds
        press(app, "right-")
    answers = chart_text.learnt_answers(studies.answers(store, study))
    assert answers.response_ms.tolist() == [1500, 750]


def test_the_last_answer_of_a_round_starts_the_next_plan(visit, store, study):
    app = visit("annotate", study=study)
    for _ in range(4):
        press(app, "left-")
    assert studies.get_study(store, study).episode == 2
    assert given(store, study) == ["left"] * 4


def test_undo_shows_the_comparison_again(visit, store, study):
    app = visit("annotate", study=study)
    names = [b.label for b in app.button if b.key.startswith(("left-", "right-"))]
    press(app, "left-")
    press(app, "undo-")
    assert given(store, study) == []
    assert [b.label for b in app.button if b.key.startswith(("left-", "right-"))] == names


def test_the_consent_text_comes_before_the_first_comparison(visit, store, come_in):
    config = studies.from_environment("cpap", consent="We keep your *answers*.\nFor a year.")
    study = studies.create_study(store, config)
    token = access.invite(store, study, "Ann")
    come_in()
    app = visit("annotate", invite=token)
    press(app, "begin")
    assert "We keep your *answers*.\nFor a year." in [text.value for text in app.text]
    press(app, "decline")
    assert "do not record that you declined" in words(app)
    assert studies.get_study(store, study).annotators == 0
    press(app, "go-on")
    press(app, "agree")
    assert "Practice: these answers do not count." in words(app)
    assert len(studies.consents(store, study)) == 1


def test_practice_gives_feedback_and_can_be_skipped(visit, store):
    study = studies.create_study(store, studies.from_environment("cpap"))
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


def test_ties_are_offered_only_if_the_study_allows_them(visit, store, study):
    assert not [b for b in visit("annotate", study=study).button if b.key.startswith("tie-")]
    config = studies.from_environment("app_marketing", practice=False, ties_allowed=True)
    allowing = studies.create_study(store, config)
    press(visit("annotate", study=allowing), "tie-")
    assert given(store, allowing) == ["tie"]


def test_annotators_never_see_what_the_learner_estimates(visit, store, study):
    said = words(visit("annotate", study=study)).lower()
    for word in ("index", "advantage", "chance", "probability", "plan"):
        assert word not in said


def test_a_changed_copy_of_an_environment_shows_descriptions_instead_of_charts(
    visit, store, tmp_path
):
    states = (environments.FOLDER / "cpap.toml").read_text().partition("[[groups]]")[0]
    rows = [[0.25] * 4] * 4
    copy = tmp_path / "cpap.toml"
    copy.write_text(
        f'{states}[[states]]\nlabel = "Full adherence"\ndescription = "Every night, all night."\n'
        f'[[groups]]\nname = "All"\narms = 20\nrewards = [0.0, 0.3, 0.6, 1.0]\n'
        f"wait = {rows}\nact = {rows}\n"
    )
    config = studies.from_environment(copy, practice=False)
    app = visit("annotate", study=studies.create_study(store, config))
    cards = set()
    for _ in range(30):
        assert not app.exception
        assert "Hours of CPAP" not in words(app)
        cards |= {s for s in config.states if f"{s.label}\n{s.description}" in words(app)}
        press(app, "left-")
    assert cards == set(config.states)


@pytest.mark.parametrize(("status", "say"), [("paused", "has paused"), ("closed", "Thank you")])
def test_a_study_that_is_not_running_tells_annotators_why(visit, store, study, status, say):
    {"paused": studies.pause_study, "closed": studies.close_study}[status](store, study)
    assert say in words(visit("annotate", study=study))


def test_a_pause_hides_the_comparison_until_continue_is_clicked(visit, study):
    app = visit("annotate", study=study)
    app.button(key="to-paused").click().run()
    assert "Your answers are saved" in words(app)
    assert not [b for b in app.button if b.key.startswith("left-")]
    app.button(key="go-on").click().run()
    assert [b for b in app.button if b.key.startswith("left-")]


def test_an_invitation_identifies_the_annotator(visit, store, study):
    token = access.invite(store, study, "Ann")
    app = visit("annotate", invite=token)
    app.button(key="begin").click().run()
    press(app, "left-")
    assert list(chart_text.learnt_answers(studies.answers(store, study)).annotator) == ["Ann"]


def test_new_annotators_are_welcomed_and_returning_ones_continue(visit, store):
    about = {"title": "Sleep *clinic*", "why": "We can call four.\nYou say whom.", "quota": 20}
    config = studies.from_environment("cpap", practice=False, **about)
    token = access.invite(store, studies.create_study(store, config), "Ann")
    app = visit("annotate", invite=token)
    assert "Sleep \\*clinic\\*" in words(app)
    assert config.why in words(app)
    assert "We ask you for 20 answers. That takes about 3 minutes." in words(app)
    app.button(key="begin").click().run()
    press(app, "left-")
    assert [b for b in visit("annotate", invite=token).button if b.key.startswith("left-")]


def test_an_answer_can_be_viewed_and_changed(visit, store, study):
    app = visit("annotate", study=study)
    press(app, "left-")
    press(app, "to-own")
    assert "You answered: " in words(app)
    press(app, "look-")
    press(app, "change-right-")
    assert given(store, study) == ["right"]
    press(app, "back")
    assert [b for b in app.button if b.key.startswith("left-")]


def test_the_owner_sees_a_flag_on_the_page_of_the_study(visit, store, study):
    app = visit("annotate", study=study)
    press(app, "to-flag")
    press(app, "send-flag")
    assert "Please write what is wrong" in words(app)
    app.text_input(key="flag-words").input("<b>old</b> photo").run()
    press(app, "send-flag")
    assert "The owner will read this" in words(app)
    assert list(studies.flags(store, study).comment) == ["<b>old</b> photo"]
    assert "<b>old</b> photo" in words(visit("studies", study=study))


def test_times_from_the_browser_are_stored_if_they_are_possible(visit, store, study):
    app = visit("annotate", study=study)
    for trip in (41, -3):
        shown = studies.next_duel(store, study, access.OWNER).impression
        said = {"impression": shown, "response": 0, "trip": trip, "narrow": True}
        app.session_state["clock"] = {"said": said}
        press(app, "left-")
    said = chart_text.learnt_answers(studies.answers(store, study))
    assert said.trip_ms.fillna(-1).tolist() == [41, -1]
    assert said.narrow.tolist() == [1, 1]


def test_annotators_are_told_when_a_simulated_week_passes_and_when_a_round_ends(visit, store):
    with guards.acting_as(visitors.LOCAL_OWNER):
        study = duel_cards.trial()
        assert duel_cards.trial() == study  # all visitors share one
    studies.skip_practice(store, study, access.OWNER)
    app = visit("annotate", study=study)
    for _ in range(7):
        press(app, "left-")
    assert "Week 2. The cards show how everybody is doing now. 8 people were helped" in words(
        app
    ).replace("\\", "")
    for _ in range(14):
        press(app, "left-")
    assert "You gave 21 of its answers" in words(app)
    assert "Learned so far" in words(app)
    assert "of 60 decisions" in words(app)
    assert "Now on the list: Patient" in words(app)
    press(app, "go-on")
    assert "Week 4. The cards show" in words(app).replace("\\", "")


def test_annotators_see_with_the_next_list_what_their_round_changed(visit, store):
    arms = [studies.Arm(f"p{n}", f"P{n}", state=("Low", "High")[n % 2]) for n in range(6)]
    rules = {"budget": 2, "answers": 10, "sitting": 0, "practice": False, "tell_results": True}
    rules |= {"title": "Ward"}
    study = studies.create_study(store, studies.from_roster(arms, ["Low", "High"], **rules))
    token = access.invite(store, study, "Ann")
    app = visit("annotate", invite=token)
    press(app, "begin")
    for _ in range(10):
        press(app, "left-")
    assert "you will see here what the answers changed" in words(app)
    studies.observe(store, study, dict.fromkeys(studies.present_states(store, study), "Low"))
    studies.advance(store, study)
    app = visit("annotate", invite=token)  # a week later, in another browser
    assert "You gave 10 of its answers" in words(app)
    assert "Now on the list: P" in words(app)
    press(app, "go-on")
    assert "Week 2. The cards show how everybody is doing now" in words(app).replace("\\", "")


def test_coming_back_after_weeks_says_which_week_it_is(visit, store):
    arms = [studies.Arm(f"p{n}", f"P{n}", state=("Low", "High")[n % 2]) for n in range(6)]
    rules = {"title": "Ward", "budget": 2, "answers": 10, "sitting": 2, "practice": False}
    study = studies.create_study(store, studies.from_roster(arms, ["Low", "High"], **rules))
    for _ in range(2):
        shown = studies.next_duel(store, study, "Ann")
        studies.answer(store, shown.impression, "left", too_fast_ms=0)
    studies.advance(store, study)
    for _ in range(2):
        studies.observe(store, study, dict.fromkeys(studies.present_states(store, study), "Low"))
        studies.advance(store, study)
    app = visit("annotate", invite=access.invite(store, study, "Ann"))
    assert "Week 3." in words(app).replace("\\", "")
    assert "first list" not in words(app)


def test_how_to_judge_is_on_arrival_and_stays_on_the_page(visit, store):
    rules = {"practice": False, "instructions": "Look at the last week.", "ties_allowed": True}
    study = studies.create_study(store, studies.from_environment("cpap", **rules))
    app = visit("annotate", invite=access.invite(store, study, "Ann"))
    for key in ("begin", "left-"):
        assert "Look at the last week." in words(app)
        assert "T is *equal*" in words(app)
        press(app, key)


def test_annotators_are_told_of_a_list_only_if_the_owner_allows_it(visit, store):
    arms = [studies.Arm(f"p{n}", f"P{n}", state=("Low", "High")[n % 2]) for n in range(6)]
    rules = {"title": "Ward", "budget": 2, "answers": 10, "sitting": 0, "practice": False}
    study = studies.create_study(store, studies.from_roster(arms, ["Low", "High"], **rules))
    app = visit("annotate", invite=access.invite(store, study, "Ann"))
    press(app, "begin")
    for _ in range(10):
        press(app, "left-")
    studies.observe(store, study, dict.fromkeys(studies.present_states(store, study), "Low"))
    studies.advance(store, study)
    app.run()
    assert "You gave 10 of its answers" in words(app)
    assert "changed" not in words(app)
    assert "list" not in words(app)


def test_hidden_states_are_never_sent_to_the_browser(visit, store):
    names = ("Qz1", "Qz2", "Qz3")
    arms = [
        studies.Arm(f"p{n}", f"P{n}", state=names[n % 3], columns={"age": str(50 + n)})
        for n in range(9)
    ]
    states = [State(name, f"{name} means so") for name in names]
    rules = {"title": "Ward", "budget": 5, "quota": 3, "question": "Who?"}
    study = studies.create_study(store, studies.from_roster(arms, states, **rules))
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


def test_revoked_and_invented_links_open_nothing(visit, store, study):
    token = access.invite(store, study, "Ann")
    access.revoke(store, study, "Ann")
    for link in (token, "made-up"):
        app = visit("annotate", invite=link)
        assert "no longer valid" in words(app)
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
    studies.delete_study(store, study)
    press(app, "left-")
    assert "there is no study" in words(app)
    assert not app.exception


def test_a_long_sitting_leaves_no_more_behind_than_a_short_one(visit, store):
    """Streamlit keeps every key as long as a tab is open, so there must not be ever new ones."""
    config = studies.from_environment("cpap", practice=False, horizon=12)
    app = visit("annotate", study=studies.create_study(store, config))
    keys, before = set(), ""
    for _ in range(40):
        [now] = [b.key for b in app.button if b.key.startswith("left-")]
        assert now != before
        keys |= {b.key for b in app.button}
        press(app, "left-")
        before = now
    assert len(keys) < 80


def test_a_reason_is_asked_once_beside_saved_and_answering_on_skips_it(visit, store):
    rules = {"practice": False, "horizon": 3, "reason_every": 1, "reason_tags": "Use, *Trend*"}
    config = studies.from_environment("app_marketing", **rules)
    study = studies.create_study(store, config)
    app = visit("annotate", study=study)
    assert not app.pills
    press(app, "left-")
    press(app, "right-")  # skips the first
    [tags] = app.pills
    assert tags.options == ["Use", "\\*Trend\\*"]
    second = studies.own_answers(store, study, "Owner")[0]
    asked = f"Why did you choose {second.right.label} over {second.left.label}?"
    assert asked in words(app)
    [send] = [one for one in app.button if one.label == "Send"]
    send.click().run()
    assert "Please choose a reason" in words(app)
    app.pills[0].set_value(["*Trend*"])
    [text] = [one for one in app.text_input if one.label == "In your own words"]
    text.set_value("opens it *daily*")
    [send] = [one for one in app.button if one.label == "Send"]
    send.click().run()
    assert not app.exception
    assert not app.pills
    assert "Thank you. The owner will read this." in words(app)
    said = chart_text.learnt_answers(studies.answers(store, study))
    assert said.reason_tags.tolist() == ["", "*Trend*"]
    assert said.reason.tolist() == ["", "opens it *daily*"]
    press(app, "left-")
    assert app.pills
    press(app, "undo-")
    assert not app.pills
    app = visit("insights", study=study, look="How people answer")
    assert "People gave a reason 1 of 2 times (50 %)" in words(app).replace("\\", "")
    tables = [one.value for one in app.dataframe]
    [own] = [table for table in tables if "chosen reasons" in table]
    assert own.reason.tolist() == ["opens it *daily*"]
