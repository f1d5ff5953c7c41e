"""Many runs at once, on local processes or on a Dask cluster, with the same results."""

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from types import TracebackType
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed, parallel_config
from tqdm import tqdm

from dopl_core.experiments.learners import find, kind_of
from dopl_core.experiments.metrics import Truth, errors, truth
from dopl_core.experiments.results import Results, Row, State, planned, read, summary
from dopl_core.experiments.runs import Run, grid
from dopl_core.experiments.simulator import References, play_episode, prepare
from dopl_core.learning.learner import Learner

__all__ = ["Run", "grid", "planned", "read", "run", "simulate", "summary"]

_SLICE = 1.0  # seconds of a run in one task


def run(
    runs: Sequence[Run], out: str | Path, *, jobs: int = 1, dask: str | None = None
) -> pd.DataFrame:
    """Play all runs, or what is left of them, into the folder `out`; returns all rows in order.

    Runs are played a second at a time, in turn, so that all curves grow together and a worker that
    dies loses a second. Results depend neither on `jobs` nor on `dask`.
    """
    truths = {place: truth(run.bandit()) for place, run in {_place(r): r for r in runs}.items()}
    with _workers(jobs, dask) as parallel, closing(Results(out, runs)) as results:
        with Progress(sum(run.episodes for run in runs), sum(results.played)) as progress:
            while waiting := results.waiting():
                tasks = (
                    delayed(_play)(i, runs[i], truths[_place(runs[i])], saved, _SLICE)
                    for i, saved in waiting
                )
                for number, rows, saved in parallel(tasks):
                    results.add(number, rows, saved)
                    progress.advance(len(rows))
        results.finish()
    return read(out)


def simulate(
    learner: str | type[Learner] | Callable[..., Learner],
    environment: str | Path,
    *,
    episodes: int,
    horizon: int,
    seeds: int,
    jobs: int = 1,
    **settings: Any,
) -> pd.DataFrame:
    """Play a learner in a simulated world, with its references on the same random numbers.

    Parameters
    ----------
    learner : str, class or callable
        A name (``"dopl"``, ``"random"``, ``"package.module:Class"`` ...), a subclass of `Learner`,
        or a factory that is called as ``factory(bandit, horizon=H, seed=seed)``.
    environment : str or Path
        A name, such as ``"cpap"``, or the path of a TOML file.
    episodes, horizon : int
        Number of plans, and epochs H under each.
    seeds : int
        How many; they are 0, 1, ...
    jobs : int, default 1
        Local processes. Results do not depend on it.
    **settings
        Other settings: ``confidence``, ``engine``, ``design``, ``ties``, ``memory``, ``restart``,
        ``temperature``, ``environment_seed``, ``history_epochs``, ``sitting``, ``answers``,
        ``ordered``, ``columns``. `dopl simulate --help` explains them. ``world`` is a subclass of
        `SimulatedWorld` to play in.

    Returns
    -------
    pandas.DataFrame, shape (seeds * episodes, 17)
        The columns of episodes.csv, one row for each episode.

    Examples
    --------
    >>> simulate("dopl", "cpap", episodes=3, horizon=5, seeds=2).shape
    (6, 17)
    >>> from dopl_core import Dopl
    >>> set(simulate(Dopl, "cpap", episodes=1, horizon=5, seeds=1).learner)
    {'Dopl'}
    """
    own = find(learner) if isinstance(learner, str) else kind_of(learner)
    name = learner if isinstance(learner, str) else own.label
    settings |= {"episodes": episodes, "horizon": horizon, "own": own}
    runs = grid([str(environment)], [name], range(seeds), **settings)
    with TemporaryDirectory(prefix="dopl-") as folder:
        return run(runs, folder, jobs=jobs)


def advance(run: Run, truth: Truth, saved: State, seconds: float) -> tuple[list[Row], State]:
    """Continue a run from `saved` ({} to begin) for about `seconds`: new rows, and its new state.

    The references are played again for every learner: this costs a fifth to a third of its time,
    and tasks need no synchronisation.
    """
    learner = run.make_learner(truth.bandit)
    world = run.make_world(truth.bandit)
    if not saved:
        prepare(learner, world, run.history_epochs, run.sitting)
    references = References(world.bandit, truth.oracle, world.states)
    cumulative = 0.0
    if saved:
        learner.restore(saved)
        world.restore(saved["world"])
        references.states = saved["references"]
        cumulative = float(saved["regret"])
    rows: list[Row] = []
    until = perf_counter() + seconds
    while learner.episode < run.episodes and (not rows or perf_counter() < until):
        started = perf_counter()
        learner.replan()
        planned = perf_counter()
        error = errors(learner, truth)
        playing = perf_counter()
        reward = play_episode(learner, world)
        took = perf_counter() - playing + planned - started
        oracle, chance = references.play(world, learner.tie_keys)
        cumulative += oracle - reward
        rewards = (reward, oracle, chance, oracle - reward, cumulative)
        rows.append((learner.episode, run.horizon, *rewards, *error, round(took, 6)))
    place = {"world": world.state(), "references": references.states, "regret": cumulative}
    return rows, learner.state() | {name: np.array(value) for name, value in place.items()}


def _play(
    number: int, run: Run, truth: Truth, saved: State, seconds: float
) -> tuple[int, list[Row], State]:
    return number, *advance(run, truth, saved, seconds)


def _place(run: Run) -> tuple[str, int]:
    return run.environment, run.environment_seed


@contextmanager
def _workers(jobs: int, dask: str | None) -> Iterator[Any]:
    """joblib over local processes, or over the Dask cluster at an address."""
    if jobs < 1:
        raise ValueError(f"jobs is {jobs}: at least 1 process is needed")
    # joblib warns of every interrupted sweep; cancelled tasks are played again later.
    warnings.filterwarnings("ignore", message=".*tasks which were still being processed")
    if dask is None:
        # One thread each: the arrays are small, and results do not depend on the number of cores.
        with (
            parallel_config("loky", n_jobs=jobs, inner_max_num_threads=1),
            Parallel(return_as="generator_unordered") as parallel,
        ):
            yield parallel
        return
    try:
        from distributed import Client
    except ImportError:
        raise ValueError('--dask needs an extra: pip install "dopl[dask]"') from None
    with (
        Client(dask),
        parallel_config("dask", n_jobs=-1),
        Parallel(return_as="generator_unordered") as parallel,
    ):
        yield parallel


class Progress:
    """A progress bar on a terminal, otherwise one line a minute."""

    def __init__(self, total: int, done: int) -> None:
        self._total, self._begun, self._done = total, done, done
        self._started = self._said = perf_counter()
        on_terminal = sys.stderr.isatty()
        self._bar = tqdm(total=total, initial=done, unit=" episodes") if on_terminal else None

    def __enter__(self) -> "Progress":
        return self

    def __exit__(
        self, kind: type | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()
        else:
            self._say()

    def advance(self, episodes: int) -> None:
        """Add finished episodes."""
        self._done += episodes
        if self._bar is not None:
            self._bar.update(episodes)
        elif perf_counter() - self._said >= 60:
            self._say()

    def _say(self) -> None:
        self._said = perf_counter()
        line = f"{self._done} of {self._total} episodes"
        if self._begun < self._done < self._total:
            rate = (self._said - self._started) / (self._done - self._begun)
            line += f", about {(self._total - self._done) * rate / 60:.1f} minutes left"
        print(line, file=sys.stderr, flush=True)
