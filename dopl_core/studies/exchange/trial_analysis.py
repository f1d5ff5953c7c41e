"""The analysis that a study's protocol promised, from its log: looks, flow of people, deviations.

It is a function of the log: nothing is recorded of it, and everybody computes the same. Only looks
that the protocol names are computed, each from the weeks reported until then, as corrected by now.
Who could be drawn in a week is what held when its list was made: people who were there and whom the
study's rules allowed, in their groups if places were shared out.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from dopl_core.learning.bandit import UNKNOWN
from dopl_core.learning.places import lot_trial
from dopl_core.learning.places.lot_trial import Look
from dopl_core.learning.places.reported_weeks import ReportedWeeks
from dopl_core.studies.exchange import trial_deviations
from dopl_core.studies.model import rules
from dopl_core.studies.model.event_kinds import apply, in_plan_order
from dopl_core.studies.model.log_values import Epoch, reported_weeks
from dopl_core.studies.model.progress import Progress, Watch
from dopl_core.studies.model.protocol import Protocol
from dopl_core.studies.model.study_config import StudyConfig
from dopl_core.studies.model.study_log import StudyLog
from dopl_core.studies.operate.protocols import read_protocol
from dopl_core.studies.store.database import Store
from dopl_core.studies.store.log_reader import read_log
from dopl_core.studies.store.time_limits import slowly

ANALYSIS = 1  # the version of the analysis: raise it with every change of a result


class FlowRow(Struct, frozen=True):
    """One row of the flow of people: how many people, and how many in each week together."""

    what: str
    people: int
    person_weeks: int


@dataclass(frozen=True)
class TrialAnalysis:
    """The promised analysis of a study.

    protocol: as it was fixed;  digest: of it;  fixed_at: when, in milliseconds since 1970
    config: the study as it is now
    weeks: how many are reported, at most those of the protocol
    looks: those reached, in order;  next_look: the week of the next one; None after the last
    closed: whether the study was closed, before the last look or after it
    """

    protocol: Protocol
    digest: str
    fixed_at: int
    config: StudyConfig
    weeks: int
    looks: list[Look]
    next_look: int | None
    flow: list[FlowRow]
    deviations: list[str]
    closed: bool = False


@slowly()
def trial_analysis(store: Store, study: str) -> TrialAnalysis | None:
    """The promised analysis of a study as far as its protocol allows; None without a protocol."""
    return None if read_protocol(store, study) is None else analyse(read_log(store, study))


def analyse(log: StudyLog) -> TrialAnalysis | None:
    """The promised analysis of a log; None without a protocol."""
    if log.protocol is None:
        return None
    fixed_at, fixed = log.protocol
    protocol, config = fixed.protocol, log.coming
    trial = _trial_weeks(log, protocol.weeks)
    seed = [config.seed % 2**32, ANALYSIS]
    looks = []
    if protocol.analysis == ANALYSIS:
        looks = lot_trial.analyse(
            trial.weeks, config.n_states, protocol.looks, level=protocol.level, seed=seed
        )
    weeks = len(trial.epochs)
    return TrialAnalysis(
        protocol=protocol,
        digest=fixed.digest,
        fixed_at=fixed_at,
        config=config,
        weeks=weeks,
        looks=looks,
        next_look=next((week for week in protocol.looks if week > weeks), None),
        flow=_flow(trial),
        deviations=trial_deviations.deviations(
            log, protocol, trial.epochs, trial.configs, shown=any(look.claim for look in looks)
        ),
        closed=log.status == "closed",
    )


# --- the weeks of the trial


class TrialWeeks(NamedTuple):
    """The reported weeks of a trial as arrays, with who was there and with what they were made.

    present: [w, n];  epochs, configs: [w] each week's own
    """

    weeks: ReportedWeeks
    present: NDArray[np.bool_]
    epochs: list[Epoch]
    configs: list[StudyConfig]


class _Pools(Watch):
    """Collects, for each list: the configuration it was made with, and who could be on it [n]."""

    def __init__(self) -> None:
        self.lists: list[tuple[StudyConfig, NDArray[np.bool_]]] = []

    def opened(self, progress: Progress, epoch: Epoch) -> None:
        config = progress.planned_with or progress.config
        may = rules.eligible(config, progress.epochs)
        self.lists.append((config, config.present if may is None else config.present & may))


def _trial_weeks(log: StudyLog, most: int) -> TrialWeeks:
    """The first reported weeks of a study, at most `most`."""
    pools = _Pools()
    progress = Progress(log.config, log.epochs, log.impressions, pools)
    for _, event in in_plan_order(log.events):
        apply(progress, event)
    epochs = [epoch for epoch in log.known_epochs if epoch.next_states is not None][:most]
    lists, N = pools.lists[: len(epochs)], log.coming.n_arms
    weeks = reported_weeks(epochs, N)
    shape = weeks.states.shape
    present, may = np.zeros((2, *shape), dtype=bool)
    groups = np.zeros(shape, dtype=np.int64)
    for week, (config, could) in enumerate(lists):
        present[week, : len(could)], may[week, : len(could)] = config.present, could
        if shared := rules.sharing(config):
            groups[week, : len(could)] = shared.codes
    erased = trial_deviations.erased_people(log)
    weeks.states[:, erased] = weeks.next_states[:, erased] = UNKNOWN
    return TrialWeeks(
        weeks._replace(barred=~may, groups=groups), present, epochs, [one for one, _ in lists]
    )


# --- the flow of people


def _flow(trial: TrialWeeks) -> list[FlowRow]:
    """The flow of people, after the CONSORT statement."""
    weeks, present = trial.weeks, trial.present
    by_lot, listed = weeks.by_lot == 1, weeks.listed == 1
    unknown = (weeks.states == UNKNOWN) | (weeks.next_states == UNKNOWN)
    drawn = by_lot.any(axis=1, keepdims=True)
    assert weeks.barred is not None  # noqa: S101
    at_first, at_last = (some.any(axis=0) for some in (present[:1], present[-1:]))
    rows = {
        "on the roster when the trial began": present & at_first,
        "joined later": present & ~at_first,
        "left": present & ~at_last,
        "on the list before places were drawn": listed ^ by_lot,
        "drawn to wait": by_lot & ~listed,
        "drawn for a place": by_lot & listed,
        "helped, as reported": weeks.helped == 1,
        "state unknown before or after": present & unknown,
        "analysed: could be drawn, and both states known": ~weeks.barred & ~unknown & drawn,
    }
    return [FlowRow(what, int(who.any(axis=0).sum()), int(who.sum())) for what, who in rows.items()]
