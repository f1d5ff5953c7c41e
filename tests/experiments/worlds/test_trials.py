"""Worlds made of trials: read at run time from a folder of the user's."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dopl_core import cli, simulate
from dopl_core.experiments import metrics, sweep, worlds
from dopl_core.experiments.worlds import draw
from dopl_core.experiments.worlds.trials import trial_names, trial_rows

MOVES = """trial,time,helped,state,next_state,people
walks (phone),1 week,0,0,0,7
walks (phone),1 week,0,0,1,2
walks (phone),1 week,0,1,1,4
walks (phone),1 week,1,0,1,9
walks (phone),3 weeks,0,0,0,1000
job loss (workshop),2 months,1,2,0,3
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "moves.csv").write_text(MOVES, encoding="utf-8")
    monkeypatch.setenv("DOPL_TRIALS", str(tmp_path))
    return tmp_path


def test_names_are_the_text_before_a_bracket_with_underscores(folder: Path) -> None:
    assert trial_names() == ["trial:walks", "trial:job_loss"]
    assert draw("trial:job_loss", 0).bandit.n_states == 3


def test_rows_are_shares_of_the_first_time_smoothed_by_half_a_move(folder: Path) -> None:
    rows = trial_rows("trial:walks")
    assert rows[0, 0] == pytest.approx([7.5 / 10, 2.5 / 10])
    assert rows[1, 0] == pytest.approx([0.5 / 5, 4.5 / 5])
    assert rows[0, 1] == pytest.approx([0.5 / 10, 9.5 / 10])
    assert rows[1, 1] == pytest.approx([0.5, 0.5])  # nobody was seen


def test_twenty_people_have_their_own_rows_about_those_of_the_trial(folder: Path) -> None:
    bandits = [worlds.load("trial:walks", seed) for seed in range(60)]
    assert (bandits[0].n_arms, bandits[0].budget, bandits[0].name) == (20, 6, "trial:walks")
    assert np.allclose(bandits[0].rewards, [0, 1])
    assert np.array_equal(bandits[0].transitions, worlds.load("trial:walks", 0).transitions)
    own, rows = np.concatenate([one.transitions for one in bandits]), trial_rows("trial:walks")
    assert np.abs(own.mean(axis=0) - rows).max() < 0.02
    variance = ((own - rows) ** 2).mean() / (rows * (1 - rows)).mean()
    assert variance == pytest.approx(1 / 21, rel=0.1)


def test_a_trial_is_played_by_its_name(folder: Path) -> None:
    table = simulate("pooled", "trial:walks", episodes=2, horizon=1, seeds=1)
    assert (table.environment == "trial:walks").all()


def test_an_arena_draws_a_trial_anew_for_each_seed(folder: Path) -> None:
    words = ["arena", "oracle", "--environments", "trial:walks", "--starts", "nothing"]
    out = folder / "arena"
    cli.main([*words, "--seeds", "2", "--episodes", "9", "--jobs", "1", "--out", str(out)])
    runs = sweep.grid(["trial:walks"], ["oracle"], range(2), episodes=9, horizon=1)
    for run in runs:
        own = replace(run, environment_seed=run.seed)
        rows = pd.read_csv(out / "arena.csv").query(f"seed == {run.seed}")
        found, _ = sweep.advance(own, metrics.truth(own.bandit()), {}, 600)
        assert [row[2] for row in found] == rows.reward.tolist()


def test_without_the_folder_an_error_names_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = r"trial:walks is read from moves\.csv: set DOPL_TRIALS to its folder"
    monkeypatch.delenv("DOPL_TRIALS", raising=False)
    with pytest.raises(ValueError, match=rf"{read} \(it is not set\)"):
        worlds.load("trial:walks", 0)
    monkeypatch.setenv("DOPL_TRIALS", str(tmp_path))
    with pytest.raises(ValueError, match=rf"{read} \({tmp_path} has none\)"):
        worlds.load("trial:walks", 0)


def test_an_unknown_trial_is_refused_with_those_that_there_are(folder: Path) -> None:
    with pytest.raises(ValueError, match="trial:runs is not one of trial:walks, trial:job_loss"):
        worlds.load("trial:runs", 0)


@pytest.mark.parametrize(
    ("line", "trouble"),
    [
        ("walks,1 week,0,low,0,7", 'row 8: state "low" is not a whole number'),
        ("walks,1 week,2,0,0,7", 'row 8: helped "2" is not 0 or 1'),
        ("walks,1 week,1,0", 'row 8: next_state "" is not a whole number'),
    ],
)
def test_a_wrong_row_is_refused_with_its_number(folder: Path, line: str, trouble: str) -> None:
    text = MOVES.replace("walks (phone)", "walks")
    (folder / "moves.csv").write_text(f"{text}{line}\n", encoding="utf-8")
    with pytest.raises(ValueError, match=trouble):
        worlds.load("trial:walks", 0)


def test_a_missing_column_is_named(folder: Path) -> None:
    text = MOVES.replace(",people", ",persons")
    (folder / "moves.csv").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"moves\.csv has no column people"):
        worlds.load("trial:walks", 0)
