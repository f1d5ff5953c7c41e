import numpy as np
import pytest

from dopl_core.learning.planning.chains import LEAK, eliminate, evaluate, leads_to, substitute


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
    assert policy.stay == pytest.approx(np.array([[1, 1, 1 - LEAK, 1], [1 - LEAK] * 2 + [1, 1]]).T)
    # What acting costs may change which class is the best.
    assert evaluate(chain, pay, act, np.array([3, 3]), 1.0).line[0] == pytest.approx([0.4, 0.6])


def test_a_root_that_is_never_visited_is_replaced():
    chain = np.array([[1.0, 0.0], [1.0, 0.0]])[:, :, None]
    policy = evaluate(chain, np.array([[0.3], [1.0]]), np.zeros((2, 1), bool), np.array([1]), 0.0)
    assert policy.line[0, 0] == pytest.approx(0.3)
    assert policy.bias(0.0)[:, 0] == pytest.approx([0.0, 0.7])


def tabulated(chain, pay):
    """The table [S, 3 + S, N] of chains that never act, before any state is left out."""
    n_states, _, n_arms = chain.shape
    head = np.stack([pay, np.zeros((n_states, n_arms)), np.ones((n_states, n_arms))], axis=1)
    return np.concatenate([head, chain], axis=1)


def stationary(chain):
    """[S] by linear algebra."""
    n_states = len(chain)
    equations = np.concatenate([chain.T - np.eye(n_states), np.ones((1, n_states))])
    return np.linalg.lstsq(equations, np.eye(n_states + 1)[-1], rcond=None)[0]


def test_what_remains_of_a_chain_is_the_cycle_from_state_0_to_itself():
    rng = np.random.default_rng(1)
    chain, pay = random_chains(rng, 4, 6), rng.normal(size=(4, 6))
    table = tabulated(chain, pay)
    leave = eliminate(table)
    assert leave[3] == pytest.approx(1 - chain[3, 3])  # nothing was left out before it
    for n in range(6):
        visits = stationary(chain[..., n])
        assert table[0, 2, n] == pytest.approx(1 / visits[0])
        assert table[0, 0, n] == pytest.approx(visits @ pay[:, n] / visits[0])
        assert table[0, 3, n] == pytest.approx(1)  # and it is sure to come back


def test_substitution_finds_bias_time_and_visits_of_every_state():
    rng = np.random.default_rng(2)
    chain, pay = random_chains(rng, 5, 3), rng.normal(size=(5, 3))
    table = tabulated(chain, pay)
    leave = eliminate(table)
    line = np.stack([table[0, 0] / table[0, 2], np.zeros(3), np.zeros(3)])
    bias, actions, time, visits = substitute(table, leave, line).swapaxes(0, 1)
    assert not actions.any()
    for n in range(3):
        to_others = np.eye(4) - chain[1:, 1:, n]
        assert bias[1:, n] == pytest.approx(np.linalg.solve(to_others, pay[1:, n] - line[0, n]))
        assert time[1:, n] == pytest.approx(np.linalg.solve(to_others, np.ones(4)))
        assert visits[:, n] == pytest.approx(stationary(chain[..., n]))
    assert not bias[0].any()
    assert not time[0].any()


def test_a_state_leads_to_whatever_some_path_reaches():
    line = np.eye(6, k=1)
    line[-1, -1] = 1
    ring = np.roll(np.eye(6), 1, axis=1)
    leads = leads_to(np.stack([line, ring], axis=-1))
    assert (leads[..., 0] == np.triu(np.ones((6, 6), dtype=bool))).all()
    assert leads[..., 1].all()
