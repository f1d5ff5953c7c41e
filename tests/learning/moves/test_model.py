"""The whole model of moves: what is believed of rows, and draws from it."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dopl_core import environments
from dopl_core.learning import columns
from dopl_core.learning.bandit import ACT, UNKNOWN, WAIT, FloatArray, IntArray
from dopl_core.learning.columns import Column, Columns, category, standardised
from dopl_core.learning.moves import model, tilts, weeks
from dopl_core.learning.moves.dynamics import Dynamics

S = 3
UP = np.arange(S)


def believed(visits: IntArray, known: Columns | None = None, *, ordered: bool = True) -> Dynamics:
    """What is believed of rows by moves [N, S, A, S'] of which the weeks are not known."""
    recent = weeks.nothing_yet(len(visits))
    return model.estimate(visits, known, recent, np.random.default_rng(0), ordered=ordered)


def drawn(
    visits: IntArray,
    known: Columns | None = None,
    count: int = 500,
    idle: float = 0.0,
    *,
    ordered: bool = True,
) -> FloatArray:
    """Rows [D, N, S, A, S'] from the posterior."""
    return model.draw(visits, known, count, np.random.default_rng(0), idle, ordered=ordered)


def clinic(rng: np.random.Generator, n_people: int = 30) -> FloatArray:
    """Rows [N, S, A, S'] of people as the prior has them."""
    stay, effect = rng.uniform(0, 0.8), rng.choice([0, 0.05, 0.1, 0.2, 0.3, 0.5], size=(S, 1))
    wait = np.array([rng.dirichlet(6 * (stay * here + (1 - stay) / S)) for here in np.eye(S)])
    act = (1 - effect) * wait + effect * np.eye(S)[-1]
    base = np.maximum(np.stack([wait, act], axis=1).reshape(2 * S, S), 0.003)
    own = rng.normal(size=(n_people, 2)) * [0.2, 0.1]
    expected = tilts.tilted(base / base.sum(axis=1, keepdims=True), own @ tilts.personal_terms(6).T)
    rows = rng.standard_gamma(rng.choice([10, 50, 200, 2000]) * expected) + 1e-12
    return np.asarray(rows / rows.sum(axis=2, keepdims=True)).reshape(n_people, S, 2, S)


def moved(seed: int, n_people: int = 30, total: float = 3) -> IntArray:
    """Moves [N, S, A, S'] of people of a clinic; some rows have none."""
    rng = np.random.default_rng(seed)
    P = clinic(rng, n_people)
    return np.asarray(rng.multinomial(rng.poisson(total, size=P.shape[:3]), P))


def error(visits: IntArray, rows: FloatArray, known: Columns | None = None) -> float:
    """The root mean square error of the estimate."""
    return float(np.sqrt(np.mean((believed(visits, known).mean - rows) ** 2)))


# --- estimates


@settings(max_examples=20, derandomize=True)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 12),
    st.integers(2, 5),
    st.sampled_from([0.0, 0.3, 5.0, 1000.0]),
    st.booleans(),
)
def test_rows_are_distributions_inside_their_box(
    seed: int, n_people: int, n_states: int, total: float, ordered: bool
) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.full(n_states, 0.5), size=(n_people, n_states, 2))
    visits = rng.multinomial(rng.poisson(total, size=rows.shape[:3]), rows)
    found = believed(visits, ordered=ordered)
    assert found.mean.shape == visits.shape
    assert found.mean.sum(axis=3) == pytest.approx(1)
    assert np.isfinite(found.sd).all()
    assert (found.sd >= 0).all()
    assert ((found.low >= 0) & (found.low <= found.mean)).all()
    assert ((found.mean <= found.high) & (found.high <= 1)).all()


def test_the_box_is_a_point_where_states_are_ordered_and_optimistic_where_not() -> None:
    visits = moved(0)
    point, box = believed(visits), believed(visits, ordered=False)
    assert (point.low == point.high).all()
    assert (box.low < box.high).all()
    assert box.effect is None
    assert point.effect is not None
    assert point.effect.sum(axis=1) == pytest.approx(0)


@pytest.mark.parametrize("ordered", [False, True])
def test_without_moves_all_people_have_the_same_uncertain_rows(ordered: bool) -> None:
    rng = np.random.default_rng(1)
    age = Column("age", "number", standardised(rng.normal(size=20)))
    known = Columns((age, category("ward", ["A", "B"] * 10)), 20)
    for given_columns in (None, known):
        found = believed(np.zeros((20, S, 2, S), dtype=int), given_columns, ordered=ordered)
        assert found.mean == pytest.approx(np.broadcast_to(found.mean[0], found.mean.shape))
        assert (found.sd > 0.05).all()


def test_help_is_expected_to_do_good_before_any_move_if_states_are_ordered() -> None:
    nothing = np.zeros((4, S, 2, S), dtype=int)
    mean = believed(nothing).mean
    assert ((mean[:, :, ACT] - mean[:, :, WAIT]) @ UP > 0).all()
    mean = believed(nothing, ordered=False).mean
    assert mean[:, :, ACT] == pytest.approx(mean[:, :, WAIT])


@pytest.mark.parametrize("ordered", [False, True])
def test_rows_approach_the_truth_and_their_sd_shrinks_with_moves(ordered: bool) -> None:
    rng = np.random.default_rng(2)
    rows = rng.dirichlet(np.ones(S), size=(8, S, 2))
    few, many = (believed(rng.multinomial(n, rows), ordered=ordered) for n in (5, 2000))
    assert many.sd.max() < few.sd.mean()
    assert many.mean == pytest.approx(rows, abs=0.06)


def test_the_order_of_people_makes_no_difference() -> None:
    visits, order = moved(3, 12), np.random.default_rng(0).permutation(12)
    age = Column("age", "number", standardised(np.arange(12.0) ** 2))
    mixed = replace(age, values=age.values[order])
    one = believed(visits, Columns((age,), 12))
    other = believed(visits[order], Columns((mixed,), 12))
    assert other.mean == pytest.approx(one.mean[order])
    assert other.sd == pytest.approx(one.sd[order])


def test_people_who_are_alike_teach_each_other_and_others_do_not() -> None:
    rng = np.random.default_rng(5)
    same = np.broadcast_to(clinic(rng, 1), (20, S, 2, S))
    different = rng.dirichlet(np.ones(S), size=(20, S, 2))
    errors = [error(rng.multinomial(10, rows), rows) for rows in (same, different)]
    assert errors[0] < 0.6 * errors[1]


def test_somebody_who_is_often_better_off_is_expected_to_be_so_from_every_state() -> None:
    """Person 0 rises whenever they are in the worst state, and was never seen elsewhere."""
    visits = np.broadcast_to(np.full((S, 2, S), 4), (20, S, 2, S)).copy()
    visits[0] = 0
    visits[0, 0, WAIT, -1] = 10
    mean = believed(visits).mean @ UP
    assert (mean[0] > mean[1:].max(axis=0)).all()


def test_90_percent_intervals_of_rows_cover_their_share_in_clinics_like_the_prior() -> None:
    covered = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        rows = clinic(rng)
        total = rng.choice([1, 3, 10])
        found = believed(rng.multinomial(rng.poisson(total, size=rows.shape[:3]), rows))
        covered.append((np.abs(found.mean - rows) <= 1.645 * found.sd).mean())
    assert 0.85 <= np.mean(covered) <= 0.95


def test_what_help_does_for_everybody_is_found_with_its_error() -> None:
    """Help brings three of ten of the worst off to the best state, and does nothing else."""
    rows = np.full((40, S, 2, S), 1 / S)
    rows[:, 0, ACT] = 0.7 / S + 0.3 * np.eye(S)[-1]
    visits = np.random.default_rng(6).multinomial(20, rows)
    found = believed(visits)
    assert found.effect is not None
    assert found.effect_covariance is not None
    change, sd = found.effect @ UP, np.sqrt(UP @ found.effect_covariance @ UP)
    assert change[0] == pytest.approx(0.3, abs=3 * sd[0])
    assert change[0] > 2 * sd[0]
    assert (np.abs(change[1:]) < 3 * sd[1:] + 0.02).all()


# --- columns


def by_age(rng: np.random.Generator, n_people: int = 80) -> tuple[IntArray, FloatArray, Column]:
    """Moves of people whose chance to get up rises with a number, their rows, and the number."""
    age = Column("age", "number", standardised(rng.normal(size=n_people)))
    base = np.array([[0.6, 0.4], [0.45, 0.55], [0.45, 0.55], [0.3, 0.7]])
    tilt = np.asarray(0.6 * age.values[:, None], dtype=float)
    rows = tilts.tilted(base, tilt).reshape(n_people, 2, 2, 2)
    return rng.multinomial(4, rows), rows, age


def test_a_column_that_matters_is_used_and_known_to_matter() -> None:
    rng = np.random.default_rng(7)
    visits, rows, age = by_age(rng)
    noise = Column("noise", "number", standardised(rng.normal(size=80)))
    known = Columns((noise, age), 80)
    assert error(visits, rows, known) < 0.8 * error(visits, rows)
    chances = model.which_columns(model.learn(visits, known, rng))
    assert chances["age"] > 0.95
    assert chances["noise"] < 0.3


def test_columns_of_noise_do_little_harm() -> None:
    rng = np.random.default_rng(8)
    rows = clinic(rng)
    visits = rng.multinomial(5, rows)
    texts = [[f"{rng.integers(3)}x", f"{rng.normal():.3f}"] for _ in range(30)]
    known = columns.read(("noise", "number"), texts)
    assert error(visits, rows, known) < error(visits, rows) + 0.01


def test_where_states_have_no_order_a_column_that_matters_is_used_too() -> None:
    visits, _, age = by_age(np.random.default_rng(9))
    learnt = model.learn(visits, Columns((age,), 80), np.random.default_rng(0), ordered=False)
    assert model.which_columns(learnt)["age"] > 0.9


def test_scores_of_states_without_an_order_follow_how_people_differ() -> None:
    """People differ in how often they are in state 1 rather than in 0 and 2, which are alike."""
    rng = np.random.default_rng(3)
    odds = np.exp(rng.normal(size=(300, 1)) * np.array([-1.0, 1.0, -1.0]))
    counts = rng.multinomial(10, odds / odds.sum(axis=1, keepdims=True), size=(6, 300))
    counts = counts.transpose(1, 0, 2).astype(float)
    rows = counts.sum(axis=0) / counts.sum(axis=(0, 2))[:, None]
    x = tilts.learnt_scores(counts, rows)
    assert np.abs(x).max() == 1
    assert x[0] == pytest.approx(x[2], abs=0.1)
    assert x[1] == 1


@pytest.mark.parametrize("n_states", [1, 2, 3])
def test_without_moves_scores_are_finite_and_differ(n_states: int) -> None:
    rows = np.full((2 * n_states, n_states), 1 / n_states)
    x = tilts.learnt_scores(np.zeros((4, 2 * n_states, n_states)), rows)
    assert np.isfinite(x).all()
    assert n_states == 1 or np.ptp(x) > 0.5


# --- many people


def test_of_many_people_the_model_is_learnt_from_some_and_holds_for_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(10)
    visits, rows, age = by_age(rng, 300)
    visits[::10] = 0  # never seen moving: nothing is learnt from them
    known = Columns((age,), 300)
    whole = believed(visits, known)
    monkeypatch.setattr(model, "MOST_AT_ONCE", 110)
    some = model.learn(visits, known, np.random.default_rng(0)).some
    assert len(some) == 110
    assert visits[some].any(axis=(1, 2, 3)).all()
    blocks = believed(visits, known)
    assert blocks.mean.sum(axis=3) == pytest.approx(1)
    assert np.sqrt(np.mean((blocks.mean - whole.mean) ** 2)) < 0.03
    assert np.sqrt(np.mean((blocks.mean - rows) ** 2)) < 1.3 * error(visits, rows, known)
    assert blocks.mean.tobytes() == believed(visits, known).mean.tobytes()
    many = drawn(visits, known, 20)
    assert many.sum(axis=4) == pytest.approx(1)
    assert np.sqrt(np.mean((many.mean(axis=0) - blocks.mean) ** 2)) < 0.05


def test_as_many_people_as_the_sample_get_their_own_tilts(monkeypatch: pytest.MonkeyPatch) -> None:
    """59 people in blocks of 20, 20 and 19; only the block of the sample holds the sample."""
    visits, _, age = by_age(np.random.default_rng(11), 59)
    known = Columns((age,), 59)
    whole = believed(visits, known)
    monkeypatch.setattr(model, "MOST_AT_ONCE", 20)
    blocks = believed(visits, known)
    assert np.sqrt(np.mean((blocks.mean - whole.mean) ** 2)) < 0.06


def test_what_columns_say_is_drawn_once_for_all_people(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two people of the same age, of whom no moves were seen, rise or fall together."""
    visits, _, age = by_age(np.random.default_rng(12), 90)
    age.values[[3, 80]] = 3.0
    visits[[3, 80]] = 0
    known = Columns((age,), 90)

    def correlation() -> float:
        rows = drawn(visits, known, 3000)[:, :, 0, WAIT, -1]
        return float(np.corrcoef(rows[:, 3], rows[:, 80])[0, 1])

    together = correlation()
    monkeypatch.setattr(model, "MOST_AT_ONCE", 44)
    monkeypatch.setattr(model, "_some", lambda *_: np.arange(44))
    assert correlation() == pytest.approx(together, abs=0.06)


# --- weeks


def weekly(
    rng: np.random.Generator, *shares: tuple[float, int], n_people: int = 40
) -> tuple[IntArray, weeks.Recent]:
    """Moves where a share of people goes to the best state in some weeks: all, and by week."""
    visits, recent = np.zeros((n_people, S, 2, S), dtype=int), weeks.nothing_yet(n_people)
    for up, n_weeks in shares:
        for _ in range(n_weeks):
            states, helped = rng.integers(S, size=n_people), rng.integers(2, size=n_people)
            best = rng.random(n_people) < up
            then = np.where(best, S - 1, rng.integers(S - 1, size=n_people))
            visits[np.arange(n_people), states, helped, then] += 1
            recent = weeks.remembered(recent, states, helped, then)
    return visits, recent


def test_what_lately_changed_for_everybody_is_expected_to_go_on() -> None:
    rng = np.random.default_rng(13)
    visits, recent = weekly(rng, (0.2, 15), (0.6, 15))
    plain = believed(visits).mean[..., -1].mean()
    now = model.estimate(visits, None, recent, rng)
    assert plain == pytest.approx(0.4, abs=0.05)
    assert plain + 0.04 < now.mean[..., -1].mean() < 0.6
    assert now.mean.sum(axis=3) == pytest.approx(1)
    assert (now.low == now.high).all()


def test_one_week_tells_no_season_nor_do_weeks_without_moves() -> None:
    rng = np.random.default_rng(14)
    visits, recent = weekly(rng, (0.7, 1))
    plain = believed(visits).mean
    assert model.estimate(visits, None, recent, rng).mean == pytest.approx(plain, abs=1e-12)
    unknown = np.full((5, 3, 40), UNKNOWN, dtype=np.int16)
    assert model.estimate(visits, None, unknown, rng).mean == pytest.approx(plain, abs=1e-12)


# --- draws


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("total", [0, 5])
def test_draws_are_rows_with_the_mean_and_the_sd_that_are_believed(
    total: int, ordered: bool
) -> None:
    visits = moved(15, 10, total)
    known = Columns((Column("age", "number", standardised(np.arange(10.0))),), 10)
    rows = drawn(visits, known, 4000, ordered=ordered)
    found = believed(visits, known, ordered=ordered)
    assert rows.shape == (4000, *visits.shape)
    assert rows.sum(axis=4) == pytest.approx(1)
    assert (rows >= 0).all()
    assert rows.mean(axis=0) == pytest.approx(found.mean, abs=0.02)
    assert rows.std(axis=0) == pytest.approx(found.sd, abs=0.03)


def test_draws_can_be_drawn_again() -> None:
    visits = moved(16)
    assert drawn(visits, count=5, idle=0.1).tobytes() == drawn(visits, count=5, idle=0.1).tobytes()


def test_draws_of_people_without_own_moves_vary_together() -> None:
    """What is not known of everybody is the same for all of them."""
    visits = moved(17, 10, 1)
    visits[:2] = 0
    rows = drawn(visits, count=2000)[:, :, 0, WAIT, -1]
    assert np.corrcoef(rows[:, 0], rows[:, 1])[0, 1] > 0.1


@settings(max_examples=20, derandomize=True)
@given(st.floats(1e-12, 1e3), st.integers(2, 6))
def test_rows_are_drawn_from_any_dirichlet(size: float, n_states: int) -> None:
    found = model.dirichlet(np.full((50, n_states), size), np.random.default_rng(0))
    assert np.isfinite(found).all()
    assert found.sum(axis=1) == pytest.approx(1)


def with_help(gain: float) -> IntArray:
    """Moves of 12 people with two states: help adds `gain` in the worse one, nothing else."""
    rng = np.random.default_rng(0)
    up = np.full((12, 2, 2), 0.3)
    up[:, 0, ACT] += gain
    return np.asarray(rng.multinomial(8, np.stack([1 - up, up], axis=-1)))


def share_idle(gain: float, idle: float) -> FloatArray:
    """In which share of the draws help makes no difference at all, by state."""
    rows = drawn(with_help(gain), idle=idle)
    return np.asarray((rows[:, :, :, WAIT] == rows[:, :, :, ACT]).all(axis=(1, 3)).mean(axis=0))


def test_that_help_makes_no_difference_is_drawn_as_often_as_the_moves_make_it_likely() -> None:
    plain, other = share_idle(0.5, 0.2)  # 0.3 without help and 0.8 with it is plain
    assert plain == 0
    assert other > 0.1
    assert (share_idle(0.0, 0.02) <= share_idle(0.0, 0.2)).all()
    assert share_idle(0.0, 0.02).sum() < share_idle(0.0, 0.2).sum()
    assert not share_idle(0.0, 0.0).any()


@pytest.mark.parametrize("ordered", [False, True])
def test_help_makes_no_difference_where_that_is_nearly_certain_beforehand(ordered: bool) -> None:
    rows = drawn(with_help(0.0), idle=1 - 1e-9, ordered=ordered)
    assert (rows[:, :, :, WAIT] == rows[:, :, :, ACT]).all()
    assert rows.sum(axis=4) == pytest.approx(1)
    of_all = with_help(0.0).sum(axis=(0, 2))
    shares = of_all[:, 1] / of_all.sum(axis=1)
    assert rows[..., 1].mean(axis=(0, 1, 3)) == pytest.approx(shares, abs=0.05)


# --- who is helped


def always_the_same_helped(seed: int) -> tuple[IntArray, FloatArray]:
    """26 weeks of CPAP in which the last 8 patients, of the high-risk kind, are always helped.

    Visits, and the true probabilities of the best state [n, s, a].
    """
    P, rng = environments.load("cpap").transitions, np.random.default_rng(seed)
    arms, visits = np.arange(20), np.zeros(P.shape, dtype=int)
    helped, states = (arms >= 12).astype(int), rng.integers(3, size=20)
    for _ in range(26):
        up = P[arms, states, helped].cumsum(axis=1)[:, :2]
        then = (rng.random((20, 1)) >= up).sum(axis=1)
        visits[arms, states, helped, then] += 1
        states = then
    return visits, P[..., -1]


def test_help_is_judged_honestly_where_always_the_same_are_helped() -> None:
    """Those helped are the badly off: compared with the others, help seems to do little."""
    held = []
    for seed in range(20):
        visits, best = always_the_same_helped(seed)
        rows = drawn(visits, count=100)[..., -1]
        weight = visits.sum(axis=(2, 3))
        gain, true = ((x[..., ACT] - x[..., WAIT]) * weight for x in (rows, best))
        low, high = np.quantile(gain.sum(axis=1), [0.05, 0.95], axis=0)
        held.append((low <= true.sum(axis=0)) & (true.sum(axis=0) <= high))
    assert np.mean(held) >= 0.7


def test_help_that_went_by_a_column_is_not_credited_with_what_the_column_does() -> None:
    """People with a high number were helped more often, and help does nothing."""
    rng = np.random.default_rng(8)
    x = standardised(rng.normal(size=400))
    up = 1 / (1 + np.exp(-x))[:, None, None]
    rows = np.broadcast_to(np.stack([1 - up, up], axis=-1), (400, 2, 2, 2))
    total = np.zeros((400, 2, 2), dtype=int)
    total[np.arange(400), :, (rng.random(400) < 1 / (1 + np.exp(-2 * x))).astype(int)] = 6
    visits = rng.multinomial(total, rows)
    mean = believed(visits, Columns((Column("age", "number", x),), 400)).mean[..., 1]
    assert abs((mean[..., ACT] - mean[..., WAIT]).mean()) < 0.1


def test_who_is_helped_explains_moves_only_where_most_are_helped_always_or_never() -> None:
    visits, _ = always_the_same_helped(0)
    found = model.with_selection(visits, None)
    assert found is not None
    assert found.names == (tilts.FIXED,)
    assert found.each[0].values.tolist() == [1] * 12 + [0] * 8
    assert model.with_selection(visits + visits[::-1], None) is None
    assert model.with_selection(np.zeros_like(visits), None) is None
    visits[:, :, ACT] = 0  # nobody is helped
    assert model.with_selection(visits, None) is None


def test_columns_that_are_known_stay_beside_who_is_always_helped() -> None:
    visits, _ = always_the_same_helped(0)
    age = Column("age", "number", standardised(np.arange(20.0)))
    found = model.with_selection(visits, Columns((age,), 20))
    assert found is not None
    assert found.names == ("age", tilts.FIXED)
    assert np.isfinite(drawn(visits, Columns((age,), 20), 20)).all()


def test_what_help_does_is_less_known_where_always_the_same_are_helped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    visits, _ = always_the_same_helped(1)

    def spread() -> float:
        rows = drawn(visits)[..., -1]
        return float((rows[..., ACT] - rows[..., WAIT]).mean(axis=1).std(axis=0).mean())

    honest = spread()
    monkeypatch.setattr(model, "with_selection", lambda _, known: known)
    assert honest > 1.2 * spread()
