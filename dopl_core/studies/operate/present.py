"""The present epoch: whom to help now, and where everybody is."""

from dataclasses import dataclass

import numpy as np

from dopl_core.learning.learner import Learner
from dopl_core.studies.model.log_values import state_label
from dopl_core.studies.model.study_config import StudyConfig
from dopl_core.studies.operate.known_effects import (
    KnownEffect,
    Words,
    effect_text,
    known_effects,
)
from dopl_core.studies.replay import learner_from_log
from dopl_core.studies.replay.known_states import first_states
from dopl_core.studies.store.database import Store
from dopl_core.studies.store.study_reader import read_study


@dataclass(frozen=True)
class Helped:
    """One of the B arms to help now, and why.

    index: share of the visits to this state in which the plan helps
    advantage: what helping now is worth over waiting, at the plan's price of help
    known_effect: what was seen of help in this state so far;  seen: the same in
        words
    """

    arm: str
    label: str
    group: str
    state: str
    index: float
    advantage: float
    known_effect: KnownEffect
    seen: str


def epoch_list(store: Store, study: str) -> list[Helped]:
    """Whom to help now: the B arms of the present epoch, the most urgent first.

    In an observed world that is the epoch whose moves the owner reports next; in a simulated one
    the first whose duels still want ratings.
    """
    with read_study(store, study) as reader:
        if reader.row.episode == 0:
            return []
        config, epoch = reader.config, reader.present_epoch()
        learner = learner_from_log.learner_now(reader)
    states = np.maximum(epoch.states[epoch.listed], 0).tolist()
    known = known_effects(learner.visits)
    helped = [
        _helped(config, learner, known[s], n, s)
        for n, s in zip(epoch.listed.tolist(), states, strict=True)
    ]
    return sorted(helped, key=lambda h: (-round(h.index, 7), -h.advantage))


def present_states(store: Store, study: str) -> dict[str, str | None]:
    """Where everybody who is present is now: arm id -> state label, None where it is unknown."""
    with read_study(store, study) as reader:
        config = reader.config
        states = reader.present_epoch().states if reader.row.episode else first_states(config)
    return {
        config.arms[n].id: state_label(config, int(states[n]))
        for n in np.flatnonzero(config.present)
    }


def _helped(config: StudyConfig, learner: Learner, known: KnownEffect, n: int, s: int) -> Helped:
    """What the plan says of arm n in state s, and what is known of help in that state."""
    made, arm, state = learner.planned(), config.arms[n], config.states[s].label
    words = Words(config.noun, config.epoch_word, config.states[-1].label)
    return Helped(
        arm.id,
        arm.label,
        arm.group,
        state,
        float(made.index[n, s]),
        float(made.advantage[n, s]),
        known,
        effect_text(known, state, words),
    )
