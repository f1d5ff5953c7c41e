from pathlib import Path

import pandas as pd
import pytest

from dopl_core import cli
from dopl_core.experiments import reproduce


@pytest.mark.parametrize(
    ("name", "episodes", "horizon"),
    [("app_marketing", 4000, 100), ("cpap", 300, 1000), ("armman", 20_000, 5)],
)
def test_the_runs_are_the_papers(name: str, episodes: int, horizon: int) -> None:
    runs = reproduce.runs(name)
    assert len({(run.learner, run.seed) for run in runs}) == len(runs) == 6 * 3
    for run in runs:
        assert (run.episodes, run.horizon) == (episodes, horizon)
        assert (run.confidence, run.ties, run.memory) == ("paper", "paper", "episode")
        assert run.restart
        assert run.bandit().epsilon == 1e-5


def test_ours_adds_the_calibrated_learner_and_worst_first_and_leaves_the_others_alone() -> None:
    runs = reproduce.runs("armman", ours=True)
    assert runs[:18] == reproduce.runs("armman")
    assert {(r.learner, r.confidence, r.ties, r.episodes) for r in runs[18:]} == {
        ("dopl", "calibrated", "advantage", reproduce.OURS),
        ("worst_first", "paper", "paper", 20_000),
    }


def test_scale_shortens_the_runs_and_must_be_above_0_and_at_most_1() -> None:
    assert {run.episodes for run in reproduce.runs("cpap", scale=0.05)} == {15}
    for scale in (0.0, -1.0, 1.5):
        with pytest.raises(ValueError, match="scale"):
            reproduce.runs("cpap", scale=scale)


def test_reproduce_writes_a_table_and_two_figures_and_redraws_without_playing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["reproduce", "app_marketing", "--scale", "0.001", "--ours", "--seeds", "2"]
    cli.main([*words, "--jobs", "1", "--out", str(tmp_path)])
    table = pd.read_csv(tmp_path / "episodes.csv")
    assert len(table) == 8 * 2 * 4
    assert "minutes" in capsys.readouterr().out
    pictures = [tmp_path / "reward_regret.png", tmp_path / "errors.png"]
    for picture in pictures:
        assert picture.read_bytes().startswith(b"\x89PNG")
        picture.unlink()
    cli.main([*words, "--jobs", "1", "--out", str(tmp_path)])
    assert table.equals(pd.read_csv(tmp_path / "episodes.csv"))  # the clock's column included
    assert all(picture.exists() for picture in pictures)
