"""Rehearsals, and the commands for studies."""

from pathlib import Path

import numpy as np
import pytest
from playing import clinic, cpap, play

from dopl_core import cli, studies
from dopl_core.studies import Store, StudyError
from dopl_core.studies.operate import rehearsal as rehearsals
from dopl_core.studies.operate.rehearsal import Habits, rehearse


@pytest.fixture
def live_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A store on the real clock; commands open the same one."""
    url = f"sqlite:///{tmp_path}/live.db"
    monkeypatch.setenv("DOPL_DATABASE_URL", url)
    return studies.open_store(url)


def test_a_rehearsal_gives_as_many_answers_as_requested(live_store: Store) -> None:
    study = studies.create_study(live_store, cpap(practice=True, repeat_every=10))
    told: list[tuple[int, str]] = []
    done = rehearse(
        live_store,
        study,
        annotators=4,
        answers=60,
        on_answer=lambda impression, outcome: told.append((impression, outcome)),
    )
    assert done.answers == 60 == len(set(told)) == len(done.click_seconds)
    assert done.plans >= 5
    frame = studies.answers(live_store, study)
    assert set(frame.annotator) == {f"rehearsal {n}" for n in range(1, 5)}
    assert set(frame.purpose) == {"practice", "policy", "repeat"}
    studies.replay_study(live_store, study)


def test_simulated_annotators_mostly_choose_the_better_state(live_store: Store) -> None:
    study = studies.create_study(live_store, cpap(horizon=40))
    # One annotator, so that the result is reproducible.
    rehearse(live_store, study, annotators=1, answers=120, habits=Habits(slips=0.0, skips=0.0))
    frame = studies.answers(live_store, study).dropna(subset=["winner_arm"])
    order = {"Low adherence": 0, "Moderate adherence": 1, "High adherence": 2}
    left, right = frame.left_state.map(order), frame.right_state.map(order)
    unequal = left != right
    won = np.where(frame.outcome == "left", left > right, right > left)[unequal]
    assert won.mean() > 0.55


def test_a_rehearsal_of_an_observed_study_simulates_its_reports(live_store: Store) -> None:
    study = studies.create_study(live_store, clinic())
    done = rehearse(live_store, study, annotators=2, answers=12)
    assert (done.answers, done.plans) == (12, 5)
    assert done.reports >= 10
    studies.replay_study(live_store, study)


def test_annotators_who_walk_away_block_nothing(live_store: Store) -> None:
    study = studies.create_study(live_store, cpap(lease_seconds=0.05))
    habits = Habits(walk_aways=0.3, think_seconds=0.001)
    done = rehearse(live_store, study, annotators=4, answers=40, habits=habits)
    assert done.answers == 40
    assert done.walk_aways > 0


def test_a_rehearsal_ends_when_no_annotator_may_answer_the_remaining_duels(
    live_store: Store,
) -> None:
    study = studies.create_study(live_store, cpap(ratings=3, lease_seconds=0.05))
    done = rehearse(live_store, study, annotators=2, answers=100)
    assert done.answers == 12  # two of three ratings for each of six duels


def test_an_error_in_an_annotators_thread_is_raised(
    live_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = studies.create_study(live_store, cpap())

    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("no more disk")

    monkeypatch.setattr(rehearsals.duels, "answer", fails)
    with pytest.raises(RuntimeError, match="no more disk"):
        rehearse(live_store, study, annotators=2, answers=5)


def test_invalid_habits_and_numbers_are_refused(live_store: Store) -> None:
    study = studies.create_study(live_store, cpap())
    with pytest.raises(StudyError, match="slips is 2"):
        Habits(slips=2)
    with pytest.raises(StudyError, match="think_seconds is -1"):
        Habits(think_seconds=-1)
    with pytest.raises(StudyError, match="needs at least one annotator"):
        rehearse(live_store, study, annotators=0)


def test_the_commands_export_import_and_replay(
    live_store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = studies.create_study(live_store, cpap(title="By command"))
    play(live_store, study, 30)
    cli.main(["studies"])
    assert capsys.readouterr().out.startswith(f"{study}  running  ")
    bundle = tmp_path / "out.zip"
    cli.main(["export", study, "--out", str(bundle)])
    assert bundle.read_bytes() == studies.export_bundle(live_store, study)
    cli.main(["replay", str(bundle)])
    assert "Everything is reproduced to the bit" in capsys.readouterr().out
    studies.delete_study(live_store, study)
    cli.main(["import", str(bundle)])
    assert capsys.readouterr().out == f"{study}\n"
    assert studies.export_bundle(live_store, study) == bundle.read_bytes()


def test_the_rehearse_command_uses_a_given_study_or_makes_one(
    live_store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    study = studies.create_study(live_store, cpap())
    cli.main(["rehearse", study, "--annotators", "3", "--answers", "20"])
    assert f"{study}  20 answers" in capsys.readouterr().out
    cli.main(["rehearse", "--environment", "cpap", "--annotators", "2", "--answers", "5"])
    assert len(studies.list_studies(live_store)) == 2
    play(live_store, study, 3, people=("Ann",))
    with pytest.raises(SystemExit, match="has answers by people"):
        cli.main(["rehearse", study, "--answers", "5"])
    cli.main(["rehearse", study, "--answers", "5", "--anyway"])


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["export", "nope"], 'dopl: there is no study "nope"'),
        (["replay", "none.zip"], "dopl: .*none.zip"),
        (["import", "none.zip"], "dopl: .*none.zip"),
        (["rehearse"], "dopl: name a study, or an environment"),
        (["rehearse", "--environment", "mars"], 'dopl: environment "mars" is not one of'),
        (["rehearse", "nope"], 'dopl: there is no study "nope"'),
    ],
)
def test_a_failing_command_prints_one_line(
    live_store: Store, command: list[str], message: str
) -> None:
    with pytest.raises(SystemExit, match=message) as stopped:
        cli.main(command)
    assert "\n" not in str(stopped.value)
