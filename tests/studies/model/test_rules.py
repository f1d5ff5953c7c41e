"""The clinic's rules hold in every list, whatever owners report."""

from dataclasses import replace

import numpy as np
import pytest

from dopl_core.learning import planning
from dopl_core.learning.bandit import UNKNOWN
from dopl_core.learning.learner import Learner
from dopl_core.studies import Arm, StudyError, from_roster
from dopl_core.studies.model import rules
from dopl_core.studies.model.factories import adapt
from dopl_core.studies.model.log_values import Epoch
from dopl_core.studies.replay.episode import open_epoch

STATES = ("Low", "Middle", "High")
WARDS = ("North", "South", "West")


class Known(Learner):
    """A learner that knows how arms move, and plans once: its lists are as greedy as can be."""

    def make_plan(self):
        rng = np.random.default_rng(self.seed)
        advantage = rng.normal(size=(self.n_arms, self.n_states))
        if self.ledger is not None:  # one ward needs help far more than the others
            advantage += 3.0 * (self.ledger.sharing.codes == 0)[:, None]
        nothing = np.zeros(advantage.shape)
        return planning.Plan(
            0.0, np.zeros((*advantage.shape, 2)), nothing, advantage, 0.0, np.zeros(1), "lagrangian"
        )

    def _check_support(self, *_):
        """It can follow all settings."""


def arm(number, ward):
    return Arm(f"p{number}", f"p{number}", state="Low", columns={"ward": ward})


def clinic(rng, **more):
    """A clinic with rules drawn at random."""
    people = int(rng.integers(6, 30))
    budget = int(rng.integers(1, max(2, people // 2)))
    wards = [*WARDS, *rng.choice(WARDS, people - 3, p=[0.6, 0.3, 0.1])]
    drawn = {
        "once_in": int(rng.integers(0, 7)),
        "most_times": int(rng.choice([0, 0, 3, 10])),
        "wait_after_joining": int(rng.integers(0, 4)),
        "by_lot": int(rng.integers(0, budget)),
        "seed": int(rng.integers(1000)),
    }
    arms = [arm(n, ward) for n, ward in enumerate(wards)]
    return from_roster(arms, STATES, title="Clinic", budget=budget, **(drawn | more))


def live(config, rng, weeks=50, reports_wrong=True):
    """Lists of a clinic; people join, and help reaches others than those listed.

    Yields the configuration, the list, who was helped before [week, N], and when people joined.
    """
    learner = Known(config.n_arms, 3, config.budget, horizon=1, seed=config.seed)
    epochs, joined = [], np.zeros(config.n_arms, dtype=int)
    told = np.zeros((weeks, config.n_arms + weeks), dtype=bool)
    for week in range(weeks):
        if week and rng.random() < 0.2:
            new = arm(config.n_arms, str(rng.choice(WARDS)))
            config = replace(config, arms=(*config.arms, new))
            joined = np.append(joined, week)
        adapt(learner, config, epochs)
        learner.replan()
        states = rng.integers(0, 3, config.n_arms)
        epoch = open_epoch(config, learner, states, 0, epochs)
        helped = epoch.arms
        if reports_wrong and rng.random() < 0.5:
            others = rng.choice(config.n_arms, 2, replace=False)
            helped = np.unique([*epoch.arms[rng.random(len(epoch.arms)) < 0.8], *others])
        yield config, epoch, told[:week, : config.n_arms], joined
        told[week, helped] = True
        epochs.append(replace(epoch, next_states=states, helped=helped))


def check_lists(config, epoch, told, joined):
    """The rules on how often, counted plainly."""
    week = len(told)
    ago = np.arange(week, 0, -1)[:, None]
    recent = (told & (ago < config.once_in)).any(axis=0)
    spent = (told.sum(axis=0) >= config.most_times) & (config.most_times > 0)
    new = (joined > 0) & (week - joined < config.wait_after_joining)
    allowed = set(np.flatnonzero(~(recent | spent | new)).tolist())
    assert set(epoch.arms.tolist()) <= allowed, (week, config)
    assert len(epoch.arms) == min(config.budget, len(allowed))
    assert set(epoch.by_lot.tolist()) <= allowed
    assert len(epoch.drawn) == len(epoch.left_out) <= len(allowed) - len(epoch.arms)


@pytest.mark.parametrize("seed", range(6))
def test_rules_on_how_often_hold_in_every_list(seed):
    rng = np.random.default_rng(seed)
    for week in live(clinic(rng), rng, weeks=25):
        check_lists(*week)


@pytest.mark.long
@pytest.mark.parametrize("block", range(4))
def test_rules_hold_in_200_clinics_of_50_weeks(block):
    for seed in range(50 * block, 50 * block + 50):
        rng = np.random.default_rng(seed)
        for week in live(clinic(rng, fair_column="ward"), rng):
            check_lists(*week)


def shares_missing(config, rng, weeks):
    """How many places each ward lacks in the worst week, of its share of all places so far."""
    owed, worst = np.zeros(3), 0.0
    for now, epoch, _, _ in live(config, rng, weeks, reports_wrong=False):
        shared = rules.sharing(now)
        had = np.bincount(shared.codes[epoch.arms], minlength=3)
        owed += shared.shares * len(epoch.arms) - had
        worst = max(worst, owed.max())
    return worst


@pytest.mark.parametrize("rule", [{}, {"fair_rule": "shares", "fair_shares": "South 40, West 25%"}])
@pytest.mark.parametrize("seed", range(4))
def test_floors_hold_within_one_place(seed, rule):
    rng = np.random.default_rng(seed)
    free = {"once_in": 0, "most_times": 0, "wait_after_joining": 0, "by_lot": 0}
    config = clinic(rng, fair_column="ward", **free, **rule)
    # A ward cannot have more places than people.
    config = replace(config, budget=min(config.budget, 3))
    assert shares_missing(config, rng, 25) <= 1 + 1e-9


@pytest.mark.long
@pytest.mark.parametrize("block", range(4))
def test_floors_hold_within_one_place_in_200_clinics_of_50_weeks(block):
    for seed in range(50 * block, 50 * block + 50):
        rng = np.random.default_rng(seed)
        free = {"once_in": 0, "most_times": 0, "wait_after_joining": 0, "by_lot": 0}
        config = replace(clinic(rng, fair_column="ward", **free), budget=2)
        assert shares_missing(config, rng, 50) <= 1 + 1e-9, seed


def test_help_off_the_list_counts_and_the_list_is_shorter_if_few_may_be_listed():
    config = from_roster(
        [arm(n, "North") for n in range(4)], STATES, title="C", budget=2, once_in=3
    )
    states = np.zeros(4, dtype=int)
    first = Epoch(1, 0, states, np.array([0, 1]), states, "owner", helped=np.array([0, 1, 2]))
    assert rules.eligible(config, [first]).tolist() == [False, False, False, True]
    learner = Known(4, 3, 2, horizon=1)
    adapt(learner, config, [first])
    learner.replan()
    assert open_epoch(config, learner, states, 0, [first]).arms.tolist() == [3]


def test_those_who_could_not_be_listed_are_known_for_each_reported_week():
    arms = [arm(n, "North") for n in range(3)]
    config = from_roster(arms, STATES, title="C", budget=1, once_in=2)
    states = np.zeros(3, dtype=int)
    weeks = [Epoch(k, 0, states, np.array([k]), states, "owner") for k in range(2)]
    weeks.append(Epoch(2, 0, states, np.array([2])))  # not reported yet
    assert rules.barred(config, weeks).tolist() == [[False] * 3, [True, False, False]]
    assert rules.barred(replace(config, once_in=0), weeks) is None


def test_a_newcomer_waits_and_the_first_roster_does_not():
    config = from_roster(
        [arm(n, "North") for n in range(4)], STATES, title="C", budget=2, wait_after_joining=2
    )
    before = [Epoch(k, 0, np.full(n, UNKNOWN), np.array([0])) for k, n in ((1, 3), (2, 3), (3, 4))]
    assert rules.eligible(config, []).all()
    assert rules.eligible(config, before[:2]).tolist() == [True, True, True, False]
    assert rules.eligible(config, before).tolist() == [True, True, True, False]
    later = [*before, replace(before[-1], episode=4)]
    assert rules.eligible(config, later).all()


def test_the_plan_knows_how_often_people_may_be_helped_on_average():
    config = from_roster(
        [arm(n, "North") for n in range(3)], STATES, title="C", budget=1, once_in=4, most_times=2
    )
    states = np.zeros(3, dtype=int)
    helped = [Epoch(k, 0, states, np.array([0])) for k in (1, 2)]
    assert rules.caps(config, helped) == pytest.approx([0, 2 / rules.SPREAD, 2 / rules.SPREAD])
    assert rules.caps(replace(config, most_times=0), helped) == pytest.approx([0.25] * 3)
    assert rules.caps(replace(config, most_times=0, once_in=1), helped) is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"fair_column": "wrd"}, 'fair_column: the roster has no column "wrd", only group, ward'),
        ({"fair_rule": "shares"}, "fair_shares: the percentages must be from 0 and sum to at most"),
        ({"fair_rule": "shares", "fair_shares": "North"}, 'fair_shares: "North" has no percentage'),
        ({"fair_rule": "shares", "fair_shares": "Nroth 30"}, '"Nroth" is not one of North, South'),
        ({"fair_rule": "shares", "fair_shares": "North 70, South 40"}, "sum to at most 100"),
        ({"fair_rule": "most"}, 'fair_rule is "most"'),
        ({"once_in": -1}, "once_in is -1"),
    ],
)
def test_rules_that_make_no_sense_are_refused(given, message):
    arms = [arm(n, WARDS[n % 2]) for n in range(4)]
    with pytest.raises(StudyError, match=message):
        from_roster(arms, STATES, title="C", budget=2, **({"fair_column": "ward"} | given))
