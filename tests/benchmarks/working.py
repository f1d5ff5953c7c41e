"""What the page says of a clinic whose truth is known: wrong claims, right ones, and intervals.

Twenty patients, help for eight, one place in eight by lot, 26 weeks from nothing; the page is read
every week. Help does nothing, or it has CPAP's effect; people are of CPAP's two kinds, or everybody
moves in their own way, or every clinic is another one. Where help does nothing, everybody may also
move with the season: a rise, a fall or a wave.

DOPL_RUNS: clinics of each kind (200);  DOPL_SEED: the first of their seeds (0);  DOPL_KINDS: some
of the kinds, with commas between them (all);  DOPL_JOBS: processes (2).
"""

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from dopl_core import environments
from dopl_core.learning import preferences
from dopl_core.learning.bandit import ACT, WAIT, Bandit, FloatArray, IntArray, actions
from dopl_core.learning.dopl import Dopl
from dopl_core.learning.moves import model
from dopl_core.learning.places.reported_weeks import ReportedWeeks
from dopl_core.learning.planning import plan
from dopl_core.studies import effect_of_help, forecast
from dopl_core.world import SimulatedWorld

WEEKS, TEMPERATURE, DRAWS = 26, 0.4, 600


class Run(NamedTuple):
    """One clinic: what the page claims in each week [w] from FIRST_CLAIM_WEEK on, and whether
    intervals hold the truth.

    signs: 1 where the page claims that help works, -1 where it claims harm
    held: what an interval is of -> whether it does, or in which share of the states
    sure, right: [B] chances that those on the list belong there, and whether they do
    reward: of all people, the mean of the weeks
    """

    signs: IntArray
    held: dict[str, float]
    sure: FloatArray
    right: NDArray[np.bool_]
    reward: float


def main() -> None:
    """Print how often the page is right."""
    runs, first = int(os.environ.get("DOPL_RUNS", "200")), int(os.environ.get("DOPL_SEED", "0"))
    print(f"working: {runs} clinics of {WEEKS} weeks each, T={TEMPERATURE:g}, one lot in eight")
    jobs, seeds = int(os.environ.get("DOPL_JOBS", "2")), range(first, first + runs)
    for kind in os.environ.get("DOPL_KINDS", ",".join(KINDS)).split(","):
        words, bar = KINDS[kind]
        show(words, bar, Parallel(n_jobs=jobs)(delayed(clinic)(kind, seed) for seed in seeds))


def show(words: str, bar: str, found: list[Run]) -> None:
    """Print what the page said in all clinics of one kind."""
    signs = np.array([run.signs for run in found])
    works, harms = (mean_and_error((sign * signs > 0).any(axis=1)) for sign in (1, -1))
    print(f"{words}: help claimed in any week {works} ({bar}), ", end="")
    print(f"in the last {(signs[:, -1] > 0).mean():.3f}; harm {harms}")
    print("  90 % intervals hold the truth (bar: 0.85 to 0.95)")
    for what in found[0].held:
        print(f"    {what}: {mean_and_error([run.held[what] for run in found])}")
    print(f"  reward a week: {mean_and_error([run.reward for run in found])}", flush=True)
    sure, right = (np.concatenate([getattr(r, name) for r in found]) for name in Run._fields[2:4])
    for low, high in ((0, 0.5), (0.5, 0.65), (0.65, 0.8), (0.8, 1.01)):
        some = (sure >= low) & (sure < high)
        if some.any():
            print(f"    said to belong {sure[some].mean():.2f}: {right[some].mean():.2f} do")


def mean_and_error(found: Sequence[float] | NDArray[np.bool_]) -> str:
    """The mean of what is known, and its standard error."""
    known = np.array(found, dtype=float)
    known = known[~np.isnan(known)]
    return f"{known.mean():.3f} ± {known.std() / np.sqrt(len(known)):.3f}"


NOTHING, SEASONS = "help does nothing", ("rise", "fall", "wave")
OWN_WAY, NULL_BAR = "everybody moves in their own way", "at most 0.05"
KINDS = {
    "nothing": (NOTHING, NULL_BAR),
    "own nothing": (f"{NOTHING}, {OWN_WAY}", NULL_BAR),
    **{f"nothing {season}": (f"{NOTHING}, a {season}", NULL_BAR) for season in SEASONS},
    **{
        f"own nothing {season}": (f"{NOTHING}, {OWN_WAY}, a {season}", NULL_BAR)
        for season in SEASONS
    },
    "cpap": ("CPAP's effect", "at least 0.80"),
    "own": (f"CPAP's effect, {OWN_WAY}", "no bar"),
    "drawn": ("another truth in every clinic", "no bar"),
}
OWN = 30  # moves of its own that an arm needs to outweigh its kind, where it has a way of its own


def truth(kind: str, seed: int) -> Bandit:
    """The clinic as it really is."""
    bandit, rng = environments.load("cpap"), np.random.default_rng([seed, 1])
    P = bandit.transitions.copy()
    if kind == "drawn":
        P = _any_truth(bandit, rng)
    if kind.startswith(("own", "drawn")):
        P = model.dirichlet(OWN * P, rng)
    if "nothing" in kind:
        P[:, :, ACT] = P[:, :, WAIT]
    return replace(bandit, transitions=P)


def in_season(bandit: Bandit, kind: str, week: int) -> Bandit:
    """The clinic in a week (from 1): all rows are mixed with the best state or the worst."""
    wave = np.sin(2 * np.pi * week / 13)
    share, to = {
        "rise": (0.45 * week / WEEKS, -1),
        "fall": (0.45 * week / WEEKS, 0),
        "wave": (0.4 * abs(wave), -1 if wave >= 0 else 0),
    }.get(kind.split()[-1], (0.0, 0))
    mixed = (1 - share) * bandit.transitions + share * np.eye(bandit.n_states)[to]
    return replace(bandit, transitions=mixed)


def _any_truth(bandit: Bandit, rng: np.random.Generator) -> FloatArray:
    """One to three kinds of arms, with any rows; help brings any share, up to half, to the top."""
    S, kinds = bandit.n_states, int(rng.integers(1, 4))
    alone = rng.dirichlet(np.ones(S), (kinds, S))
    share = rng.uniform(0, 0.5, (kinds, S, 1))
    rows = np.stack([alone, (1 - share) * alone + share * np.eye(S)[-1]], axis=2)
    return np.asarray(rows[rng.integers(0, kinds, bandit.n_arms)])


def clinic(kind: str, seed: int) -> Run:
    """One clinic, looked at every week."""
    bandit = truth(kind, seed)
    learner, weeks, signs = _learner(bandit, seed), [], []
    states = None
    for week in range(1, WEEKS + 1):
        world = SimulatedWorld(in_season(bandit, kind, week), seed, temperature=TEMPERATURE)
        world.states = world.states if states is None else states
        weeks.append(play_week(learner, world))
        states = world.states
        if week < effect_of_help.FIRST_CLAIM_WEEK:
            continue
        rng = np.random.default_rng([seed, week, 2])
        seen = ReportedWeeks(*np.array(weeks).transpose(1, 0, 2))
        found = effect_of_help.effect_within(seen, bandit.n_states)
        signs.append(_sign(found.overall, learner, week, rng))
    moves, sceptical = (
        model.draw(learner.visits, None, DRAWS, rng, idle) for idle in (0, forecast.NO_EFFECT_PRIOR)
    )
    either = forecast.under_both_priors(moves, sceptical)
    held = {
        "effect of help": _holds(found.overall, _true_effect(bandit, seen)),
        "by state": _states(bandit, learner, moves),
        "by lot": _lots(bandit, seen),
    }
    more, sure, right = _ahead(bandit, learner, moves, either, states, rng)
    if kind.endswith(SEASONS):  # what coming weeks are worth depends on the season; gains do not
        more = {what: held for what, held in more.items() if "over" in what}
    reward = float(bandit.rewards[np.arange(bandit.n_arms), seen.next_states].sum(axis=1).mean())
    return Run(np.array(signs), held | more, sure, right, reward)


def _sign(
    found: effect_of_help.Estimate, learner: Dopl, week: int, rng: np.random.Generator
) -> int:
    """What the page claims. The draws are skipped where they cannot change it."""
    sign = effect_of_help.proven_sign(found, found, week)
    if not sign:
        return 0
    drawn = model.draw(learner.visits, None, DRAWS, rng, forecast.NO_EFFECT_PRIOR)
    sceptical = effect_of_help.overall_effect(effect_of_help.gains(drawn), learner.visits)
    return effect_of_help.proven_sign(found, sceptical, week)


def _learner(bandit: Bandit, seed: int) -> Dopl:
    learner = Dopl(
        bandit.n_arms, bandit.n_states, bandit.budget, horizon=1, seed=seed, ordered=True
    )
    learner.adapt(learner.present, bandit.budget, by_lot=bandit.budget // 8)
    return learner


def play_week(
    learner: Dopl, world: SimulatedWorld, *, answers: bool = True
) -> tuple[IntArray, ...]:
    """A list, its answers and its report: states, helped, next states, listed, by lot."""
    learner.replan()
    world.begin(learner.episode, 1)
    states = world.states
    listed = learner.activate(states, 0)
    waiting, drawn = learner.draw_lots(listed, 0)
    arms = np.union1d(np.setdiff1d(listed, waiting), drawn)
    if answers:
        duels = learner.duels(states, arms, 0)
        learner.count_duels(duels, world.answer(duels))
    after, helped = world.step(arms), actions(arms, learner.n_arms)
    learner.count_moves(states, helped, after)
    return states, helped, after, helped, actions(np.union1d(waiting, drawn), learner.n_arms)


def _holds(found: effect_of_help.Estimate, truth: float) -> bool:
    return found.low <= truth <= found.high


def _true_effect(bandit: Bandit, seen: ReportedWeeks) -> float:
    """The mean true gain, weighted as the estimate within people and weeks weighs it."""
    gain = effect_of_help.gains(bandit.transitions[None])[0][np.arange(bandit.n_arms), seen.states]
    true = []
    for state, slope in enumerate(effect_of_help.slopes_within(seen, bandit.n_states)):
        helped = seen.helped[None].astype(float)
        weight = effect_of_help.without_means(helped, seen.states == state)[0][0] * seen.helped
        of_state = (weight * gain).sum() / weight.sum() if np.isfinite(slope.effect) else np.nan
        true.append(slope._replace(effect=of_state))
    return effect_of_help.mean_of_states(true).effect


def _states(bandit: Bandit, learner: Dopl, moves: FloatArray) -> float:
    """In which share of the states the interval holds the mean gain of all who were seen there."""
    visits = learner.visits
    found, truth = (
        [state.estimate for state in effect_of_help.effect_by_state(gains, visits)]
        for gains in (effect_of_help.gains(moves), effect_of_help.gains(bandit.transitions[None]))
    )
    held = [_holds(one, true.mean) for one, true in zip(found, truth, strict=True) if one.known]
    return float(np.mean(held)) if held else np.nan


def _lots(bandit: Bandit, seen: ReportedWeeks) -> bool:
    """Whether the interval holds the mean gain of all who could have been drawn."""
    gain = effect_of_help.gains(bandit.transitions[None])[0][np.arange(bandit.n_arms), seen.states]
    before = seen.listed ^ seen.by_lot  # the list before places were drawn by lot
    true = [(gain * (before == on)).sum(axis=1) / (before == on).sum(axis=1) for on in (0, 1)]
    others = np.array([(before == on).sum(axis=1) - 1 for on in (0, 1)])
    weight = others / (others + 1)
    return _holds(
        effect_of_help.effect_by_lot(seen, bandit.n_states).effect,
        float((weight * true).sum() / weight.sum()),
    )


def _ahead(
    bandit: Bandit,
    learner: Dopl,
    moves: FloatArray,
    either: FloatArray,
    states: IntArray,
    rng: np.random.Generator,
) -> tuple[dict[str, float], FloatArray, NDArray[np.bool_]]:
    """Whether worth and who belongs on the next list are as they are said to be."""
    learner.replan()
    half = np.tile(effect_of_help.better_half(bandit.n_states).astype(float), (bandit.n_arms, 1))
    given = (half, forecast.policies(learner.priority), states, bandit.budget, rng)
    worth = forecast.summarise_weeks(forecast.simulate_weeks(either, *given, times=10))
    truth = forecast.simulate_weeks(bandit.transitions[None], *given, times=1000)[0]
    held: dict[str, float] = {
        "worth of the list": _holds(worth.by_list, truth[0]),
        "worth of worst first": _holds(worth.worst_first, truth[1]),
        "worth of chance": _holds(worth.at_random, truth[2]),
        "the list over chance": _holds(worth.over_random, truth[0] - truth[2]),
        "the list over worst first": _holds(worth.over_worst_first, truth[0] - truth[1]),
    }
    listed = learner.activate(states, 0)
    strengths = preferences.draw(learner.belief(), 60, rng)
    sure = forecast.belonging_probability(
        forecast.best_lists(moves[:60], strengths, states, bandit.budget)
    )
    P, arm = bandit.transitions, np.arange(bandit.n_arms)
    best = plan(bandit.rewards, P, P, bandit.budget, engine="lagrangian").advantage[arm, states]
    really = best[listed] >= np.sort(best)[-bandit.budget] - 1e-9  # people who gain as much, too
    if (bandit.transitions[:, :, ACT] == bandit.transitions[:, :, WAIT]).all():
        return held, np.empty(0), np.empty(0, dtype=bool)  # nobody belongs where help does nothing
    many = forecast.expected_count(sure[listed])
    held["how many belong on the list"] = _holds(many, float(really.sum()))
    return held, sure[listed], really


if __name__ == "__main__":
    main()
