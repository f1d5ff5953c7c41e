import numpy as np
import pytest

from dopl_core.learning.counts import MOST_CODES, MOST_PEOPLE, Counts, counted


def drawn(rng, size, duels, people=3):
    """Duels [D] of random arm-states: winners, losers, and who says so."""
    winner = rng.integers(size, size=duels)
    loser = (winner + rng.integers(1, size, size=duels)) % size
    return winner, loser, rng.integers(people, size=duels)


def same(one: Counts, other: Counts) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one.table(), other.table(), strict=True))


def test_the_table_has_each_winner_loser_and_annotator_once_and_sorted():
    winner, loser, who = drawn(np.random.default_rng(0), 6, 500)
    counts = Counts(6)
    counts.add(winner, loser, 1.0, who)
    table = counts.table()
    keys = np.stack(table[:3], axis=1)
    assert (keys == np.unique(np.stack([winner, loser, who], axis=1), axis=0)).all()
    assert table.times.sum() == counts.total() == 500
    wins = np.zeros((6, 6))
    np.add.at(wins, (winner, loser), 1)
    assert (counts.wins() == wins).all()
    assert (counts.compared() == wins.sum(axis=0) + wins.sum(axis=1)).all()


def test_answers_in_any_order_and_any_batches_give_the_same_table():
    rng = np.random.default_rng(1)
    winner, loser, who = drawn(rng, 40, 30_000)
    at_once, one_by_one = Counts(40), Counts(40)
    at_once.add(winner, loser, 0.5, who)
    for at in np.array_split(rng.permutation(30_000), 300):
        one_by_one.add(winner[at], loser[at], 0.5, who[at])
        if rng.random() < 0.1:
            one_by_one.table()
    assert same(at_once, one_by_one)


def test_an_answer_taken_back_leaves_no_trace():
    winner, loser, who = drawn(np.random.default_rng(2), 10, 200)
    counts, fewer = Counts(10), Counts(10)
    counts.add(winner, loser, 1.0, who)
    counts.add(winner[50:], loser[50:], -1.0, who[50:])
    fewer.add(winner[:50], loser[:50], 1.0, who[:50])
    assert same(counts, fewer)
    counts.add(winner[:50], loser[:50], -1.0, who[:50])
    assert len(counts.table().times) == 0


def test_counts_can_be_saved_restored_and_grown():
    counts = counted(np.array([[0, 2.5], [1, 0]]))
    counts.grow(4)
    twin = Counts(4)
    twin.restore(counts.state())
    assert same(counts, twin)
    assert twin.wins()[:2, :2].tolist() == [[0, 2.5], [1, 0]]
    assert twin.wins().shape == (4, 4)


def test_more_arm_states_or_annotators_than_the_limit_are_refused():
    with pytest.raises(ValueError, match="arm-states"):
        Counts(MOST_CODES + 1)
    one = np.array([0])
    for who in (-1, MOST_PEOPLE):
        with pytest.raises(ValueError, match="who"):
            Counts(4).add(one, one + 1, 1.0, who)
    counts = Counts(MOST_CODES)
    counts.add(one + MOST_CODES - 1, one + MOST_CODES - 2, 1.0, MOST_PEOPLE - 1)
    assert [int(column[0]) for column in counts.table()] == [
        MOST_CODES - 1,
        MOST_CODES - 2,
        MOST_PEOPLE - 1,
        1,
    ]
