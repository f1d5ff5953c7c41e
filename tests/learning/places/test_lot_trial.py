"""The effect of help by lot, against full enumeration of the draws and brute force."""

from itertools import combinations, product

import numpy as np
import pytest

from dopl_core.learning.places import lot_trial
from dopl_core.learning.places.lot_trial import LISTED, OTHERS
from dopl_core.learning.places.lots import exchange
from dopl_core.learning.places.reported_weeks import ReportedWeeks

UNKNOWN = -1


def clinic(
    seed: int, W: int = 12, N: int = 14, lots: int = 2, gain: float = 0.0, groups: int = 1
) -> ReportedWeeks:
    """Weeks of arms with three states; the worst off are listed, and help adds `gain` to a rise."""
    rng = np.random.default_rng(seed)
    own, states = rng.uniform(0.2, 0.5, N), rng.integers(0, 3, N)
    codes, rows = np.arange(N) % groups, []
    for _ in range(W):
        listed = np.sort(np.lexsort((rng.random(N), states))[: N // 2])
        others = np.setdiff1d(np.arange(N), listed)
        waiting, drawn = exchange(listed, others, lots, rng, codes)
        helped, by_lot = np.zeros((2, N), dtype=int)
        helped[listed] = helped[drawn] = 1
        helped[waiting] = 0
        by_lot[drawn] = by_lot[waiting] = 1
        up = rng.random(N) < own + gain * helped
        after = np.clip(states + np.where(up, 1, -1), 0, 2)
        rows.append((states, helped, after, helped, by_lot))
        states = after
    weeks = ReportedWeeks(*np.array(rows).transpose(1, 0, 2))
    return weeks._replace(groups=codes if groups > 1 else None)


def one_week(y: list[int], listed: list[int], waits: int, drawn: int) -> ReportedWeeks:
    """A week of arms in one of two states, all in state 0; y: who is better off."""
    N = len(y)
    helped, by_lot = np.zeros((2, N), dtype=int)
    helped[listed] = helped[drawn] = 1
    helped[waits] = 0
    by_lot[[waits, drawn]] = 1
    rows = np.zeros(N, dtype=int), helped, np.array(y), helped, by_lot
    return ReportedWeeks(*(row[None] for row in rows))


def test_the_permutation_law_is_that_of_all_possible_draws():
    y, listed, others = [1, 0, 0, 1, 0, 1, 1], [0, 1, 2], [3, 4, 5, 6]
    every = {
        (i, j): lot_trial.lottery_sums(one_week(y, listed, i, j), 2, redraws=0)
        .outcome[0]
        .sum()
        .round(9)
        for i, j in product(listed, others)
    }
    values, counts = np.unique(list(every.values()), return_counts=True)
    for i, j in ((1, 5), (0, 4)):
        sums = lot_trial.lottery_sums(one_week(y, listed, i, j), 2, redraws=6000)
        again = sums.outcome[1:].sum(axis=(1, 2)).round(9)
        assert set(np.unique(again)) <= set(values)
        share = (again[:, None] == values).mean(axis=0)
        assert share == pytest.approx(counts / len(every), abs=0.03)
        assert sums.variance.sum() == pytest.approx(np.var(list(every.values())))
        [look] = lot_trial.look_results(sums, [1])
        exact = np.mean([abs(x) >= abs(every[i, j]) for x in every.values()])
        assert look.p == pytest.approx(exact, abs=0.03)


def test_p_is_uniform_over_the_draws_of_a_week_if_help_does_nothing():
    y, listed, others = [1, 0, 0, 1, 0, 1, 1, 0], [0, 1, 2], [3, 4, 5, 6, 7]
    found = []
    for i, j in product(listed, others):
        sums = lot_trial.lottery_sums(one_week(y, listed, i, j), 2, redraws=2000)
        found.append(lot_trial.look_results(sums, [1])[0].p)
    for level in (0.1, 0.2, 0.4, 0.7):
        assert np.mean(np.array(found) <= level) <= level + 0.02


@pytest.mark.parametrize("few", [0, 20])
@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_redrawn_sums_have_every_choice_equally_often(monkeypatch, k, few):
    monkeypatch.setattr(lot_trial, "_FEW", few)  # both ways to draw
    x = np.array([[1.0, 2, 4, 8, 16, -31], [1, -1, 0, 0, 0, 0]])
    found = lot_trial._redrawn_sums(x, k, 20_000, np.random.default_rng(1))
    exact = [x[0, list(some)].sum() for some in combinations(range(6), k)]
    share = (found[0].round(9)[:, None] == exact).mean(axis=0)
    assert share == pytest.approx(np.full(len(exact), 1 / len(exact)), abs=0.012)


def test_the_interval_in_closed_form_is_that_of_tests_for_every_shift():
    sums = lot_trial.lottery_sums(clinic(3, gain=0.2), 3, redraws=999)
    outcome, help = (x.sum(axis=(1, 2)) for x in (sums.outcome, sums.help))
    for level in (0.01, 0.05, 0.3):
        found = lot_trial.shift_interval(outcome, help, level)
        grid = np.linspace(-1, 1, 4001)
        size = np.abs(outcome[:, None] - grid * help[:, None])
        accepted = grid[(size >= size[0] - 1e-12).sum(axis=0) > round(level * 1000)]
        assert (found.low, found.high) == pytest.approx((accepted[0], accepted[-1]), abs=6e-4)
        assert found.effect == pytest.approx(outcome[0] / help[0])


def test_boundaries_spend_the_error_that_they_should_and_no_more():
    looks = [5, 10, 15, 20]
    error = lot_trial.spent(looks)
    assert error[-1] == pytest.approx(0.05)
    steps = np.random.default_rng(2).standard_normal((100_000, 4)) * np.sqrt(5)
    walks = steps.cumsum(axis=1).round(9)
    bounds, nominal = lot_trial.boundaries(walks, error)
    crossed = np.logical_or.accumulate(np.abs(walks) > bounds, axis=1).mean(axis=0)
    assert (crossed <= error + 1e-12).all()
    assert crossed == pytest.approx(error, abs=1e-5)
    published = [2.963, 2.359, 2.014]  # in standard errors, from the second of four equal looks on
    assert (bounds / np.sqrt(looks))[1:] == pytest.approx(published, abs=0.03)
    assert nominal[-1] == pytest.approx(0.044, abs=0.001)


def test_a_claim_is_made_exactly_if_the_interval_leaves_out_zero():
    claims = []
    for seed in range(30):
        for look in lot_trial.analyse(clinic(seed, gain=0.3), 3, [4, 8, 12], redraws=999):
            leaves_out = look.effect.low > 0 or look.effect.high < 0
            assert bool(look.claim) == leaves_out == (look.p <= look.nominal)
            claims.append(look.claim)
    assert {0, 1} <= set(claims)


def test_a_later_look_leaves_the_earlier_ones_as_they_were():
    weeks = clinic(5, gain=0.2)
    early = ReportedWeeks(*(x[:8] for x in weeks[:5]))
    looks = [4, 8, 12]
    before = lot_trial.analyse(early, 3, looks, redraws=499)
    assert [look.week for look in before] == [4, 8]
    assert lot_trial.analyse(weeks, 3, looks, redraws=499)[:2] == before
    assert lot_trial.analyse(early, 3, [9, 12], redraws=499) == []


def test_effects_are_recovered_on_the_list_and_off_it():
    weeks = clinic(7, W=100, N=30, lots=4, gain=0.25)
    [look] = lot_trial.analyse(weeks, 3, [100], redraws=499)
    assert look.effect.low < 0.25 < look.effect.high
    assert look.others.low < 0.25 < look.others.high
    assert look.listed.low < 0.25 < look.listed.high
    gains = [
        lot_trial.analyse(clinic(seed, W=20, gain=0.25), 3, [20], redraws=199)[0].list_gain
        for seed in range(40)
    ]
    held = np.mean([gain.low < 0 < gain.high for gain in gains])
    assert held == pytest.approx(0.95, abs=0.08)  # the effect is the same on and off the list
    assert look.list_gain.effect == pytest.approx(look.listed.effect - look.others.effect)
    sums = lot_trial.lottery_sums(weeks, 3, redraws=499)
    spread = sums.outcome[1:].sum(axis=(1, 2)).std() / sums.help[0].sum()
    assert lot_trial.standard_error(sums)[-1] == pytest.approx(spread, rel=0.1)


def test_lotteries_stay_in_their_groups_and_leave_out_who_could_not_be_drawn():
    weeks = clinic(9, groups=2)
    before = weeks.listed ^ weeks.by_lot
    barred = np.zeros(weeks.states.shape, dtype=bool)
    barred[:, 13] = True
    known = np.ones(14, dtype=bool)
    for kind, pool in lot_trial._lotteries(weeks._replace(barred=barred), known, 0):
        assert len(set(pool % 2)) == 1
        assert (before[0, pool] == (kind == LISTED)).all()
        assert 13 not in pool or before[0, 13] or weeks.by_lot[0, 13]
    sums = lot_trial.lottery_sums(weeks, 3, redraws=0)
    joined = lot_trial.lottery_sums(weeks._replace(groups=None), 3, redraws=0)
    assert not np.allclose(sums.variance, joined.variance)


def test_people_with_an_unknown_state_leave_their_lottery_and_are_counted():
    weeks = clinic(11)
    next_states = weeks.next_states.copy()
    drawn = np.flatnonzero(weeks.by_lot[0] & weeks.listed[0])
    next_states[0, drawn] = UNKNOWN
    found = lot_trial.lottery_sums(weeks._replace(next_states=next_states), 3, redraws=9)
    assert not found.outcome[:, OTHERS, 0].any()
    assert found.outcome[:, LISTED, 0].any()
    assert (found.drawn[OTHERS, 0], found.known[OTHERS, 0]) == (2, 0)
    assert (found.drawn[LISTED, 0], found.known[LISTED, 0]) == (2, 2)


def test_without_draws_nothing_is_estimated_or_claimed():
    weeks = clinic(13)
    none = weeks._replace(by_lot=np.zeros_like(weeks.by_lot))
    [look] = lot_trial.analyse(none, 3, [12], redraws=99)
    assert (look.effect.effect, look.list_gain.effect, look.claim, look.p) == (None, None, 0, 1)
    assert np.isnan(lot_trial.standard_error(lot_trial.lottery_sums(none, 3, redraws=0))).all()
