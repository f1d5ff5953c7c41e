"""How much columns and the season change, in simulated worlds where the truth is known."""

from typing import NamedTuple

import numpy as np
import pytest

from dopl_core.learning.bandit import FloatArray, IntArray, better_states
from dopl_core.learning.columns import Column, Columns, category, standardised
from dopl_core.learning.dopl import Dopl
from dopl_core.learning.moves import model, tilts, weeks
from dopl_core.learning.moves.model import Size
from dopl_core.learning.moves.weeks import LeftOver

S, R = 3, 6
BASE = np.array(
    [
        [[0.6, 0.3, 0.1], [0.45, 0.35, 0.2]],
        [[0.3, 0.45, 0.25], [0.2, 0.45, 0.35]],
        [[0.1, 0.35, 0.55], [0.07, 0.28, 0.65]],
    ]
).reshape(R, S)
UP = np.repeat(better_states(S), 2, axis=0)
ACTS = np.arange(R) % 2


class World(NamedTuple):
    """Moves [N, S, 2, S] of people, their columns, and what each label adds to the tilts [r]."""

    visits: IntArray
    columns: Columns
    adds: dict[str, FloatArray]


def world(
    seed: int,
    ward: tuple[float, ...] = (0.5, 0.0, -0.5),
    helps: tuple[float, ...] = (0.0, 0.0, 0.0),
    age: float = 0.3,
    n_people: int = 120,
) -> World:
    """Twenty weeks in which help goes to some of the worst off; all but the seed in log-odds.

    ward: how well people of three wards do;  helps: how much more help does for them
    age: how much better people do for each standard deviation of a number
    """
    rng = np.random.default_rng(seed)
    at, number = rng.integers(3, size=n_people), standardised(rng.normal(size=n_people))
    of_ward = np.array(ward)[:, None] + np.array(helps)[:, None] * ACTS
    tilt = of_ward[at] + age * number[:, None]
    tilt += rng.normal(size=(n_people, 2)) * [0.2, 0.1] @ tilts.personal_terms(R).T
    rows = tilts.tilted(BASE, tilt)
    visits = np.zeros((n_people, S, 2, S), dtype=np.int64)
    everyone, states = np.arange(n_people), rng.integers(S, size=n_people)
    for _ in range(20):
        helped = (rng.random(n_people) < [0.3, 0.2, 0.1] @ np.eye(S)[:, states]).astype(int)
        after = following(rows[everyone, 2 * states + helped], rng)
        np.add.at(visits, (everyone, states, helped, after), 1)
        states = after
    known = category("ward", ["ABC"[code] for code in at]), Column("age", "number", number)
    average = of_ward[at].mean(axis=0)
    adds = {label: of_ward[code] - average for code, label in enumerate("ABC")}
    return World(visits, Columns(known, n_people), adds | {"": np.full(R, age)})


def following(rows: FloatArray, rng: np.random.Generator) -> IntArray:
    """Next states [n], drawn from rows [n, t]."""
    above = rng.random((len(rows), 1)) > rows.cumsum(axis=1)[:, :-1]
    return np.asarray(above.sum(axis=1))


def learnt(made: World, *, ordered: bool = True) -> model.Model:
    return model.learn(made.visits, made.columns, np.random.default_rng(0), ordered=ordered)


def sizes(made: World) -> list[Size]:
    return model.column_sizes(learnt(made), made.visits)


def truth(made: World, label: str) -> FloatArray:
    """By how much likelier people with the label are better off: without help, with, its gain."""
    share = made.visits.sum(axis=(0, 2, 3)) / made.visits.sum()
    change = (tilts.tilted(BASE, made.adds[label]) - BASE) * UP
    alone, helped = share @ change.sum(axis=1).reshape(S, 2)
    return np.array([alone, helped, helped - alone])


# --- tilts


def test_a_slope_is_how_fast_the_chance_of_good_states_rises_with_a_tilt() -> None:
    rows, step = np.random.default_rng(0).dirichlet(np.ones(S), R), 1e-6
    rise = ((tilts.tilted(rows, np.full(R, step)) - rows) * UP).sum(axis=1)
    assert tilts.slopes(rows, UP) == pytest.approx(rise / step, abs=1e-4)


def test_what_a_label_adds_is_what_the_tilts_of_its_people_have_more_than_the_average() -> None:
    made = world(0)
    found = learnt(made).tilts
    assert found is not None
    own = tilts._eta(found.features, found.shared.beta, 0 * found.personal, R)
    added = {one.label: one for one in tilts.added(found.shared)}
    assert list(added) == ["A", "B", "C", ""]
    of_wards = np.sum([added[label].tilt * added[label].people.mean() for label in "ABC"], axis=0)
    assert of_wards == pytest.approx(0)
    number = made.columns.each[1].values
    for one in added.values():
        if one.label:
            expected = one.tilt + number[one.people, None] * added[""].tilt
            assert own[one.people] == pytest.approx(expected)


def test_what_a_label_adds_is_as_uncertain_as_draws_of_its_terms_differ() -> None:
    found = learnt(world(1)).tilts
    assert found is not None
    off = found.shared.draw_off(4_000, np.random.default_rng(0)).reshape(4_000, -1, 2 + R)
    for one in tilts.added(found.shared):
        F = found.features[one.people.argmax()] * [1, 1, 1, 0] if one.label else np.eye(4)[3]
        drawn = F @ (off @ tilts.terms(R).T)
        assert drawn.var(axis=0) == pytest.approx(one.covariance.diagonal(), rel=0.15)


def test_two_labels_are_each_other_s_opposite_and_labels_of_nobody_are_left_out() -> None:
    made = world(2)
    team = category("team", ["X" if n % 3 else "Y" for n in range(120)])
    nobody = Column("rare", "category", team.values, (*team.labels, "Z"))
    found = learnt(made._replace(columns=Columns((team, nobody), 120))).tilts
    assert found is not None
    by_label = {(one.column, one.label): one.tilt for one in tilts.added(found.shared)}
    assert by_label["team", "X"] == pytest.approx(-by_label["team", "Y"] / 2)
    assert ("rare", "X") in by_label
    assert ("rare", "Z") not in by_label


# --- sizes of columns


@pytest.mark.parametrize("helps", [(0.0, 0.0, 0.0), (0.6, 0.0, -0.6)])
def test_90_percent_intervals_cover_known_sizes(helps: tuple[float, ...]) -> None:
    off = []
    for seed in range(15):
        made = world(seed, helps=helps)
        off += [(one.mean - truth(made, one.label)) / one.error for one in sizes(made)]
    covered = (np.abs(off) < 1.645).mean(axis=0)
    assert (covered >= 0.8).all()


def test_sizes_of_columns_that_matter_are_found_and_those_of_noise_are_near_0() -> None:
    found = {one.label: one for one in sizes(world(3))}
    for label, sign in (("A", 1), ("C", -1), ("", 1)):
        assert sign * found[label].mean[0] > 1.645 * found[label].error[0]
    noise = np.array(
        [one.mean for seed in range(10) for one in sizes(world(seed, (0, 0, 0), age=0))]
    )
    assert np.abs(noise).mean() < 0.02
    assert np.abs(noise).max() < 0.08


def test_that_help_does_more_for_some_people_is_found() -> None:
    found = {one.label: one for one in sizes(world(4, (0, 0, 0), (0.9, 0.0, -0.9)))}
    assert found["A"].mean[2] > 1.645 * found["A"].error[2]
    assert found["C"].mean[2] < -1.645 * found["C"].error[2]
    assert found["A"].mean[2] == pytest.approx(found["A"].mean[1] - found["A"].mean[0])


def test_the_moves_behind_a_size_are_counted() -> None:
    made = world(5)
    ward = made.columns.each[0].values
    for one in sizes(made):
        people = ward == "ABC".index(one.label) if one.label else np.ones(120, dtype=bool)
        assert one.moves.tolist() == made.visits[people].sum(axis=(0, 1, 3)).tolist()


def test_there_are_no_sizes_without_moves_columns_or_an_order_of_states() -> None:
    made = world(6)
    assert model.column_sizes(learnt(made, ordered=False), made.visits) == []
    assert sizes(made._replace(visits=0 * made.visits)) == []
    assert sizes(made._replace(columns=Columns((), 120))) == []


def test_a_learner_says_how_much_its_columns_change() -> None:
    made = world(7)
    settings = {"horizon": 1, "columns": made.columns, "ordered": True}
    learner = Dopl(120, S, 10, **settings)
    learner.visits = made.visits
    assert [one.label for one in learner.column_sizes()] == ["A", "B", "C", ""]
    assert Dopl(120, S, 10, horizon=1, ordered=True).column_sizes() == []
    paper = Dopl(120, S, 10, confidence="paper", **settings)
    paper.visits = made.visits
    assert paper.column_sizes() == []
    assert paper.season_size() is None


# --- the season


def clinic(seed: int, late: float, n_weeks: int = 26) -> Dopl:
    """A learner that has seen weeks, of which the last eight are tilted by `late`."""
    rng, n_people = np.random.default_rng(seed), 120
    learner, states = Dopl(n_people, S, 10, horizon=1, ordered=True), rng.integers(S, size=n_people)
    for week in range(n_weeks):
        helped = (rng.random(n_people) < 0.2).astype(int)
        rows = tilts.tilted(BASE, np.full(R, late * (week >= n_weeks - 8)))
        after = following(rows[2 * states + helped], rng)
        learner.count_moves(states, helped, after)
        states = after
    return learner


@pytest.mark.parametrize("late", [-0.6, 0.6])
def test_a_season_is_found_and_not_overstated(late: float) -> None:
    for seed in range(3):
        learner = clinic(seed, late)
        found = learner.season_size()
        assert found is not None
        mean, error = found
        assert np.sign(late) * mean > 1.645 * error
        weight = learner.visits.sum(axis=(0, 3)).ravel() / learner.visits.sum()
        change = (tilts.tilted(BASE, np.full(R, late)) - BASE) * UP
        whole = weight @ change.sum(axis=1)
        assert abs(mean) < abs(whole) + error


def test_where_weeks_are_alike_the_season_is_near_0() -> None:
    found = [clinic(seed, 0.0).season_size() for seed in range(6)]
    assert all(one is not None and abs(one[0]) < 0.01 and one[1] < 0.02 for one in found)


def test_there_is_no_season_of_one_week_or_of_states_without_an_order() -> None:
    assert clinic(0, 0.0, n_weeks=1).season_size() is None
    assert Dopl(5, S, 1, horizon=1).season_size() is None
    assert Dopl(5, S, 1, horizon=1, ordered=True).season_size() is None


def test_people_who_joined_after_the_last_report_say_nothing_of_the_season() -> None:
    learner = clinic(1, 0.6)
    before = learner.season_size()
    learner.adapt(np.ones(125, dtype=bool), 10)
    assert learner.season_size() == pytest.approx(before, rel=0.2)


def test_the_spread_of_the_season_is_that_of_the_exact_posterior(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(8)
    week, row = rng.integers(6, size=50), rng.integers(2, size=50)
    moves = LeftOver(week, 0 * week, row, rng.normal(0, 1.5, 50), rng.uniform(0.1, 1, 50))
    found = weeks.next_season(moves, 6, 2)
    assert found.tilt == pytest.approx(weeks.season(moves, 6, 2))
    means, variances = [], []
    at = np.arange(7)
    for spread in weeks.SPREADS[1:]:
        prior = spread**2 * weeks.PERSISTENCE ** abs(at[:, None] - at)
        for r in range(2):
            sums = (
                np.bincount(week[row == r], part[row == r], 7)
                for part in (moves.further, moves.variance)
            )
            pull, known = sums
            posterior = np.linalg.inv(np.linalg.inv(prior) + np.diag(known))
            means.append((posterior @ pull)[-1])
            variances.append(posterior[-1, -1])
    for number, spread in enumerate(weeks.SPREADS[1:]):  # each spread alone
        monkeypatch.setattr(weeks, "SPREADS", np.array([spread]))
        monkeypatch.setattr(weeks, "LIKELY", np.ones(1))
        alone = weeks.next_season(moves, 6, 2)
        assert alone.tilt == pytest.approx(means[2 * number : 2 * number + 2])
        assert alone.covariance == pytest.approx(np.diag(variances[2 * number : 2 * number + 2]))
    between = found.covariance - np.diag(found.covariance.diagonal())
    assert np.abs(between).max() > 0  # a spread that is likelier is so for all rows
