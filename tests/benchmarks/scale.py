"""What many arms cost: a replan of 1,000 to 100,000, a study of 20,000, and how 1,000 are learnt.

Replans in processor time of one process, so that whatever else the machine is doing counts for
little. Sizes come in rising order, so the peak memory after each is its own. DOPL_TABLES sets what
is printed (replan studies quality), DOPL_SEEDS how many seeds the quality is of (6).
"""

import os
import resource
import tempfile
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from dopl_core import environments, studies
from dopl_core.experiments import metrics
from dopl_core.experiments.runs import Run
from dopl_core.experiments.simulator import References, play_episode, prepare
from dopl_core.learning.dopl import Dopl
from dopl_core.world import SimulatedWorld

OWN = str(Path(__file__).parents[1] / "data" / "everyone_differs.toml")
BARS = {1_000: "2 s", 10_000: "15 s, 1 GB", 100_000: "150 s, 4 GB"}
EACH = 10  # answers an arm
WEEKS = 26  # of past records
WINDOWS = ((0, 5), (5, 10), (10, 25), (0, 25))
CLICKS = 200
START = {"history_epochs": WEEKS, "sitting": 200, "answers": 30}


def main() -> None:
    """Print each time beside its bar."""
    tables = os.environ.get("DOPL_TABLES", "replan studies quality").split()
    if "replan" in tables:
        _small()
        _replans()
    if "studies" in tables:
        _studies()
    if "quality" in tables:
        _qualities(int(os.environ.get("DOPL_SEEDS", "6")))


def _small() -> None:
    """A replan of few, beside a computation that is always the same."""
    matrix = np.random.default_rng(0).normal(size=(80, 80))
    matrix = matrix + matrix.T
    times = []
    for _ in range(50):
        started = process_time()
        np.linalg.eigh(matrix)
        times.append(process_time() - started)
    run = Run(OWN, "dopl", 0, 1, 1)
    bandit = run.bandit()
    learner, world = run.make_learner(bandit), SimulatedWorld(bandit, 0)
    spent = []
    for _ in range(60):
        started = process_time()
        learner.replan()
        spent.append(process_time() - started)
        play_episode(learner, world)
    ours, yardstick = float(np.median(spent)), float(np.median(times))
    print(
        f"a calibrated replan, N=20 S=4: {ours * 1e3:.1f} ms, {ours / yardstick:.1f} times the "
        f"eigenvalues of an 80 x 80 matrix ({yardstick * 1e3:.2f} ms)",
        flush=True,
    )


def _replans() -> None:
    print(f"a calibrated replan, S=3, {WEEKS} weeks of moves and {EACH} answers an arm, seconds:")
    print(
        f"{'N':>8} {'answers':>9} {'first':>7} {'again':>7} {'pairs':>7} {'growth':>7}  peak memory"
    )
    first = None
    for n_arms, bar in BARS.items():
        learner, states = _learner(n_arms)
        cold, warm, pairs = _replan(learner, states)
        first = first or cold
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(
            f"{n_arms:8,} {EACH * n_arms:9,} {cold:7.2f} {warm:7.2f} {pairs:7.2f} "
            f"{cold / first:6.0f}x  {peak:.2f} GB (bar: {bar})",
            flush=True,
        )
    print("growth from N=1,000 to N=100,000: bar 130x")


def _learner(n_arms: int) -> tuple[Dopl, NDArray[np.int64]]:
    """A learner of two kinds of arms that has seen moves and answers, and where they are."""
    rng = np.random.default_rng(n_arms)
    kinds = rng.dirichlet(np.ones(3), size=(2, 3, 2))
    moves = kinds[rng.integers(2, size=n_arms)]
    learner = Dopl(n_arms, 3, n_arms // 10, horizon=1, answers=n_arms // 10 + 100)
    visits = rng.multinomial(WEEKS, np.full(6, 1 / 6), size=n_arms).reshape(n_arms, 3, 2)
    learner.visits = rng.multinomial(visits, moves)
    strengths = np.linspace(-1, 1, 3) + 0.7 * rng.normal(size=(n_arms, 1))
    strengths = strengths + 0.3 * rng.normal(size=(n_arms, 3))
    _answer(learner, strengths, EACH * n_arms, rng)
    return learner, rng.integers(3, size=n_arms)


def _answer(
    learner: Dopl, strengths: NDArray[np.float64], count: int, rng: np.random.Generator
) -> None:
    left = rng.integers(learner.n_arms, size=count)
    right = (left + rng.integers(1, learner.n_arms, size=count)) % learner.n_arms
    states = rng.integers(3, size=(2, count))
    gap = strengths[left, states[0]] - strengths[right, states[1]]
    duels = np.stack([left, states[0], right, states[1]], axis=1)
    learner.count_duels(duels, (rng.random(count) < 1 / (1 + np.exp(-gap))).astype(float))


def _replan(learner: Dopl, states: NDArray[np.int64]) -> tuple[float, float, float]:
    """Seconds of the first plan, of one that starts from it, and of choosing the week's pairs."""
    started = process_time()
    learner.replan()
    cold = process_time()
    arms = learner.activate(states, 0)
    learner.duels(states, arms, 0)
    asked = process_time()
    learner.replan()
    return cold - started, process_time() - asked, asked - cold


def _studies() -> None:
    """A real study in a real database, by the clock: made, reported, planned, and clicked in."""
    with tempfile.TemporaryDirectory() as folder:
        store = studies.open_store(f"sqlite:///{folder}/dopl.db")
        made = {n_arms: _study(store, n_arms) for n_arms in (20, 20_000)}
        # In turns, so that whatever else the machine is doing slows both.
        clicks: dict[int, list[float]] = {n_arms: [] for n_arms in made}
        for number in range(CLICKS):
            for n_arms, study in made.items():
                clicks[n_arms].append(_click(store, study, f"person {number % 20}"))
        store.close()
    few, many = (np.percentile(times, [50, 95]) * 1e3 for times in clicks.values())
    print(
        f"next_duel + answer, SQLite, 20 annotators: N=20 median {few[0]:.1f} ms, p95 {few[1]:.1f};"
        f" N=20,000 {many[0]:.1f} and {many[1]:.1f}, p95 {many[1] / few[1]:.2f} times (bar: 1.5)"
    )


def _study(store: studies.Store, n_arms: int) -> str:
    rng = np.random.default_rng(0)
    labels = ("Low", "Moderate", "High")
    first, then = (rng.choice(labels, size=n_arms).tolist() for _ in range(2))
    lines = [
        f"p{n},{first[n]},Name {n},ward {n % 7},{n % 9} {n % 8} {n % 7}" for n in range(n_arms)
    ]
    text = "\n".join(["id,state,label,group,hours", *lines]).encode()
    started = [perf_counter()]
    rules = {"budget": max(4, n_arms // 20), "answers": 1_000, "horizon": 1, "practice": False}
    arms = studies.read_roster(text, labels)
    config = studies.from_roster(arms, labels, title="Campaign", **rules)
    study = studies.create_study(store, config)
    started.append(perf_counter())
    columns = {f"p{n}": {"hours": f"{n % 5} {n % 6}"} for n in range(n_arms)}
    studies.observe(store, study, {f"p{n}": then[n] for n in range(n_arms)}, columns)
    started.append(perf_counter())
    studies.advance(store, study)
    started.append(perf_counter())
    made, reported, planned = np.diff(started)
    print(
        f"a study of {n_arms:,}: a roster read and made into one with its first list {made:.1f} s"
        f"{' (bar: 20 s)' if n_arms > 20 else ''}, a report of all {reported:.1f} s, the next list "
        f"{planned:.1f} s",
        flush=True,
    )
    return study


def _click(store: studies.Store, study: str, name: str) -> float:
    started = perf_counter()
    found = studies.next_duel(store, study, name)
    if not isinstance(found, studies.Ask):
        raise RuntimeError(f"nothing left to ask of {name}: {found}")
    studies.answer(store, found.impression, "left", too_fast_ms=0)
    return perf_counter() - started


def _qualities(seeds: int) -> None:
    print(
        f"learning, CPAP's two kinds of arms with a start, T=0.4, a plan every week: {seeds} seeds;"
        " 0 is chance, 1 the paper's oracle"
    )
    print(f"{'':24}" + "".join(f"{f'{start + 1}-{end}':>13}" for start, end in WINDOWS))
    with tempfile.TemporaryDirectory() as folder:
        many = Path(folder) / "cpap.toml"
        text = (environments.FOLDER / "cpap.toml").read_text(encoding="utf-8")
        many.write_text(
            text.replace("arms = 10", "arms = 500").replace("budget = 8", "budget = 100")
        )
        for name, environment, answers in (
            ("N=20 B=8, 30 a week", "cpap", 30),
            ("N=1,000 B=100, B-1", str(many), 30),
            ("N=1,000 B=100, 150", str(many), 150),
        ):
            settings = START | {"answers": answers}
            plays = [delayed(_rewards)(environment, settings, seed) for seed in range(seeds)]
            rewards = np.array(Parallel(n_jobs=1)(plays))
            print(f"{name:24}" + "".join(_cell(rewards, *w) for w in WINDOWS), flush=True)


def _rewards(environment: str, settings: dict[str, int], seed: int) -> NDArray[np.float64]:
    """Reward per epoch [3, 25] of the learner, the paper's oracle, and chance."""
    weeks = WINDOWS[-1][1]
    run = Run(environment, "dopl", seed, weeks, 1, temperature=0.4, **settings)  # type: ignore[arg-type]
    truth = metrics.truth(run.bandit())
    learner = run.make_learner(truth.bandit)
    world = SimulatedWorld(truth.bandit, seed, temperature=0.4)
    prepare(learner, world, run.history_epochs, run.sitting)
    references = References(truth.bandit, truth.oracle, world.states)
    rewards = []
    for _ in range(weeks):
        learner.replan()
        rewards.append((play_episode(learner, world), *references.play(world, learner.tie_keys)))
    return np.array(rewards).T


def _cell(rewards: NDArray[np.float64], start: int, end: int) -> str:
    learner, oracle, chance = rewards[:, :, start:end].mean(axis=2).T
    scores = (learner - chance) / (oracle - chance).mean()
    return f"{scores.mean():>7.2f} ±{scores.std(ddof=1) / np.sqrt(len(scores)):4.2f}"


if __name__ == "__main__":
    main()
