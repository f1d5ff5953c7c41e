"""Simulations beside the app: started, followed, stopped, gone on with, compared."""

import time

import pandas as pd
import pytest

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


def until(name, *statuses, seconds=60):
    deadline = time.monotonic() + seconds
    while (found := simulations.find(name)).status not in statuses:
        assert time.monotonic() < deadline, found
        time.sleep(0.05)
    return found


def test_a_simulation_plays_all_its_episodes_and_says_so():
    done = until(simulations.start(settings()), "finished", "failed")
    assert (done.status, done.done, done.total) == ("finished", 12, 12)
    assert len(done.rows()) == 12
    assert simulations.find_all() == [done]
    assert simulations.picture(done).startswith(b"\x89PNG")


def test_a_simulation_that_is_stopped_keeps_its_rows_and_can_go_on():
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


def test_a_simulation_that_fails_says_what_it_said_last():
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
def test_what_cannot_be_played_is_refused_before_it_starts(changes, reason):
    with pytest.raises(ValueError, match=reason):
        settings(**changes)


def test_an_unknown_simulation_is_named():
    with pytest.raises(ValueError, match="there is no simulation"):
        simulations.find("../../etc")


class Played:
    """A simulation with rows of our own."""

    def __init__(self, rows):
        self.settings, self._rows = settings(), pd.DataFrame(rows)

    def rows(self):
        return self._rows


def row(learner, seed, episode, reward):
    names = ("learner", "seed", "episode", "reward", "oracle_reward", "random_reward")
    return dict(zip(names, (learner, seed, episode, reward, 10.0, 0.0), strict=True))


def test_curves_are_means_over_seeds_as_far_as_all_have_got():
    played = Played([row("dopl", 0, 1, 4.0), row("dopl", 1, 1, 6.0), row("dopl", 0, 2, 9.0)])
    curves = simulations.curves([played], "reward")
    own = curves[curves.learner == "dopl"]
    assert own[["run", "epochs", "value"]].to_numpy().tolist() == [["1", 2, 5.0]]
    assert set(curves.learner) == {"dopl", "oracle", "random"}


def test_the_title_says_where_dopl_is_between_random_and_oracle():
    played = Played([row("dopl", 0, 1, 2.0), row("dopl", 0, 2, 7.5)])
    title = simulations.finding(simulations.curves([played], "reward"))
    assert title.startswith("After 4 epochs DOPL gains 75% of what the oracle")
