"""Digests of what events are about: cards and times of answers, plans, lists, reports.

An event carries such a digest in its body, so the chain of the log covers it, and replay compares.
Names, comments and photos are not in them: they have digests of their own, or are events.
"""

import json
from typing import Any

from dopl_core.studies.model.config_json import digest_of
from dopl_core.studies.model.log_values import Epoch, Impression, PlanMade
from dopl_core.studies.store.inserts import to_text

_NUMBERS = ("value", "random_value", "multiplier", "changed", "answers")  # not how long it took
_OF_PLAN = ("plan", "made_at", "engine", *_NUMBERS)


def about(*facts: Any) -> str:
    """The same for equal facts and only for them."""
    return digest_of(json.dumps(facts))


def of_impression(kind: str, shown: Impression) -> str:
    """What a shown or answered event of an impression carries, see `inserts.about_cards`."""
    facts = (*shown.place, shown.purpose, *shown.sides)
    if kind == "shown":
        return about(*facts)
    return about(*facts, shown.session, shown.response_ms, shown.trip_ms, shown.narrow)


def of_plan(plan: PlanMade) -> str:
    return about(*(getattr(plan, name) for name in _OF_PLAN))


def of_list(epoch: Epoch) -> str:
    """Where everybody was, and who was listed."""
    arrays = (epoch.states, epoch.arms, epoch.by_lot)
    return about(epoch.episode, epoch.epoch, *(array.tolist() for array in arrays))


def of_report(epoch: Epoch) -> str:
    """Of a list, and everything that was reported of it."""
    after = None if epoch.next_states is None else epoch.next_states.tolist()
    helped = epoch.arms if epoch.helped is None else epoch.helped
    columns = digest_of(to_text(epoch.columns)) if epoch.columns else None
    return about(of_list(epoch), after, helped.tolist(), epoch.source, columns)
