"""Insights says how much columns and the season change."""

import numpy as np
import pytest
import streamlit as st
from page_words import words
from playing import STATES

from dopl_core import studies
from dopl_core.studies import sizes_text
from pages.shared.markdown import plain

WEEKS = 15
LOOK = "What was learned"


@pytest.fixture
def study(store):
    """Thirty people with past records, of whom those of the North mostly get better."""
    roster = "id,state,area\n"
    roster += "".join(f"p{n},{STATES[n % 3]},{('North', 'South')[n % 2]}\n" for n in range(30))
    arms = studies.read_roster(roster.encode(), STATES)
    rules = {"title": "Ward", "noun": "patient", "budget": 3, "practice": False}
    config = studies.from_roster(arms, STATES, **rules)
    rng = np.random.default_rng(0)
    lines = ["id,when,state,helped"]
    for n in range(30):
        chances = ([0.1, 0.3, 0.6], [0.5, 0.3, 0.2])[n % 2]
        for week in range(WEEKS):
            lines.append(f"p{n},{week},{rng.choice(STATES, p=chances)},{int(rng.random() < 0.2)}")
    past = studies.read_history("\n".join(lines).encode(), config)
    return studies.create_study(store, config, past)


def test_insights_says_how_much_a_column_that_matters_changes(visit, store, study):
    learner = studies.load_learner(store, study)
    matter = learner.which_columns()
    assert matter["area"] > 0.9
    config = studies.get_study(store, study).config
    finding = sizes_text.sizes_finding(learner.column_sizes(), matter, config)
    assert finding.title.startswith('area "')
    app = visit("insights", study=study, look=LOOK)
    assert not app.exception
    assert plain(finding.title) in words(app)
    [table] = [one.value for one in app.dataframe if "without help" in one.value]
    assert table.people.tolist() == ["area: North", "area: South"]
    assert table["without help"][0].startswith("+")
    assert table["without help"][1].startswith("-")


def test_insights_says_nothing_of_columns_that_may_not_matter(visit, study, monkeypatch):
    monkeypatch.setattr("dopl_core.learning.dopl.Dopl.which_columns", lambda self: {"area": 0.5})
    app = visit("insights", study=study, look=LOOK)
    assert not app.exception
    assert not any("without help" in one.value for one in app.dataframe)


def test_insights_says_that_a_season_differs_only_where_it_does(visit, study, monkeypatch):
    assert "In recent weeks" not in words(visit("insights", study=study, look=LOOK))
    monkeypatch.setattr("dopl_core.learning.dopl.Dopl.season_size", lambda self: (-0.08, 0.03))
    st.cache_data.clear()  # pages keep what was calculated until the next event
    said = words(visit("insights", study=study, look=LOOK))
    assert "In recent weeks, patients do worse than over all weeks" in said.replace("\\", "")
