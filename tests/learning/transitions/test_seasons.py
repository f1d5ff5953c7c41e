import numpy as np
import pytest

from dopl_core.learning.bandit import UNKNOWN
from dopl_core.learning.dopl import Dopl
from dopl_core.learning.transitions import dynamics, seasons

N, S = 40, 3


def moved(rng, up, epochs):
    """States, 1 if helped, next states [E, N], where a share `up` goes to the best state."""
    states = rng.integers(S, size=(epochs, N))
    helped = rng.integers(2, size=(epochs, N))
    then = np.where(rng.random((epochs, N)) < up, S - 1, rng.integers(S - 1, size=(epochs, N)))
    return states, helped, then


def learner(**settings):
    return Dopl(N, S, 4, horizon=1, ordered=True, **settings)


def test_what_lately_changed_for_everybody_is_expected_to_go_on():
    rng = np.random.default_rng(0)
    own = learner()
    for up in (0.2, 0.6):
        own.count_moves(*moved(rng, up, 15))
    own.replan()
    plain = dynamics.calibrated(own.visits, ordered=True).mean[..., -1].mean()
    now = own.dynamics.mean[..., -1].mean()
    assert plain == pytest.approx(0.4, abs=0.05)
    assert plain + 0.05 < now < 0.6
    assert own.dynamics.mean.sum(axis=3) == pytest.approx(1)
    assert (own.dynamics.low == own.dynamics.high).all()


def test_nothing_is_tilted_while_all_moves_are_of_one_epoch_or_states_have_no_order():
    moves = moved(np.random.default_rng(1), 0.7, 1)
    own, unordered = learner(), Dopl(N, S, 4, horizon=1)
    for one in (own, unordered):
        one.count_moves(*moves)
        one.replan()
    plain = dynamics.calibrated(own.visits, ordered=True)
    assert own.dynamics.mean == pytest.approx(plain.mean, abs=1e-12)
    assert not len(unordered.recent)
    assert "recent" not in unordered.state()


def test_an_epoch_says_how_much_further_up_moves_went_than_expected():
    recent = seasons.nothing_yet(2)
    recent = seasons.remembered(recent, *(np.array(x) for x in ([0, 1], [1, 0], [1, 1])))
    recent = seasons.remembered(recent, *(np.array(x) for x in ([1, UNKNOWN], [0, 0], [0, 1])))
    up = np.array([[0.1, 0.2, 0.3, 0.4], [0.5, 0.6, 0.7, 0.8], [0.5, 0.5, 0.5, 0.5]])
    pull, variance = seasons.residuals(recent, np.stack([1 - up, up], axis=2))
    expected = np.zeros((2, 2, 4))
    expected[0, 0, 1], expected[1, 0, 1] = 1 - 0.2, 0.2 * 0.8
    expected[0, 0, 2], expected[1, 0, 2] = 1 - 0.7, 0.7 * 0.3
    expected[0, 1, 2], expected[1, 1, 2] = 0 - 0.3, 0.3 * 0.7
    assert np.array([pull, variance]) == pytest.approx(expected)


def exact(spread, pull, variance):
    """The log evidence, and the mean of the tilt of one row in the next epoch."""
    epochs = np.arange(len(pull) + 1)
    prior = spread**2 * seasons.PERSISTENCE ** abs(epochs[:, None] - epochs)
    pull, precision = np.append(pull, 0), np.diag(np.append(variance, 0))
    posterior = np.linalg.inv(np.linalg.inv(prior) + precision)
    size = np.linalg.slogdet(np.eye(len(pull)) + prior @ precision)[1]
    return (pull @ posterior @ pull - size) / 2, (posterior @ pull)[-1]


def test_the_tilt_is_the_mean_of_the_exact_posterior_over_all_spreads():
    rng = np.random.default_rng(6)
    pull, variance = rng.normal(0, 2, (7, 2)), rng.random((7, 2)) * 5
    rows = range(2)
    by_spread = [
        [exact(max(x, 1e-9), pull[:, r], variance[:, r]) for r in rows] for x in seasons.SPREADS
    ]
    log, tilt = np.array(by_spread).transpose(2, 0, 1)
    weight = seasons.LIKELY * np.exp(log.sum(axis=1))
    expected = weight @ tilt / weight.sum()
    assert seasons.predicted(pull, variance) == pytest.approx(expected)


def test_chance_is_rarely_taken_for_a_season():
    tilts = {}
    for later in (0.4, 0.7):
        own = learner()
        for up in (0.4, later):
            own.count_moves(*moved(np.random.default_rng(7), up, 15))
        p = dynamics.calibrated(own.visits, ordered=True).mean.reshape(N, 2 * S, S)
        tilts[later] = seasons.predicted(*seasons.residuals(own.recent, p))
    assert abs(tilts[0.4]).max() < 0.1 < tilts[0.7].min()


def test_epochs_told_at_once_are_remembered_as_those_told_one_by_one():
    states, helped, then = moved(np.random.default_rng(2), 0.4, 3 + seasons.KEPT)
    at_once, one_by_one = learner(), learner()
    at_once.count_moves(states, helped, then)
    for moves in zip(states, helped, then, strict=True):
        one_by_one.count_moves(*moves)
    assert len(at_once.recent) == seasons.KEPT
    assert (at_once.recent == one_by_one.recent).all()


@pytest.mark.parametrize("ago", [0, 2, 4])
def test_a_corrected_epoch_is_remembered_as_if_it_had_been_told_right(ago):
    rng = np.random.default_rng(3)
    right, wrong = moved(rng, 0.4, 5), moved(rng, 0.9, 5)
    told, corrected = learner(), learner()
    for epoch in range(5):
        told.count_moves(*(part[epoch] for part in right))
        said = wrong if epoch == 4 - ago else right
        corrected.count_moves(*(part[epoch] for part in said))
    corrected.revise_moves(ago, *([part[4 - ago] for part in one] for one in (wrong, right)))
    assert (corrected.recent == told.recent).all()
    assert (corrected.visits == told.visits).all()


def test_recent_moves_are_part_of_the_state_and_arms_may_join():
    rng = np.random.default_rng(4)
    own = learner()
    own.count_moves(*moved(rng, 0.5, 4))
    own.replan()
    again = learner()
    again.restore(own.state())
    for one in (own, again):
        one.adapt(np.ones(N + 2, dtype=bool), 4)
        one.count_moves(*(np.zeros(N + 2, dtype=int) for _ in range(3)))
        one.replan()
    assert (own.recent == again.recent).all()
    assert (own.recent[:-1, 0, N:] == UNKNOWN).all()
    assert (own.dynamics.mean == again.dynamics.mean).all()
    assert "recent" not in own.plan_state()
