"""Rows of classes about the row of all arms, and help as an effect on how arms move anyway."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import dirichlet_multinomial

from dopl_core.learning.transitions import class_rows, latent_classes
from dopl_core.learning.transitions.class_rows import CLASS_CONCENTRATIONS
from dopl_core.learning.transitions.latent_classes import CONCENTRATIONS

K, J = len(CONCENTRATIONS), len(CLASS_CONCENTRATIONS)


def flat(tables):
    return class_rows.flat_prior(*tables.shape[2:])


def test_the_row_of_all_arms_is_not_that_of_the_class_seen_most():
    tables = np.array([[[900.0, 100.0]], [[100000.0, 900000.0]]])[None]
    m0, draws = class_rows.row_of_all(tables, flat(tables))
    assert m0.shape == draws.shape == (J, 1, 1, 1, 2)
    assert m0.sum(axis=-1) == pytest.approx(1)
    pooled = tables[..., 0].sum() / tables.sum()
    by_strength = m0[:, 0, 0, 0, 0]
    assert 0.5 > by_strength[0] > by_strength[1] > by_strength[2] > pooled
    # The more classes differ, the fewer draws from the row of all their many tables are worth.
    assert (np.diff(draws.sum(axis=-1), axis=0) > 0).all()


def test_one_draw_of_one_class_is_one_draw_from_the_row_of_all():
    tables = np.array([0.0, 1.0, 0.0])[None, None, None]
    m0, draws = class_rows.row_of_all(tables, flat(tables))
    assert draws == pytest.approx(np.broadcast_to(tables, draws.shape))
    assert m0[..., 1] == pytest.approx(2 / 4)
    assert class_rows.class_evidence(tables, m0, draws, flat(tables)) == pytest.approx(
        np.log(1 / 3)
    )


def test_classes_that_differ_are_evidence_of_little_strength():
    alike, different = np.full((1, 2, 1, 2), 50.0), np.array([[[90.0, 10]], [[10.0, 90]]])[None]
    best = [
        class_rows.class_evidence(
            tables, *class_rows.row_of_all(tables, flat(tables)), flat(tables)
        )[:, 0, 0].argmax()
        for tables in (alike, different)
    ]
    assert best == [J - 1, 0]


def test_class_rows_by_strength_lie_between_their_tables_and_the_row_of_all():
    tables = np.array([[[30.0, 10.0]], [[5.0, 35.0]]])[None]
    _, draws = class_rows.row_of_all(tables, flat(tables))
    mean, variance = class_rows.class_rows_by_concentration(tables, draws, flat(tables))
    assert mean.shape == variance.shape == (J, 1, 2, 1, 2)
    assert mean.sum(axis=-1) == pytest.approx(1)
    apart = mean[:, 0, 0, 0, 0] - mean[:, 0, 1, 0, 0]
    assert 30 / 40 - 5 / 40 > apart[0] > apart[1] > apart[2] > 0


def test_class_rows_are_mixed_over_strengths_by_their_evidence():
    tables = np.random.default_rng(10).uniform(0, 20, size=(K, 2, 3, 4))
    mean, variance, evidence = class_rows.about_all(tables, flat(tables))
    m0, draws = class_rows.row_of_all(tables, flat(tables))
    by_strength = class_rows.class_evidence(tables, m0, draws, flat(tables))
    means, variances = class_rows.class_rows_by_concentration(tables, draws, flat(tables))
    assert evidence == pytest.approx(logsumexp(by_strength, axis=0) - np.log(J))
    for k, r in np.ndindex(K, 3):
        w = np.exp(by_strength[:, k, r]) / np.exp(by_strength[:, k, r]).sum()
        expected = latent_classes.mix(w, means[:, k, :, r], variances[:, k, :, r])
        assert mean[k, :, r] == pytest.approx(expected[0])
        assert variance[k, :, r] == pytest.approx(expected[1])


def test_the_evidence_of_one_class_seen_once_is_that_of_its_prior():
    tables, prior = np.array([0.0, 1.0, 0.0])[None, None, None], np.array([[1.0, 6.0, 3.0]])
    m0, draws = class_rows.row_of_all(tables, prior)
    assert m0[..., 1] == pytest.approx(7 / 11)
    found = class_rows.class_evidence(tables, m0, draws, prior)
    expected = dirichlet_multinomial(prior[0], 1).logpmf([0, 1, 0])
    assert found == pytest.approx(np.full((J, 1, 1), expected))


def nothing_seen(S=3):
    return class_rows.of_help(np.zeros((K, 1, 2 * S, S)), np.zeros((K, 2 * S)))


def test_without_data_people_mostly_stay_and_help_does_good_where_it_can():
    rows = nothing_seen().mean[0, 0]
    assert rows.sum(axis=-1) == pytest.approx(1)
    wait, act = rows[::2], rows[1::2]
    assert (wait.argmax(axis=1) == np.arange(3)).all()
    gain = (act - wait) @ np.arange(3)
    assert (np.diff(gain) < 0).all()
    assert (gain > 0).all()


def test_rows_with_help_follow_those_without():
    tables = np.zeros((K, 1, 6, 3))
    tables[:, :, 0] = [0, 400, 0]  # from the worst state, without help, to the middle
    found = class_rows.of_help(tables, np.zeros((K, 6))).mean[0, 0]
    assert found[0, 1] > 0.9
    assert found[1, 1] > nothing_seen().mean[0, 0, 1, 1] + 0.1
    assert found[2:] == pytest.approx(nothing_seen().mean[0, 0, 2:])


def test_moves_outweigh_what_was_believed_of_help():
    tables = np.zeros((K, 1, 4, 2))
    tables[:, 0, 0] = tables[:, 0, 1] = [800, 200]  # help changes nothing in the worst state
    wait, act = class_rows.of_help(tables, np.zeros((K, 4))).mean[0, 0, :2]
    assert act[1] == pytest.approx(wait[1], abs=0.03)
