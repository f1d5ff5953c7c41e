"""Why? on the page that waits after the last answer of a round."""

from clinic_page import make
from page_words import words

from dopl_core import studies


def press(app, name: str):
    """Click the button with this label, or whose key starts like this."""
    [found] = [b for b in app.button if b.label == name or (b.key or "").startswith(name)]
    return found.click().run()


def test_the_last_answer_of_a_round_is_told_as_saved_and_can_be_explained(visit, store):
    study = make(store, budget=2, answers=1, reason_every=1, reason_tags="Nights, Trend")
    app = visit("annotate", study=study)
    press(app, "left-")
    assert "That is all for now." in words(app)
    assert "Saved." in words(app)
    press(app, "Send")
    assert "Please choose a reason" in words(app)
    app.pills[0].set_value(["Trend"])
    [text] = [one for one in app.text_input if one.label == "In your own words"]
    text.set_value("sleeps better")
    press(app, "Send")
    assert not app.exception
    assert not app.pills
    assert "Thank you. The owner will read this." in words(app)
    [row] = studies.answers(store, study).itertuples()
    assert (row.outcome, row.reason_tags, row.reason) == ("left", "Trend", "sleeps better")
