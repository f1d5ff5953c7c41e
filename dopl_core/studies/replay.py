"""A study played again from nothing: every plan, duel and move must come out the same."""

from collections import defaultdict
from dataclasses import replace

import numpy as np

from dopl_core.learning.bandit import IntArray, actions
from dopl_core.learning.learner import Dopl
from dopl_core.studies.arrays import digest
from dopl_core.studies.config import learner_of
from dopl_core.studies.episode import Epoch, begin, first_states, open_epoch, plan_arrays
from dopl_core.studies.history import History, Impression, Move
from dopl_core.studies.vocabulary import CREDIT, LEARNT


class ReplayError(ValueError):
    """What was recorded is not what comes out: says where they part."""


def replay(history: History) -> Dopl:
    """The learner, from the configuration, the answers and what the owner reported.

    Compares with what was recorded, to the bit: the plans' arrays, whom they helped, what was
    asked, and how a simulated world moved.
    """
    config = history.config
    learner, states = learner_of(config), first_states(config)
    moves, shown = _by_episode(history)
    for plan in history.plans:
        k = plan.plan
        epochs = begin(config, learner, states).epochs
        if plan.digest not in (None, digest(plan_arrays(learner))):
            raise ReplayError(f"plan {k} comes out differently: its arrays are not those recorded")
        for h, move in enumerate(moves[k]):
            if config.world == "observed" and h > 0:
                epochs.append(open_epoch(learner, states, h))
            _compare(epochs[h], move)
            if move.next_states is not None:
                states = move.next_states
                if config.world == "observed":
                    learner.count_moves(move.states, actions(move.arms, config.n_arms), states)
        for impression in shown[k]:
            _count(learner, impression, epochs)
    return learner


def with_arrays(history: History) -> History:
    """The history with what its learner held after the last plan, computed where it is missing."""
    if history.arrays is not None:
        return history
    return replace(history, arrays=plan_arrays(replay(history)))


def _by_episode(history: History) -> tuple[dict[int, list[Move]], dict[int, list[Impression]]]:
    moves: dict[int, list[Move]] = defaultdict(list)
    shown: dict[int, list[Impression]] = defaultdict(list)
    for move in history.moves:
        moves[move.episode].append(move)
    for impression in history.impressions:
        if impression.purpose in LEARNT:
            shown[impression.place[0]].append(impression)
    return moves, shown


def _compare(epoch: Epoch, move: Move) -> None:
    where = f"episode {move.episode} epoch {move.epoch}"
    if not np.array_equal(epoch.states, move.states):
        raise ReplayError(f"{where}: the states are not those recorded")
    if not np.array_equal(epoch.arms, move.arms):
        raise ReplayError(f"{where}: the plan helps other arms than those recorded")
    if epoch.next_states is not None and epoch.next_states.tolist() != _listed(move.next_states):
        raise ReplayError(f"{where}: the simulated world moves otherwise than recorded")


def _listed(states: IntArray | None) -> list[int]:
    return [] if states is None else states.tolist()


def _count(learner: Dopl, shown: Impression, epochs: list[Epoch]) -> None:
    _, epoch, number = shown.place
    if epochs[epoch].duels[number : number + 1].tolist() != [list(shown.sides)]:
        raise ReplayError(f"episode, epoch, duel {shown.place}: something else would be asked")
    if shown.learnt:
        learner.count_duels([shown.sides], [CREDIT[str(shown.outcome)]])
