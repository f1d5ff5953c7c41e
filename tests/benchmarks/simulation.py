"""What simulating costs: an epoch outside planning, and an episode of each learner in CPAP.

Processor time, so that whatever else the machine is doing counts for little.
"""

import importlib.util
from pathlib import Path
from statistics import quantiles
from time import process_time

import numpy as np

from dopl_core.experiments import metrics
from dopl_core.experiments.learners import LEARNERS
from dopl_core.experiments.runs import Run
from dopl_core.experiments.simulator import References, play_episode
from dopl_core.world import SimulatedWorld

HORIZON = 100
BARS = {"dopl": 2.0, "mle_wibql": 3.0, "mle_qwic": 3.0}  # ms an episode
OF_AN_ELP = 0.07  # the same for dopl, as a share of one plain PuLP ELP


def main() -> None:
    """Print both, each beside what it may cost."""
    yardstick = _numpy_add()
    print(f"simulation: numpy.add on a 20-vector takes {yardstick * 1e6:.2f} us")
    epoch = _epoch()
    print(
        f"an epoch outside planning, N=20: {epoch * 1e6:.1f} us, {epoch / yardstick:.0f} such "
        "additions (bar: 60 us)"
    )
    print(f"an episode, CPAP, H={HORIZON}, paper's confidence and ties, lagrangian:")
    elp = _elp()
    print(f"  one ELP, written in PuLP the plain way: {elp * 1e3:.1f} ms")
    for learner in LEARNERS:
        episode, reference, error = _episode(learner, "paper")
        if learner == "dopl":
            print(f"  dopl, as a share of the ELP: {episode / elp:.3f} (bar: {OF_AN_ELP})")
        bar = f" (bar: {BARS[learner]:.0f} ms)" if learner in BARS else ""
        print(
            f"  {learner:10} {episode * 1e3:5.1f} ms{bar}; references {reference / episode:.2f} of "
            f"it, metrics {error / episode:.3f} of it"
        )
    episode, _, _ = _episode("dopl", "calibrated", 20)
    print(f"  dopl, calibrated: {episode * 1e3:.1f} ms")


def _numpy_add() -> float:
    vector = np.ones(20)
    times = []
    for _ in range(30):
        started = process_time()
        for _ in range(1000):
            np.add(vector, vector)
        times.append((process_time() - started) / 1000)
    return min(times)


def _elp() -> float:
    """Seconds of one extended LP with 20 arms, written in PuLP the plain way (planning.py)."""
    path = Path(__file__).with_name("planning.py")
    spec = importlib.util.spec_from_file_location("bench_planning", path)
    assert spec is not None
    assert spec.loader is not None
    planning = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(planning)
    rng = np.random.default_rng(0)
    problems = [planning._problem(rng, 20, 3, 0.05, 8) for _ in range(10)]
    [plain] = planning._times(problems, planning._plain)
    return float(plain) / 1e3


def _epoch() -> float:
    """Act, pay, ask, answer, record, step, observe: seconds an epoch, in the quietest episode."""
    run = Run("cpap", "random", 0, 30, HORIZON)
    learner, world = run.make_learner(run.bandit()), SimulatedWorld(run.bandit(), 0)
    times = []
    for _ in range(40):
        learner.replan()
        started = process_time()
        play_episode(learner, world)
        times.append((process_time() - started) / HORIZON)
    return min(times)


def _episode(learner: str, confidence: str, episodes: int = 60) -> tuple[float, float, float]:
    """Seconds of an episode, of its references, and of its metrics; the quickest tenth."""
    settings = {"confidence": confidence, "ties": "paper", "restart": True}
    run = Run("cpap", learner, 0, episodes, HORIZON, **settings)  # type: ignore[arg-type]
    truth = metrics.truth(run.bandit())
    player, world = run.make_learner(truth.bandit), SimulatedWorld(truth.bandit, 0, restart=True)
    references = References(truth.bandit, truth.oracle, world.states)
    times = []
    for _ in range(episodes):
        started = process_time()
        player.replan()
        play_episode(player, world)
        played = process_time()
        references.play(world, player.tie_keys)
        referred = process_time()
        metrics.errors(player, truth)
        times.append((played - started, referred - played, process_time() - referred))
    episode, reference, error = (quantiles(column, n=10)[0] for column in zip(*times, strict=True))
    return episode, reference, error


if __name__ == "__main__":
    main()
