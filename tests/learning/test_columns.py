"""What a roster's cells are read as."""

import numpy as np
import pytest

from dopl_core.learning import columns


def test_text_with_few_values_is_a_category_and_numbers_are_standardised():
    texts = [("high" if n % 2 else "low", str(60 + n % 7)) for n in range(14)]
    risk, age = columns.read(("risk", "age"), texts).each
    assert (risk.kind, risk.labels) == ("category", ("high", "low"))
    assert risk.values.tolist() == [1, 0] * 7
    assert age.kind == "number"
    assert age.values.mean() == pytest.approx(0)
    assert age.values.std() == pytest.approx(1)


def test_a_number_with_two_values_is_a_category():
    (column,) = columns.read(("smoker",), [(str(n % 2),) for n in range(6)]).each
    assert (column.kind, column.labels) == ("category", ("0", "1"))


def test_missing_cells_are_allowed():
    texts = [("", "60"), ("A", "n/a"), ("B", "62,5"), ("A", "63"), ("?", "64"), ("B", "60")]
    ward, age = columns.read(("ward", "age"), texts).each
    assert ward.values.tolist() == [-1, 0, 1, 0, -1, 1]
    assert np.isnan(age.values).tolist() == [False, True, False, False, False, False]
    assert np.nanmean(age.values) == pytest.approx(0)


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("ward", ["A"] * 9),
        ("ward", [""] * 9),
        ("nickname", [f"n{i}" for i in range(9)]),
        ("number", [str(i + 7) for i in range(9)]),
        ("Name", ["Ann", "Bob", "Cy"] * 3),
        ("notes", ["x", "y", "z"] * 3),
        ("ward", [f"w{i // 2}" for i in range(8)]),
    ],
)
def test_ids_names_notes_and_columns_that_tell_nothing_are_left_out(name, cells):
    assert columns.read((name,), [(cell,) for cell in cells]).each == ()


def test_a_row_with_too_few_cells_is_refused_by_its_number():
    with pytest.raises(ValueError, match="row 2 has 1 cells, 2 needed"):
        columns.read(("a", "b"), [("x", "y"), ("x",)])


def test_of_arms_that_are_new_everything_is_missing():
    known = columns.read(("ward", "age"), [("A", "1"), ("B", "2.5"), ("A", "3"), ("B", "7")])
    ward, age = columns.grown(known, 6).each
    assert ward.values.tolist() == [0, 1, 0, 1, -1, -1]
    assert np.isnan(age.values[4:]).all()
    assert columns.grown(known, 4) is known


def test_no_rows_and_no_columns_are_no_columns():
    assert columns.read((), [(), ()]).each == ()
    assert columns.read(("a",), []).each == ()
    assert columns.of_bandit({}, 3).each == ()
