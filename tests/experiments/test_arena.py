"""The arena: many worlds and starts in one CSV, one table and one figure."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dopl_core import cli
from dopl_core.experiments import arena

WORDS = ["arena", "dopl", "random", "--environments", "cpap", "liang", "--episodes", "2"]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("arena")
    more = ["--confidence", "paper", "--seeds", "2", "--jobs", "1", "--out", str(out)]
    cli.main([*WORDS, "--starts", "nothing", "records", *more])
    return out


def test_an_arena_writes_one_csv_one_table_and_one_figure(played: Path) -> None:
    rows = pd.read_csv(played / "arena.csv")
    assert len(rows) == 2 * 2 * 2 * 2 * 2  # environments, starts, learners, seeds, episodes
    assert list(rows.columns[:3]) == ["start", "environment", "learner"]
    table = pd.read_csv(played / "table.csv")
    assert len(table) == 2 * 2 * 2
    assert set(table.start) == {"nothing", "records"}
    assert (played / "arena.png").read_bytes().startswith(b"\x89PNG")


def test_a_drawn_world_is_the_same_for_all_learners_and_another_for_each_seed(played: Path) -> None:
    rows = pd.read_csv(played / "arena.csv")
    liang = rows[(rows.environment == "liang") & (rows.start == "nothing") & (rows.episode == 1)]
    rewards = liang.pivot(index="seed", columns="learner", values="random_reward")
    assert (rewards.dopl == rewards.random).all()
    assert rewards.random.nunique() == 2


def test_a_finished_arena_is_not_played_again(played: Path) -> None:
    before = (played / "arena.csv").read_bytes()
    more = ["--confidence", "paper", "--seeds", "2", "--jobs", "1", "--out", str(played)]
    cli.main([*WORDS, "--starts", "nothing", "records", *more])
    assert (played / "arena.csv").read_bytes() == before  # the clock's column included


def test_means_errors_and_paired_differences_are_those_of_the_rows() -> None:
    """Two seeds, two episodes; the second learner is better by 1 and by 3."""
    columns = ["start", "environment", "learner", "confidence", "seed", "reward"]
    rows = [
        ("s", "e", "a", "none", 0, 1.0), ("s", "e", "a", "none", 0, 3.0),
        ("s", "e", "a", "none", 1, 6.0), ("s", "e", "a", "none", 1, 6.0),
        ("s", "e", "b", "none", 0, 3.0), ("s", "e", "b", "none", 0, 3.0),
        ("s", "e", "b", "none", 1, 9.0), ("s", "e", "b", "none", 1, 9.0),
    ]  # fmt: skip
    played = pd.DataFrame(rows, columns=columns).assign(random_reward=1.0, seconds=0.5)
    first, second = arena.table(played).to_dict("records")
    assert (first["reward"], second["reward"]) == (4.0, 6.0)
    assert first["reward_se"] == pytest.approx(2.0)  # seeds have 2 and 6
    assert second["gain"] == 5.0
    assert (first["difference"], second["difference"]) == (0.0, 2.0)
    assert second["difference_se"] == pytest.approx(np.std([1, 3], ddof=1) / np.sqrt(2))
    assert second["seconds"] == 0.5


def test_an_unknown_start_is_refused_before_anything_is_played(tmp_path: Path) -> None:
    out = ["--out", str(tmp_path / "new")]
    with pytest.raises(SystemExit, match='start "magic" is not one of nothing, records'):
        cli.main(["arena", "random", "--starts", "magic", *out])
    assert not (tmp_path / "new").exists()
