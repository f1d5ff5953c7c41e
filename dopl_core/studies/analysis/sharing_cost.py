"""What sharing places among groups costs: the best list with the rule and without it."""

from typing import NamedTuple

import numpy as np

from dopl_core.learning.bandit import ACT, WAIT, FloatArray
from dopl_core.learning.learner import Learner
from dopl_core.learning.planning import plan
from dopl_core.studies.analysis.effect_of_help import Estimate, summarise

LEAST_DRAWS, MOST_DRAWS = 8, 40


class SharingCost(NamedTuple):
    """What a rule costs, and the places of each group in a list.

    by: the column;  groups: its values [G];  people: [G] who are present
    with_rule, without: [G] expected places of a list
    cost: share of what the list gains over no help; not known if it gains nothing
    """

    by: str
    groups: tuple[str, ...]
    people: list[int]
    with_rule: FloatArray
    without: FloatArray
    cost: Estimate


def compute(learner: Learner, seed: int) -> SharingCost | None:
    """The cost of the present floors; None if there are none, or no posterior to draw from.

    In each posterior draw the best plan with the floors is compared with the best plan without.
    """
    book = learner.ledger
    if book is None or book.floors is None or not learner.has_posterior:
        return None
    rng = np.random.default_rng(seed)
    here = np.flatnonzero(learner.present)
    count = int(np.clip(4_000 // len(here), LEAST_DRAWS, MOST_DRAWS))
    moves = learner.draw_moves(count, rng)[:, here]
    strengths = learner.draw_strengths(count, rng)[:, here]
    codes, size = book.sharing.codes[here], len(book.owed)
    caps = {} if learner.caps is None else {"caps": learner.caps[here]}
    rule = {"groups": codes, "floors": book.floors, **caps}
    cost, places = [], np.zeros((2, size))
    for P, Q in zip(moves, strengths, strict=True):
        still = P[:, :, [WAIT, WAIT]]
        nothing, kept, free = (
            plan(Q, rows, rows, learner.budget, engine="lagrangian", pays=learner.pays, **limits)
            for rows, limits in ((still, {}), (P, rule), (P, caps))
        )
        gain = free.value - nothing.value
        cost.append(np.clip((free.value - kept.value) / gain, 0, 1) if gain > 1e-9 else 0.0)
        for had, found in zip(places, (kept, free), strict=True):
            had += np.bincount(codes, found.occupancy[..., ACT].sum(axis=1), size) / count
    by, *groups = book.sharing.names
    people = np.bincount(codes, minlength=size).tolist()
    known = summarise(np.array(cost), widening=1.0)
    return SharingCost(by, tuple(groups), people, places[0], places[1], known)


def cost_text(found: SharingCost, *, seen: bool) -> str:
    """The cost in a sentence; seen: whether people were seen both with help and without."""
    if not seen:
        return "The cost is not known yet: in no state were people seen both with help and without."
    low, mean, high = (round(100 * x) for x in (found.cost.low, found.cost.mean, found.cost.high))
    return (
        f"Sharing places by {found.by} costs {mean} % (90 % interval {max(low, 0)} to {high} %) of "
        "what the list is expected to gain."
    )


SHARE_COLUMNS = ("group", "people", "places of a list, with the rule", "without the rule")


def share_rows(found: SharingCost) -> list[tuple[str, int, float, float]]:
    """How many people each group has, and how many places it gets with and without the rule."""
    places = zip(found.groups, found.people, found.with_rule, found.without, strict=True)
    return [(name or "empty", n, round(x, 1), round(y, 1)) for name, n, x, y in places]
