"""The assessment of a study: the effect of help, the forecast, and how sure the list is."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dopl_core.learning.bandit import UNKNOWN, FloatArray, IntArray, state_chances
from dopl_core.learning.learner import Learner
from dopl_core.learning.places.reported_weeks import ReportedWeeks
from dopl_core.learning.planning import among_all, plan
from dopl_core.learning.preferences import MOST_EXACT, Preferences
from dopl_core.studies.analysis import earlier_help, effect_of_help, forecast
from dopl_core.studies.analysis.earlier_help import NOT_KNOWN, EarlierHelp
from dopl_core.studies.analysis.effect_of_help import (
    EffectByLot,
    EffectInState,
    EffectWithin,
    Estimate,
)
from dopl_core.studies.analysis.forecast import Forecast
from dopl_core.studies.model import rules
from dopl_core.studies.model.log_values import Epoch, reported_weeks, state_label
from dopl_core.studies.model.study_config import StudyConfig
from dopl_core.studies.operate.help_lists import listed_to_find_out
from dopl_core.studies.replay import learner_from_log
from dopl_core.studies.replay.known_states import likely_states
from dopl_core.studies.store.database import Store
from dopl_core.studies.store.study_reader import StudyReader, read_study
from dopl_core.studies.store.time_limits import slowly

MORE_ANSWERS = 40  # the assessment says how many places this many answers would change
MOST_PEOPLE = 2_000  # of a study whose places are assessed: each posterior draw needs a plan


@dataclass(frozen=True)
class Place:
    """A person on the list and the probability that they belong there (forecast.py)."""

    id: str
    label: str
    state: str | None
    by_lot: bool
    probability: float
    to_find_out: bool = False


class AnswersChanged(NamedTuple):
    """What answers changed of the list, against a list made from the order of the states alone.

    places: that other people would have had, of `of` places that the plan chose
    people_differ: whether people in one state differ by more than their uncertainty
    """

    places: int
    of: int
    people_differ: bool


@dataclass(frozen=True, eq=False)
class Assessment:
    """What the data say about a study; see effect_of_help.py and forecast.py.

    weeks: how many are reported
    state_counts: [w, 2, s] people in each state at the end of each week, not helped and helped
    effect_by_state: observed moves, past records included, and the estimate, one for each state
    effect: of help, within people and weeks;  sceptical_effect: by all moves, sceptical prior
    earlier_help: whether help wears off or works a week later
    forecast: None before the first list, before people were seen both with help and without, and
        if the learner has no posterior
    places: of the present list; empty if there is no forecast or more than MOST_PEOPLE people
    places_changed: expected number of places that MORE_ANSWERS would change; None if unknown
    answers_changed: what answers changed of the list; None if unknown, or if places are shared
    """

    config: StudyConfig
    weeks: int
    state_counts: IntArray
    effect_by_state: list[EffectInState]
    effect: EffectWithin
    effect_by_lot: EffectByLot
    sceptical_effect: Estimate
    targeting_gain: Estimate
    forecast: Forecast | None
    places: list[Place]
    places_changed: float | None
    answers_changed: AnswersChanged | None
    earlier_help: EarlierHelp = NOT_KNOWN

    @property
    def help_works(self) -> bool:
        """Whether it may be claimed that help works."""
        return self.proven_sign > 0

    @property
    def proven_sign(self) -> int:
        """Help works (1), does harm (-1), or neither is proven yet (0)."""
        return effect_of_help.proven_sign(self.effect.overall, self.sceptical_effect, self.weeks)


@slowly()
def assess(store: Store, study: str, learner: Learner | None = None) -> Assessment:
    """Assess a study as it is now; the result is the same until the next event.

    learner: the study's present learner, if it is loaded already
    """
    with read_study(store, study) as reader:
        config, row, moves = reader.config, reader.row, reader.epochs
        learner = learner or learner_from_log.learner_now(reader)
        epoch = _open_epoch(reader)
    S, weeks = config.n_states, _weeks(config, moves)
    rng = np.random.default_rng([config.seed % 2**32, row.seq])
    visits = learner.visits
    draws, sceptical = (
        learner.draw_moves(_draw_count(visits), rng, no_effect)
        for no_effect in (0.0, forecast.NO_EFFECT_PRIOR)
    )
    gains = effect_of_help.gains(draws)
    coming: Forecast | None = None
    places: list[Place] = []
    changed: float | None = None
    answers_changed: AnswersChanged | None = None
    seen = effect_of_help.seen_both_ways(visits).any()  # no figure without observations
    if epoch is not None and learner.has_posterior and seen:
        where = state_probabilities(learner, epoch.states, moves)
        states = epoch.states, where.argmax(axis=1)
        coming = _forecast(learner, forecast.under_both_priors(draws, sceptical), states[1], rng)
        if learner.present.sum() <= MOST_PEOPLE:
            places = _places(config, learner, draws, states, (*moves[:-1], epoch), rng)
            if learner.counts.total():  # pages do not speak of answers before the first one
                changed = places_changed(learner, states, moves[-1], rng)
            if config.ordered and not config.fair_column:  # a group's share decides places, too
                may = rules.eligible(config, moves[:-1])
                answers_changed = _answers_changed(learner, epoch, where, may)
    return Assessment(
        config=config,
        weeks=len(weeks.states),
        state_counts=effect_of_help.state_counts(weeks, S),
        effect_by_state=effect_of_help.effect_by_state(gains, visits),
        effect=effect_of_help.effect_within(weeks, S),
        effect_by_lot=effect_of_help.effect_by_lot(weeks, S),
        sceptical_effect=effect_of_help.overall_effect(effect_of_help.gains(sceptical), visits),
        targeting_gain=effect_of_help.targeting_gain(gains[:, : weeks.states.shape[1]], weeks),
        forecast=coming,
        places=places,
        places_changed=changed,
        answers_changed=answers_changed,
        earlier_help=NOT_KNOWN if learner.plan is None else earlier_help.of_learner(learner),
    )


def _open_epoch(reader: StudyReader) -> Epoch | None:
    """The epoch that is going on, and who is listed to find out; None before the first list."""
    if not reader.row.episode:
        return None
    if reader.config.world == "simulated":
        return reader.present_epoch()
    return replace(reader.present_epoch(), to_find_out=listed_to_find_out(reader))


def _weeks(config: StudyConfig, moves: Sequence[Epoch]) -> ReportedWeeks:
    """The reported weeks, with the rules of the study."""
    n_arms = max((len(move.states) for move in moves), default=config.n_arms)
    groups = shared.codes[:n_arms] if (shared := rules.sharing(config)) else None
    barred = rules.barred(config, moves)
    return reported_weeks(moves, n_arms)._replace(barred=barred, groups=groups)


def _draw_count(visits: IntArray) -> int:
    """How many posterior draws take at most about a second."""
    return int(np.clip(4_000_000 // visits.size, 20, 600))


def state_probabilities(learner: Learner, states: IntArray, moves: Sequence[Epoch]) -> FloatArray:
    """The probability of each state [n, s]."""
    rows = learner.known_dynamics().mean
    lost = likely_states(states, moves[:-1], learner.present, rows)
    return state_chances(states, learner.n_states, lost, learner.present)


def _forecast(
    learner: Learner, draws: FloatArray, states: IntArray, rng: np.random.Generator
) -> Forecast:
    """How many people will be in the better half in the coming weeks."""
    here = np.flatnonzero(learner.present)
    half = np.tile(effect_of_help.better_half(learner.n_states).astype(float), (len(here), 1))
    pay = forecast.simulate_weeks(
        draws[:, here],
        half,
        forecast.policies(learner.priority[here]),
        states[here],
        learner.budget,
        rng,
        times=max(1, 200 // len(here)),
    )
    return forecast.summarise_weeks(pay)


def _places(
    config: StudyConfig,
    learner: Learner,
    draws: FloatArray,
    states: tuple[IntArray, IntArray],
    epochs: Sequence[Epoch],
    rng: np.random.Generator,
) -> list[Place]:
    """The places of the list: first those chosen, the surest first; those by lot come last.

    states: as they are known, and with the most likely state where unknown
    epochs: all, that of the list last
    """
    known, likely = states
    listed, may = epochs[-1], rules.eligible(config, epochs[:-1])
    here = np.flatnonzero(learner.present)
    count = int(np.clip(4_000 // len(here), 10, 60))
    strengths = learner.draw_strengths(count, rng)[:, here]
    problem = (likely[here], learner.budget, learner.pays, None if may is None else may[here])
    best = forecast.best_lists(draws[:count, here], strengths, *problem)
    probability = np.zeros(learner.n_arms)
    probability[here] = forecast.belonging_probability(best)
    by_lot, finds_out = set(listed.by_lot.tolist()), set(listed.to_find_out.tolist())
    places = [
        Place(
            id=config.arms[n].id,
            label=config.arms[n].label,
            state=state_label(config, int(known[n])),
            by_lot=n in by_lot,
            probability=float(probability[n]),
            to_find_out=n in finds_out,
        )
        for n in listed.listed.tolist()
    ]
    return sorted(places, key=lambda one: (one.by_lot, one.to_find_out, -one.probability))


def places_changed(
    learner: Learner,
    states: tuple[IntArray, IntArray],
    listed: Epoch,
    rng: np.random.Generator,
    more: int = MORE_ANSWERS,
) -> float | None:
    """How many places `more` answers to the most informative duels would change, on average.

    states: as they are known, and with the most likely state where unknown
    """
    too_many = learner.n_arms * learner.n_states > MOST_EXACT
    if too_many or len(listed.drawn) >= learner.budget:
        return None
    known, likely = states
    duels = learner.informative_duels(known, more, rng)
    if not len(duels) or learner.dynamics is None:
        return None
    duels = np.resize(duels, (more, duels.shape[1]))  # if there are fewer pairs, some come again
    belief, here = learner.belief(), np.flatnonzero(learner.present)
    assert belief.covariance is not None  # noqa: S101
    pairs = duels[:, ::2] * learner.n_states + duels[:, 1::2]
    mean = belief.mean.ravel()
    factor = forecast.mean_shift_factor(belief.covariance, pairs, mean)
    shifted = mean + rng.standard_normal((30, factor.shape[1])) @ factor.T
    means = np.concatenate([mean[None], shifted]).reshape(31, *belief.mean.shape)
    P = learner.dynamics.mean[here]
    lists = forecast.best_lists(
        np.broadcast_to(P, (31, *P.shape)),
        means[:, here],
        likely[here],
        learner.budget,
        learner.pays,
    )
    return float((lists[0] & ~lists[1:]).sum(axis=1).mean())


def _answers_changed(
    learner: Learner, listed: Epoch, where: FloatArray, may: NDArray[np.bool_] | None = None
) -> AnswersChanged | None:
    """The places of the list that the order of the states alone would have given to others.

    Only people with a known state count who are on the list neither by lot nor to find out. None if
    the list was made without answers.
    where: [n, s] the probability of each state;  may: [n] who may be listed; None for all
    """
    belief, here = learner.preferences, np.flatnonzero(learner.present)
    if belief is None or belief.reference is None or learner.dynamics is None:
        return None
    states = listed.states
    chosen = np.setdiff1d(listed.arms, [*listed.by_lot, *listed.to_find_out])
    chosen = chosen[states[chosen] != UNKNOWN]
    if not len(chosen):
        return None
    alone = _by_order_alone(learner, belief, learner.dynamics.mean[here])
    others = alone.activate(states, listed.epoch, where, may)
    others = np.setdiff1d(others, alone.finds_out(states, others, where))
    urgency = alone.standing(states, where)
    places = int((~np.isin(urgency[chosen], urgency[others])).sum())  # ties are no change
    spread, unsure = belief.mean[here].std(axis=0), belief.sd[here].mean(axis=0)
    return AnswersChanged(places, len(chosen), bool((spread > unsure).any()))


def _by_order_alone(learner: Learner, belief: Preferences, P: FloatArray) -> Learner:
    """The learner, if strengths rose evenly with the order of states and people were alike.

    P: [n, s, a, s'] transitions of those who are present
    """
    order = np.tile(np.arange(learner.n_states, dtype=float), (learner.n_arms, 1))
    here, alone = np.flatnonzero(learner.present), copy.copy(learner)
    made = plan(order[here], P, P, learner.budget, engine="lagrangian", pays=learner.pays)
    alone.plan, alone.preferences = among_all(made, here, len(order)), replace(belief, mean=order)
    return alone
