"""Explanations of moves, averaged by their evidence: classes, columns, and gradual change."""

import numpy as np
import pytest

from dopl_core.learning import columns
from dopl_core.learning.bandit import ACT, WAIT
from dopl_core.learning.dopl import Dopl
from dopl_core.learning.transitions import dynamics, moves
from dopl_core.learning.transitions.class_rows import EFFECT


def test_arms_without_moves_may_do_anything():
    mean, variance = moves.rows(np.zeros((5, 2, 2, 2), dtype=int))
    assert mean == pytest.approx(1 / 2)
    assert (variance > 0.5 * 1 / 12).all()  # a flat Dirichlet's is 1/12
    assert (variance < 1 / 4).all()


def test_rows_sum_to_one_and_their_variance_shrinks_with_moves():
    rng = np.random.default_rng(0)
    rows = rng.dirichlet(np.ones(3), size=(8, 3, 2))
    few, many = (moves.rows(rng.multinomial(total, rows)) for total in (5, 500))
    assert few[0].sum(axis=-1) == pytest.approx(1)
    assert (few[1] > 0).all()
    assert (many[1] > 0).all()
    assert many[1].max() < few[1].mean()
    assert many[0] == pytest.approx(rows, abs=0.1)


def test_the_order_of_the_arms_makes_no_difference():
    rng = np.random.default_rng(1)
    visits = rng.multinomial(20, rng.dirichlet(np.ones(3), size=(7, 3, 2)))
    order = rng.permutation(7)
    mean, variance = moves.rows(visits)
    mixed_mean, mixed_variance = moves.rows(visits[order])
    assert mixed_mean == pytest.approx(mean[order])
    assert mixed_variance == pytest.approx(variance[order])


def test_classes_of_many_arms_are_found_from_some_and_their_rows_block_by_block(monkeypatch):
    rng = np.random.default_rng(11)
    kinds = rng.dirichlet(np.ones(3), size=(2, 3, 2))
    truth = kinds[rng.integers(2, size=300)]
    visits = rng.multinomial(rng.poisson(8, size=(300, 3, 2)), truth)
    visits[::10] = 0  # never seen moving: nothing is found from them
    whole = moves.rows(visits)
    monkeypatch.setattr(moves, "MOST_AT_ONCE", 120)
    few = moves.sample(visits.reshape(300, 6, 3), np.random.default_rng(0))
    assert len(few) == 120
    assert visits[few].any(axis=(1, 2, 3)).all()
    blocks = moves.rows(visits, rng=np.random.default_rng(0))
    assert blocks[0].sum(axis=3) == pytest.approx(1)
    assert np.sqrt(np.mean((blocks[0] - whole[0]) ** 2)) < 0.02
    error = [np.sqrt(np.mean((mean - truth) ** 2)) for mean in (blocks[0], whole[0])]
    assert error[0] < 1.3 * error[1]
    again = moves.rows(visits, rng=np.random.default_rng(0))
    assert blocks[0].tobytes() == again[0].tobytes()


def two_kinds(rng, n_arms=20, total=4):
    """Moves of arms of two kinds that come one after the other, and which is of which."""
    kind = np.repeat([0, 1], n_arms // 2)
    rows = rng.dirichlet(np.ones(3), size=(2, 3, 2))[kind]
    return rng.multinomial(total, rows), rows, kind


def noise(rng, n_arms):
    texts = [[f"{rng.integers(3)}x", f"{rng.normal():.3f}"] for _ in range(n_arms)]
    return columns.read(("noise", "number"), texts).each


def test_a_column_that_tells_the_kinds_is_found_among_noise_and_used():
    rng = np.random.default_rng(3)
    visits, rows, kind = two_kinds(rng)
    named = columns.category("kind", ["ab"[k] for k in kind])
    known = columns.Columns((*noise(rng, 20), named), 20)
    matters = moves.which_columns(visits, known)
    assert matters["kind"] > 0.9
    assert max(matters["noise"], matters["number"]) < 0.3
    error = [
        np.sqrt(np.mean((moves.rows(visits, given)[0] - rows) ** 2)) for given in (None, known)
    ]
    assert error[1] < error[0]


def test_columns_of_noise_do_little_harm_and_are_believed_not_to_matter():
    rng = np.random.default_rng(4)
    visits, rows, _ = two_kinds(rng, total=8)
    known = columns.Columns(noise(rng, 20), 20)
    assert max(moves.which_columns(visits, known).values()) < 0.3
    error = [
        np.sqrt(np.mean((moves.rows(visits, given)[0] - rows) ** 2)) for given in (None, known)
    ]
    assert error[1] < error[0] + 0.02


def gradual(rng, n_arms=80, total=6):
    """Moves of arms whose chance to get up rises with a number, and their rows."""
    x = rng.normal(size=n_arms)
    up = 1 / (1 + np.exp(-1.2 * x[:, None, None] - np.array([[-0.5, 0.3], [0.2, 0.6]])))
    rows = np.stack([1 - up, up], axis=-1)
    return rng.multinomial(total, rows), rows, x


def test_a_number_that_acts_gradually_is_learnt_by_regression():
    rng = np.random.default_rng(5)
    visits, rows, x = gradual(rng)
    known = columns.Columns((columns.Column("age", "number", x),), 80)
    found = moves.explanations(visits.reshape(80, 4, 2), known, ordered=True)
    best = max(found, key=lambda one: one.evidence)
    assert isinstance(best, moves.Gradual)
    assert moves.which_columns(visits, known)["age"] > 0.99
    error = [
        np.sqrt(np.mean((moves.rows(visits, given)[0] - rows) ** 2)) for given in (None, known)
    ]
    assert error[1] < 0.7 * error[0]


def test_missing_values_are_a_class_of_their_own_and_the_middle_of_a_number():
    rng = np.random.default_rng(6)
    visits, _, x = gradual(rng)
    x[:5] = np.nan
    ward = columns.category("ward", ["" if n % 7 == 0 else "AB"[n % 2] for n in range(80)])
    known = columns.Columns((columns.Column("age", "number", x), ward), 80)
    mean, variance = moves.rows(visits, known)
    assert np.isfinite(mean).all()
    assert mean.sum(axis=-1) == pytest.approx(1)
    assert (variance > 0).all()
    assert set(moves.labels_of(ward)) == {0, 1, 2}
    assert set(moves.labels_of(known.each[0])[:5]) == {0}


def test_a_number_with_few_values_makes_a_class_of_each_and_others_make_halves():
    few = columns.Column("stage", "number", np.array([1.0, 2, 3, 1, 2, np.nan]))
    many = columns.Column("age", "number", np.arange(10.0))
    assert moves.labels_of(few).tolist() == [1, 2, 3, 1, 2, 0]
    assert moves.labels_of(many).tolist() == [1] * 5 + [2] * 5


def test_groups_are_a_column_and_not_the_last_word():
    rng = np.random.default_rng(7)
    visits, rows, kind = two_kinds(rng)

    def error(groups):
        known = columns.together(None, groups, 20)
        return np.sqrt(np.mean((moves.rows(visits, known)[0] - rows) ** 2))

    right, wrong = tuple("ab"[k] for k in kind), ("a", "b") * 10
    assert error(right) <= error(None) + 1e-3
    assert error(wrong) <= error(None) + 0.02


def test_explanations_of_many_arms_are_found_from_some_with_columns_too(monkeypatch):
    rng = np.random.default_rng(8)
    visits, rows, kind = two_kinds(rng, n_arms=300, total=5)
    texts = ["ab"[k] for k in kind]
    texts[7] = "rare"
    named = columns.category("kind", texts)
    known = columns.Columns((named, *noise(rng, 300)), 300)
    whole, _ = moves.rows(visits, known)
    monkeypatch.setattr(moves, "MOST_AT_ONCE", 100)
    blocks, _ = moves.rows(visits, known, rng=np.random.default_rng(0))
    assert np.sqrt(np.mean((blocks - whole) ** 2)) < 0.03
    assert np.sqrt(np.mean((blocks - rows) ** 2)) < 0.1


@pytest.mark.parametrize("ordered", [False, True])
def test_without_moves_columns_tell_nothing(ordered):
    rng = np.random.default_rng(9)
    nothing = np.zeros((20, 3, 2, 3), dtype=int)
    known = columns.Columns(noise(rng, 20), 20)
    mean, _ = moves.rows(nothing, known, ordered=ordered)
    assert mean == pytest.approx(np.broadcast_to(mean[0], mean.shape))


def test_a_class_where_everybody_was_helped_is_not_believed_to_fall_without_help():
    """30 students, all helped in week 1: the best off gain least from help in week 2."""
    rng = np.random.default_rng(10)
    states = rng.integers(3, size=30)
    then = np.minimum(2, states + (rng.random(30) < 0.5))
    visits = np.zeros((30, 3, 2, 3), dtype=int)
    visits[np.arange(30), states, ACT, then] = 1
    mean = dynamics.calibrated(visits, ordered=True).mean
    gain = (mean[:, :, ACT] - mean[:, :, WAIT]) @ np.arange(3)
    assert (gain[:, 2] < gain[:, :2].min(axis=1)).all()


HELPED_IN_WEEK_1 = {
    "help lifts half of them": lambda rng, s: np.minimum(2, s + (rng.random(30) < 0.5)),
    "help lifts nearly all": lambda rng, s: np.minimum(2, s + (rng.random(30) < 0.9)),
    "all stay where they are": lambda rng, s: s.copy(),
    "they end anywhere": lambda rng, s: rng.choice(3, size=30, p=[0.2, 0.3, 0.5]),
}


@pytest.mark.parametrize("then", HELPED_IN_WEEK_1.values(), ids=HELPED_IN_WEEK_1)
def test_where_everybody_was_helped_the_next_list_is_not_of_the_best_off(then):
    """A class of 30, all helped in week 1, 7 places in week 2."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        learner = Dopl(30, 3, 7, horizon=1, seed=seed, ordered=True)
        learner.replan()
        states = rng.integers(3, size=30)
        now = then(rng, states)
        learner.count_moves(states, np.ones(30, dtype=int), now)
        learner.replan()
        best_off = (now[learner.activate(now, 0)] == 2).sum()
        assert best_off == max(0, 7 - (now < 2).sum())


def next_list(seen):
    """How many of each state [S] are on the list of 8 of 45 people; seen: [S, A, S'] moves."""
    learner, S = Dopl(45, len(seen), 8, horizon=1, ordered=True), len(seen)
    rng = np.random.default_rng(0)
    for s, a in np.ndindex(S, 2):
        then = np.repeat(np.arange(S), seen[s][a])
        who = rng.permutation(np.arange(len(then)) % 45)
        np.add.at(learner.visits, (who, s, a, then), 1)
    learner.replan()
    states = np.arange(45) % S
    return np.bincount(states[learner.activate(states, 0)], minlength=S)


BY_CHANCE = [[6, 6, 6], [4, 3, 3]]  # moves without and with help: help seems to do nothing
KEPT_BY_CHANCE = [[10, 9, 7], [1, 1, 4]]  # 4 of 6 stay with help, 7 of 26 without


@pytest.mark.parametrize("middle", [BY_CHANCE, [[10, 10, 10], [0, 0, 0]]])
def test_where_people_move_at_random_a_handful_of_moves_makes_no_list_of_the_best_off(middle):
    """A clinic of 45 after two weeks of 8 places."""
    assert next_list([BY_CHANCE, middle, KEPT_BY_CHANCE])[2] == 0


@pytest.mark.parametrize("kept", [[[20, 20, 20], [2, 2, 16]], [[100, 60, 40], [2, 3, 45]]])
def test_many_moves_bring_the_best_off_on_the_list(kept):
    """Help keeps 80 or 90 of 100 in the best state, 33 or 20 without, and does nothing else."""
    nothing = [[34, 33, 33], [34, 33, 33]]
    assert next_list([nothing, nothing, kept]).tolist() == [0, 0, 8]


def test_help_that_nobody_has_seen_is_believed_to_do_half_of_what_it_can_in_every_state():
    """People move at random without help, so help can do as much in each state."""
    visits = np.zeros((30, 3, 2, 3), dtype=int)
    visits[:, :, WAIT] = [1, 1, 1]
    mean = dynamics.calibrated(visits, ordered=True).mean
    gain = ((mean[:, :, ACT] - mean[:, :, WAIT]) @ np.arange(3)).mean(axis=0)
    assert gain == pytest.approx(EFFECT * (2 - mean[0, :, WAIT] @ np.arange(3)), abs=0.03)
