"""Trials: what models may see, known losses, and the value of lists."""

import doctest

import numpy as np
import pytest
from scipy.optimize import check_grad

from dopl_core.experiments import trials
from dopl_core.experiments.trials import Trial, learnt, losses, models, value
from dopl_core.learning.bandit import UNKNOWN, IntArray
from dopl_core.learning.dopl import Dopl

ROWS = np.array([[[0.7, 0.3], [0.4, 0.6]], [[0.2, 0.8], [0.1, 0.9]]])  # [S, 2, S'] of a chain


def draw(
    rows: np.ndarray, n_people: int, n_steps: int, seed: int, *, arms: bool = False, more: float = 0
) -> Trial:
    """A trial with these rows [S, 2, S'], where half of the help is drawn at random.

    arms: a person is helped throughout or never
    more: everybody's own chance of the best state, spread by this standard deviation
    """
    rng = np.random.default_rng(seed)
    S = len(rows)
    states = np.zeros((n_steps + 1, n_people), dtype=np.int64)
    states[0] = rng.integers(S, size=n_people)
    helped = rng.integers(2, size=(n_steps, n_people))
    helped = np.tile(helped[0], (n_steps, 1)) if arms else helped
    own = more * rng.standard_normal(n_people)
    for step in range(n_steps):
        chances = rows[states[step], helped[step]].copy()
        chances[:, -1] = np.clip(chances[:, -1] + own, 0.02, 0.98)
        chances[:, :-1] *= ((1 - chances[:, -1]) / chances[:, :-1].sum(axis=1))[:, None]
        states[step + 1] = (rng.random((n_people, 1)) > chances.cumsum(axis=1)).sum(axis=1)
    return Trial("drawn", states, helped, tuple(map(str, range(S))), randomised=True)


def in_proportion(repeats: int) -> Trial:
    """Moves of two steps in exactly the proportions of ROWS, half of the people helped."""
    states, helped = [], []
    for state in (0, 1):
        for acted in (0, 1):
            for after, share in enumerate(ROWS[state, acted]):
                for _ in range(round(share * repeats)):
                    states.append((state, after))
                    helped.append(acted)
    once = np.array(states).T  # [2, N]
    N = once.shape[1]
    found = np.full((4, 2 * N), UNKNOWN)
    found[:2, :N], found[2:, N:] = once, once
    given = np.zeros((3, 2 * N), dtype=np.int64)
    given[0, :N] = given[2, N:] = helped
    return Trial("in proportion", found, given, ("0", "1"))


# --- losses


def test_a_chain_that_is_predicted_exactly_has_its_entropy_as_loss() -> None:
    trial = in_proportion(10_000)
    entropy = -(ROWS * np.log(ROWS)).sum(axis=2).mean()
    found = -np.log(
        models.pooled_chain(trial, 2)[np.arange(trial.n_people), np.maximum(trial.states[3], 0)]
    )
    assert found[trial.known[2]].mean() == pytest.approx(entropy, abs=1e-6)


def test_what_is_unknown_at_first_is_predicted_with_equal_chances() -> None:
    trial = draw(ROWS, 10, 3, 0)
    for model in models.MODELS.values():
        assert model(trial, 0) == pytest.approx(0.5)


@pytest.mark.parametrize("name", models.MODELS)
def test_a_model_gives_chances_and_does_not_see_what_comes_later(name: str) -> None:
    trial = draw(np.full((3, 2, 3), 1 / 3), 12, 5, 1)
    before = models.MODELS[name](trial, 3)
    assert before.sum(axis=1) == pytest.approx(1)
    states, helped = trial.states.copy(), trial.helped.copy()
    states[4:], helped[4:] = 0, 1
    later = Trial("later", states, helped, trial.labels)
    assert np.array_equal(models.MODELS[name](later, 3), before)


def test_the_learner_does_not_see_what_comes_later() -> None:
    trial = draw(ROWS, 12, 4, 2)
    states = trial.states.copy()
    states[3:] = 0
    one, other = trials.play(trial), trials.play(Trial("later", states, trial.helped, ("0", "1")))
    assert np.array_equal(one.chances[:3], other.chances[:3])
    assert np.array_equal(one.listed[:3], other.listed[:3])
    assert not np.array_equal(one.chances[3], other.chances[3])


def test_a_personal_chain_predicts_better_only_where_people_differ() -> None:
    for more, best, worst in ((0.0, -0.01, 0.01), (0.6, -1, -0.02)):
        table = trials.trial_table(draw(ROWS, 60, 12, 3, more=more)).set_index(["part", "model"])
        late = table.loss["late"]
        assert best < late["personal chain"] - late["pooled chain"] < worst


def test_the_gradient_of_the_regression_is_right() -> None:
    rng = np.random.default_rng(4)
    X, then = rng.standard_normal((30, 2)), rng.integers(4, size=30)

    def value_of(z: np.ndarray) -> float:
        return models._log_likelihood(z[:3], X @ z[3:], then)[0]

    def gradient(z: np.ndarray) -> np.ndarray:
        _, by_threshold, by_eta = models._log_likelihood(z[:3], X @ z[3:], then)
        return np.concatenate([by_threshold, X.T @ by_eta])

    assert check_grad(value_of, gradient, np.array([-1.0, 0.2, 1.5, 0.4, -0.8])) < 1e-4


def test_the_regression_recovers_slopes_and_thresholds() -> None:
    rng = np.random.default_rng(5)
    X = rng.standard_normal((20_000, 2))
    luck = rng.logistic(size=20_000)
    then = np.searchsorted([-1.0, 0.5], X @ [1.0, -0.5] + luck)
    thresholds, slopes = models._fit(X, then, 3)
    assert thresholds == pytest.approx([-1.0, 0.5], abs=0.05)
    assert slopes == pytest.approx([1.0, -0.5], abs=0.05)


def test_moves_from_or_to_an_unknown_state_are_skipped() -> None:
    states = np.array([[0, 1, UNKNOWN, 0], [1, UNKNOWN, 1, 0], [1, 0, 0, UNKNOWN]])
    trial = Trial("gaps", states, np.zeros((2, 4), dtype=np.int64), ("0", "1"))
    moves = trial.moves
    assert list(zip(moves.step, moves.person, strict=True)) == [(0, 0), (0, 3), (1, 0), (1, 2)]
    table = trials.trial_table(trial)
    assert set(table[table.part == "all"].moves) == {4}
    assert set(table[table.part == "all"].people) == {3}
    assert trial.seen_before(1).sum() == 2
    assert table.loss.notna().all()


def test_the_example_of_the_table_runs() -> None:
    names = dict(vars(losses))
    [example] = doctest.DocTestFinder(recurse=False).find(losses.trial_table, globs=names)
    assert doctest.DocTestRunner().run(example).failed == 0


def test_the_standard_error_lets_the_moves_of_a_person_depend() -> None:
    values = np.random.default_rng(6).standard_normal(50)
    mean, error = losses.mean_and_error(values, np.arange(50))
    assert (mean, error) == pytest.approx((values.mean(), values.std(ddof=1) / np.sqrt(50)))
    twice = losses.mean_and_error(np.tile(values, 2), np.tile(np.arange(50), 2))
    assert twice == pytest.approx((mean, error))


def test_the_early_part_is_the_first_half_of_the_moves_in_whole_steps() -> None:
    trial = draw(ROWS, 10, 5, 7)
    assert losses.part_of(trial.moves).tolist() == ["early"] * 30 + ["late"] * 20
    once = draw(ROWS, 10, 1, 7)
    assert set(trials.trial_table(once).part) == {"early", "all"}


def test_states_without_an_order_have_no_regression() -> None:
    trial = draw(ROWS, 10, 2, 8)
    without = Trial("x", trial.states, trial.helped, ("a", "b"), ordered=False)
    assert "ordinal logistic" not in set(trials.trial_table(without).model)


def test_people_with_one_move_come_in_waves() -> None:
    before, helped = np.arange(20) % 3, np.arange(20) % 2
    states, acted = trials.in_waves(before, helped, 2 - before)
    trial = Trial("waves", states, acted, ("0", "1", "2"))
    assert states.shape == (9, 20)
    assert sorted(trial.moves.person) == list(range(20))
    at = trial.moves
    assert np.array_equal(at.state, before[at.person])
    assert np.array_equal(at.helped, helped[at.person])
    assert np.array_equal(at.next_state, 2 - before[at.person])
    assert np.bincount(at.step).tolist() == [3, 3, 3, 3, 2, 2, 2, 2]


@pytest.mark.parametrize(
    ("states", "helped", "labels", "words"),
    [
        ([[0, 1]], [[0, 1]], "ab", "one row more than help"),
        ([[0, 1], [1, 1]], [[0, 2]], "ab", "helped must be 1 or 0"),
        ([[0, 2], [1, 1]], [[0, 1]], "ab", "states must be 0 to 1, or -1"),
        ([[0, -1], [-1, 1]], [[0, 1]], "ab", "has no moves: two states of a person in a row"),
    ],
)
def test_arrays_that_are_no_trial_are_refused(
    states: list[list[int]], helped: list[list[int]], labels: str, words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        Trial("x", np.array(states), np.array(helped), tuple(labels))


# --- value


def test_the_value_of_a_policy_in_a_simulated_trial_is_the_true_one() -> None:
    trial = draw(ROWS, 4_000, 3, 9)
    moves = trial.moves
    chance = value.chance_of_help(moves, 2)
    assert chance == pytest.approx(0.5, abs=0.05)
    worst = (trial.states[:-1] == 0).astype(float)  # help those in the worst state
    for helps in (worst, 1 - worst, np.zeros(worst.shape), np.full(worst.shape, 0.3)):
        each = helps[moves.step, moves.person]
        found, influence = value.weighted_mean(each, chance, moves, moves.next_state.astype(float))
        up = ROWS[moves.state, :, 1]
        true = (each * up[:, 1] + (1 - each) * up[:, 0]).mean()
        error = np.sqrt((influence**2).sum())
        assert 0.002 < error < 0.01
        assert abs(found - true) < 3 * error


def test_standard_errors_of_values_have_the_size_of_their_errors() -> None:
    z = []
    for seed in range(60):
        trial = draw(ROWS, 100, 3, seed, more=0.2)
        moves = trial.moves
        worst = (moves.state == 0).astype(float)
        chance = value.chance_of_help(moves, 2)
        found, influence = value.weighted_mean(worst, chance, moves, moves.next_state.astype(float))
        others = draw(ROWS, 20_000, 3, seed + 1_000, more=0.2).moves
        use = (others.state == 0) == (others.helped == 1)
        true = sum(
            (moves.state == state).mean() * others.next_state[use & (others.state == state)].mean()
            for state in (0, 1)
        )
        z.append((found - true) / np.sqrt((influence**2).sum()))
    assert 0.5 < np.std(z) < 1.3


def test_a_list_has_no_value_in_a_trial_with_two_arms_where_help_does_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A list that knows each person's arm picks those who did well in it and seems to work."""
    idle = np.repeat(ROWS[:, :1], 2, axis=1)
    drawn = [draw(idle, 200, 5, seed, arms=True, more=0.4) for seed in range(6)]

    def gains() -> list[float]:
        tables = [trials.value_table(trial).iloc[0] for trial in drawn]
        return [table.gain / table.gain_se for table in tables]

    assert abs(np.mean(gains())) < 3 / np.sqrt(len(drawn))
    monkeypatch.setattr(value, "has_arms", lambda moves: False)
    assert min(gains()) > 3


def test_all_policies_have_the_places_of_the_learners_list() -> None:
    complete = draw(ROWS, 44, 3, 10)
    states = complete.states.copy()
    states[1, :4] = UNKNOWN
    trial = Trial("gaps", states, complete.helped, ("0", "1"))
    listed = trials.play(trial).listed
    assert listed.sum(axis=1).tolist() == [10, 10, 11]
    assert not listed[:2, :4].any()
    found = value.policies(trial, listed)
    for name in ("worst first", "random"):
        assert found[name].sum(axis=1) == pytest.approx([10, 10, 11])
    assert not found["no help"].any()


def test_worst_first_shares_places_among_people_in_one_state() -> None:
    states = np.array([1, 0, UNKNOWN, 1, 2, 1])
    assert value.worst_first(states, 2.5).tolist() == [0.5, 1, 0, 0.5, 0, 0.5]


def test_people_of_other_parts_decide_lists_by_others(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = draw(ROWS, 20, 3, 11)
    told: list[IntArray] = []

    class Listens(Dopl):
        def count_moves(self, states, helped, next_states, times=1):  # type: ignore[no-untyped-def]
            told.append(next_states != UNKNOWN)
            super().count_moves(states, helped, next_states, times)

    def factory(trial: Trial, budget: int, seed: int) -> Dopl:
        sizes = trial.n_people, trial.n_states, budget
        return Listens(*sizes, horizon=1, seed=seed, ordered=True)

    listed = learnt.lists_by_others(trial, learner=factory)
    parts = np.array(told).reshape(learnt.FOLDS, 3, 20)
    assert ((~parts).sum(axis=0) == 1).all()  # each person is unseen in one part
    assert listed.sum(axis=1).tolist() == [4, 4, 4]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"randomised": False}, "was drawn at random"),
        ({"randomised": True}, "everybody was helped"),
    ],
)
def test_the_value_of_a_list_needs_help_by_chance(change: dict[str, bool], words: str) -> None:
    states = np.array([[0, 1, 1], [1, 1, 0]])
    trial = Trial("x", states, np.ones((1, 3), dtype=np.int64), ("0", "1"), **change)
    with pytest.raises(ValueError, match=words):
        trials.value_table(trial)
