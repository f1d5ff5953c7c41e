"""Tables of a study as data frames: answers, plans, annotators and what was learned."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import sqlalchemy as sa

from dopl_core.learning.learner import Learner
from dopl_core.studies.analysis.agreement import choices, consistency
from dopl_core.studies.collect.limits import permission
from dopl_core.studies.exchange import bundle_csv, names_removed
from dopl_core.studies.model.errors import StudyError
from dopl_core.studies.model.event_kinds import read_body
from dopl_core.studies.model.outcomes import ANSWERS, LEARNT
from dopl_core.studies.model.study_config import StudyConfig
from dopl_core.studies.replay import learner_from_log
from dopl_core.studies.store import log_reader, tables
from dopl_core.studies.store.database import Store
from dopl_core.studies.store.study_reader import read_study
from dopl_core.studies.store.time_limits import slowly

if TYPE_CHECKING:
    import pandas as pd

_SIDES = ["left_arm", "left_state", "right_arm", "right_state", "winner_arm", "loser_arm"]
_e = tables.events.c


@slowly()
def answers(
    store: Store, study: str, annotator: str | None = None, *, without_names: bool = False
) -> "pd.DataFrame":
    """One row per impression with the columns of duels.csv, of one annotator or of all.

    Of one annotator, the cells about people whom their limits keep from them are empty.
    without_names: of all annotators, as in a bundle without names
    """
    import pandas as pd

    limited = None
    if without_names:
        log = names_removed.without_names(log_reader.read_log(store, study))
        config, shown = log.coming, log.impressions
    else:
        with read_study(store, study) as reader:
            shown = list(log_reader.read_impressions(reader.connection, study, annotator))
            config = reader.next_config
            limited = None if annotator is None else permission(reader, annotator)
    rows = list(bundle_csv.duel_rows(study, config, shown))
    frame = pd.DataFrame(rows, columns=list(bundle_csv.DUELS))
    for column in ("shown_at", "answered_at"):
        frame[column] = pd.to_datetime(frame[column], utc=True, format="ISO8601")
    for column in ("response_ms", "trip_ms", "narrow", "reason_asked"):
        frame[column] = pd.to_numeric(frame[column])
    if limited is not None:
        kept = [not (limited.shows(one.sides[0]) and limited.shows(one.sides[2])) for one in shown]
        frame.loc[kept, [*_SIDES, "reason"]] = None
    return frame


def plans(store: Store, study: str) -> "pd.DataFrame":
    """One row per plan: engine, value, value of help at random, answers used, seconds.

    changed: share of arm-states in which the previous plan decided differently
    """
    import pandas as pd

    with read_study(store, study) as reader:
        found = log_reader.read_plans(reader.connection, study)
    frame = pd.DataFrame([vars(plan) for plan in found])
    frame["made_at"] = pd.to_datetime(frame["made_at"], unit="ms", utc=True)
    return frame


@slowly()
def annotators(
    answers: "pd.DataFrame", states: Sequence[str] = (), excluded: Sequence[str] = ()
) -> "pd.DataFrame":
    """One row per annotator: answers, skips, median time, share of left, consistency, agreement.

    again, consistency: repeats answered, and the share with the same answer (NaN without repeats)
    gold, correct: gold duels answered, and the share that follows the order of the states
    agreement: share of the others' answers to the same duels that are the same, without `excluded`

    answers: of all annotators, as `answers` returns them
    states: their labels in order, needed if there are gold duels
    """
    import pandas as pd

    chosen = choices(answers)
    first = chosen[~chosen.again]
    rows = []
    for name, own in answers[answers.outcome.isin(ANSWERS)].groupby("annotator", sort=True):
        learnt = own[own.purpose.isin(LEARNT)]
        same, asked_again = consistency(chosen[chosen.annotator == name])
        gold = own[(own.purpose == "gold") & own.outcome.isin(("left", "right"))]
        correct = sum(
            (outcome == "left") == (states.index(left) > states.index(right))
            for outcome, left, right in zip(
                gold.outcome, gold.left_state, gold.right_state, strict=True
            )
        )
        sided = learnt[learnt.outcome.isin(("left", "right"))]
        rows.append(
            {
                "annotator": name,
                "answers": len(learnt),
                "skips": int((learnt.outcome == "skip").sum()),
                "median_ms": learnt.response_ms.median(),
                "left_share": (sided.outcome == "left").mean() if len(sided) else np.nan,
                "again": asked_again,
                "consistency": same / asked_again if asked_again else np.nan,
                "gold": len(gold),
                "correct": correct / len(gold) if len(gold) else np.nan,
                "agreement": _agreement_with_others(first, str(name), excluded),
                "last_seen": own.answered_at.max(),
            }
        )
    columns = ["annotator", "answers", "skips", "median_ms", "left_share"]
    columns += ["again", "consistency", "gold", "correct", "agreement", "last_seen"]
    return pd.DataFrame(rows, columns=columns)


def consents(store: Store, study: str) -> "pd.DataFrame":
    """One row per agreement to the consent text: annotator, version, agreed_at, present.

    present: whether this is the version that holds now
    """
    import pandas as pd

    with read_study(store, study) as reader:
        now = reader.next_config.consent_version
        query = sa.select(_e.annotator, _e.body, _e.at).where(
            _e.study == study, _e.kind == "consented"
        )
        rows = [
            (name, body.version, at, body.version == now)
            for name, text, at in reader.connection.execute(query.order_by(_e.seq))
            for body in [read_body("consented", text)]
        ]
    frame = pd.DataFrame(rows, columns=["annotator", "version", "agreed_at", "present"])
    frame["agreed_at"] = pd.to_datetime(frame["agreed_at"], unit="ms", utc=True)
    return frame


def sureness(store: Store, study: str, learner: Learner) -> dict[str, float]:
    """The weight of each annotator's answers: 1 is usual, near 0 looks like random clicking.

    Empty if fewer than two annotators have answered or the study does not weight them.
    """
    k = learner.sureness()
    with store.read() as connection:
        excluded = learner_from_log.excluded(connection, study)
        everybody = log_reader.annotator_numbers(connection, study)
    numbers = {name: number for name, number in everybody.items() if name not in excluded}
    if not learner.weigh_annotators or len(numbers) < 2:
        return {}
    return {name: float(k[number]) for name, number in numbers.items() if number < len(k)}


def excluded_annotators(store: Store, study: str) -> list[str]:
    """The annotators whose answers do not count in the next plan."""
    with store.read() as connection:
        return learner_from_log.excluded(connection, study)


def past_annotators(store: Store, study: str) -> list[str]:
    """The annotators of past answers."""
    with store.read() as connection:
        return [name for _, name in log_reader.past_annotators(connection, study)]


def beliefs(config: StudyConfig, learner: Learner) -> "pd.DataFrame":
    """One row per arm-state: its strength over the reference, and what the plan does there.

    mean, sd, overestimate: of the strength;  answers: duels it was in;  visits: epochs seen there
    index, advantage: as in Helped;  occupancy: long-run share of epochs spent there
    """
    import pandas as pd

    if learner.plan is None or learner.preferences is None:
        raise StudyError("the study has no plan yet")
    N, S = config.n_arms, config.n_states
    return pd.DataFrame(
        {
            "arm": np.repeat([arm.id for arm in config.arms], S),
            "label": np.repeat([arm.label for arm in config.arms], S),
            "group": np.repeat([arm.group for arm in config.arms], S),
            "state": np.tile([state.label for state in config.states], N),
            "mean": learner.preferences.mean.ravel(),
            "sd": learner.preferences.sd.ravel(),
            "overestimate": learner.preferences.overestimate.ravel(),
            "answers": learner.counts.compared(),
            "visits": learner.visits.sum(axis=(2, 3)).ravel(),
            "index": learner.plan.index.ravel(),
            "advantage": learner.plan.advantage.ravel(),
            "occupancy": learner.plan.occupancy.sum(axis=2).ravel(),
        }
    )


@slowly()
def transitions(config: StudyConfig, learner: Learner) -> "pd.DataFrame":
    """One row per group, state, action and next state: probability (mean over arms) and visits.

    action: wait or act
    """
    import pandas as pd

    if learner.dynamics is None:
        raise StudyError("the study has no plan yet")
    labels = [state.label for state in config.states]
    of_group = np.array([arm.group for arm in config.arms])
    rows: list[dict[str, Any]] = []
    for group in dict.fromkeys(of_group.tolist()):
        chance = learner.dynamics.mean[of_group == group].mean(axis=0)
        sd = learner.dynamics.sd[of_group == group].mean(axis=0)
        seen = learner.visits[of_group == group].sum(axis=0)
        for s, a, t in np.ndindex(chance.shape):
            rows.append(
                {
                    "group": group,
                    "state": labels[s],
                    "action": ("wait", "act")[a],
                    "next_state": labels[t],
                    "chance": float(chance[s, a, t]),
                    "sd": float(sd[s, a, t]),
                    "visits": int(seen[s, a, t]),
                }
            )
    return pd.DataFrame(rows)


def _agreement_with_others(first: "pd.DataFrame", name: str, excluded: Sequence[str]) -> float:
    """Share of the others' first answers to an annotator's duels that are the same."""
    own = first[first.annotator == name]
    others = first[~first.annotator.isin([name, *excluded])]
    both = own.merge(others, on="duel", suffixes=("", "_other"))
    return float((both.choice == both.choice_other).mean()) if len(both) else np.nan
