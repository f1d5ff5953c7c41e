"""Each step of the pooling of rows, against what it says it computes."""

import itertools

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp
from scipy.stats import betabinom, dirichlet_multinomial

from dopl_core.learning import latent_classes as classes
from dopl_core.learning.latent_classes import ALONE, CLASS_STRENGTHS, STRENGTHS

K, J = len(STRENGTHS), len(CLASS_STRENGTHS)


def moves_of(rng, rows, total):
    """[N, R, S] moves of arms with these rows."""
    return rng.multinomial(total, rows).astype(float)


def two_kinds(rng, n_arms=6, total=40, R=3):
    """Moves of arms of which the first half always goes to state 0, the others to state 1."""
    rows = np.zeros((n_arms, R, 3))
    rows[: n_arms // 2] = [0.9, 0.05, 0.05]
    rows[n_arms // 2 :] = [0.05, 0.9, 0.05]
    return moves_of(rng, rows, total)


def test_arms_without_moves_may_do_anything():
    mean, variance = classes.rows(np.zeros((5, 2, 2, 2), dtype=int))
    assert mean == pytest.approx(1 / 2)
    assert (variance > 0.5 * 1 / 12).all()  # a flat Dirichlet's is 1/12
    assert (variance < 1 / 4).all()


def test_rows_sum_to_one_and_their_variance_shrinks_with_moves():
    rng = np.random.default_rng(0)
    rows = rng.dirichlet(np.ones(3), size=(8, 3, 2))
    few, many = (classes.rows(rng.multinomial(total, rows)) for total in (5, 500))
    assert few[0].sum(axis=-1) == pytest.approx(1)
    assert (few[1] > 0).all()
    assert (many[1] > 0).all()
    assert many[1].max() < few[1].mean()
    assert many[0] == pytest.approx(rows, abs=0.1)


def test_the_order_of_the_arms_makes_no_difference():
    rng = np.random.default_rng(1)
    visits = rng.multinomial(20, rng.dirichlet(np.ones(3), size=(7, 3, 2)))
    order = rng.permutation(7)
    mean, variance = classes.rows(visits)
    mixed_mean, mixed_variance = classes.rows(visits[order])
    assert mixed_mean == pytest.approx(mean[order])
    assert mixed_variance == pytest.approx(variance[order])


def test_a_mixture_has_the_moments_of_draws_from_its_parts():
    w, mean, variance = np.array([0.2, 0.8]), np.array([[1.0], [3.0]]), np.array([[0.5], [0.1]])
    mixed, spread = classes.mix(w, mean, variance)
    assert mixed == pytest.approx(0.2 * 1 + 0.8 * 3)
    assert spread == pytest.approx(0.2 * (0.5 + 1) + 0.8 * (0.1 + 9) - mixed**2)


def test_an_arm_without_moves_tells_nothing_of_its_class():
    n = np.zeros((1, 2, 3))
    alpha = STRENGTHS[:, None, None, None] * np.full((1, 2, 3), 1 / 3)
    assert not classes.independent_worth(n).any()
    assert not classes.expected_tables(n, alpha, np.ones((1, 1))).any()
    assert classes.log_likelihood(n, alpha) == pytest.approx(0)


def test_one_move_is_one_draw_from_the_class():
    n = np.array([[[0.0, 1.0, 0.0]]])
    alpha = STRENGTHS[:, None, None, None] * np.array([[[0.2, 0.3, 0.5]]])
    assert classes.independent_worth(n) == pytest.approx(np.broadcast_to(n, (K, 1, 1, 3)))
    tables = classes.expected_tables(n, alpha, np.ones((1, 1)))
    assert tables == pytest.approx(np.broadcast_to(n, (K, 1, 1, 3)))


def test_moves_are_worth_as_many_draws_as_have_the_variance_of_their_shares():
    Z, p = 30, 0.3
    worth = classes.independent_worth(np.array([[[Z * p, Z * (1 - p)]]])).sum(axis=3)[:, 0, 0]
    variance = [betabinom(Z, k * p, k * (1 - p)).var() / Z**2 for k in STRENGTHS]
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
    alpha = STRENGTHS[:, None, None, None] * np.full((2, 1, 2), 0.5)
    whole = [classes.expected_tables(n[[i]], alpha[:, :1], np.ones((1, 1)))[:, 0] for i in (0, 1)]
    tables = classes.expected_tables(n, alpha, np.array([[0.25, 0.75], [1.0, 0.0]]))
    assert tables[:, 0] == pytest.approx(0.25 * whole[0] + whole[1])
    assert tables[:, 1] == pytest.approx(0.75 * whole[0])


def test_each_further_class_starts_at_the_arm_explained_worst():
    counts = np.full((5, 2, 3), 10.0)
    counts[3] = [0, 0, 30]
    shares = classes.sortings(counts, None)
    assert [share.shape for share in shares] == [(5, 1), (5, 2), (5, 3), (5, 4)]
    assert shares[1][:, 1] == pytest.approx([0, 0, 0, 1, 0], abs=1e-6)
    for share in shares:
        assert share.sum(axis=1) == pytest.approx(1)


def test_there_are_no_more_classes_than_arms():
    assert [share.shape[1] for share in classes.sortings(np.ones((2, 2, 2)), None)] == [1, 2]
    assert [share.shape[1] for share in classes.sortings(np.ones((1, 2, 2)), None)] == [1]


def test_named_groups_are_one_more_start_if_there_are_several():
    counts = two_kinds(np.random.default_rng(2))
    one, several = ("a",) * 6, ("x", "x", "x", "b", "b", "b")
    assert len(classes.sortings(counts, one)) == len(classes.sortings(counts, None))
    *_, named = classes.sortings(counts, several)
    assert named == pytest.approx(np.repeat([[0.0, 1.0], [1.0, 0.0]], 3, axis=0), abs=1e-6)


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
    alpha = STRENGTHS[:, None, None, None] * m
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
    alpha = STRENGTHS[:, None, None, None] * m
    tables = classes.expected_tables(n, alpha, share)
    evidence = classes.row_evidence(
        classes.log_likelihood(n, alpha), share, m, tables, classes.class_rows(tables)[2]
    )
    assert evidence == pytest.approx(np.full((K, 1), np.log(1 / 3)))


def test_the_evidence_of_two_moves_is_close_to_the_integral():
    n, share = np.array([[[1.0, 1.0]]]), np.ones((1, 1))
    m = classes.starting_rows(classes.independent_worth(n), share)
    alpha = STRENGTHS[:, None, None, None] * m
    tables = classes.expected_tables(n, alpha, share)
    evidence = classes.row_evidence(
        classes.log_likelihood(n, alpha), share, m, tables, classes.class_rows(tables)[2]
    )
    # E[p (1 - p)] = k / (k + 1) E[m (1 - m)], that is j / (j + 1) E[m0 (1 - m0)], and that is 1/6.
    about_all = np.mean(CLASS_STRENGTHS / (CLASS_STRENGTHS + 1)) / 6
    exact = np.log(STRENGTHS / (STRENGTHS + 1) * about_all)
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
        np.zeros((2, 1, 3)), strengths, share, class_mean, class_variance
    )
    assert mean[0] == pytest.approx(class_mean[0, 0])
    assert mean[1] == pytest.approx(0.3 * class_mean[0, 0] + 0.7 * class_mean[0, 1])
    assert (variance > 0.01).all()


def test_the_row_of_an_arm_has_the_moments_of_its_posterior():
    """One class whose row is known: the posterior is Dir(k m + n)."""
    n, m = np.array([[[3.0, 1.0, 0.0]]]), np.array([0.5, 0.3, 0.2])
    for place, k in enumerate(STRENGTHS):
        strengths = np.eye(K)[:, [place]]
        class_mean = np.broadcast_to(m, (K, 1, 1, 3))
        mean, variance = classes.arm_rows(n, strengths, np.ones((1, 1)), class_mean, 0 * class_mean)
        alpha = k * m + n[0, 0]
        assert mean[0, 0] == pytest.approx(alpha / alpha.sum())
        expected = alpha * (alpha.sum() - alpha) / (alpha.sum() ** 2 * (alpha.sum() + 1))
        assert variance[0, 0] == pytest.approx(expected)


def test_the_row_of_all_arms_is_not_that_of_the_class_seen_most():
    tables = np.array([[[900.0, 100.0]], [[100000.0, 900000.0]]])[None]
    m0, draws = classes.row_of_all(tables)
    assert m0.shape == draws.shape == (J, 1, 1, 1, 2)
    assert m0.sum(axis=-1) == pytest.approx(1)
    pooled = tables[..., 0].sum() / tables.sum()
    by_strength = m0[:, 0, 0, 0, 0]
    assert 0.5 > by_strength[0] > by_strength[1] > by_strength[2] > pooled
    # The more classes differ, the fewer draws from the row of all their many tables are worth.
    assert (np.diff(draws.sum(axis=-1), axis=0) > 0).all()


def test_one_draw_of_one_class_is_one_draw_from_the_row_of_all():
    tables = np.array([0.0, 1.0, 0.0])[None, None, None]
    m0, draws = classes.row_of_all(tables)
    assert draws == pytest.approx(np.broadcast_to(tables, draws.shape))
    assert m0[..., 1] == pytest.approx(2 / 4)
    assert classes.class_evidence(tables, m0, draws) == pytest.approx(np.log(1 / 3))


def test_classes_that_differ_are_evidence_of_little_strength():
    alike, different = np.full((1, 2, 1, 2), 50.0), np.array([[[90.0, 10]], [[10.0, 90]]])[None]
    best = [
        classes.class_evidence(tables, *classes.row_of_all(tables))[:, 0, 0].argmax()
        for tables in (alike, different)
    ]
    assert best == [J - 1, 0]


def test_class_rows_by_strength_lie_between_their_tables_and_the_row_of_all():
    tables = np.array([[[30.0, 10.0]], [[5.0, 35.0]]])[None]
    _, draws = classes.row_of_all(tables)
    mean, variance = classes.class_rows_by_strength(tables, draws)
    assert mean.shape == variance.shape == (J, 1, 2, 1, 2)
    assert mean.sum(axis=-1) == pytest.approx(1)
    apart = mean[:, 0, 0, 0, 0] - mean[:, 0, 1, 0, 0]
    assert 30 / 40 - 5 / 40 > apart[0] > apart[1] > apart[2] > 0


def test_class_rows_are_mixed_over_strengths_by_their_evidence():
    tables = np.random.default_rng(10).uniform(0, 20, size=(K, 2, 3, 4))
    mean, variance, evidence = classes.class_rows(tables)
    m0, draws = classes.row_of_all(tables)
    by_strength = classes.class_evidence(tables, m0, draws)
    means, variances = classes.class_rows_by_strength(tables, draws)
    assert evidence == pytest.approx(logsumexp(by_strength, axis=0) - np.log(J))
    for k, r in np.ndindex(K, 3):
        w = np.exp(by_strength[:, k, r]) / np.exp(by_strength[:, k, r]).sum()
        expected = classes.mix(w, means[:, k, :, r], variances[:, k, :, r])
        assert mean[k, :, r] == pytest.approx(expected[0])
        assert variance[k, :, r] == pytest.approx(expected[1])


def test_two_kinds_of_arms_are_evidence_of_two_classes():
    n = two_kinds(np.random.default_rng(11), n_arms=12)
    worth = classes.independent_worth(n)
    evidence = [classes.fit(n, worth, share)[2] for share in classes.sortings(worth[2], None)]
    assert np.argmax(evidence) == 1


def test_arms_all_alike_are_evidence_of_one_class():
    rng = np.random.default_rng(12)
    n = moves_of(rng, np.broadcast_to([0.6, 0.3, 0.1], (12, 3, 3)), 40)
    worth = classes.independent_worth(n)
    evidence = [classes.fit(n, worth, share)[2] for share in classes.sortings(worth[2], None)]
    assert np.argmax(evidence) == 0


def test_classes_of_many_arms_are_found_from_some_and_their_rows_block_by_block(monkeypatch):
    rng = np.random.default_rng(11)
    kinds = rng.dirichlet(np.ones(3), size=(2, 3, 2))
    truth = kinds[rng.integers(2, size=300)]
    visits = rng.multinomial(rng.poisson(8, size=(300, 3, 2)), truth)
    visits[::10] = 0  # never seen moving: nothing is found from them
    whole = classes.rows(visits)
    monkeypatch.setattr(classes, "MOST_AT_ONCE", 120)
    few = classes.sample(visits.reshape(300, 6, 3), np.random.default_rng(0))
    assert len(few) == 120
    assert visits[few].any(axis=(1, 2, 3)).all()
    blocks = classes.rows(visits, None, np.random.default_rng(0))
    assert blocks[0].sum(axis=3) == pytest.approx(1)
    assert np.sqrt(np.mean((blocks[0] - whole[0]) ** 2)) < 0.02
    error = [np.sqrt(np.mean((mean - truth) ** 2)) for mean in (blocks[0], whole[0])]
    assert error[0] < 1.3 * error[1]
    again = classes.rows(visits, None, np.random.default_rng(0))
    assert blocks[0].tobytes() == again[0].tobytes()
