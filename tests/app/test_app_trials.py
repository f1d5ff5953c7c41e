"""Real trials on the Simulate page: a table of losses, and of values where help was by chance."""

import numpy as np
import pytest
from page_words import words

HEAD = "id,when,state,helped\n"


def records(n_people: int = 10) -> bytes:
    """Four records of everybody, with states in words."""
    rng = np.random.default_rng(0)
    rows = (
        f"{person},{week},{rng.choice(['Low', 'High'])},{rng.integers(2)}\n"
        for person in range(n_people)
        for week in range(4)
    )
    return (HEAD + "".join(rows)).encode()


def compare(app, history, roster=None, order="Low, High", drawn=False):
    app.file_uploader(key="trial-history").set_value(("history.csv", history, "text/csv"))
    if roster is not None:
        app.file_uploader(key="trial-roster").set_value(("roster.csv", roster, "text/csv"))
    app.text_input[0].set_value(order)
    app.checkbox[0].set_value(drawn)
    return app.button(key="compare-predictions").click().run()


def test_records_give_a_table_of_losses_and_what_was_not_used(visit):
    roster = "id,ward,test_1,test_2\n" + "".join(f"{n},{'AB'[n % 2]},1,2\n" for n in range(10))
    app = compare(visit("simulate"), records(), roster.encode())
    assert not app.exception
    [table] = [frame.value for frame in app.dataframe]
    assert list(table.model[:2]) == ["dopl", "shares"]
    assert set(table.part) == {"early", "late", "all"}
    said = words(app).replace("\\", "")
    assert "On 30 moves of 10 people, DOPL predicts" in said
    assert "Columns that are used: ward." in said
    assert "Not used, because they may be later results: test_1, test_2." in said


def test_help_by_chance_gives_a_table_of_values(visit):
    app = compare(visit("simulate"), records(), drawn=True)
    _, values = [frame.value for frame in app.dataframe]
    assert list(values.policy) == ["dopl", "worst first", "random", "no help"]


def test_states_without_an_order_are_said_to_have_none(visit):
    app = compare(visit("simulate"), records(), order="")
    assert "The states have no order" in words(app)
    assert "ordinal logistic" not in set(app.dataframe[0].value.model)


@pytest.mark.parametrize(
    ("history", "says"),
    [
        (HEAD.encode() + b"a,1,Low,1\na,2,Hihg,0\n", 'row 3: state "Hihg" is not one of Low, High'),
        (records(1_100), "1,100 people exceed the limit of this page, 1,000"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_and_no_old_table_stays(visit, history, says):
    app = compare(visit("simulate"), records())
    assert app.dataframe
    compare(app, history)
    assert says in words(app).replace("\\", "")
    assert not app.exception
    assert not app.dataframe


def test_a_comparison_needs_records(visit):
    app = visit("simulate")
    app.button(key="compare-predictions").click().run()
    assert "choose a file of records first" in words(app)
