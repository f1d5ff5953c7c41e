"""Why somebody is on the list or not: where they stand, what put them there, what would change it.

Every number is a place in line or a count of what was observed and answered; nothing is forecast.
"""

from dataclasses import dataclass, replace

import numpy as np

from dopl_core.learning.bandit import UNKNOWN
from dopl_core.learning.learner import Learner
from dopl_core.studies.model.errors import StudyError
from dopl_core.studies.model.log_values import Epoch
from dopl_core.studies.model.plurals import count
from dopl_core.studies.model.study_config import StudyConfig
from dopl_core.studies.operate.help_lists import listed_to_find_out
from dopl_core.studies.operate.known_effects import Words, effect_text, known_effects
from dopl_core.studies.replay import learner_from_log
from dopl_core.studies.replay.episode import in_line, list_by_plan
from dopl_core.studies.replay.known_states import last_seen
from dopl_core.studies.store.database import Store
from dopl_core.studies.store.study_reader import read_study


@dataclass(frozen=True)
class Explanation:
    """Sentences about one person and the open list.

    rank: their place in line, from 1; None if a rule keeps them off the list
    where: on the list or not
    because: what put them there;  change: what would change it
    """

    rank: int | None
    where: str
    because: list[str]
    change: list[str]


_RULES = "You can change the rule in Settings, or put them on this list."


def explain(store: Store, study: str, arm: str) -> Explanation:
    """Why somebody who is present is on the open list, or not."""
    with read_study(store, study) as reader:
        config, epochs = reader.config, reader.epochs
        if not epochs or epochs[-1].next_states is not None:
            raise StudyError("there is no open list: it is made after the first round or a report")
        learner = learner_from_log.learner_now(reader)
        epoch = replace(epochs[-1], to_find_out=listed_to_find_out(reader))
    n, before = config.arm_number(arm), epochs[:-1]
    if not config.arms[n].present:
        raise StudyError(f'"{arm}" has left and is on no list')
    line = in_line(config, learner, epoch, before).tolist()
    if n not in line:
        kept = "A rule in your settings keeps them off this list: how often, or how soon."
        return Explanation(None, kept, _observed(config, learner, epoch, before, n), [_RULES])
    rank = line.index(n) + 1
    return Explanation(
        rank,
        _where(config, epoch, n, rank, f"number {rank} of {len(line)} in line"),
        [*_observed(config, learner, epoch, before, n), _answered(config, learner, epoch, n)],
        _changes(config, learner, epoch, before, n),
    )


def _where(config: StudyConfig, epoch: Epoch, n: int, rank: int, place: str) -> str:
    """Whether somebody is on the list, and their place in line; place: in words."""
    own = epoch.own
    if own is not None and n in own.off:
        return f"You took them off this list. By the plan they are {place}."
    if own is not None and n in own.on:
        return f"You put them on this list. By the plan they are {place}."
    if n in epoch.by_lot and n in epoch.listed:
        return f"On the list: their place was chosen at random. By the plan they are {place}."
    if n in epoch.left_out and n not in epoch.listed:
        return (
            f"Not on the list: they were chosen at random to wait this {config.epoch_word}. By the "
            f"plan they are {place}."
        )
    if n in epoch.to_find_out and n in epoch.listed:
        return (
            f"On the list, to find out what help does in their state. By the plan they are {place}."
        )
    there = "On the list" if n in epoch.listed else "Not on the list"
    shared = f" Places are shared by {config.fair_column}." if config.fair_column else ""
    passed = _passed_over(config, epoch, n, rank)
    return f"{there}: {place}. The list has {count(len(epoch.listed), 'place')}.{passed}{shared}"


def _passed_over(config: StudyConfig, epoch: Epoch, n: int, rank: int) -> str:
    """Why others have the places of somebody whose place in line is on the list."""
    if n in epoch.listed or rank > _places(epoch):
        return ""
    if config.ordered and epoch.states[n] == config.n_states - 1:
        best = config.states[-1].label
        return f' Few places go to "{best}" until it is known that help does something there.'
    if finding := len(epoch.to_find_out):
        places = f"{count(finding, 'place')} {'is' if finding == 1 else 'are'}"
        return f" {places} used to find out what help does."
    return ""


def _places(epoch: Epoch) -> int:
    """How many places the plan's list has, before some were drawn by lot."""
    return len(epoch.arms) if len(epoch.left_out) else len(epoch.arms) - len(epoch.drawn)


def _observed(
    config: StudyConfig, learner: Learner, epoch: Epoch, before: list[Epoch], n: int
) -> list[str]:
    """The state, and what was observed of people in it, by the rule of known_effects."""
    seen = last_seen(n, epoch.states, before)
    if seen is None:
        return ["Their state is unknown and was never reported."]
    label, word = config.states[seen.state].label, config.epoch_word
    state = f'Their state is "{label}".'
    if seen.ago:
        ago = count(seen.ago, word)
        state = f'Their state is unknown; it was "{label}" {ago} ago.'
    words = Words(config.noun, word, config.states[-1].label)
    return [state, effect_text(known_effects(learner.visits)[seen.state], label, words)]


def _answered(config: StudyConfig, learner: Learner, epoch: Epoch, n: int) -> str:
    """What the team answered about somebody in their state."""
    if epoch.states[n] == UNKNOWN:
        return "Your team compares people whose state is known."
    code = n * config.n_states + int(epoch.states[n])
    winner, loser, _, times = learner.counts.table()
    won, lost = float(times[winner == code].sum()), float(times[loser == code].sum())
    if not round(won + lost):
        return "Your team has not compared them in this state yet."
    half = ", a tie counts half" if won % 1 else ""
    often = count(round(won + lost), "time")
    return (
        f"Your team compared them {often} in this state, and answered {won:g} "
        f"{'time' if won == 1 else 'times'} that they are doing better{half}."
    )


def _changes(
    config: StudyConfig, learner: Learner, epoch: Epoch, before: list[Epoch], n: int
) -> list[str]:
    """Where they would stand in each other state, and what else changes a place."""
    said = []
    for s, state in enumerate(config.states):
        if s != epoch.states[n]:
            states = np.where(np.arange(len(epoch.states)) == n, s, epoch.states)
            other = replace(epoch, states=states)
            line = in_line(config, learner, other, before).tolist()
            rank = line.index(n) + 1
            by_plan = list_by_plan(config, learner, states, epoch.epoch, before)
            there = ", on the list" if n in by_plan else ", not on the list"
            if config.fair_column or len(epoch.to_find_out):
                there = ""  # more than the place in line decides
            said.append(f'In "{state.label}" they would be number {rank}{there}.')
    return [*said, "Answers about them and reports of how people move change the next list."]
