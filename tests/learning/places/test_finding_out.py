"""Places to find out what help does, and the limit of the best state."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dopl_core.learning.bandit import ACT, UNKNOWN, WAIT, FloatArray, IntArray
from dopl_core.learning.dopl import Dopl
from dopl_core.learning.places import finding_out
from dopl_core.learning.places.finding_out import Hope

S = 3


def chosen(
    states: list[int] | IntArray,
    order: list[int] | IntArray,
    budget: int,
    *,
    gain: FloatArray | None = None,
    error: tuple[float, ...] = (0.0, 0.0, 0.0),
    places: int = 0,
    best_credible: bool = True,
    codes: IntArray | None = None,
) -> list[int]:
    """The list of the first `budget` of `order`, after choose()."""
    urgent, there = np.asarray(order), np.asarray(states)
    known = np.zeros(len(there)) if gain is None else gain
    found = finding_out.choose(
        np.sort(urgent[:budget]),
        urgent,
        Hope(there, known, np.array(error)),
        best_credible=best_credible,
        places=places,
        codes=codes,
    )
    return [int(arm) for arm in found]


def drawn(seed: int, n_arms: int) -> tuple[IntArray, IntArray, FloatArray, IntArray]:
    """States of arms, their order of urgency, their gains, and a group of each."""
    rng = np.random.default_rng(seed)
    return (
        rng.integers(S, size=n_arms),
        rng.permutation(n_arms),
        rng.normal(size=n_arms),
        rng.integers(3, size=n_arms),
    )


@pytest.mark.parametrize("budget", [1, 4, 7, 8, 9, 80])
def test_one_place_in_eight_finds_out_over_the_episodes(budget: int) -> None:
    each = [finding_out.usual(budget, episode) for episode in range(1, 9)]
    assert sum(each) == budget
    assert max(each) - min(each) <= 1


def test_the_first_list_of_a_small_clinic_has_no_place_to_find_out() -> None:
    assert [finding_out.usual(4, episode) for episode in (1, 2, 3, 4)] == [0, 1, 0, 1]


def test_without_places_and_with_a_credible_gain_the_list_stays() -> None:
    states, order, gain, codes = drawn(0, 12)
    listed = sorted(order[:5].tolist())
    assert chosen(states, order, 5, gain=gain, error=(1, 1, 1)) == listed
    assert chosen(states, order, 5, gain=gain, error=(1, 1, 1), codes=codes) == listed


@settings(max_examples=200, derandomize=True)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 20),
    st.integers(0, 20),
    st.integers(0, 20),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_a_list_keeps_its_length_and_groups_keep_their_places(
    seed: int,
    n_arms: int,
    budget: int,
    places: int,
    credible: bool,
    grouped: bool,
    some_unknown: bool,
) -> None:
    budget = min(budget, n_arms)
    states, order, gain, codes = drawn(seed, n_arms)
    rng = np.random.default_rng(seed)
    if some_unknown:
        states[rng.random(n_arms) < rng.random()] = UNKNOWN
    shared, error = codes if grouped else None, tuple(rng.exponential(size=S))

    def listed(places: int) -> list[int]:
        return chosen(
            states,
            order,
            budget,
            gain=gain,
            error=error,
            places=places,
            best_credible=credible,
            codes=shared,
        )

    limited, found = listed(0), listed(places)
    assert len(found) == len(set(found)) == budget
    new = set(found) - set(limited)
    assert len(new) == len(set(limited) - set(found)) <= places
    assert UNKNOWN not in states[list(new)]
    if grouped:
        before = np.bincount(codes[order[:budget]], minlength=3)
        assert np.bincount(codes[found], minlength=3).tolist() == before.tolist()
    best, worse = states == S - 1, (states != S - 1).sum()
    most = int(finding_out.BEST_SHARE * budget) + max(0, budget - worse)
    if credible:
        assert limited == sorted(order[:budget])
    else:  # groups may have nobody else to list, and to find out makes it no worse
        beyond = max(most, best[limited].sum()) if grouped else most
        assert best[found].sum() <= beyond


@settings(max_examples=100, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.integers(2, 20), st.integers(1, 19), st.integers(1, 20))
def test_whoever_is_listed_to_find_out_could_gain_more_than_the_last_of_the_list(
    seed: int, n_arms: int, budget: int, places: int
) -> None:
    """By their gain and HOPE standard errors, in full; they replace the last ones."""
    budget = min(budget, n_arms - 1)
    states, order, gain, _ = drawn(seed, n_arms)
    error = np.random.default_rng(seed).exponential(size=S)
    plain = order[:budget].tolist()
    found = chosen(states, order, budget, gain=gain, error=tuple(error), places=places)
    new, left = set(found) - set(plain), set(plain) - set(found)
    assert left <= set(plain[-places:])
    could = gain + finding_out.HOPE * error[states]
    assert all(could[arm] > gain[list(left)].min() for arm in new)
    none = chosen(states, order, budget, gain=gain, error=(0, 0, 0), places=places)
    assert gain[none].sum() >= gain[np.sort(plain)].sum()  # where all is known, places only gain


def test_the_best_state_has_few_places_while_its_gain_is_not_credible() -> None:
    states, order = [2] * 8 + [0] * 8, list(range(16))
    few = int(finding_out.BEST_SHARE * 8)
    assert chosen(states, order, 8, best_credible=False) == [
        *range(few),
        *range(8, 16 - few),
    ]
    assert chosen(states, order, 8, best_credible=True) == list(range(8))


def test_people_in_the_best_state_fill_places_that_nobody_else_needs() -> None:
    states, order = [2] * 10 + [0] * 3, list(range(13))
    found = chosen(states, order, 8, best_credible=False)
    assert len(found) == 8
    free = 8 - 3
    few = int(finding_out.BEST_SHARE * 8)
    assert (np.array(states)[found] == 2).sum() == free + few


def test_a_place_to_find_out_goes_to_whom_help_could_gain_most() -> None:
    states, gain = [0, 0, 0, 1, 1, 2], np.array([5.0, 4.0, 3.0, 2.0, 1.9, 0.0])
    order = list(range(6))
    assert chosen(states, order, 2, gain=gain, error=(0, 0, 0), places=1) == [0, 1]
    assert chosen(states, order, 2, gain=gain, error=(0, 9, 0), places=1) == [0, 3]
    assert chosen(states, order, 2, gain=gain, error=(0, 0, 9), places=1) == [0, 5]
    assert chosen(states, order, 2, gain=gain, error=(0, 9, 9), places=0) == [0, 1]


@pytest.mark.parametrize("state", [0, UNKNOWN])
@pytest.mark.parametrize(("error", "found"), [(0.99, [0]), (1.01, [1])])
def test_a_place_finds_out_only_where_more_could_be_gained(
    error: float, found: list[int], state: int
) -> None:
    """Arm 0 is expected to gain 1 by help; arm 1 gains 0 give or take an error."""
    gain, errors = np.array([1.0, 0.0]), (0, error / finding_out.HOPE, 0)
    assert chosen([state, 1], [0, 1], 1, gain=gain, error=errors, places=1) == found


def test_the_arm_that_a_place_would_replace_may_itself_be_the_one_to_find_out_about() -> None:
    """Arm 1 could gain more than arm 0 is expected to, but arm 0 could gain even more."""
    gain, states = np.array([1.0, 0.8]), [0, 1]
    assert chosen(states, [0, 1], 1, gain=gain, error=(0, 1, 0), places=1) == [1]
    assert chosen(states, [0, 1], 1, gain=gain, error=(1, 1, 0), places=1) == [0]


def test_a_place_that_does_not_find_out_returns_to_its_arm_and_others_may_still_find_out() -> None:
    """Arm 1, the last on the list, gains more than arm 2 could; arm 0 does not."""
    gain, errors = np.array([0.0, 5.0, 0.0]), (0, 1, 0)
    assert chosen([0, 0, 1], [0, 1, 2], 2, gain=gain, error=errors, places=1) == [0, 1]
    assert chosen([0, 0, 1], [0, 1, 2], 2, gain=gain, error=errors, places=2) == [1, 2]


def test_places_to_find_out_are_spread_over_states() -> None:
    """Both states are as little known; the first place changes where the second goes."""
    states, gain = [0] * 4 + [1] * 4 + [2] * 4, np.zeros(12)
    found = chosen(states, list(range(12)), 4, gain=gain, error=(0, 1, 1), places=2)
    assert sorted(np.array(states)[found].tolist()) == [0, 0, 1, 2]


def test_the_best_state_gets_no_places_to_find_out_beyond_its_limit() -> None:
    states, gain = [0] * 6 + [2] * 6, np.zeros(12)
    found = chosen(
        states, list(range(12)), 4, gain=gain, error=(0, 0, 5), places=3, best_credible=False
    )
    assert (np.array(states)[found] == 2).sum() == int(finding_out.BEST_SHARE * 4)


def test_nobody_whose_state_is_unknown_is_listed_to_find_out() -> None:
    states, gain = [0, 0, UNKNOWN, 1], np.array([1.0, 0.0, 9.0, 0.0])
    assert chosen(states, [0, 1, 2, 3], 2, gain=gain, error=(0, 1, 0), places=1) == [0, 3]


def test_a_list_keeps_its_length_where_states_are_unknown() -> None:
    """Arm 1 is the only one whose state is known: it takes the place of arm 0, and none its own."""
    found = chosen([UNKNOWN, 0, UNKNOWN], [1, 0, 2], 2, places=2)
    assert len(found) == 2


# --- the lists of a learner


def learner(n_arms: int, budget: int, **settings_: int) -> Dopl:
    """One with ordered states, and a plan made without any moves."""
    made = Dopl(n_arms, S, budget, horizon=1, ordered=True, **settings_)  # type: ignore[arg-type]
    made.replan()
    return made


def known(seen: list[list[list[int]]], budget: int = 8, **settings_: int) -> Dopl:
    """A learner of 45 people who made these moves [S, A, S'], and its plan."""
    made = learner(45, budget, **settings_)
    rng = np.random.default_rng(0)
    for s, a in np.ndindex(S, 2):
        then = np.repeat(np.arange(S), seen[s][a])
        who = rng.permutation(np.arange(len(then)) % 45)
        np.add.at(made.visits, (who, s, a, then), 1)
    made.replan()
    return made


def next_list(made: Dopl) -> list[int]:
    """How many of each state are on the next list of 45 people, a third in each state."""
    states = np.arange(45) % S
    return [int(count) for count in np.bincount(states[made.activate(states, 0)], minlength=S)]


def test_before_any_moves_a_list_is_of_the_worst_off() -> None:
    assert next_list(learner(45, 8, find_out=0)) == [8, 0, 0]


BY_CHANCE = [[6, 6, 6], [4, 3, 3]]  # moves without and with help: help seems to do nothing
KEPT_BY_CHANCE = [[10, 9, 7], [2, 1, 3]]  # 3 of 6 stay with help, 7 of 26 without
NOTHING = [[340, 330, 330], [340, 330, 330]]


@pytest.mark.parametrize("middle", [BY_CHANCE, [[10, 10, 10], [0, 0, 0]]])
def test_a_handful_of_moves_makes_no_list_of_the_best_off(middle: list[list[int]]) -> None:
    """A clinic of 45 after two weeks of 8 places, where people move at random."""
    best = next_list(known([BY_CHANCE, middle, KEPT_BY_CHANCE]))[2]
    assert best <= int(finding_out.BEST_SHARE * 8)


@pytest.mark.parametrize("kept", [[[20, 20, 20], [2, 2, 16]], [[1000, 600, 400], [20, 30, 450]]])
def test_many_moves_bring_the_best_off_on_the_list(kept: list[list[int]]) -> None:
    """Help keeps 80 or 90 of 100 in the best state, 33 or 20 without, and does nothing else."""
    assert next_list(known([NOTHING, NOTHING, kept], find_out=0)) == [0, 0, 8]


def test_where_help_is_known_to_do_nothing_at_all_nobody_better_off_comes_first() -> None:
    assert next_list(known([NOTHING, NOTHING, NOTHING], find_out=0))[2] <= 2


THEN = {
    "help lifts half of them": lambda rng, s: np.minimum(2, s + (rng.random(30) < 0.5)),
    "help lifts nearly all": lambda rng, s: np.minimum(2, s + (rng.random(30) < 0.9)),
    "all stay where they are": lambda _, s: s.copy(),
    "they end anywhere": lambda rng, _: rng.choice(3, size=30, p=[0.2, 0.3, 0.5]),
}


@pytest.mark.parametrize("then", THEN)
def test_where_everybody_was_helped_the_next_list_is_not_of_the_best_off(then: str) -> None:
    """A class of 30, all helped in week 1, 7 places in week 2."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        made = learner(30, 7, seed=seed)
        states = rng.integers(3, size=30)
        now = THEN[then](rng, states)
        made.count_moves(states, np.ones(30, dtype=int), now)
        made.replan()
        best = (now[made.activate(now, 0)] == 2).sum()
        worse = (now < 2).sum()
        assert best <= int(finding_out.BEST_SHARE * 7) + max(0, 7 - worse)


# Help does something in the worst state; what it does in the middle one nobody has seen.
UNSEEN = [[[500, 300, 200], [410, 325, 265]], [[330, 340, 330], [0, 0, 0]], NOTHING]
PLAIN = [[[800, 100, 100], [500, 250, 250]], *UNSEEN[1:]]


def test_places_to_find_out_go_where_help_is_least_known() -> None:
    without, with_places = (next_list(known(UNSEEN, find_out=places)) for places in (0, 2))
    assert without == [8, 0, 0]
    assert with_places == [6, 2, 0]


def test_no_place_finds_out_where_help_in_the_worst_state_does_more_than_it_may_elsewhere() -> None:
    made = known(PLAIN, find_out=2)
    assert next_list(made) == [8, 0, 0]
    states = np.arange(45) % S
    assert made.finds_out(states, made.activate(states, 0)).tolist() == []


def test_a_learner_says_which_arms_it_lists_to_find_out() -> None:
    made = known(UNSEEN, find_out=2)
    states = np.arange(45) % S
    listed = made.activate(states, 0)
    assert states[made.finds_out(states, listed)].tolist() == [1, 1]


def test_places_by_lot_find_out_too() -> None:
    made = learner(45, 8, find_out=3)
    made.by_lot = 2
    assert made.places_to_find_out == 1
    made.by_lot = 5
    assert made.places_to_find_out == 0


@pytest.mark.parametrize("confidence", ["paper", "calibrated"])
def test_where_states_have_no_order_no_place_finds_out(confidence: str) -> None:
    made = Dopl(45, S, 20, horizon=1, confidence=confidence, find_out=4)  # type: ignore[arg-type]
    made.replan()
    states = np.arange(45) % S
    assert made.places_to_find_out == 0
    assert made.finds_out(states, made.activate(states, 0)).tolist() == []


def test_moves_with_help_are_seen_in_every_state_sooner_where_places_find_out() -> None:
    """In a simulated clinic help is tried outside the worst state."""
    rng = np.random.default_rng(0)
    rows = np.full((40, S, 2, S), 1 / S)
    tried = []
    for places in (0, 3):
        made = learner(40, 10, find_out=places)
        states = rng.integers(S, size=40)
        for _ in range(6):
            listed = made.activate(states, 0)
            helped = np.isin(np.arange(40), listed).astype(int)
            own = rows[np.arange(40), states, helped].cumsum(axis=1)[:, :-1]
            then = (rng.random((40, 1)) > own).sum(axis=1)
            made.count_moves(states, helped, then)
            states = then
            made.replan()
        tried.append(made.visits[:, 1:, ACT].sum())
        assert made.visits[:, :, WAIT].sum() == 6 * 30
    assert tried[1] > tried[0]
