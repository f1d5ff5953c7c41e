"""Each step of the pooling of rows, against what it says it computes."""

import itertools

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import betabinom, dirichlet_multinomial

from dopl_core.learning.transitions import latent_classes as classes
from dopl_core.learning.transitions.class_rows import CLASS_CONCENTRATIONS
from dopl_core.learning.transitions.latent_classes import ALONE, CONCENTRATIONS

K, J = len(CONCENTRATIONS), len(CLASS_CONCENTRATIONS)


def moves_of(rng, rows, total):
    """[N, R, S] moves of arms with these rows."""
    return rng.multinomial(total, rows).astype(float)


def two_kinds(rng, n_arms=6, total=40, R=3):
    """Moves of arms of which the first half always goes to state 0, the others to state 1."""
    rows = np.zeros((n_arms, R, 3))
    rows[: n_arms // 2] = [0.9, 0.05, 0.05]
    rows[n_arms // 2 :] = [0.05, 0.9, 0.05]
    return moves_of(rng, rows, total)


def test_a_mixture_has_the_moments_of_draws_from_its_parts():
    w, mean, variance = np.array([0.2, 0.8]), np.array([[1.0], [3.0]]), np.array([[0.5], [0.1]])
    mixed, spread = classes.mix(w, mean, variance)
    assert mixed == pytest.approx(0.2 * 1 + 0.8 * 3)
    assert spread == pytest.approx(0.2 * (0.5 + 1) + 0.8 * (0.1 + 9) - mixed**2)


def test_an_arm_without_moves_tells_nothing_of_its_class():
    n = np.zeros((1, 2, 3))
    alpha = CONCENTRATIONS[:, None, None, None] * np.full((1, 2, 3), 1 / 3)
    assert not classes.independent_worth(n).any()
    assert not classes.expected_tables(n, alpha, np.ones((1, 1))).any()
    assert classes.log_likelihood(n, alpha) == pytest.approx(0)


def test_one_move_is_one_draw_from_the_class():
    n = np.array([[[0.0, 1.0, 0.0]]])
    alpha = CONCENTRATIONS[:, None, None, None] * np.array([[[0.2, 0.3, 0.5]]])
    assert classes.independent_worth(n) == pytest.approx(np.broadcast_to(n, (K, 1, 1, 3)))
    tables = classes.expected_tables(n, alpha, np.ones((1, 1)))
    assert tables == pytest.approx(np.broadcast_to(n, (K, 1, 1, 3)))


def test_moves_are_worth_as_many_draws_as_have_the_variance_of_their_shares():
    Z, p = 30, 0.3
    worth = classes.independent_worth(np.array([[[Z * p, Z * (1 - p)]]])).sum(axis=3)[:, 0, 0]
    variance = [betabinom(Z, k * p, k * (1 - p)).var() / Z**2 for k in CONCENTRATIONS]
    assert p * (1 - p) / worth == pytest.approx(variance)


def test_tables_are_as_many_as_a_chinese_restaurant_has_on_average():
    alpha, guests = 1.7, 12
    new_table = [alpha / (alpha + seated) for seated in range(guests)]
    prior = np.full((K, 1, 1, 2), alpha)
    tables = classes.expected_tables(np.array([[[guests, 0.0]]]), prior, np.ones((1, 1)))
    assert tables[:, 0, 0, 0] == pytest.approx(sum(new_table))
    assert tables[:, 0, 0, 1] == pytest.approx(0)


def test_tables_go_to_the_classes_by_the_arms_shares():
    n = np.array([[[4.0, 1.0]], [[0.0, 3.0]]])
    alpha = CONCENTRATIONS[:, None, None, None] * np.full((2, 1, 2), 0.5)
    whole = [classes.expected_tables(n[[i]], alpha[:, :1], np.ones((1, 1)))[:, 0] for i in (0, 1)]
    tables = classes.expected_tables(n, alpha, np.array([[0.25, 0.75], [1.0, 0.0]]))
    assert tables[:, 0] == pytest.approx(0.25 * whole[0] + whole[1])
    assert tables[:, 1] == pytest.approx(0.75 * whole[0])


def test_each_further_class_starts_at_the_arm_explained_worst():
    counts = np.full((5, 2, 3), 10.0)
    counts[3] = [0, 0, 30]
    shares = classes.sortings(counts)
    assert [share.shape for share in shares] == [(5, 1), (5, 2), (5, 3), (5, 4)]
    assert shares[1][:, 1] == pytest.approx([0, 0, 0, 1, 0], abs=1e-6)
    for share in shares:
        assert share.sum(axis=1) == pytest.approx(1)


def test_there_are_no_more_classes_than_arms():
    assert [share.shape[1] for share in classes.sortings(np.ones((2, 2, 2)))] == [1, 2]
    assert [share.shape[1] for share in classes.sortings(np.ones((1, 2, 2)))] == [1]


def test_sorting_tells_kinds_apart_from_a_poor_start():
    counts = two_kinds(np.random.default_rng(3))
    m = np.array([[[0.4, 0.3, 0.3]], [[0.3, 0.4, 0.3]]]).repeat(3, axis=1)
    share, m = classes.sort(counts.reshape(6, -1), m, np.full((3, 3), 0.1))
    assert share == pytest.approx(np.repeat(np.eye(2), 3, axis=0), abs=1e-6)
    assert m[:, :, :2] == pytest.approx(
        np.broadcast_to([[[0.9, 0.05]], [[0.05, 0.9]]], (2, 3, 2)), abs=0.1
    )


def test_a_multinomial_likelihood_is_the_sum_over_moves_of_log_probabilities():
    rng = np.random.default_rng(4)
    counts, m = rng.integers(5, size=(3, 2, 3)), rng.dirichlet(np.ones(3), size=(4, 2))
    likelihood = classes.multinomial(counts.reshape(3, -1).astype(float), m)
    for n, c in np.ndindex(3, 4):
        expected = sum(counts[n, r, s] * np.log(m[c, r, s]) for r, s in np.ndindex(2, 3))
        assert likelihood[n, c] == pytest.approx(expected)


def test_rows_of_classes_are_the_shares_of_their_arms_moves():
    counts = np.array([[3.0, 1.0], [1.0, 1.0], [0.0, 4.0]])
    share = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    m = classes.rows_of_classes(counts, share, np.array([[0.5, 0.5]]))
    assert m[:, 0] == pytest.approx(np.array([[4.0, 2.0], [1.0, 5.0]]) / 6)


def test_starting_rows_of_a_class_without_arms_are_those_of_all():
    rng = np.random.default_rng(5)
    worth = classes.independent_worth(two_kinds(rng))
    share = np.tile([1.0, 0.0], (6, 1))
    m = classes.starting_rows(worth, share)
    assert m.shape == (K, 2, 3, 3)
    assert m.sum(axis=3) == pytest.approx(1)
    assert m[:, 1] == pytest.approx(np.broadcast_to(m[0, 1], m[:, 1].shape))


def test_the_likelihood_is_that_of_one_sequence_of_a_dirichlet_multinomial():
    rng = np.random.default_rng(6)
    n, m = rng.integers(6, size=(3, 2, 3)), rng.dirichlet(np.ones(3), size=(K, 4, 2))
    alpha = CONCENTRATIONS[:, None, None, None] * m
    likelihood = classes.log_likelihood(n.astype(float), alpha)
    assert likelihood.shape == (K, 3, 4, 2)
    for k, i, c, r in np.ndindex(likelihood.shape):
        sequences = gammaln(n[i, r].sum() + 1) - gammaln(n[i, r] + 1).sum()
        expected = dirichlet_multinomial(alpha[k, c, r], n[i, r].sum()).logpmf(n[i, r]) - sequences
        assert likelihood[k, i, c, r] == pytest.approx(expected)


def test_arms_are_resorted_to_the_class_that_explains_their_moves():
    likelihood = np.zeros((K, 3, 2, 2))
    likelihood[:, 0, 1] = likelihood[:, 1:, 0] = -50
    share = classes.resorted(likelihood, *classes.sorting(np.full((3, 2), 0.5), likelihood))
    assert share == pytest.approx(np.array([[1, 0], [0, 1], [0, 1]]))


def test_an_arm_that_no_class_explains_better_goes_rather_to_the_larger():
    share = np.array([[1.0, 0.0]] * 5 + [[0.0, 1.0]] + [[0.5, 0.5]])
    nothing = np.zeros((K, 7, 2, 2))
    resorted = classes.resorted(nothing, *classes.sorting(share, nothing))
    assert resorted.sum(axis=1) == pytest.approx(1)
    assert (resorted[:, 0] > resorted[:, 1]).all()


def test_the_evidence_of_a_first_move_is_one_among_the_states():
    n, share = np.array([[[0.0, 1.0, 0.0]]]), np.ones((1, 1))
    m = np.broadcast_to([0.2, 0.3, 0.5], (K, 1, 1, 3))
    alpha = CONCENTRATIONS[:, None, None, None] * m
    tables = classes.expected_tables(n, alpha, share)
    likelihood = classes.log_likelihood(n, alpha)[:, 0, 0]
    _, evidence = classes.rows_about_all(likelihood, m, tables, tied=False)
    assert evidence == pytest.approx(np.full((K, 1), np.log(1 / 3)))


def test_the_evidence_of_two_moves_is_close_to_the_integral():
    n, share = np.array([[[1.0, 1.0]]]), np.ones((1, 1))
    m = classes.starting_rows(classes.independent_worth(n), share)
    alpha = CONCENTRATIONS[:, None, None, None] * m
    tables = classes.expected_tables(n, alpha, share)
    likelihood = classes.log_likelihood(n, alpha)[:, 0, 0]
    _, evidence = classes.rows_about_all(likelihood, m, tables, tied=False)
    # E[p (1 - p)] = k / (k + 1) E[m (1 - m)], that is j / (j + 1) E[m0 (1 - m0)], and that is 1/6.
    about_all = np.mean(CLASS_CONCENTRATIONS / (CLASS_CONCENTRATIONS + 1)) / 6
    exact = np.log(CONCENTRATIONS / (CONCENTRATIONS + 1) * about_all)
    assert evidence[:, 0] == pytest.approx(exact, abs=0.2)


def test_all_sizes_of_classes_are_as_likely():
    """Over all ways to sort 4 arms into 2 classes the evidence sums to 1, and 2! for the names."""
    sortings = [np.eye(2)[list(names)] for names in itertools.product(range(2), repeat=4)]
    evidence = np.exp([classes.sorting_evidence(share) for share in sortings])
    assert evidence.sum() == pytest.approx(2)
    first = np.array([share[:, 0].sum() for share in sortings])
    for size in range(5):
        assert evidence[first == size].sum() == pytest.approx(2 / 5)


def test_strengths_of_rows_are_summed_over_the_common_and_their_own():
    log_evidence = np.random.default_rng(7).normal(size=(K, 3))
    w, evidence = classes.row_strengths(log_evidence)
    joint = np.zeros((K, 3))
    total = 0.0
    for common in range(K):
        prior = np.full(K, ALONE / K) + (1 - ALONE) * np.eye(K)[common]
        each = prior[:, None] * np.exp(log_evidence)  # [strength, row]
        chance = each.sum(axis=0).prod() / K
        joint += chance * each / each.sum(axis=0)
        total += chance
    assert w == pytest.approx(joint / total)
    assert evidence == pytest.approx(np.log(total))


def test_strengths_are_known_however_small_the_evidence():
    log_evidence = np.random.default_rng(8).normal(size=(K, 3))
    w, evidence = classes.row_strengths(log_evidence)
    tiny, low = classes.row_strengths(log_evidence - 5000)
    assert tiny == pytest.approx(w)
    assert low == pytest.approx(evidence - 15000)


def test_an_arm_without_moves_is_like_its_class():
    rng = np.random.default_rng(9)
    class_mean = np.broadcast_to(rng.dirichlet(np.ones(3), size=(2, 1)), (K, 2, 1, 3))
    strengths = np.full((K, 1), 1 / K)
    share = np.array([[1.0, 0.0], [0.3, 0.7]])
    class_variance = np.full((K, 2, 1, 3), 0.01)
    mean, variance = classes.arm_rows(
        np.zeros((2, 1, 3)), strengths, share, class_mean[:, None], class_variance[:, None]
    )
    assert mean[0] == pytest.approx(class_mean[0, 0])
    assert mean[1] == pytest.approx(0.3 * class_mean[0, 0] + 0.7 * class_mean[0, 1])
    assert (variance > 0.01).all()


def test_the_row_of_an_arm_has_the_moments_of_its_posterior():
    """One class whose row is known: the posterior is Dir(k m + n)."""
    n, m = np.array([[[3.0, 1.0, 0.0]]]), np.array([0.5, 0.3, 0.2])
    for place, k in enumerate(CONCENTRATIONS):
        strengths = np.eye(K)[:, [place]]
        class_mean = np.broadcast_to(m, (K, 1, 1, 3))
        known = class_mean[:, None], 0 * class_mean[:, None]
        mean, variance = classes.arm_rows(n, strengths, np.ones((1, 1)), *known)
        alpha = k * m + n[0, 0]
        assert mean[0, 0] == pytest.approx(alpha / alpha.sum())
        expected = alpha * (alpha.sum() - alpha) / (alpha.sum() ** 2 * (alpha.sum() + 1))
        assert variance[0, 0] == pytest.approx(expected)


def test_two_kinds_of_arms_are_evidence_of_two_classes():
    n = two_kinds(np.random.default_rng(11), n_arms=12)
    worth = classes.independent_worth(n)
    evidence = [classes.fit(n, worth, share)[2] for share in classes.sortings(worth[2])]
    assert np.argmax(evidence) == 1


def test_arms_all_alike_are_evidence_of_one_class():
    rng = np.random.default_rng(12)
    n = moves_of(rng, np.broadcast_to([0.6, 0.3, 0.1], (12, 3, 3)), 40)
    worth = classes.independent_worth(n)
    evidence = [classes.fit(n, worth, share)[2] for share in classes.sortings(worth[2])]
    assert np.argmax(evidence) == 0
