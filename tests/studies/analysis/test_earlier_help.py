"""Whether help wears off or works a week later, in simulated clinics where the truth is known."""

import tracemalloc

import numpy as np
import pytest
from playing import clinic

from dopl_core.learning.dopl import Dopl
from dopl_core.learning.moves import weeks
from dopl_core.learning.moves.tilts import tilted
from dopl_core.learning.moves.weeks import LeftOver, Recent
from dopl_core.studies.analysis import assessment_text, earlier_help
from dopl_core.studies.analysis.assessment import Assessment
from dopl_core.studies.analysis.earlier_help import NOT_KNOWN, EarlierHelp
from dopl_core.studies.analysis.effect_of_help import (
    UNKNOWN_ESTIMATE,
    EffectByLot,
    EffectWithin,
    Estimate,
)

N, S, B, WEEKS = 40, 3, 10, 26
WEARS_OFF, LATE = Estimate(-0.06, -0.1, -0.02, 0.01), Estimate(0.08, 0.03, 0.13, 0.99)
ROWS = np.array([[0.7, 0.25, 0.05], [0.25, 0.5, 0.25], [0.05, 0.3, 0.65]])


def found(
    seed: int,
    *,
    help_adds: float = 1.0,
    again: float = 0.0,
    later: float = 0.0,
    differ: float = 0.0,
    season: float = 0.0,
) -> EarlierHelp:
    """What 26 weeks of a clinic say that helps the worst off; all but the seed in log-odds.

    again: for each time helped in the four weeks before;  later: for help in the week before
    differ: standard deviation of how well people do;  season: its amplitude
    """
    rng = np.random.default_rng(seed)
    learner = Dopl(N, S, B, horizon=1, seed=seed, ordered=True)
    own, states = differ * rng.standard_normal(N), rng.integers(S, size=N)
    past = np.zeros((WEEKS + 4, N))
    for week in range(4, WEEKS + 4):
        helped = np.zeros(N, dtype=np.int64)
        helped[np.argsort(states + rng.random(N))[:B]] = 1
        tilt = own + helped * (help_adds + again * past[week - 4 : week].sum(axis=0))
        tilt += later * past[week - 1] + season * np.sin(2 * np.pi * week / WEEKS)
        chances = tilted(ROWS[states][:, None], tilt[:, None])[:, 0]
        after = (rng.random((N, 1)) > chances.cumsum(axis=1)).sum(axis=1)
        learner.count_moves(states, helped, after)
        past[week], states = helped, after
    learner.replan()
    return earlier_help.of_learner(learner)


def claims(estimates: list[Estimate]) -> tuple[int, int]:
    """How many intervals are below 0, and above 0."""
    return sum(one.high < 0 for one in estimates), sum(one.low > 0 for one in estimates)


@pytest.mark.parametrize("people", [{}, {"differ": 0.8}, {"differ": 0.8, "season": 0.8}])
@pytest.mark.parametrize("help_adds", [0.0, 1.0])
def test_where_earlier_help_changes_nothing_few_clinics_say_that_it_does(help_adds, people):
    clinics = [found(seed, help_adds=help_adds, **people) for seed in range(20)]
    for estimates in zip(*clinics, strict=True):
        assert sum(claims(list(estimates))) <= 5  # 2 are expected, more than 5 come 1 in 90 times


def test_help_that_wears_off_is_found_and_does_not_seem_to_work_late():
    clinics = [found(seed, again=-0.4, differ=0.4) for seed in range(8)]
    again, later = (claims(list(estimates)) for estimates in zip(*clinics, strict=True))
    assert again[0] >= 6
    assert again[1] == 0
    assert later[1] <= 1


def test_help_that_works_a_week_later_is_found_and_does_not_seem_to_wear_off():
    clinics = [found(seed, later=0.7, differ=0.4) for seed in range(8)]
    again, later = (claims(list(estimates)) for estimates in zip(*clinics, strict=True))
    assert later[1] >= 6
    assert later[0] == 0
    assert again[0] <= 2


def some_weeks(n_weeks: int, n_people: int) -> tuple[Recent, LeftOver]:
    """Random moves, of which some are unknown, and what they say beyond the same rows for all."""
    rng = np.random.default_rng(0)
    size = n_weeks, n_people
    moves = rng.integers(-1, S, size), rng.integers(2, size=size), rng.integers(-1, S, size)
    recent = weeks.remembered(weeks.nothing_yet(n_people), *moves)
    return recent, weeks.left_over(recent, np.full((n_people, 2 * S, S), 1 / S))


def test_the_fit_solves_the_normal_equations_with_all_terms(monkeypatch):
    """Those of people are not eliminated here; their variance is that beforehand."""
    monkeypatch.setattr(earlier_help, "ROUNDS", 1)
    recent, moves = some_weeks(9, 15)
    times, before = weeks.past_help(recent)
    at = moves.week, moves.person
    earlier = np.stack([times[at] * (moves.row % 2), before[at]], axis=1)
    codes = (
        (moves.row, 2 * S, earlier_help.OF_ROWS),
        (moves.week, 9, earlier_help.OF_WEEKS),
        (moves.person, 15, np.sqrt(earlier_help.OF_PEOPLE)),
    )
    X = np.hstack([weeks.BEFOREHAND * earlier, *(sd * np.eye(n)[code] for code, n, sd in codes)])
    inverse = np.linalg.inv(np.eye(X.shape[1]) + X.T @ (moves.variance[:, None] * X))
    mean, covariance = earlier_help.fit(recent, moves, 2 * S)
    assert mean == pytest.approx(weeks.BEFOREHAND * (inverse @ X.T @ moves.further)[:2])
    assert covariance == pytest.approx(weeks.BEFOREHAND**2 * inverse[:2, :2])


def test_the_fit_makes_no_table_of_moves_by_weeks():
    """Of 10,000 people it would have 90 MB, and take seconds."""
    recent, moves = some_weeks(30, 2_000)
    tracemalloc.start()
    earlier_help.fit(recent, moves, 2 * S)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < len(moves.row) * 30 * 8 / 2


def test_nothing_is_known_before_moves_or_of_states_without_an_order():
    for ordered in (True, False):
        learner = Dopl(N, S, B, horizon=1, ordered=ordered)
        learner.replan()
        assert earlier_help.of_learner(learner) == NOT_KNOWN
    for _ in range(3):
        learner.count_moves(np.zeros(N, dtype=int), np.arange(N) % 2, np.arange(N) % S)
    learner.replan()
    assert earlier_help.of_learner(learner) == NOT_KNOWN


def test_people_who_joined_since_the_plan_are_left_out():
    learner = Dopl(4, S, 2, horizon=1, ordered=True)
    learner.replan()
    learner.recent = np.ones((5, 3, 6), dtype=np.int16)
    assert earlier_help.of_learner(learner).later.known


def sentences(earlier: EarlierHelp, *, weeks: int = 12, works: bool = True) -> list[str]:
    """What Insights says of earlier help after this many weeks, where help works or may not."""
    effect = Estimate(0.2, 0.08, 0.31, 0.999) if works else Estimate(0.02, -0.06, 0.1, 0.7)
    found = Assessment(
        config=clinic(horizon=1, noun="patient"),
        weeks=weeks,
        state_counts=np.zeros((weeks, 2, S), dtype=np.int64),
        effect_by_state=[],
        effect=EffectWithin(effect, []),
        effect_by_lot=EffectByLot(0, UNKNOWN_ESTIMATE),
        sceptical_effect=effect,
        targeting_gain=UNKNOWN_ESTIMATE,
        forecast=None,
        places=[],
        places_changed=None,
        answers_changed=None,
        earlier_help=earlier,
    )
    return assessment_text.earlier_help_text(found)


@pytest.mark.parametrize(
    ("earlier", "said"),
    [
        (
            EarlierHelp(WEARS_OFF, NOT_KNOWN.later),
            [
                "Help does less for patients who were helped in the 4 weeks before. For each time, "
                "6 fewer patients in 100 (90 % interval 2 to 10) are better off the next week."
            ],
        ),
        (
            EarlierHelp(Estimate(0.0, -0.02, 0.02, 0.5), LATE),
            [
                "Help still works a week later. After help in the week before, 8 more patients in "
                "100 (90 % interval 3 to 13) are better off the next week."
            ],
        ),
        (EarlierHelp(Estimate(-0.02, -0.05, 0.01, 0.1), Estimate(0.01, 0.001, 0.02, 0.96)), []),
        (NOT_KNOWN, []),
    ],
)
def test_pages_say_of_earlier_help_what_is_known(earlier, said):
    assert sentences(earlier) == said
    assert sentences(earlier, weeks=7) == []


def test_that_help_does_more_than_it_seems_is_said_only_where_it_works():
    assert len(sentences(EarlierHelp(LATE, LATE))) == 2
    assert sentences(EarlierHelp(LATE, LATE), works=False) == []
    less, worse = sentences(EarlierHelp(WEARS_OFF, WEARS_OFF), works=False)
    assert less.startswith("Help does less for patients who were helped in the 4 weeks before.")
    assert worse.startswith("A week after help, patients do worse than without it.")
