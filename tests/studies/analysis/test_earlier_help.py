"""Whether help wears off or works a week later, in simulated clinics where the truth is known."""

import numpy as np
import pytest
from playing import clinic

from dopl_core.learning.dopl import Dopl
from dopl_core.learning.moves.tilts import tilted
from dopl_core.learning.places.reported_weeks import better_states
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


def test_a_slope_is_how_fast_the_chance_to_be_better_off_rises_with_a_tilt():
    P = np.random.default_rng(0).dirichlet(np.ones(S), (S, 2))
    up, step = better_states(S)[:, None].astype(float), 1e-6
    rise = (tilted(P, np.full((S, 2), step)) - P) * up
    assert np.allclose(earlier_help.slopes(P), rise.sum(axis=2) / step, atol=1e-4)


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
