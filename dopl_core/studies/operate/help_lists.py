"""Help lists: the people listed each week, the reasons at that time, and the outcomes."""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import Literal

import msgspec
import numpy as np
from msgspec import structs
from scipy.special import ndtr

from dopl_core.learning.bandit import ACT, UNKNOWN, WAIT, IntArray, better_states
from dopl_core.learning.learner import Learner
from dopl_core.studies.collect.views import name_of
from dopl_core.studies.model import event_bodies as bodies
from dopl_core.studies.model.event_bodies import ListChanged, ListEntry
from dopl_core.studies.model.event_kinds import body_of
from dopl_core.studies.model.log_values import Epoch, Event, state_label
from dopl_core.studies.model.names import is_erased
from dopl_core.studies.model.owner_words import many_weeks, people, this_week
from dopl_core.studies.model.study_config import StudyConfig
from dopl_core.studies.operate.known_effects import (
    KnownEffect,
    Words,
    effect_text,
    known_effects,
)
from dopl_core.studies.replay.episode import in_line
from dopl_core.studies.replay.known_states import last_seen, likely_states
from dopl_core.studies.store.database import Store
from dopl_core.studies.store.study_reader import StudyReader, read_study
from dopl_core.wording import _, format_number, ngettext

OwnWords = Callable[[str], str]  # StudyConfig.own_words

LIST_EVENTS = ("listed", "list_changed")


class Listed(ListEntry, frozen=True, kw_only=True):
    """A person on a list, next in line, taken off or left out by lot, with what became of them.

    facts: what the owner chose to see on the list, by column
    namesake: whether others in the study have the same label
    changed: "on" or "off" where the owner put them on the list or took them off;  because: why
    helped: whether they were really helped; None until reported
    then: label of the state at the end of the epoch; None if unknown
    """

    label: str
    group: str
    facts: dict[str, str] = msgspec.field(default_factory=dict)
    namesake: bool = False
    changed: Literal["", "on", "off"] = ""
    because: str = ""
    helped: bool | None = None
    then: str | None = None

    @property
    def known_effect(self) -> KnownEffect | None:
        """What was known of help in the person's state; None where the list has no counts."""
        counts = [getattr(self, name) for name in KnownEffect._fields]
        return None if None in counts else KnownEffect(*counts)


@dataclass(frozen=True)
class WeekList:
    """The list of one week, the most urgent first; made_at: milliseconds since 1970.

    word: the owner's word for a week;  states: labels from worst to best;  noun: the owner's noun
    reserve: the next in line, in order;  removed: people whom the owner took off
    left_out: people who wait by lot, though the plan would have listed them
    facts: the columns that the owner chose for the list, as far as they say something
    by_answers: how many places the newest answers changed; None if there were none
    empty_places: that the study's rules left empty
    """

    week: int
    made_at: int
    listed: list[Listed]
    reported: bool
    word: str = "week"
    states: tuple[str, ...] = ("",)
    noun: str = "person"
    facts: tuple[str, ...] = ()
    reserve: list[Listed] = field(default_factory=list)
    removed: list[Listed] = field(default_factory=list)
    by_answers: int | None = None
    empty_places: int = 0
    left_out: list[Listed] = field(default_factory=list)

    @property
    def all_equal(self) -> bool:
        """Whether all places are ties that were broken at random."""
        return bool(self.listed) and all(one.equal for one in self.listed)

    @property
    def everybody(self) -> list[Listed]:
        """All people whom the list names, except those left out by lot."""
        return [*self.listed, *self.reserve, *self.removed]


def reasons(
    config: StudyConfig,
    learner: Learner,
    epoch: Epoch,
    moves: Sequence[Epoch],
    visits: IntArray,
    gone: Container[int] = (),
) -> list[ListEntry]:
    """The entries of a list, the most urgent first, places by lot last; then the next in line.

    There are half as many next in line as the budget, rounded up. Last come people who wait by lot.
    visits: [n, s, a, s'] all moves observed so far, also those after the learner's plan
    gone: people who have left since the list was made, and are not next in line
    """
    chances = likely_states(epoch.states, moves, learner.present, learner.known_dynamics().mean)
    urgency = learner.standing(epoch.states, chances)
    off = set() if epoch.own is None else set(epoch.own.off.tolist())
    listed, drawn = set(epoch.listed.tolist()), set(epoch.drawn.tolist())
    finds_out = set(epoch.to_find_out.tolist())
    out = set(epoch.left_out.tolist()) - listed - off
    others = [n for n in np.flatnonzero(learner.present).tolist() if n not in listed | off]
    known = [int(epoch.states[n]) for n in others if epoch.states[n] != UNKNOWN]
    worst, tied = min(known, default=config.n_states), set(urgency[others].tolist())
    line = in_line(config, learner, epoch, moves).tolist()
    place = {n: number for number, n in enumerate(line)}
    found = []
    for n in sorted(listed, key=lambda arm: (arm in drawn, place.get(arm, len(line)), arm)):
        marks = {
            "equal": n not in drawn | finds_out and urgency[n] in tied,
            "badly_off": bool(config.ordered and UNKNOWN < epoch.states[n] <= worst),
            "by_lot": n in drawn,
            "to_find_out": n in finds_out,
        }
        found.append((n, marks))
    waiting = [n for n in line if n not in listed | off | out and n not in gone]
    found += [(n, {"equal": False, "reserve": True}) for n in waiting[: (config.budget + 1) // 2]]
    found += [(n, {"equal": False, "left_out": True}) for n in line if n in out]
    effects = known_effects(visits)
    return [_entry(config, learner, epoch, moves, n, effects, **marks) for n, marks in found]


def _entry(
    config: StudyConfig,
    learner: Learner,
    epoch: Epoch,
    moves: Sequence[Epoch],
    n: int,
    effects: Sequence[KnownEffect],
    **marks: bool,
) -> ListEntry:
    """What is known of an arm when a list is made."""
    mean, sd = learner.known_dynamics().mean, learner.known_dynamics().sd
    up = better_states(config.n_states)
    seen = last_seen(n, epoch.states, moves)
    now = 0 if seen is None else seen.state
    with_help, without = (float(mean[n, now, a, up[now]].sum()) for a in (ACT, WAIT))
    spread = sqrt(float((sd[n, now][:, up[now]] ** 2).sum()))
    return ListEntry(
        id=config.arms[n].id,
        state=state_label(config, int(epoch.states[n])),
        last_seen=None if seen is None else state_label(config, seen.state),
        weeks_ago=0 if seen is None else seen.ago,
        with_help=round(with_help, 4),
        without=round(without, 4),
        sure=round(float(ndtr((with_help - without) / max(spread, 1e-9))), 4),
        **marks,
        **({} if seen is None else effects[now]._asdict()),
    )


def listed_to_find_out(reader: StudyReader) -> IntArray:
    """The arms that the open list had to find out what help does, when it was made."""
    last = max(seq for seq, _event in reader.standing("listed", bodies=False))
    [(_seq, event)] = reader.standing("listed", after=last - 1)
    found = [entry.id for entry in body_of(event).entries if entry.to_find_out]
    return np.array([reader.next_config.arm_number(arm) for arm in found], dtype=np.int64)


def read_lists(store: Store, study: str, last: int | None = None) -> list[WeekList]:
    """The lists of all weeks in order, with the outcomes reported so far.

    last: read only this many, the newest
    """
    with read_study(store, study) as reader:
        config, epochs = reader.next_config, reader.epochs
        made = [seq for seq, _event in reader.standing("listed", bodies=False)][-(last or 0) :]
        found = reader.standing(*LIST_EVENTS, after=min(made, default=1) - 1)
    return list(week_lists(config, epochs, (event for _seq, event in found)))


def week_lists(
    config: StudyConfig, epochs: Sequence[Epoch], events: Iterable[Event]
) -> Iterator[WeekList]:
    """The lists of the weeks that events are about."""
    made: dict[int, tuple[int, bodies.Listed, list[ListChanged]]] = {}
    for event in events:
        body = body_of(event)
        if event.kind == "listed":
            made[body.week] = (event.at, body, [])
        else:
            made[body.week][2].append(body)
    labels = tuple(state.label for state in config.states)
    for number, (at, first, changes) in sorted(made.items()):
        epoch = epochs[number - 1]
        people = _people(config, first.entries, changes, epoch)
        facts = _facts(config, epochs[: number - 1])
        shown = [structs.replace(one, facts=facts.get(one.id, {})) for one in people]
        is_open = epoch.next_states is None
        yield WeekList(
            number,
            at,
            [one for one in shown if one.changed != "off" and not one.reserve | one.left_out],
            not is_open,
            config.epoch_word,
            labels,
            config.noun,
            tuple(name for name in config.columns_on_list if any(name in p.facts for p in shown)),
            [one for one in shown if one.reserve and not _is_gone(config, one, is_open)],
            [one for one in shown if one.changed == "off"],
            first.by_answers,
            first.empty,
            [one for one in shown if one.left_out],
        )


def _is_gone(config: StudyConfig, one: Listed, is_open: bool) -> bool:
    """Whether somebody next in line was erased, or has left while the list is open."""
    has_left = not config.arms[config.arm_number(one.id)].present
    return is_erased(one.id, one.label) or (is_open and has_left)


def _people(
    config: StudyConfig, first: Sequence[ListEntry], changes: Sequence[ListChanged], epoch: Epoch
) -> list[Listed]:
    """Everybody whom a list names, with labels, groups and the outcomes reported so far."""
    marks: dict[str, tuple[str, str]] = {}
    known = {entry.id: entry for entry in first}
    for change in changes:
        marks |= dict.fromkeys(change.removed, ("off", change.because))
        marks |= dict.fromkeys(change.added, ("on", change.because))
        known |= {entry.id: entry for entry in change.entries}
    now = changes[-1].entries if changes else first
    taken_off = [
        structs.replace(known[arm], reserve=False, to_find_out=False)
        for arm, (mark, _why_changed) in marks.items()
        if mark == "off"
    ]
    acted = set(epoch.acted.tolist())
    found = []
    for entry in (*now, *taken_off):
        number = config.arm_number(entry.id)
        arm, (changed, because) = config.arms[number], marks.get(entry.id, ("", ""))
        helped, then = None, None
        if epoch.next_states is not None:
            helped = number in acted
            then = state_label(config, int(epoch.next_states[number]))
        about = structs.asdict(entry) | {"label": arm.label, "group": arm.group}
        about["namesake"] = name_of(config, arm) != arm.label
        about |= {"changed": changed, "because": because, "helped": helped, "then": then}
        found.append(Listed(**about))
    return found


def _facts(config: StudyConfig, before: Sequence[Epoch]) -> dict[str, dict[str, str]]:
    """What the owner chose to see on the list, as it was known then: arm id -> column -> text."""
    if not config.columns_on_list:
        return {}
    fresh = next((epoch.columns for epoch in reversed(before) if epoch.columns), {})
    found = {arm.id: arm.columns | fresh.get(arm.id, {}) for arm in config.arms}
    return {
        arm: {name: known[name] for name in config.columns_on_list if known.get(name)}
        for arm, known in found.items()
    }


def why_listed(one: Listed, week: WeekList, words: OwnWords = str) -> str:
    """Why a person is on the list, and what was observed of help in their state by then.

    words: the owner's words in the reader's language
    """
    if one.changed:
        how = _("Taken off the list by the owner")
        if one.changed == "on":
            how = _("Put on the list by the owner")
        return f"{how}{one.because and f': {one.because}'}"
    if one.left_out:
        waits = _("Chosen at random to wait {this_week}, to measure the effect of help.")
        return waits.format(this_week=this_week(week.word))
    if one.by_lot:
        return _("Chosen at random among people off the list, to measure the effect of help.")
    known, state = one.known_effect, one.last_seen
    why = _finds_out(one, week, words) if one.to_find_out else _why(one, known)
    if known is None or state is None or (one.to_find_out and not known.seen):
        return why
    about = Words(week.noun, week.word, week.states[-1])
    seen = effect_text(known, state, about, words(state))
    if one.badly_off and not known.seen:
        tied = _("The worst off come first; tie broken at random.")
        first = tied if one.equal else _("The worst off come first.")
        return f"{seen} {first}"
    return f"{why} {seen}" if why else seen


def _finds_out(one: Listed, week: WeekList, words: OwnWords) -> str:
    """Why a place on the list is one to find out what help does."""
    if one.last_seen is None:
        return _("Listed to find out what help does.")
    why = _('Listed to find out what help does in "{state}".').format(state=words(one.last_seen))
    tells = _("The report will show how {people} there do with help.")
    return f"{why} {tells.format(people=people(week.noun))}"


def _why(one: Listed, known: KnownEffect | None) -> str:
    """Why a person is on the list; "" where what was observed of help is the reason."""
    if one.reserve:
        return _("Next in line.")
    if one.badly_off:
        tied = _("Among the worst off; tie broken at random.")
        return tied if one.equal else _("Among the worst off.")
    if one.equal:
        return _("Tied with people off the list; chosen at random.")
    if known is not None and (known.in_favour or known.fewer_worse):
        return ""
    return _("Listed by the plan.")


def short_list_text(week: WeekList) -> str:
    """Why a list is shorter than the budget; "" if it is not."""
    if not week.empty_places:
        return ""
    empty = ngettext(
        "{count} place is empty: by your rules nobody else may be helped {this_week}.",
        "{count} places are empty: by your rules nobody else may be helped {this_week}.",
        week.empty_places,
    )
    return empty.format(count=format_number(week.empty_places), this_week=this_week(week.word))


def state_words(one: Listed, word: str = "week", words: OwnWords = str) -> str:
    """The state of a person when the list was made, or when it was last known."""
    if one.state is not None:
        return words(one.state)
    if one.last_seen is None:
        return _("Unknown (never seen)")
    unknown = _("Unknown (last seen {state}, {time} ago)")
    return unknown.format(state=words(one.last_seen), time=many_weeks(word, one.weeks_ago))
