"""Chains: at most one state a week, and effects of help of the promised shapes and sizes."""

import numpy as np
import pytest
from numpy.typing import NDArray

from dopl_core.experiments.worlds.chains import CHAINS, EFFECTS, draw_chain, scattered, shape
from dopl_core.experiments.worlds.drawn import Drawn

SEEDS = range(6)
Floats = NDArray[np.float64]


def up(moves: Floats) -> Floats:
    """The chances [..., S] to rise by one state, of rows [..., S, S']; 0 in the best."""
    return np.append(moves.diagonal(1, -2, -1), np.zeros((*moves.shape[:-2], 1)), axis=-1)


def down(moves: Floats) -> Floats:
    """The chances [..., S] to fall by one state; 0 in the worst."""
    return np.append(np.zeros((*moves.shape[:-2], 1)), moves.diagonal(-1, -2, -1), axis=-1)


def gains(drawn: Drawn) -> tuple[Floats, Floats]:
    """What help adds to the chance to rise, and takes from the chance to fall: [N, S]."""
    wait, act = drawn.bandit.transitions.transpose(2, 0, 1, 3)
    return up(act) - up(wait), down(wait) - down(act)


@pytest.mark.parametrize("name", CHAINS)
def test_a_person_moves_at_most_one_state_a_week(name: str) -> None:
    for seed in SEEDS:
        drawn = CHAINS[name](seed)
        for moves in (drawn.bandit.transitions, *(() if drawn.weeks is None else drawn.weeks)):
            far = np.abs(np.subtract.outer(*[np.arange(moves.shape[1])] * 2)) > 1
            assert moves.swapaxes(1, 2)[..., far].max(initial=0) == 0
            assert moves.sum(axis=3) == pytest.approx(1)
            assert moves.min() >= 0


@pytest.mark.parametrize("name", CHAINS)
def test_sizes_and_values_are_as_defined(name: str) -> None:
    bandits = [CHAINS[name](seed).bandit for seed in range(20)]
    for bandit in bandits:
        assert 30 <= bandit.n_arms <= 100
        assert 0.1 - 1 / 60 <= bandit.budget / bandit.n_arms <= 1 / 3 + 1 / 60  # rounded
        if name != "chain_values":
            assert np.allclose(bandit.rewards, np.linspace(0, 1, bandit.n_states))
    most = 4 if name == "chain_wearing" else 6
    assert {bandit.n_states for bandit in bandits} == set(range(3, most + 1))
    assert len({bandit.budget for bandit in bandits}) > 5


@pytest.mark.parametrize("effect", EFFECTS)
def test_without_help_everybody_has_their_own_chances(effect: str) -> None:
    wait = CHAINS[f"chain_{effect}"](0).bandit.transitions[:, :, 0]
    rises, falls = up(wait)[:, :-1], down(wait)[:, 1:]
    for chances, low, high in ((rises, 0.05, 0.25), (falls, 0.1, 0.4)):
        assert np.allclose(chances, chances[:, :1])  # the same in all states
        assert low <= chances.min() < chances.max() <= high
        assert chances[:, 0].std() > (high - low) / 5


def test_the_shapes_of_effects() -> None:
    assert shape("even", 4).tolist() == [1, 1, 1, 0]
    assert shape("worst", 3).tolist() == [1, 0.5, 0]
    assert shape("worst", 6) == pytest.approx([1, 2 / 3, 1 / 3, 0, 0, 0])
    assert shape("middle", 5).tolist() == [0.05, 1, 1, 1, 0.05]
    assert shape("keeping", 4).tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("effect", ["even", "worst", "middle"])
@pytest.mark.parametrize("seed", SEEDS)
def test_help_lifts_by_the_shape_of_its_effect(effect: str, seed: int) -> None:
    drawn = CHAINS[f"chain_{effect}"](seed)
    rise, fall = gains(drawn)
    where = shape(effect, drawn.bandit.n_states)  # type: ignore[arg-type]
    size = rise.max(axis=1, keepdims=True)
    assert 0.1 <= size.min() < size.max() <= 0.3 + 1e-12
    assert np.allclose(rise[:, :-1], (size * where)[:, :-1])
    falls = down(drawn.bandit.transitions[:, :, 0])
    assert np.allclose(fall, np.minimum(size * where, falls))  # no fall is below 0


@pytest.mark.parametrize("seed", SEEDS)
def test_keeping_makes_falls_rarer_in_the_best_two_states_only(seed: int) -> None:
    drawn = CHAINS["chain_keeping"](seed)
    rise, fall = gains(drawn)
    falls = down(drawn.bandit.transitions[:, :, 0])
    assert np.allclose(rise, 0)
    assert np.allclose(fall[:, :-2], 0)
    rarer = fall[:, -2:] / falls[:, -2:]
    assert 1 / 3 <= rarer.min() < rarer.max() <= 1 / 2 + 1e-12


def test_a_small_effect_is_a_tenth_and_none_is_nothing() -> None:
    for seed in SEEDS:
        small = np.abs(np.concatenate(gains(CHAINS["chain_small"](seed))))
        assert 0.003 < small.max() <= 0.03 + 1e-12
        assert np.allclose(gains(CHAINS["chain_none"](seed)), 0)


def test_a_small_effect_is_any_of_the_four() -> None:
    lifts = [(gains(CHAINS["chain_small"](seed))[0] > 1e-9).any(axis=0) for seed in range(30)]
    found = {(bool(lift.any()), bool(lift[0]), bool(lift[-2])) for lift in lifts}
    assert found >= {(False, False, False), (True, True, True)}  # keeping, and even or middle
    assert (True, True, False) in found  # worst


def test_values_differ_by_a_factor_of_a_tenth_to_one() -> None:
    for seed in SEEDS:
        drawn = CHAINS["chain_values"](seed)
        values = drawn.bandit.rewards
        factor = values[:, -1]
        assert 0.1 <= factor.min() < 0.25 < 0.85 < factor.max() <= 1
        assert np.allclose(values, factor[:, None] * np.linspace(0, 1, values.shape[1]))
        assert gains(drawn)[0].max() >= 0.1  # even or middle: it lifts


def test_late_help_works_in_the_week_after_and_not_in_its_own() -> None:
    drawn = CHAINS["chain_late"](0)
    assert drawn.hidden is not None
    S, moves = drawn.bandit.n_states, drawn.bandit.transitions
    for before in range(2):  # helped in the week before
        for now in range(2):
            rows = drawn.hidden.transitions[:, before * S : (before + 1) * S, now]
            then = rows.reshape(len(rows), S, 2, S)
            assert np.allclose(then[:, :, now], moves[:, :, before])
            assert not then[:, :, 1 - now].any()
    assert np.array_equal(drawn.hidden.rewards[:, S:], drawn.bandit.rewards)


@pytest.mark.parametrize(
    ("past", "times"), [(0b0000, 0), (0b0001, 1), (0b1000, 1), (0b1010, 2), (0b1111, 4)]
)
def test_help_wears_by_half_with_each_time_in_the_last_four_weeks(past: int, times: int) -> None:
    drawn = CHAINS["chain_wearing"](0)
    assert drawn.hidden is not None
    S, moves = drawn.bandit.n_states, drawn.bandit.transitions
    for now in range(2):
        rows = drawn.hidden.transitions[:, past * S : (past + 1) * S, now]
        then = rows.reshape(len(rows), S, 16, S)[:, :, (2 * past + now) % 16]
        effect = now * 0.5**times * (moves[:, :, 1] - moves[:, :, 0])
        assert np.allclose(then, moves[:, :, 0] + effect)


def test_a_wave_lifts_in_the_first_half_of_a_period_and_lowers_in_the_second() -> None:
    drawn, chain = CHAINS["chain_wave"](1), draw_chain("chain_wave", 1)
    assert drawn.weeks is not None
    assert (len(drawn.weeks), drawn.misread, drawn.repeats) == (13, 0.1, True)
    assert np.allclose(drawn.weeks.mean(axis=0), drawn.bandit.transitions)
    S = chain.moves.shape[1]
    for week, step in ((3, 1), (10, -1)):
        share = 0.4 * abs(np.sin(2 * np.pi * week / 13))
        goal = np.eye(S)[(np.arange(S) + step).clip(0, S - 1)][:, None]
        assert np.allclose(drawn.weeks[week - 1], (1 - share) * chain.moves + share * goal)


def test_own_ways_scatter_as_after_twenty_moves() -> None:
    rows = draw_chain("own_ways", 0).moves[0]
    own = scattered(rows, 20_000, np.random.default_rng(0))
    assert np.abs(own.mean(axis=0) - rows).max() < 0.01
    variance = ((own - rows) ** 2).mean() / (rows * (1 - rows)).mean()
    assert variance == pytest.approx(1 / 21, rel=0.05)  # of a Dirichlet with 20 in all
    people = CHAINS["own_ways"](0).bandit.transitions
    assert np.allclose(people.mean(axis=0), rows, atol=0.12)
    assert np.unique(people[:, 0, 0, 0]).size == len(people)
