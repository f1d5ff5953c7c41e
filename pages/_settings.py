"""Settings of a study of real people: what can be changed any time, from the next list on."""

import streamlit as st

from dopl_core.studies import service
from dopl_core.studies.service import Study
from pages import _asked
from pages._backend import store
from pages._create import check_every, lots
from pages._done import say_done
from pages._study import status_buttons
from pages._trouble import said_plainly
from pages._words import plain


def show(study: Study) -> None:
    """Words and numbers; what is changed but not in force yet is shown as it will be."""
    config = service.coming_config(store(), study.id)
    here = int(config.present.sum())
    word = plain(config.epoch_word)
    st.markdown("**These hold from the next list on.** States and their order cannot be changed.")
    left, right = st.columns(2)
    chosen = {
        "title": left.text_input("Title", config.title, key="set title"),
        "noun": right.text_input("One of them is called a", config.noun, key="set noun"),
        "question": st.text_input("Question", config.question, key="set question"),
        "instructions": st.text_area(
            "How to judge (shown to annotators)", config.instructions, key="set instructions"
        ),
        "why": _asked.why("set", config.why),
        "epoch_word": st.text_input("A list is made every", config.epoch_word, key="set word"),
    }
    left, right = st.columns(2)
    chosen |= {
        "budget": left.number_input(
            "How many can be helped at a time", 2, max(2, here), config.budget, key="set budget"
        ),
        "answers": right.number_input(
            f"Answers wanted each {word}", 0, 10_000, config.answers, key="set answers"
        ),
        "by_lot": lots(left, config.budget, config.by_lot, "set lots"),
        "ratings": right.number_input(
            "People who answer each duel", 1, 20, config.ratings, key="set ratings"
        ),
        "repeat_every": check_every(left, "repeat_every", config.repeat_every, "set repeats"),
        "gold_every": check_every(right, "gold_every", config.gold_every, "set golds"),
    }
    left, right = st.columns(2)
    chosen |= {
        "ties_allowed": left.checkbox(
            'Allow "equal" as an answer', config.ties_allowed, key="set ties"
        ),
        "practice": right.checkbox(
            "Begin with three practice duels", config.practice, key="set practice"
        ),
        "weigh_people": left.checkbox(
            "Weigh answers by how sure people are",
            config.weigh_people,
            key="set weigh",
            help="Answers of somebody who seems to click at random then count for little. Insights "
            "show what everybody's answers weigh.",
        ),
        "photos_from_web": right.checkbox(
            "Cards may show photos from the web",
            config.photos_from_web,
            key="set photos",
            help="The web server that has a photo sees who looks at it, and when.",
        ),
    }
    chosen |= _asked.on_cards("set", config)
    new = {name: value for name, value in chosen.items() if value != getattr(config, name)}
    if st.button("Save the settings", key="save", disabled=not new):
        with said_plainly():
            service.change_settings(store(), study.id, **new)
            say_done("Saved: it holds from the next list on.")
            st.rerun()
    st.divider()
    with st.container(horizontal=True):
        status_buttons(study)
