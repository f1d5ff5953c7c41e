"""What one plan leads to, without a database: its epochs, their duels, and its value."""

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from dopl_core.learning.bandit import ACT, UNKNOWN, WAIT, Arrays, FloatArray, IntArray, actions
from dopl_core.learning.learner import Learner
from dopl_core.studies.model import judged_people, rules
from dopl_core.studies.model.factories import adapt, learner_of, world_of
from dopl_core.studies.model.log_values import Epoch
from dopl_core.studies.model.study_config import StudyConfig
from dopl_core.studies.replay import known_states
from dopl_core.studies.store.blobs import GONE


@dataclass(frozen=True, eq=False)
class Episode:
    """A learner that has just planned, and the epochs that can be known at once."""

    learner: Learner
    epochs: list[Epoch]
    random_value: float
    changed: float
    seconds: float


def begin(
    config: StudyConfig,
    learner: Learner,
    states: IntArray,
    epochs: Sequence[Epoch] = (),
    *,
    cold: bool = False,
    count: Callable[[], None] = lambda: None,
) -> Episode:
    """Plan, and open the first epoch from `states`; a simulated world plays all epochs at once.

    epochs: all before, as corrected by now;  cold: do not start from the numbers of the last plan
    count: counts answers about arms that the learner did not know before, see Progress.count
    """
    before = None if learner.plan is None else learner.plan.index > 0.5
    if cold:
        learner.forget_plan()
    adapt(learner, config, epochs)
    count()
    started = perf_counter()
    learner.replan()
    seconds = perf_counter() - started
    opened = list(_first_epochs(config, learner, states, epochs))
    return Episode(learner, opened, random_value(learner), _changed(learner, before), seconds)


def _changed(learner: Learner, before: NDArray[np.bool_] | None) -> float:
    """The share of arm-states in which the plan decides otherwise than the one before."""
    if before is None or learner.plan is None:
        return 1.0
    now = learner.plan.index > 0.5
    known = np.zeros_like(now)
    known[: len(before)] = before
    return float((now != known).mean())


def _first_epochs(
    config: StudyConfig, learner: Learner, states: IntArray, epochs: Sequence[Epoch]
) -> Iterator[Epoch]:
    """The epochs that can be known as soon as there is a plan: one, or all in a simulated world.

    Inside an episode the plan is fixed, so no answer could change its duels.
    """
    if config.world == "observed":
        yield open_epoch(config, learner, states, 0, epochs)
        return
    world = world_of(config)
    world.states = states
    world.begin(learner.episode, learner.horizon)
    for h in range(learner.horizon):
        epoch = open_epoch(config, learner, world.states, h)
        next_states = world.step(epoch.arms)
        learner.count_moves(epoch.states, actions(epoch.arms, learner.n_arms), next_states)
        yield replace(epoch, next_states=next_states, source="simulated")


def open_epoch(
    config: StudyConfig,
    learner: Learner,
    states: IntArray,
    number: int,
    epochs: Sequence[Epoch] = (),
) -> Epoch:
    """Which arms to help and what to ask in an epoch of the present episode.

    epochs: all before, as corrected by now
    """
    listed = list_by_plan(config, learner, states, number, epochs)
    finds_out = learner.finds_out(states, listed, _chances(learner, states, epochs))
    waiting, drawn = learner.draw_lots(listed, number, rules.eligible(config, epochs))
    arms = np.union1d(np.setdiff1d(listed, waiting), drawn)
    learner.judged = judged_people.judged_by_each(config, epochs)  # by the last report
    duels = learner.duels(states, arms, number)
    return Epoch(
        learner.episode,
        number,
        states,
        arms,
        by_lot=np.union1d(waiting, drawn),
        to_find_out=np.setdiff1d(finds_out, waiting),
        duels=duels,
    )


def list_by_plan(
    config: StudyConfig, learner: Learner, states: IntArray, number: int, epochs: Sequence[Epoch]
) -> IntArray:
    """The arms of a list before places are drawn by lot."""
    lists = [epoch.arms for epoch in epochs if epoch.episode == learner.episode]
    chances, may = _chances(learner, states, epochs), rules.eligible(config, epochs)
    return learner.activate(states, number, chances, may, lists)


def _chances(learner: Learner, states: IntArray, epochs: Sequence[Epoch]) -> FloatArray | None:
    """The probability of each state [N, S] where some are unknown."""
    if not (states == UNKNOWN).any() or learner.dynamics is None:
        return None
    return known_states.likely_states(states, epochs, learner.present, learner.dynamics.mean)


def in_line(
    config: StudyConfig, learner: Learner, epoch: Epoch, epochs: Sequence[Epoch]
) -> IntArray:
    """The arms that may be on the list of an epoch, in the order in which the plan helps them.

    epochs: all before it, as corrected by now
    """
    urgency = learner.standing(epoch.states, _chances(learner, epoch.states, epochs))
    order = np.argsort(-(urgency + learner.tie_keys[epoch.epoch]), kind="stable")
    may = rules.eligible(config, epochs)
    here = learner.present if may is None else learner.present & may
    return order[here[order]]


def places_by_answers(
    config: StudyConfig, learner: Learner, epoch: Epoch, epochs: Sequence[Epoch]
) -> int | None:
    """How many places of a list the answers since the last plan changed; None if not known."""
    other = learner.without_new_answers()
    if other is None:
        return None
    without = list_by_plan(config, other, epoch.states, epoch.epoch, epochs)
    return len(np.setdiff1d(np.setdiff1d(epoch.arms, epoch.by_lot), without))


def change_list(
    epoch: Epoch,
    line: IntArray,
    removed: set[int],
    added: set[int],
    gone: Container[int] = (),
) -> IntArray:
    """The list of an epoch after its owner took arms off and put arms on, in order.

    The next in line fill the places that become free, except those who wait by lot. Where more are
    put on, the least urgent make room, except those whom the owner put on and those drawn by lot.
    line: as `in_line` gives it;  gone: arms that have left since the list was made
    """
    on, off = (set(), set()) if epoch.own is None else _sets(epoch.own.on, epoch.own.off)
    [drawn] = _sets(epoch.by_lot)
    listed = set(epoch.listed.tolist()) - removed | added
    for arm in reversed(line.tolist()):
        if len(listed) > len(epoch.arms) and arm in listed - on - added - drawn:
            listed.remove(arm)
    for arm in line.tolist():
        stays_off = arm in listed | off | removed | drawn or arm in gone
        if len(listed) < len(epoch.arms) and not stays_off:
            listed.add(arm)
    return np.array(sorted(listed), dtype=np.int64)


def _sets(*arms: IntArray) -> list[set[int]]:
    return [set(some.tolist()) for some in arms]


def planned_learner(config: StudyConfig, arrays: Arrays) -> Learner:
    """The learner with the plan that `arrays` hold, and no counts."""
    learner = learner_of(config)
    restore_plan(learner, arrays)
    return learner


def restore_plan(learner: Learner, arrays: Arrays) -> None:
    """Give a learner the plan that `arrays` hold; its counts stay."""
    kept = {name: array for name, array in arrays.items() if name not in GONE}
    learner.restore(learner.state() | kept)


def random_value(learner: Learner) -> float:
    """The reward per epoch of helping any B arms, by the beliefs that the plan was made with.

    A lower bar than the plan's own value, which may choose the best rows of the box.
    """
    here = learner.present
    share = learner.budget / int(here.sum())
    P = learner.known_dynamics().mean[here]
    rows = (1 - share) * P[:, :, WAIT] + share * P[:, :, ACT]  # [N, S, S']
    # The stationary distribution d: d (P - 1) = 0 and sum d = 1, the last replacing one column.
    S = learner.n_states
    system = rows - np.eye(S)
    system[:, :, -1] = 1.0
    right = np.zeros((len(P), S, 1))
    right[:, -1] = 1.0
    stay = np.linalg.solve(system.transpose(0, 2, 1), right)[..., 0]
    rewards = learner.rewards()[here]
    pay = share * rewards[:, :, ACT]
    if learner.pays == "all":
        pay = pay + (1 - share) * rewards[:, :, WAIT]
    return float((stay * pay).sum())


def first_round_duels(config: StudyConfig) -> IntArray:
    """The duels of a first round [K, 4], about all arms that are present in the beginning."""
    return learner_of(config).first_round(known_states.first_states(config), config.sitting)
