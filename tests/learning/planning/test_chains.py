import numpy as np
import pytest

from dopl_core.learning.planning.chains import LEAK, evaluate


def random_chains(rng, n_states, n_arms, power=1):
    """[S, S, N]; the higher the power, the rarer some moves."""
    rows = rng.uniform(size=(n_states, n_states, n_arms)) ** power
    return rows / rows.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("n_states", [1, 2, 3, 5, 16])
def test_a_policy_satisfies_the_equations_of_its_chain(n_states):
    rng = np.random.default_rng(n_states)
    chain = random_chains(rng, n_states, 40, power=3)
    pay = rng.normal(size=(n_states, 40))
    act = rng.random((n_states, 40)) < 0.5
    policy = evaluate(chain, pay, act, rng.integers(n_states, size=40), 0.3)
    visits = policy.parts[3]
    assert visits.sum(axis=0) == pytest.approx(1)
    assert np.einsum("sn,syn->yn", visits, chain) == pytest.approx(visits)
    assert policy.line[0] == pytest.approx((visits * pay).sum(axis=0))
    assert policy.line[1] == pytest.approx((visits * act).sum(axis=0))
    for multiplier in (0.0, 0.3, 2.0):
        bias, gain = policy.bias(multiplier), policy.gain(multiplier)
        ahead = np.einsum("syn,yn->sn", chain, bias)
        assert gain + bias == pytest.approx(pay - multiplier * act + ahead, abs=1e-9)


def test_visits_keep_their_digits_in_chains_that_hardly_move():
    slow = 1e-9
    chain = np.array([[1 - slow, slow], [3 * slow, 1 - 3 * slow]])[:, :, None]
    policy = evaluate(chain, np.ones((2, 1)), np.ones((2, 1), dtype=bool), np.array([0]), 0.0)
    assert policy.parts[3, :, 0] == pytest.approx([0.75, 0.25], rel=1e-13)


def test_the_closed_class_of_highest_gain_counts():
    chain = np.zeros((4, 4, 2))
    chain[[0, 1], [1, 0]] = 1  # one class of two states
    chain[2, 2] = 1  # another of one
    chain[3, [0, 2]] = 0.5  # a state that leads to either
    pay = np.array([[0.0, 1.0, 0.4, 0.0], [0.0, 1.0, 0.6, 0.0]]).T
    act = np.array([[False, True, False, False]] * 2).T
    policy = evaluate(chain, pay, act, np.array([3, 3]), 0.0)
    assert policy.line[0] == pytest.approx([0.5, 0.6])
    assert policy.line[1] == pytest.approx([0.5, 0.0])
    assert policy.parts[3] == pytest.approx(np.array([[0.5, 0.5, 0, 0], [0, 0, 1, 0]]).T)
    # The other class leaks, so its bias is finite, and as low as its gain is behind.
    bias = policy.bias(0.0)
    assert bias[2, 0] == pytest.approx(-0.1 / LEAK, rel=1e-3)
    assert bias[0, 1] == pytest.approx(-0.1 / LEAK, rel=1e-3)
    # What acting costs may change which class is the best.
    assert evaluate(chain, pay, act, np.array([3, 3]), 1.0).line[0] == pytest.approx([0.4, 0.6])


def test_a_root_that_is_never_visited_is_replaced():
    chain = np.array([[1.0, 0.0], [1.0, 0.0]])[:, :, None]
    policy = evaluate(chain, np.array([[0.3], [1.0]]), np.zeros((2, 1), bool), np.array([1]), 0.0)
    assert policy.line[0, 0] == pytest.approx(0.3)
    assert policy.bias(0.0)[:, 0] == pytest.approx([0.0, 0.7])
