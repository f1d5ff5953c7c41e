"""Rehearsals, and the commands about studies."""

from pathlib import Path

import numpy as np
import pytest
from playing import clinic, cpap, play

from dopl_core import cli
from dopl_core.studies import rehearse as rehearsals
from dopl_core.studies import service
from dopl_core.studies.rehearse import Habits, rehearse
from dopl_core.studies.service import Store, StudyError


@pytest.fixture
def live_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A store on the real clock, and the one that commands open."""
    url = f"sqlite:///{tmp_path}/live.db"
    monkeypatch.setenv("DOPL_DATABASE_URL", url)
    return service.open_store(url)


def test_a_rehearsal_gives_the_answers_it_was_asked_for(live_store: Store) -> None:
    study = service.create_study(live_store, cpap(practice=True, repeat_every=10))
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
    frame = service.answers(live_store, study)
    assert set(frame.annotator) == {f"rehearsal {n}" for n in range(1, 5)}
    assert set(frame.purpose) == {"practice", "policy", "repeat"}
    service.replay_study(live_store, study)


def test_rehearsed_annotators_mostly_know_better(live_store: Store) -> None:
    study = service.create_study(live_store, cpap(horizon=40))
    # Alone, so that it comes out the same each time.
    rehearse(live_store, study, annotators=1, answers=120, habits=Habits(slips=0.0, skips=0.0))
    frame = service.answers(live_store, study).dropna(subset=["winner_arm"])
    order = {"Low adherence": 0, "Moderate adherence": 1, "High adherence": 2}
    left, right = frame.left_state.map(order), frame.right_state.map(order)
    unequal = left != right
    won = np.where(frame.outcome == "left", left > right, right > left)[unequal]
    assert won.mean() > 0.55


def test_an_observed_study_is_rehearsed_with_made_up_reports(live_store: Store) -> None:
    study = service.create_study(live_store, clinic())
    done = rehearse(live_store, study, annotators=2, answers=12)
    assert (done.answers, done.plans) == (12, 5)
    assert done.reports >= 10
    service.replay_study(live_store, study)


def test_those_who_walk_away_come_back_and_nothing_hangs(live_store: Store) -> None:
    study = service.create_study(live_store, cpap(lease_seconds=0.05))
    habits = Habits(walk_aways=0.3, think_seconds=0.001)
    done = rehearse(live_store, study, annotators=4, answers=40, habits=habits)
    assert done.answers == 40
    assert done.walk_aways > 0


def test_a_rehearsal_ends_when_nobody_here_may_answer_what_is_left(live_store: Store) -> None:
    study = service.create_study(live_store, cpap(ratings=3, lease_seconds=0.05))
    done = rehearse(live_store, study, annotators=2, answers=100)
    assert done.answers == 12  # two of three ratings of six duels


def test_a_failure_in_a_players_thread_is_told(
    live_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = service.create_study(live_store, cpap())

    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("no more disk")

    monkeypatch.setattr(rehearsals.asking, "answer", fails)
    with pytest.raises(RuntimeError, match="no more disk"):
        rehearse(live_store, study, annotators=2, answers=5)


def test_habits_and_numbers_are_checked(live_store: Store) -> None:
    study = service.create_study(live_store, cpap())
    with pytest.raises(StudyError, match="slips is 2"):
        Habits(slips=2)
    with pytest.raises(StudyError, match="think_seconds is -1"):
        Habits(think_seconds=-1)
    with pytest.raises(StudyError, match="at least one annotator"):
        rehearse(live_store, study, annotators=0)


def test_the_commands_export_import_and_replay(
    live_store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = service.create_study(live_store, cpap(title="By command"))
    play(live_store, study, 30)
    cli.main(["studies"])
    assert capsys.readouterr().out.startswith(f"{study}  running  ")
    bundle = tmp_path / "out.zip"
    cli.main(["export", study, "--out", str(bundle)])
    assert bundle.read_bytes() == service.export_bundle(live_store, study)
    cli.main(["replay", str(bundle)])
    assert "everything comes out the same" in capsys.readouterr().out
    service.delete_study(live_store, study)
    cli.main(["import", str(bundle)])
    assert capsys.readouterr().out == f"{study}\n"
    assert service.export_bundle(live_store, study) == bundle.read_bytes()


def test_the_rehearse_command_plays_a_study_or_a_new_one(
    live_store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    study = service.create_study(live_store, cpap())
    cli.main(["rehearse", study, "--annotators", "3", "--answers", "20"])
    assert f"{study}  20 answers" in capsys.readouterr().out
    cli.main(["rehearse", "--environment", "cpap", "--annotators", "2", "--answers", "5"])
    assert len(service.list_studies(live_store)) == 2
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
def test_commands_say_in_one_line_what_is_wrong(
    live_store: Store, command: list[str], message: str
) -> None:
    with pytest.raises(SystemExit, match=message) as stopped:
        cli.main(command)
    assert "\n" not in str(stopped.value)
