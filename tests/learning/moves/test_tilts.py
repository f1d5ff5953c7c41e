"""Tilts of columns and persons: each step against what it says it computes."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

from dopl_core.learning.bandit import FloatArray
from dopl_core.learning.columns import Column, category, standardised
from dopl_core.learning.moves import tilts
from dopl_core.learning.moves.tilts import Shared, Tilts

S, R = 3, 6
PERSON_SD, HELP_SD = 0.4, 0.2


def standing(n_people: int, rng: np.random.Generator) -> Column:
    """A column of standardised numbers."""
    return Column("age", "number", standardised(rng.normal(size=n_people)))


def wards(n_people: int, rng: np.random.Generator) -> Column:
    """A column of three categories that has nothing to do with moves."""
    return category("ward", ["ABC"[at] for at in rng.integers(3, size=n_people)])


def moved(
    seed: int, n_people: int = 20, total: int = 6, strong: float = 0.6
) -> tuple[FloatArray, FloatArray, tuple[Column, Column]]:
    """Moves [n, r, t] of people, everybody's rows [r, t], and a column that matters and another.

    strong: the effect of the number on the tilt of all rows;  total: moves of each row
    """
    rng = np.random.default_rng(seed)
    age, ward = standing(n_people, rng), wards(n_people, rng)
    rows = rng.dirichlet(np.full(S, 3.0), size=R)
    own = rng.normal(size=(n_people, 2)) * [PERSON_SD, HELP_SD]
    eta = strong * age.values[:, None] + own @ tilts.personal_terms(R).T
    counts = rng.multinomial(total, tilts.tilted(rows, eta)).astype(float)
    return counts, rows, (age, ward)


def begun(counts: FloatArray, rows: FloatArray, columns: Sequence[Column] = ()) -> Tilts:
    """No tilts yet, of all people."""
    return tilts.start(counts, rows, columns, np.arange(len(counts)), len(counts))


def fitted(counts: FloatArray, rows: FloatArray, columns: tuple[Column, ...]) -> Tilts:
    """The tilts of all people."""
    return tilts.fit(begun(counts, rows, columns), counts, rows)


def settled(counts: FloatArray, rows: FloatArray, columns: tuple[Column, ...] = ()) -> Tilts:
    """The tilts where Newton's method has ended, at the variances that were learnt."""
    found = fitted(counts, rows, columns)
    for _ in range(5):
        found = tilts._newton(found, counts, rows)
    return found


def penalised(found: Tilts, counts: FloatArray, rows: FloatArray, flat: FloatArray) -> float:
    """The log-likelihood of all terms, less their penalty at the variances of `found`."""
    n_terms = len(found.shared.beta)
    beta, personal = flat[:n_terms], flat[n_terms:].reshape(-1, 2)
    eta = personal @ tilts.personal_terms(R).T
    if n_terms:
        eta += found.features @ beta.reshape(-1, 2 + R) @ tilts.terms(R).T
    size = (beta**2 / found.shared.prior).sum() + (personal**2 / found.shared.personal).sum()
    return float((counts * np.log(tilts.tilted(rows, eta))).sum() - size / 2)


def draws(found: Tilts, count: int) -> FloatArray:
    """Draws [D, n, r] of the tilts."""
    rng = np.random.default_rng(0)
    return found.draw(found.shared.draw_off(count, rng), rng)


def flat_terms(found: Tilts) -> FloatArray:
    """All terms of columns, then all of persons."""
    return np.concatenate([found.shared.beta, found.personal.ravel()])


# --- rows and their terms


@settings(max_examples=50, derandomize=True)
@given(st.integers(2, 6), st.floats(-5, 5), st.integers(0, 2**32 - 1))
def test_tilting_is_undone_by_the_opposite_tilt_and_raises_the_expected_score(
    n_states: int, tilt: float, seed: int
) -> None:
    rows = np.random.default_rng(seed).dirichlet(np.ones(n_states), size=4)
    there = tilts.tilted(rows, np.full(4, tilt))
    assert there.sum(axis=1) == pytest.approx(1)
    assert tilts.tilted(there, np.full(4, -tilt)) == pytest.approx(rows)
    gain = (there - rows) @ tilts.scores(n_states)
    assert (gain * np.sign(tilt) >= -1e-12).all()


def test_log_odds_of_the_best_state_against_the_worst_rise_by_twice_the_tilt() -> None:
    rows = np.array([[0.5, 0.3, 0.2]])
    there = tilts.tilted(rows, np.array([0.7]))[0]
    assert np.log(there[2] / there[0]) - np.log(0.2 / 0.5) == pytest.approx(1.4)
    assert np.log(there[1] / there[0]) - np.log(0.3 / 0.5) == pytest.approx(0.7)


def test_a_feature_has_a_term_for_all_rows_one_for_help_and_both_for_each_state() -> None:
    assert tilts.terms(4).tolist() == [
        [1, 0, 1, 0, 0, 0],  # state 0 without help
        [1, 1, 1, 0, 1, 0],  # state 0 with help
        [1, 0, 0, 1, 0, 0],
        [1, 1, 0, 1, 0, 1],
    ]
    assert tilts.personal_terms(4).tolist() == [[1, 0], [1, 1], [1, 0], [1, 1]]


def test_features_are_numbers_about_zero_and_missing_values_are_zero() -> None:
    age = Column("age", "number", np.array([1.0, -1.0, np.nan, 0.0]))
    ward = category("ward", ["A", "B", "", "C"])
    risk = category("risk", ["low", "high", "low", "high"])
    x, of = tilts.features([age, ward, risk])
    assert of.tolist() == [0, 1, 1, 1, 2]
    assert x[:, 0].tolist() == [1, -1, 0, 0]
    assert x[2, :4].tolist() == [0, 0, 0, 0]
    assert x.sum(axis=0) == pytest.approx(0)
    assert np.abs(x[:, 4]) == pytest.approx(1)


def test_a_rare_category_has_no_huge_feature() -> None:
    texts = ["rare"] + ["usual"] * 999
    x, _ = tilts.features([category("kind", texts)])
    assert np.abs(x).max() < 5


# --- Newton's method


@pytest.mark.parametrize("seed", range(2))
def test_all_terms_are_those_of_the_largest_penalised_likelihood(seed: int) -> None:
    counts, rows, columns = moved(seed)
    found = fitted(counts, rows, columns)
    start = flat_terms(found) * 0
    best = minimize(
        lambda flat: -penalised(found, counts, rows, flat), start, options={"gtol": 1e-4}
    )
    sd = np.sqrt(
        np.concatenate(
            [found.shared.covariance.diagonal(), found.covariance[:, [0, 1], [0, 1]].ravel()]
        )
    )
    assert (np.abs(flat_terms(found) - best.x) < 0.1 * sd).all()
    assert flat_terms(settled(counts, rows, columns)) == pytest.approx(best.x, abs=2e-3)


def test_personal_terms_alone_are_those_of_the_largest_penalised_likelihood() -> None:
    counts, rows, _ = moved(2)
    found = settled(counts, rows)
    best = minimize(lambda flat: -penalised(found, counts, rows, flat), np.zeros(40))
    assert flat_terms(found) == pytest.approx(best.x, abs=2e-3)


def dense(found: Tilts, counts: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The slope [c + 2 n] of the penalised likelihood, its Hessian, and the terms of the tilts.

    The last are [n, r, c + 2 n], for all terms of columns and then of persons.
    """
    x, N, C = tilts.scores(S), len(counts), len(found.shared.beta)
    of_terms = np.zeros((N, R, C + 2 * N))
    for n, r in np.ndindex(N, R):
        of_terms[n, r, :C] = np.outer(found.features[n], tilts.terms(R)[r]).ravel()
        of_terms[n, r, C + 2 * n : C + 2 * n + 2] = tilts.personal_terms(R)[r]
    rows = np.full((R, S), 1 / S)
    q = tilts.tilted(rows, found.eta)
    total = counts.sum(axis=2)
    penalty = np.concatenate([found.shared.prior, np.tile(found.shared.personal, N)])
    uphill = counts @ x - total * (q @ x)
    slope = np.einsum("nr,nri->i", uphill, of_terms) - flat_terms(found) / penalty
    weight = total * (q @ x**2 - (q @ x) ** 2)
    hessian = np.einsum("nr,nri,nrj->ij", weight, of_terms, of_terms) + np.diag(1 / penalty)
    return slope, hessian, of_terms


def flat_moved(seed: int, n_people: int) -> tuple[FloatArray, FloatArray, tuple[Column, ...]]:
    """Moves of people where everybody's rows are flat."""
    _, _, columns = moved(seed, n_people)
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(3, rng.dirichlet(np.full(S, 9.0), size=(n_people, R)))
    return counts.astype(float), np.full((R, S), 1 / S), columns


def test_eliminating_personal_terms_gives_the_step_of_a_dense_solve() -> None:
    counts, rows, columns = flat_moved(3, 12)
    found = fitted(counts, rows, columns)
    shared = replace(found.shared, beta=0 * found.shared.beta)
    start = replace(found, shared=shared, eta=0 * found.eta, personal=0 * found.personal)
    slope, hessian, _ = dense(start, counts)
    step = np.linalg.solve(hessian, slope)
    assert np.abs(step).max() < 1  # longer ones are damped
    assert flat_terms(tilts._newton(start, counts, rows)) == pytest.approx(step)


def test_eliminating_personal_terms_gives_the_covariance_of_a_dense_inverse() -> None:
    counts, rows, columns = flat_moved(3, 7)
    found = settled(counts, rows, columns)
    _, hessian, of_terms = dense(found, counts)
    whole, C = np.linalg.inv(hessian), len(found.shared.beta)
    assert found.shared.covariance == pytest.approx(whole[:C, :C], rel=1e-4, abs=1e-9)
    of_tilts = np.einsum("nri,ij,nrj->nr", of_terms, whole, of_terms)
    assert found.variance() == pytest.approx(of_tilts, rel=1e-4)
    meet = -np.einsum("ndc,ce->nde", found.cross, found.shared.covariance)
    assert meet.reshape(14, C) == pytest.approx(whole[C:, :C], rel=1e-3, abs=1e-8)


@pytest.mark.parametrize("with_columns", [False, True])
def test_how_much_people_differ_is_the_mean_square_of_their_terms(with_columns: bool) -> None:
    """Of the posterior of each person, what is not known of columns included."""
    counts, rows, columns = flat_moved(5, 12)
    found = fitted(counts, rows, columns if with_columns else ())
    _, hessian, _ = dense(found, counts)
    variance = np.linalg.inv(hessian).diagonal()[len(found.shared.beta) :].reshape(-1, 2)
    size = (found.personal**2 + variance).sum(axis=0) + tilts.PERSONAL_WORTH * tilts.PERSONAL
    expected = size / (12 + tilts.PERSONAL_WORTH)
    assert found.shared.personal == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("with_columns", [False, True])
def test_further_people_are_judged_as_if_the_model_had_been_learnt_from_them(
    with_columns: bool,
) -> None:
    counts, rows, columns = moved(4, n_people=40)
    found = settled(counts, rows, columns if with_columns else ())
    some = np.array([3, 17, 30])
    other = tilts.of_people(found.shared, counts[some], rows, some)
    sd = np.sqrt(found.variance()[some])
    assert (np.abs(other.eta - found.eta[some]) < 0.2 * sd).all()
    assert np.sqrt(other.variance()) == pytest.approx(sd, rel=0.2)


def test_people_without_moves_have_the_tilts_of_their_columns_alone() -> None:
    counts, rows, columns = moved(5, n_people=60)
    counts[:10] = 0
    found = fitted(counts, rows, columns)
    assert found.personal[:10] == pytest.approx(0, abs=1e-6)
    assert found.covariance[:10].diagonal(axis1=1, axis2=2) == pytest.approx(
        np.tile(found.shared.personal, (10, 1)), rel=0.1
    )
    assert np.corrcoef(found.eta[:10, 0], columns[0].values[:10])[0, 1] > 0.9


def test_moves_that_all_go_up_give_finite_tilts() -> None:
    counts = np.zeros((5, R, S))
    counts[:, :, -1] = 1000
    found = fitted(counts, np.full((R, S), 1 / S), ())
    assert np.isfinite(found.eta).all()
    assert (found.eta > 1).all()


def test_the_order_of_people_changes_no_tilt() -> None:
    counts, rows, (age, ward) = moved(6)
    order = np.random.default_rng(0).permutation(20)
    mixed = tuple(replace(one, values=one.values[order]) for one in (age, ward))
    found, other = fitted(counts, rows, (age, ward)), fitted(counts[order], rows, mixed)
    assert other.eta == pytest.approx(found.eta[order])


# --- draws and variances


@pytest.mark.parametrize("with_columns", [False, True])
def test_draws_have_the_mean_and_the_variance_of_the_tilts(with_columns: bool) -> None:
    counts, rows, columns = moved(7)
    found = fitted(counts, rows, columns if with_columns else ())
    drawn = draws(found, 20_000)
    sd = np.sqrt(found.variance())
    assert drawn.shape == (20_000, 20, R)
    assert (np.abs(drawn.mean(axis=0) - found.eta) < 0.04 * sd).all()
    assert drawn.std(axis=0) / sd == pytest.approx(np.ones((20, R)), abs=0.03)


def test_people_with_equal_columns_have_correlated_draws() -> None:
    counts, rows, (age, _) = moved(8)
    counts[:2] = 0
    age.values[:2] = 2.0
    drawn = draws(fitted(counts, rows, (age,)), 2000)
    assert np.corrcoef(drawn[:, 0, 0], drawn[:, 1, 0])[0, 1] > 0.05
    alone = draws(fitted(counts, rows, ()), 2000)
    assert abs(np.corrcoef(alone[:, 0, 0], alone[:, 1, 0])[0, 1]) < 0.05


# --- what is learnt of variances


def spread_of(found: Tilts, name: str) -> float:
    """The variance that was learnt for the terms of a column, for all rows."""
    number = [column.name for column in found.shared.columns].index(name)
    return float(found.shared.prior[found.shared.of == number][0])


@pytest.mark.parametrize("seed", range(4))
def test_a_column_that_matters_gets_a_variance_and_noise_gets_nearly_none(seed: int) -> None:
    found = fitted(*moved(seed, n_people=100))
    assert spread_of(found, "age") > 0.05
    assert spread_of(found, "ward") < 0.02
    assert found.shared.beta[0] == pytest.approx(0.6, abs=0.25)


def test_how_much_people_differ_is_learnt() -> None:
    rng = np.random.default_rng(9)
    rows = rng.dirichlet(np.full(S, 3.0), size=R)
    learnt = []
    for spread in (0.0, 0.3, 1.0):
        eta = spread * rng.normal(size=(150, 1)) * np.ones(R)
        counts = rng.multinomial(5, tilts.tilted(rows, eta)).astype(float)
        learnt.append(fitted(counts, rows, ()).shared.personal)
    own, response = np.array(learnt).T
    assert own[0] < 0.05
    assert own[1] == pytest.approx(0.09, abs=0.05)
    assert own[2] == pytest.approx(1.0, abs=0.4)
    assert response.max() < 0.1  # all respond alike


def test_own_responses_to_help_are_learnt() -> None:
    rng = np.random.default_rng(10)
    rows = rng.dirichlet(np.full(S, 3.0), size=R)
    response = rng.normal(size=150)
    eta = response[:, None] * (np.arange(R) % 2)
    counts = rng.multinomial(10, tilts.tilted(rows, eta)).astype(float)
    found = fitted(counts, rows, ())
    assert np.corrcoef(found.personal[:, 1], response)[0, 1] > 0.8


def test_without_moves_nothing_is_learnt() -> None:
    _, rows, columns = moved(11)
    found = fitted(np.zeros((20, R, S)), rows, columns)
    assert found.eta == pytest.approx(0)
    assert found.shared.personal == pytest.approx(tilts.PERSONAL)
    assert tilts.matters(found.shared) == pytest.approx({"age": 0.5, "ward": 0.5}, abs=0.01)


def test_the_variance_of_who_is_always_helped_is_given_and_not_learnt() -> None:
    counts, rows, _ = moved(12)
    always = category(tilts.FIXED, ["always", "never"] * 10)
    found = fitted(counts, rows, (always,))
    assert found.shared.prior[0] == tilts.FIXED_VARIANCE
    assert fitted(0 * counts, rows, (always,)).shared.prior[0] == tilts.FIXED_VARIANCE


def test_of_too_many_columns_those_that_go_with_the_moves_are_used() -> None:
    counts, rows, (age, _) = moved(13, n_people=60)
    rng = np.random.default_rng(0)
    noise = [replace(wards(60, rng), name=f"noise {number}") for number in range(40)]
    found = fitted(counts, rows, (*noise[:20], age, *noise[20:]))
    assert "age" in {column.name for column in found.shared.columns}
    assert len(found.shared.beta) <= tilts.MOST_TERMS
    assert found.shared.features.shape == (60, len(found.shared.beta) // (2 + R))


@pytest.mark.parametrize("at", [0, 20, 40])
def test_who_is_always_helped_is_used_whatever_else_goes_with_the_moves(at: int) -> None:
    """Nothing goes with it: all have moved as everybody does, but for other columns."""
    counts, rows, (age, _) = moved(14, n_people=60)
    rng = np.random.default_rng(0)
    others: list[Column] = [replace(standing(60, rng), name=f"{number}") for number in range(39)]
    always = category(tilts.FIXED, ["always", "never"] * 30)
    columns = [*others[:10], age, *others[10:]]
    columns.insert(at, always)
    shared = begun(np.tile(rows * 6, (60, 1, 1)), rows, columns).shared
    assert tilts.FIXED in {column.name for column in shared.columns}
    shared = begun(counts, rows, columns).shared
    names = [column.name for column in shared.columns]
    assert {tilts.FIXED, "age"} <= set(names)
    assert names == [column.name for column in columns if column.name in names]  # in order
    assert len(names) == tilts.MOST_TERMS // (2 + R)
    fixed = shared.prior[shared.of == names.index(tilts.FIXED)]
    assert fixed == pytest.approx(tilts.FIXED_VARIANCE * np.array([1, 1, *[0.2] * 6]))


def test_a_column_of_too_many_categories_leaves_the_places_to_others_that_fit() -> None:
    """Everybody's own name goes best with the moves; it has too many terms, and 30 wards do not."""
    counts, rows, (age, ward) = moved(15, n_people=60)
    name = category("name", [f"person {number}" for number in range(60)])
    of_thirty = category("of thirty", [f"ward {number % 30}" for number in range(60)])
    always = category(tilts.FIXED, ["always", "never"] * 30)
    columns = (name, of_thirty, ward, always, age)
    shared = begun(counts, rows, columns).shared
    assert [column.name for column in shared.columns] == ["of thirty", "ward", tilts.FIXED, "age"]
    assert np.bincount(shared.of).tolist() == [30 * 8, 3 * 8, 8, 8]
    assert shared.features == pytest.approx(tilts.features(columns[1:])[0])


# --- what columns say of those who were seen


def test_what_columns_say_of_those_who_were_seen_is_a_mean_over_their_moves() -> None:
    """Summed by hand; what persons say by their own moves does not count."""
    age = Column("age", "number", np.array([1.0, -0.5, 2.0]))
    rows = np.array([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6], [0.4, 0.4, 0.2]])
    rows = np.concatenate([rows, rows[:2]])
    counts = np.zeros((3, R, S))
    counts[0, 0], counts[1, 0], counts[2, 3] = [3, 1, 0], [0, 0, 2], [1, 1, 1]
    before = begun(counts, rows, (age,))
    beta = np.linspace(-0.6, 0.8, 2 + R)
    now = replace(before, shared=replace(before.shared, beta=beta), personal=np.ones((3, 2)))
    found = tilts.as_columns_say(now, counts, rows)
    always, helped = beta[:2]
    for r, seen in ((0, {0: 4, 1: 2}), (3, {2: 3})):
        s, a = divmod(r, 2)
        tilt = always + a * helped + beta[2 + s] + a * beta[2 + S + s]
        expected = np.zeros(S)
        for person, total in seen.items():
            odds = rows[r] * np.exp(age.values[person] * tilt * np.array([-1, 0, 1]))
            expected += total * odds / odds.sum()
        assert found[r] == pytest.approx(expected / sum(seen.values()) / rows[r])
    unseen = [1, 2, 4, 5]
    assert found[unseen] == pytest.approx(1)
    assert tilts.as_columns_say(before, counts, rows) == pytest.approx(1)


def test_what_columns_say_of_the_whole_of_those_who_were_seen_are_rows() -> None:
    counts, rows, columns = moved(16)
    found = fitted(counts, rows, columns)
    assert (rows * tilts.as_columns_say(found, counts, rows)).sum(axis=1) == pytest.approx(1)


# --- whether columns matter


@settings(max_examples=25, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.floats(0.005, 0.5), st.floats(0, 3))
def test_the_probability_that_a_column_matters_is_by_the_ratio_of_gaussian_evidences(
    seed: int, variance: float, strong: float
) -> None:
    """One number, two states; the information J on its terms and their pull b are given.

    b says as much as seeing y = b / J with the covariance 1 / J.
    """
    rng = np.random.default_rng(seed)
    share = np.array([1.0, 1.0, 0.2, 0.2, 0.2, 0.2])
    root = rng.normal(size=(6, 8))
    J: FloatArray = root @ root.T
    y = strong * rng.normal(size=6)
    prior = variance * share
    covariance = np.asarray(np.linalg.inv(J + np.diag(1 / prior)))
    age = Column("age", "number", np.zeros(2))
    of, beta = np.zeros(6, dtype=int), covariance @ J @ y
    shared = Shared((age,), np.zeros((2, 1)), of, beta, covariance, prior, tilts.PERSONAL)
    noise = np.linalg.inv(J)
    some = multivariate_normal.logpdf(y, cov=noise + tilts.COLUMN_START * np.diag(share))
    log_ratio = some - multivariate_normal.logpdf(y, cov=noise)
    assert tilts.matters(shared)["age"] == pytest.approx(1 / (1 + np.exp(-log_ratio)), abs=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_a_column_that_matters_is_told_from_noise(seed: int) -> None:
    found = settled(*moved(seed, n_people=60, total=4))
    matters = tilts.matters(found.shared)
    assert matters["age"] > 0.95
    assert matters["ward"] < 0.3


def test_noise_is_believed_not_to_matter() -> None:
    found = [fitted(*moved(seed, n_people=60, total=3, strong=0.0)) for seed in range(30)]
    likely = np.array([tilts.matters(one.shared)["ward"] for one in found])
    assert (likely > 0.5).sum() <= 1
