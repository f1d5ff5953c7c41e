"""The clinic's rules: who may be on the next list, and what the plan knows of them.

The list keeps the rules exactly. The plan knows them on average: how often somebody may be helped,
and how many places a group gets at least.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dopl_core.learning.bandit import FloatArray
from dopl_core.learning.places.sharing import Sharing
from dopl_core.studies.model.log_values import Epoch
from dopl_core.studies.model.study_config import StudyConfig, fair_groups, fair_shares

SPREAD = 26  # lists over which the plan spreads the times that somebody may still be helped


def eligible(config: StudyConfig, epochs: Sequence[Epoch]) -> NDArray[np.bool_] | None:
    """Who may be on the next list [N] by the rules on how often; None if there are no such rules.

    epochs: all before, as corrected by now. Everybody who was really helped counts, listed or not.
    """
    if config.once_in < 2 and not config.most_times and not config.wait_after_joining:
        return None
    may = np.ones(config.n_arms, dtype=bool)
    for epoch in epochs[max(0, len(epochs) - config.once_in + 1) :]:
        may[epoch.acted] = False
    if config.most_times:
        may &= times_helped(epochs, config.n_arms) < config.most_times
    if epochs and config.wait_after_joining:
        # Numbers are given in the order of joining. The first roster has waited long enough.
        long_ago = epochs[max(0, len(epochs) - config.wait_after_joining)]
        may[len(long_ago.states) :] = False
    return may


def times_helped(epochs: Sequence[Epoch], n_arms: int) -> NDArray[np.int64]:
    """How often each arm was really helped [N]."""
    times = np.zeros(n_arms, dtype=np.int64)
    for epoch in epochs:
        times[epoch.acted] += 1
    return times


def caps(config: StudyConfig, epochs: Sequence[Epoch]) -> FloatArray | None:
    """The largest share of lists that each arm can be on [N], on average; None if there is none."""
    if config.once_in < 2 and not config.most_times:
        return None
    most = np.full(config.n_arms, 1 / max(config.once_in, 1))
    if config.most_times:
        left = config.most_times - times_helped(epochs, config.n_arms)
        most = np.minimum(most, np.maximum(left, 0) / SPREAD)
    return most


def sharing(config: StudyConfig) -> Sharing | None:
    """The groups among which places are shared out; None if the study has no such rule."""
    if not config.fair_column:
        return None
    groups = fair_groups(config)
    names = sorted(set(groups))
    codes = np.array([names.index(group) for group in groups], dtype=np.int64)
    shares: FloatArray | None = None
    if config.fair_rule == "shares":
        wanted = fair_shares(config)
        shares = np.array([wanted.get(name, 0.0) for name in names])
    elif config.fair_rule == "roster":
        here = np.bincount(codes[config.present], minlength=len(names))
        shares = here / here.sum()
    return Sharing((config.fair_column, *names), codes, shares)


def barred(config: StudyConfig, epochs: Sequence[Epoch]) -> NDArray[np.bool_] | None:
    """Who could not be listed in each reported epoch [E, N] by the present rules on how often."""
    weeks = [number for number, epoch in enumerate(epochs) if epoch.next_states is not None]
    found = [eligible(config, epochs[:number]) for number in weeks]
    rows = [~may for may in found if may is not None]
    return np.array(rows) if rows else None
