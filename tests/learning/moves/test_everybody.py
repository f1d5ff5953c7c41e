"""Rows of everybody: what holds whatever is believed beforehand."""

from itertools import product
from math import exp

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dopl_core.learning import effects
from dopl_core.learning.bandit import ACT, WAIT, FloatArray
from dopl_core.learning.effects import KINDS, HelpKind, TrialEffect
from dopl_core.learning.moves import everybody
from dopl_core.learning.moves.everybody import (
    SIZES,
    TRIALS_OF_UNSEEN,
    UNSEEN,
    Everybody,
    dirichlet_covariance,
    dirichlet_multinomial,
    learnt,
    normalised,
    size_prior,
)
from dopl_core.learning.moves.model import dirichlet


def moved(seed: int, total: float, n_states: int = 3) -> FloatArray:
    """Moves [s, a, t] of rows drawn at random; some rows have none."""
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.full(n_states, 0.7), size=(n_states, 2))
    return rng.multinomial(rng.poisson(total, size=(n_states, 2)), rows).astype(float)


def test_the_probability_of_moves_is_the_product_of_polyas_urn() -> None:
    """Each move puts another ball of its kind into the urn."""
    alpha, counts = [0.5, 2.0, 1.5], [2, 0, 3]
    urn, product_ = list(alpha), 1.0
    for outcome, count in enumerate(counts):
        for _ in range(count):
            product_ *= urn[outcome] / sum(urn)
            urn[outcome] += 1
    found = dirichlet_multinomial(np.array(counts, dtype=float), np.array(alpha))
    assert found == pytest.approx(np.log(product_))


@settings(max_examples=30, derandomize=True)
@given(st.lists(st.floats(0.01, 50), min_size=2, max_size=4), st.integers(0, 5))
def test_probabilities_of_all_sequences_of_moves_sum_to_one(alpha: list[float], total: int) -> None:
    sequences = product(range(len(alpha)), repeat=total)
    counts = [np.bincount(np.array(one, dtype=int), minlength=len(alpha)) for one in sequences]
    each = dirichlet_multinomial(np.array(counts, dtype=float), np.array(alpha))
    assert sum(exp(log) for log in each) == pytest.approx(1)


def test_the_probability_of_no_moves_is_one() -> None:
    assert dirichlet_multinomial(np.zeros((4, 3)), np.full((4, 3), 0.2)) == pytest.approx(0)


def test_the_covariance_of_a_dirichlet_row_is_that_of_draws() -> None:
    rng = np.random.default_rng(0)
    rows, weight = rng.dirichlet(np.ones(3), size=2), np.array([2.0, 30.0])
    found = dirichlet_covariance(rows, weight)
    for row, size, covariance in zip(rows, weight, found, strict=True):
        draws = dirichlet(np.tile(size * row, (50_000, 1)), rng)
        assert covariance == pytest.approx(np.cov(draws.T), abs=0.003)
        assert covariance.sum(axis=1) == pytest.approx(0)


def test_normalised_rows_sum_to_one_and_keep_their_ratios() -> None:
    rows = normalised(np.array([[[1.0, 3.0], [2.0, 2.0]]]))
    assert rows.tolist() == [[[0.25, 0.75], [0.5, 0.5]]]


@settings(max_examples=40, derandomize=True)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.0, 0.5, 5.0, 5000.0]),
    st.integers(2, 5),
    st.sampled_from(KINDS),
    st.booleans(),
)
def test_rows_are_distributions_whatever_was_seen(
    seed: int, total: float, n_states: int, kind: str, ordered: bool
) -> None:
    found = learnt(moved(seed, total, n_states), kind, ordered=ordered)  # type: ignore[arg-type]
    assert found.rows.shape == (n_states, 2, n_states)
    assert (found.rows > 0).all()
    assert found.rows.sum(axis=2) == pytest.approx(1)
    assert found.chance.sum(axis=0) == pytest.approx(1)
    variance = found.variance()
    assert (variance > 0).all()
    assert (variance <= found.rows * (1 - found.rows) + 1e-9).all()
    change, covariance = found.effect()
    assert change == pytest.approx(found.rows[:, ACT] - found.rows[:, WAIT])
    assert change.sum(axis=1) == pytest.approx(0)
    assert covariance.sum(axis=2) == pytest.approx(0)
    assert (np.linalg.eigvalsh(covariance) > -1e-9).all()


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_with_many_moves_rows_approach_the_shares_that_were_seen(seed: int, ordered: bool) -> None:
    moves = 1 + moved(seed, 20_000)
    found = learnt(moves, ordered=ordered)
    assert found.rows == pytest.approx(normalised(moves), abs=0.03)
    assert np.sqrt(found.variance()).max() < 0.02


@pytest.mark.parametrize("ordered", [False, True])
def test_moves_make_rows_more_certain(ordered: bool) -> None:
    few, many = (learnt(1 + moved(4, total), ordered=ordered) for total in (3, 300))
    assert (many.variance() < few.variance()).all()
    traces = [np.trace(one.effect()[1], axis1=1, axis2=2) for one in (few, many)]
    assert (traces[1] < traces[0]).all()


def test_where_states_have_no_order_help_is_expected_to_do_nothing_beforehand() -> None:
    found = learnt(np.zeros((3, 2, 3)), ordered=False)
    assert found.effect()[0] == pytest.approx(0)
    alone = moved(5, 30)
    alone[:, ACT] = 0
    assert learnt(alone, ordered=False).effect()[0] == pytest.approx(0)


def test_where_states_have_no_order_their_names_make_no_difference() -> None:
    moves, order = moved(6, 10), np.array([2, 0, 1])
    found = learnt(moves, ordered=False).rows
    other = learnt(moves[order][:, :, order], ordered=False).rows
    assert other == pytest.approx(found[order][:, :, order])


def test_where_states_are_ordered_help_is_expected_to_do_good_beforehand() -> None:
    found = learnt(np.zeros((4, 2, 4)))
    change, covariance = found.effect()
    up = np.arange(4)
    gain, sd = change @ up, np.sqrt(up @ covariance @ up)
    assert (gain[:-1] > 0).all()
    assert (gain < 3 * sd).all()  # and may as well do nothing


def test_where_only_help_was_seen_it_is_not_believed_to_have_done_everything() -> None:
    """Of people who were all helped, some would have moved up anyway."""
    moves = np.zeros((3, 2, 3))
    moves[:, ACT] = [[50, 30, 20], [20, 50, 30], [10, 20, 70]]
    found = learnt(moves)
    assert found.rows[:, ACT] == pytest.approx(normalised(moves[:, ACT]), abs=0.1)
    change, covariance = found.effect()
    up = np.arange(3)
    assert (np.abs(change @ up) < 3 * np.sqrt(up @ covariance @ up)).all()
    nothing = learnt(np.zeros((3, 2, 3)))
    towards = np.abs(found.rows - normalised(moves[:, ACT])[:, None])[:, WAIT].sum()
    assert towards < np.abs(nothing.rows - normalised(moves[:, ACT])[:, None])[:, WAIT].sum()


# --- how large the effect of help is: levels, and what trials found


def chance_of_sizes(found: Everybody) -> FloatArray:
    """The posterior probability [sizes, s] of each size of the effect of help."""
    goals_sizes_about = found.chance.reshape(-1, len(SIZES), len(everybody.ABOUT), len(found.rows))
    return np.asarray(goals_sizes_about.sum(axis=(0, 2)))


def helped_up(shares: dict[int, float], n_states: int = 3) -> FloatArray:
    """Moves where help lifts these shares of the people in some states to the best one."""
    moves = np.zeros((n_states, 2, n_states))
    for s, share in shares.items():
        moves[s, WAIT] = 1000 * normalised(1.0 + 4 * np.eye(n_states)[0])
        moves[s, ACT] = (1 - share) * moves[s, WAIT] + share * 1000 * np.eye(n_states)[-1]
    return moves


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("waited", [0, 50])
def test_before_anybody_was_helped_sizes_have_their_prior(kind: HelpKind, waited: int) -> None:
    moves = np.zeros((4, 2, 4))
    moves[:, WAIT] = waited
    found = chance_of_sizes(learnt(moves, kind))
    assert found == pytest.approx(size_prior(4, kind), abs=1e-3)
    assert SIZES @ found == pytest.approx(SIZES @ size_prior(4, kind), abs=1e-3)


def test_before_anybody_was_helped_expected_sizes_are_near_their_prior() -> None:
    for kind in KINDS:
        found = chance_of_sizes(learnt(np.zeros((3, 2, 3)), kind))
        assert SIZES @ found == pytest.approx(SIZES @ size_prior(3, kind), abs=0.05)


@pytest.mark.parametrize("state", [0, 1])
def test_the_more_help_does_in_one_state_the_more_is_expected_of_it_in_others(state: int) -> None:
    shares = (0.0, 0.3, 0.7)
    found = [learnt(helped_up({state: share})) for share in shares]
    size = np.array([SIZES @ chance_of_sizes(one) for one in found])
    gain = np.array([one.effect()[0] @ np.arange(3) for one in found])
    assert size[:, state] == pytest.approx(shares, abs=0.15)
    for other in {0, 1, 2} - {state}:
        assert (np.diff(size[:, other]) > 0).all()
        assert (np.diff(gain[:, other]) > 0).all()
        assert size[-1, other] > size[0, other] + 0.1
        assert size[-1, other] < size[-1, state]  # drawn in to what is usual


def test_what_help_does_in_a_state_is_told_by_its_own_moves_where_these_are_many() -> None:
    """Help does much in the worst state and nothing in the middle one."""
    both = SIZES @ chance_of_sizes(learnt(helped_up({0: 0.7, 1: 0.0})))
    assert both[0] > 0.5
    assert both[1] < 0.1


def test_where_help_does_nothing_in_one_state_less_is_expected_of_it_in_others() -> None:
    nothing = SIZES @ chance_of_sizes(learnt(helped_up({0: 0.0})))
    before = SIZES @ chance_of_sizes(learnt(np.zeros((3, 2, 3))))
    assert (nothing < before).all()


def trial(help_: HelpKind, state: str, effect: float, error: float | None = None) -> TrialEffect:
    """A trial that found this."""
    return TrialEffect("A", help_, "1 week", state, effect, "B", error)  # type: ignore[arg-type]


@pytest.fixture
def trials(monkeypatch: pytest.MonkeyPatch) -> list[TrialEffect]:
    """The table of trials, which a test may fill."""
    found: list[TrialEffect] = []
    monkeypatch.setattr(effects, "trials", lambda: tuple(found))
    return found


def prior_from_trials(kind: HelpKind, n_states: int = 3) -> FloatArray:
    """The prior of sizes, not that of another table which was kept."""
    return np.asarray(size_prior.__wrapped__(n_states, kind))


def test_the_prior_of_sizes_weighs_trials_by_hand(trials: list[TrialEffect]) -> None:
    """A trial of 0.3 with no error, and of -0.2, which counts as 0, with the error 0.24."""
    trials += [trial("call", "worst", 0.3), trial("call", "worst", -0.2, 0.24)]
    width = [0.05, 0.05, 0.075, 0.1, 0.15, 0.2, 0.2]  # of the part of all sizes nearest to each
    first = [w * exp(-((e - 0.3) ** 2) / 2 / 0.02) for w, e in zip(width, SIZES, strict=True)]
    second = [w * exp(-(e**2) / 2 / (0.24**2 + 0.01)) for w, e in zip(width, SIZES, strict=True)]
    expected = [
        (4 * unseen + a / sum(first) + b / sum(second)) / 6
        for unseen, a, b in zip(UNSEEN, first, second, strict=True)
    ]
    assert TRIALS_OF_UNSEEN == 4
    found = prior_from_trials("call")
    assert found[:, 0] == pytest.approx(expected)
    assert found[:, 1] == pytest.approx(UNSEEN)


def test_trials_of_large_effects_raise_what_a_kind_of_help_is_expected_to_do(
    trials: list[TrialEffect],
) -> None:
    for state in ("worst", "middle", "best"):
        trials += [trial("call", state, 0.6, 0.05), trial("message", state, 0.0, 0.05)] * 3
    call, message, visit, other = (
        SIZES @ prior_from_trials(kind) for kind in ("call", "message", "visit", "other")
    )
    assert (call > visit + 0.1).all()
    assert (message < visit - 0.03).all()
    assert visit == pytest.approx(SIZES @ np.repeat(UNSEEN[:, None], 3, axis=1))
    assert ((message < other) & (other < call)).all()  # of which all trials count


def test_trials_of_the_middle_state_count_for_all_states_between(
    trials: list[TrialEffect],
) -> None:
    trials.append(trial("visit", "middle", 0.5))
    found = prior_from_trials("visit", 5)
    assert found.shape == (len(SIZES), 5)
    assert found.sum(axis=0) == pytest.approx(1)
    assert SIZES @ found[:, 1] > SIZES @ found[:, 0]
    assert found[:, 1].tolist() == found[:, 2].tolist() == found[:, 3].tolist()
    assert found[:, 0].tolist() == found[:, 4].tolist() == pytest.approx(UNSEEN.tolist())
    assert prior_from_trials("visit", 2).tolist() == np.stack([UNSEEN, UNSEEN], axis=1).tolist()


@settings(max_examples=30, derandomize=True)
@given(st.integers(2, 7), st.sampled_from(KINDS))
def test_chances_of_explanations_given_a_level_sum_to_one_in_every_state(
    n_states: int, kind: HelpKind
) -> None:
    kernels, about, level, prior = everybody.explanations(n_states, kind)
    assert np.exp(level).sum() == pytest.approx(1)
    assert np.exp(prior).sum(axis=1) == pytest.approx(1)
    assert kernels.sum(axis=3) == pytest.approx(1)
    assert len(kernels) == len(about) == prior.shape[1]
