"""What random clickers cost: ten annotators, three of whom click at random, or none.

Held-out log loss over the truth's own, and the reward of the plan made with the strengths (moves
are known), for answers weighed by sureness, not weighed, of the honest people alone, and weighed
by the answers without habits (repeats, one in ten, and fast answers). Honest people take 1.5 s to
answer in the median, random clickers 0.4 s. T = 0.4.
DOPL_SEEDS sets how many seeds (24).
"""

import os

import numpy as np
from scipy.special import expit, rel_entr

from dopl_core import environments
from dopl_core.learning import annotators, preferences
from dopl_core.learning.bandit import Bandit, FloatArray
from dopl_core.learning.counts import Counts
from dopl_core.learning.planning import plan
from dopl_core.learning.planning.ranking import rank
from dopl_core.studies import forecast

PEOPLE, TEMPERATURE = 10, 0.4
FAST = 0.6  # seconds; studies count answers below as fast


def main() -> None:
    """Print what is lost, and which share of it weights save."""
    seeds = int(os.environ.get("DOPL_SEEDS", "24"))
    print(f"trust: {PEOPLE} people, T={TEMPERATURE:g}, {seeds} seeds; log loss and reward a week")
    for name in ("cpap", "armman"):
        bandit = environments.load(name)
        for answers in (300, 1000):
            for random in (3, 0):
                runs = [_run(bandit, answers, random, seed) for seed in range(seeds)]
                loss, reward = np.mean(runs, axis=0).T  # as _run has them
                print(f"{name:8}{answers:5} answers, {random} at random: ", end="")
                print("loss weighed {:.4f}, not {:.4f}, honest {:.4f}, ".format(*loss), end="")
                print(f"without habits {loss[3]:.4f}; ", end="")
                print("reward {:.3f}, {:.3f}, {:.3f}, {:.3f}".format(*reward), end="")
                if random:
                    shares = [(x[0] - x[2]) / (x[1] - x[2]) for x in (loss, reward)]
                    print(
                        "; share lost {:.2f} of loss, {:.2f} of reward (bar 0.33)".format(*shares)
                    )
                else:
                    print(f"; weights cost {loss[0] - loss[1]:.4f}, {reward[1] - reward[0]:.3f}")


def _run(bandit: Bandit, answers: int, random: int, seed: int) -> FloatArray:
    """Log loss and reward [4, 2]: weighed, not, honest people alone, weighed without habits."""
    truth = (bandit.rewards / TEMPERATURE).ravel()
    rng, S = np.random.default_rng(seed), bandit.n_states
    pairs = rng.integers(0, len(truth), (answers, 2))
    pairs = pairs[pairs[:, 0] // S != pairs[:, 1] // S]
    who = rng.integers(0, PEOPLE, len(pairs))
    chance = np.where(who < random, 0.5, expit(truth[pairs[:, 0]] - truth[pairs[:, 1]]))
    left = rng.random(len(pairs)) < chance
    winner, loser = np.where(left, *pairs.T), np.where(left, *pairs.T[::-1])
    again = rng.random(len(pairs)) < chance
    repeat = rng.random(len(pairs)) < 0.1
    seconds = np.where(who < random, 0.4, 1.5) * rng.lognormal(0, 0.4, len(pairs))
    fast = seconds < FAST
    found, everybody = [], who >= 0
    ways = [(everybody, True), (everybody, False), (who >= random, False), (everybody, True)]
    for number, (some, weigh) in enumerate(ways):
        counts = Counts(len(truth))
        counts.add(winner[some], loser[some], 1.0, who[some])
        if number == 0:
            counts.habits["fast"].add(winner[fast], loser[fast], 1.0, who[fast])
            won, lost = np.where(again, *pairs.T), np.where(again, *pairs.T[::-1])
            counts.habits["repeats"].add(won[repeat], lost[repeat], 1.0, who[repeat])

        def fit(k: FloatArray | None, counts: Counts = counts) -> preferences.Preferences:
            return preferences.calibrated(counts, S, None, ordered=True, sureness=k)

        belief = annotators.weighed(counts, fit)[0] if weigh else fit(None)
        found.append((_loss(truth, belief.mean.ravel()), _reward(bandit, belief.mean)))
    return np.array(found)


def _loss(truth: FloatArray, said: FloatArray) -> float:
    p, q = (expit(x[:, None] - x) for x in (truth, said))
    return float((rel_entr(p, q) + rel_entr(1 - p, 1 - q)).mean())


def _reward(bandit: Bandit, strengths: FloatArray) -> float:
    P = bandit.transitions
    made = plan(strengths, P, P, bandit.budget, engine="lagrangian", pays=bandit.pays)
    states, rng = np.zeros(bandit.n_arms, dtype=int), np.random.default_rng(0)
    given = (bandit.rewards, [rank(made.advantage)], states, bandit.budget, rng)
    return float(forecast.simulate_weeks(P[None], *given, weeks=50, times=40)[0, 0])


if __name__ == "__main__":
    main()
