"""Simulations beside the app: started, followed, stopped, gone on with, compared."""

import json
import os
import subprocess
import time

import pandas as pd
import pytest
from msgspec.structs import asdict

from dopl_core import environments
from dopl_core.experiments import background as simulations
from dopl_core.experiments.background import Settings


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.setenv("DOPL_RUNS", str(tmp_path))


def settings(**changes):
    given = {
        "environment": "app_marketing",
        "learners": ("dopl", "random"),
        "confidence": "calibrated",
        "episodes": 3,
        "horizon": 2,
        "seeds": 2,
    }
    return Settings(**(given | changes))


def until(name, *statuses, seconds=300):
    deadline = time.monotonic() + seconds
    while (found := simulations.find(name)).status not in statuses:
        assert time.monotonic() < deadline, found
        time.sleep(0.05)
    return found


def test_a_simulation_plays_all_its_episodes_and_is_finished():
    done = until(simulations.start(settings()), "finished", "failed")
    assert (done.status, done.done, done.total) == ("finished", 12, 12)
    assert len(done.rows()) == 12
    assert simulations.find_all() == [done]
    assert simulations.picture(done).startswith(b"\x89PNG")
    table = simulations.comparison([done, done])
    assert list(table.run) == [1, 1, 2, 2]
    assert list(table.learner) == ["dopl", "random"] * 2
    random = table[table.learner == "random"]
    assert (random.gain == 0).all()
    assert (table.difference[table.learner == "dopl"] == 0).all()
    assert random.difference.nunique() == 1


def test_a_label_says_what_was_played_and_when_it_was_started():
    found = simulations.Simulation(
        "20261118-143005-ab12", None, settings(), "finished", 0, 0, None, ""
    )
    assert found.label == f"{settings().title} (18 Nov 2026, 14:30:05)"


def test_an_uploaded_world_is_kept_and_played(tmp_path):
    content = (environments.FOLDER / "cpap.toml").read_bytes()
    path = simulations.keep_environment("My clinic.toml", content)
    assert simulations.keep_environment("My clinic.toml", content) == path
    other = simulations.keep_environment("My clinic.toml", content + b"# another\n")
    assert other != path
    given = settings(environment=path, episodes=1, seeds=1, learners=("random",))
    assert given.title.startswith("My-clinic, calibrated: random;")
    done = until(simulations.start(given), "finished", "failed")
    assert set(done.rows().environment) == {"My-clinic"}
    assert simulations.find_all() == [done]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.toml", b"name = 3", "a.toml: "),
        ("b.toml", b"\xff\xfe", "b.toml: not a TOML file"),
    ],
)
def test_an_upload_that_is_no_world_is_refused_and_not_kept(tmp_path, name, content, says):
    with pytest.raises(ValueError, match=says):
        simulations.keep_environment(name, content)
    assert not list(tmp_path.iterdir())


def test_a_stopped_simulation_keeps_its_rows_and_can_continue():
    name = simulations.start(settings(episodes=400, seeds=1, learners=("dopl",)))
    while simulations.find(name).done == 0:
        time.sleep(0.05)
    running = simulations.find(name)
    assert running.status == "running"
    assert running.seconds_left is None or running.seconds_left > 0
    simulations.stop(running)
    stopped = until(name, "stopped")
    assert 0 < stopped.done < 400
    simulations.go_on(stopped)
    assert until(name, "running", "finished").done >= stopped.done - 1
    simulations.delete(simulations.find(name))
    assert simulations.find_all() == []


def test_a_failed_simulation_shows_the_last_line_it_printed():
    name = simulations.start(settings())
    simulation = simulations.find(name)
    simulations.stop(simulation)
    until(name, "stopped")
    (simulation.folder / "episodes.csv").unlink(missing_ok=True)
    (simulation.folder / "sweep.json").write_text("{")
    simulations.go_on(simulations.find(name))
    assert until(name, "failed").trouble.startswith("dopl: ")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"learners": ()}, "no learner"),
        ({"learners": ("magic",)}, "magic"),
        ({"environment": "mars"}, "mars"),
        ({"episodes": 0}, "episodes is 0"),
        ({"seeds": 0}, "seeds is 0"),
    ],
)
def test_invalid_settings_are_refused_before_a_simulation_starts(changes, reason):
    with pytest.raises(ValueError, match=reason):
        settings(**changes)


def test_an_unknown_simulation_is_refused_by_name():
    with pytest.raises(ValueError, match="there is no simulation"):
        simulations.find("../../etc")


def by_hand(tmp_path, content):
    """A folder with a run.json of our own."""
    folder = tmp_path / "20260101-000000-aaaa"
    folder.mkdir(exist_ok=True)
    text = content if isinstance(content, str) else json.dumps(content)
    (folder / "run.json").write_text(text)
    return folder.name


def noted(**changes):
    about = {"pid": 0, "birth": "long ago", "started": 0.0, "had": 0, "stopped": False, "jobs": 1}
    return about | {"settings": asdict(settings())} | changes


@pytest.fixture
def bystander():
    """Somebody else's process, which leads a group, as a simulation does."""
    process = subprocess.Popen(["sleep", "600"], start_new_session=True)
    yield process
    process.kill()
    process.wait()


@pytest.mark.parametrize("birth", ["long ago", "", None])
def test_a_process_that_got_the_number_of_a_simulation_is_left_alone(tmp_path, bystander, birth):
    about = noted(pid=bystander.pid, birth=birth)
    if birth is None:
        del about["birth"]  # as earlier versions wrote it
    found = simulations.find(by_hand(tmp_path, about))
    assert found.status == "failed"
    simulations.stop(found)
    simulations.delete(found)
    assert bystander.poll() is None
    assert simulations.find_all() == []


def test_two_processes_are_told_apart_and_one_is_itself(bystander):
    mine, other = simulations._birth(os.getpid()), simulations._birth(bystander.pid)
    assert mine
    assert mine == simulations._birth(os.getpid())
    assert mine != other
    assert simulations._birth(2**22 + 1) == ""


BROKEN = {
    "empty": "",
    "half": '{"pid": 12',
    "deep": "[" * 100_000,
    "a list": [1],
    "a number": 3,
    "no fields": {},
    "no settings": noted(settings=None),
    "another environment": noted(settings=asdict(settings()) | {"environment": "mars"}),
    "learners are a number": noted(settings=asdict(settings()) | {"learners": 3}),
    "more settings": noted(settings=asdict(settings()) | {"magic": 3}),
    "pid is text": noted(pid="12"),
    "pid is yes": noted(pid=True),
    "started is text": noted(started="now"),
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
def test_a_broken_run_json_is_one_broken_run(tmp_path, content):
    name = by_hand(tmp_path, content)
    [found] = simulations.find_all()
    assert (found.id, found.status, found.settings) == (name, "broken", None)
    assert "run.json" in found.trouble or "mars" in found.trouble
    assert simulations.curves([found], "reward").empty
    simulations.delete(found)
    assert simulations.find_all() == []


@pytest.mark.parametrize("pid", [-1, 0, 1, 2**40, 10**30])
def test_a_number_that_no_simulation_has_stops_nothing(tmp_path, pid):
    found = simulations.find(by_hand(tmp_path, noted(pid=pid)))
    assert found.status == "failed"
    simulations.stop(found)


class Played:
    """A simulation with rows of our own."""

    def __init__(self, rows):
        self.settings, self._rows = settings(), pd.DataFrame(rows)

    def rows(self):
        return self._rows


def row(learner, seed, episode, reward):
    names = ("learner", "seed", "episode", "reward", "oracle_reward", "random_reward")
    return dict(zip(names, (learner, seed, episode, reward, 10.0, 0.0), strict=True))


def test_curves_are_means_over_the_episodes_that_all_seeds_have_played():
    played = Played([row("dopl", 0, 1, 4.0), row("dopl", 1, 1, 6.0), row("dopl", 0, 2, 9.0)])
    curves = simulations.curves([played], "reward")
    own = curves[curves.learner == "dopl"]
    assert own[["run", "epochs", "value"]].to_numpy().tolist() == [["1", 2, 5.0]]
    assert own[["low", "high"]].to_numpy().tolist() == [[4.0, 6.0]]  # one standard deviation
    [oracle] = curves[curves.learner == "oracle"].itertuples()
    assert (oracle.low, oracle.high) == (10.0, 10.0)
    assert set(curves.learner) == {"dopl", "oracle", "random"}


def test_the_title_has_the_share_of_the_oracles_gain():
    played = Played([row("dopl", 0, 1, 2.0), row("dopl", 0, 2, 7.5)])
    title = simulations.finding(simulations.curves([played], "reward"))
    assert title.startswith("After 4 epochs DOPL gains 75 % of what the oracle")


def test_a_stopped_run_whose_learners_came_unequally_far_has_a_title() -> None:
    rows = [("1", name, epochs, 0.5) for name in ("dopl", "random") for epochs in range(5, 101, 5)]
    rows += [("1", "oracle", epochs, 0.9) for epochs in range(5, 31, 5)]
    curves = pd.DataFrame(rows, columns=["run", "learner", "epochs", "value"])
    assert simulations.finding(curves) == (
        "After 30 epochs DOPL gains 0 % of what the oracle gains over random help"
    )
    without = curves[curves.learner != "oracle"]
    assert simulations.finding(without) == "Rewards against the epochs played"
