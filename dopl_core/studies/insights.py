"""What the answers have taught: read-only tables for owners, as data frames."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dopl_core.learning.bandit import ACT, WAIT
from dopl_core.learning.dopl import Dopl
from dopl_core.studies import agreeing, archive, bundle_csv, fold
from dopl_core.studies.agreeing import Agreement
from dopl_core.studies.arrays import unpack_arms, unpack_states
from dopl_core.studies.config import StudyConfig
from dopl_core.studies.history import state_label
from dopl_core.studies.pseudonyms import pseudonymous
from dopl_core.studies.reading import config_of, present_epoch, study_row
from dopl_core.studies.store import Store, StudyError
from dopl_core.studies.vocabulary import ANSWERS, LEARNT
from dopl_core.studies.whereabouts import first_states

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Helped:
    """One of the B arms to help now, and why.

    index: share of the visits to this state in which the plan helps
    advantage: what helping now is worth over waiting, at the plan's price of help
    if_helped, if_not: believed chances of each next state, label -> probability
    better_if_helped, better_if_not: believed chance of a better state than this one, or of
        staying in the best
    """

    arm: str
    label: str
    group: str
    state: str
    index: float
    advantage: float
    if_helped: dict[str, float]
    if_not: dict[str, float]
    better_if_helped: float
    better_if_not: float


def epoch_list(store: Store, study: str) -> list[Helped]:
    """Whom to help now: the B arms of the present epoch, the most urgent first.

    In an observed world that is the epoch whose moves the owner reports next; in a simulated one
    the first whose duels still want ratings.
    """
    with store.read() as connection:
        row = study_row(connection, study)
        config = config_of(store, connection, row)
        if row.episode == 0:
            return []
        learner = fold.planned(store, connection, row)
        epoch = present_epoch(connection, config, row)
    states = unpack_states(epoch.states)
    arms = unpack_arms(epoch.arms).tolist()
    helped = [_helped(config, learner, n, max(int(states[n]), 0)) for n in arms]
    return sorted(helped, key=lambda h: (-round(h.index, 7), -h.advantage))


def present_states(store: Store, study: str) -> dict[str, str | None]:
    """Where everybody who is present is now: arm id -> state label, None where it is unknown."""
    with store.read() as connection:
        row = study_row(connection, study)
        config = config_of(store, connection, row)
        if row.episode == 0:
            states = first_states(config)
        else:
            states = unpack_states(present_epoch(connection, config, row).states)
    return {
        config.arms[n].id: state_label(config, int(states[n]))
        for n in np.flatnonzero(config.present)
    }


def answers(
    store: Store, study: str, annotator: str | None = None, *, pseudonyms: bool = False
) -> "pd.DataFrame":
    """One row an impression, with the columns of duels.csv; of one person, or of all.

    pseudonyms: of all, with those of the bundle in place of names
    """
    import pandas as pd

    renamed = pseudonymous(archive.read(store, study)).impressions if pseudonyms else None

    with store.read() as connection:
        row = study_row(connection, study)
        config = config_of(store, connection, row)
        shown = archive.read_impressions(connection, study, annotator)
        rows = list(bundle_csv.duel_rows(study, config, renamed or shown))
    frame = pd.DataFrame(rows, columns=list(bundle_csv.DUELS))
    for column in ("shown_at", "answered_at"):
        frame[column] = pd.to_datetime(frame[column], utc=True, format="ISO8601")
    for column in ("response_ms", "trip_ms", "narrow"):
        frame[column] = pd.to_numeric(frame[column])
    return frame


def plans(store: Store, study: str) -> "pd.DataFrame":
    """One row a plan: engine, value, what random help would be worth, answers used, seconds.

    changed: share of arm-states where the plan before decided otherwise
    """
    import pandas as pd

    with store.read() as connection:
        study_row(connection, study)
        frame = pd.DataFrame([vars(plan) for plan in archive.read_plans(connection, study)])
    frame["made_at"] = pd.to_datetime(frame["made_at"], unit="ms", utc=True)
    return frame


def agreement(answers: "pd.DataFrame") -> Agreement | None:
    """How far people agree on duels that several have rated; None where there are none.

    answers: of all people, as `answers` gives them
    """
    return agreeing.agreement(agreeing.choices(answers))


def annotators(
    answers: "pd.DataFrame", states: Sequence[str] = (), excluded: Sequence[str] = ()
) -> "pd.DataFrame":
    """One row a person: answers, skips, median response, share of left, consistency, agreement.

    answers: of all people, as `answers` gives them
    again, consistency: repeats answered, and the share of them as before (NaN without repeats)
    plain, right: gold duels answered, and the share of them as the order of the states has it
    agreement: share of other people's answers to the same duels that say the same, of all but
        those excluded
    states: their labels in order, where there are gold duels
    """
    import pandas as pd

    said = answers[answers.outcome.isin(ANSWERS)]
    chosen = agreeing.choices(answers)
    first = chosen[~chosen.again]
    rows = []
    for name, own in said.groupby("annotator", sort=True):
        learnt = own[own.purpose.isin(LEARNT)]
        same, asked_again = agreeing.consistency(chosen[chosen.person == name])
        gold = own[(own.purpose == "gold") & own.outcome.isin(("left", "right"))]
        right = sum(
            (outcome == "left") == (states.index(one) > states.index(other))
            for outcome, one, other in zip(
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
                "plain": len(gold),
                "right": right / len(gold) if len(gold) else np.nan,
                "agreement": _with_others(first, str(name), excluded),
                "last_seen": own.answered_at.max(),
            }
        )
    columns = ["annotator", "answers", "skips", "median_ms", "left_share"]
    columns += ["again", "consistency", "plain", "right", "agreement", "last_seen"]
    return pd.DataFrame(rows, columns=columns)


def sureness(store: Store, study: str, learner: Dopl) -> dict[str, float]:
    """What everybody's answers weigh, name -> k; 1 is usual, near 0 is clicking at random.

    Nothing where one person has answered, or where answers are not weighed.
    """
    k = learner.sureness()
    with store.read() as connection:
        out = fold.excluded(connection, study)
        numbers = {n: i for n, i in fold.people(connection, study).items() if n not in out}
    if not learner.weigh_people or len(numbers) < 2:
        return {}
    return {name: float(k[number]) for name, number in numbers.items() if number < len(k)}


def excluded(store: Store, study: str) -> list[str]:
    """Those whose answers do not count in the next plan."""
    with store.read() as connection:
        return fold.excluded(connection, study)


def beliefs(config: StudyConfig, learner: Dopl) -> "pd.DataFrame":
    """One row an arm-state: its strength over the reference and what the plan does there.

    mean, sd, overestimate: of the strength;  answers: duels it was in;  visits: epochs seen there
    index, advantage: see Helped;  occupancy: long-run share of epochs spent there
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


def transitions(config: StudyConfig, learner: Dopl) -> "pd.DataFrame":
    """One row a group, state, action and next state: believed chance (mean over arms), and visits.

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


def _helped(config: StudyConfig, learner: Dopl, n: int, s: int) -> Helped:
    """What the plan says of arm n in state s."""
    assert learner.plan is not None  # noqa: S101
    assert learner.dynamics is not None  # noqa: S101
    arm, labels = config.arms[n], [state.label for state in config.states]
    chances = learner.dynamics.mean[n, s]  # [A, S']
    better = chances[:, min(s + 1, len(labels) - 1) :].sum(axis=1)
    return Helped(
        arm.id,
        arm.label,
        arm.group,
        labels[s],
        float(learner.plan.index[n, s]),
        float(learner.plan.advantage[n, s]),
        dict(zip(labels, chances[ACT].tolist(), strict=True)),
        dict(zip(labels, chances[WAIT].tolist(), strict=True)),
        float(better[ACT]),
        float(better[WAIT]),
    )


def _with_others(first: "pd.DataFrame", name: str, excluded: Sequence[str]) -> float:
    """Share of the first answers of others to somebody's duels that say the same."""
    mine, others = first[first.person == name], first[~first.person.isin([name, *excluded])]
    both = mine.merge(others, on="duel", suffixes=("", "_other"))
    return float((both.choice == both.choice_other).mean()) if len(both) else np.nan
