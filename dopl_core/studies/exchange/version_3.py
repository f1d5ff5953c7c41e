"""Bundles of version 3 have no queue: duels that nobody was shown yet are chosen anew."""

from dopl_core.studies.collect.practice import practice_duels
from dopl_core.studies.model.log_values import Place, QueuedDuel, Sides
from dopl_core.studies.model.outcomes import LEARNT
from dopl_core.studies.model.study_log import StudyLog
from dopl_core.studies.replay.episode import first_round_duels, planned_learner


def queue_of(log: StudyLog, closed: dict[Place, int]) -> list[QueuedDuel]:
    """The practice duels and those of the present round.

    closed: ratings of duels that ask for another number than the study
    """
    duels = _chosen_anew(log)
    for shown in log.impressions:  # what was shown is a fact
        present = shown.purpose in LEARNT and shown.place[0] == log.episode
        if present or shown.purpose == "practice":
            duels[shown.place, shown.purpose] = shown.sides
    return [
        QueuedDuel(
            place,
            purpose,
            sides,
            closed.get(place, log.now.ratings) if purpose in LEARNT else 0,
        )
        for (place, purpose), sides in sorted(duels.items())
    ]


def _chosen_anew(log: StudyLog) -> dict[tuple[Place, str], Sides]:
    duels: dict[tuple[Place, str], Sides] = {}

    def add(place: tuple[int, int], purpose: str, pairs: list[list[int]]) -> None:
        for number, sides in enumerate(pairs):
            duels[(*place, number), purpose] = tuple(sides)  # type: ignore[assignment]

    if log.config.practice:
        add((0, 0), "practice", practice_duels(log.config).tolist())
    if log.episode == 0:
        add((0, 0), "sitting", first_round_duels(log.config).tolist())
        return duels
    learner = planned_learner(log.now, log.arrays or {})
    for epoch in log.epochs:
        if epoch.episode == log.episode:
            pairs = learner.duels(epoch.states, epoch.arms, epoch.epoch).tolist()
            add((epoch.episode, epoch.epoch), "policy", pairs)
    return duels
