"""Small studies to play in tests, and people who play them."""

import random
from collections.abc import Callable, Sequence

import numpy as np

from dopl_core import studies
from dopl_core.learning.learner import Learner
from dopl_core.studies import Ask, Protocol, Store, StudyConfig, Waiting
from dopl_core.studies.store import blobs


class Clock:
    """A clock that the tests move."""

    def __init__(self) -> None:
        self.now = 1_790_000_000.0

    def __call__(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        self.now += seconds


def cpap(**rules: object) -> StudyConfig:
    """A small study that plans in a millisecond: 2 epochs of 3 duels a plan."""
    small = {"budget": 4, "horizon": 2, "confidence": "paper", "engine": "lagrangian"}
    return studies.from_environment("cpap", **(small | {"practice": False} | rules))


ROSTER = b"""id,state,label,group,age,hours
p1,Low,Ada,ward,60,1 2 3
p2,High,Bo,ward,61,7 7 8
p3,Moderate,Cy,home,62,4 5 4
p4,Low,Di,home,63,0 0 1
"""
STATES = ("Low", "Moderate", "High")


def clinic(**rules: object) -> StudyConfig:
    """An observed study of four patients, two of them helped: one duel an epoch."""
    small = {"title": "Clinic", "budget": 2, "horizon": 2, "confidence": "paper"}
    small |= {"engine": "lagrangian", "practice": False}
    return studies.from_roster(studies.read_roster(ROSTER, STATES), STATES, **(small | rules))


def trial(config: StudyConfig, **other: object) -> Protocol:
    """A protocol that fits a study."""
    size = {"people": config.n_arms, "budget": config.budget, "by_lot": config.by_lot}
    plan = {"question": "Do calls help?", "weeks": 4, "looks": (2, 4), "effect": 0.2}
    return Protocol(**(size | plan | other))


def play(
    store: Store,
    study: str,
    clicks: int,
    *,
    people: tuple[str, ...] = ("Ann", "Bob"),
    seed: int = 0,
    undo: float = 0.1,
    clock: Clock | None = None,
    states: Sequence[str] = STATES,
) -> int:
    """People click at random, sometimes take it back, and plan when it is due; answers saved."""
    rng = random.Random(seed)
    saved = 0
    for _ in range(clicks):
        if clock is not None:
            clock.wait(rng.uniform(0.4, 3))
        name = rng.choice(people)
        found = studies.next_duel(store, study, name)
        if isinstance(found, Ask):
            allowed = studies.get_study(store, study).config.outcomes
            outcome = rng.choice(allowed)
            receipt = studies.answer(store, found.impression, outcome, too_fast_ms=0)
            saved += receipt.saved
            if rng.random() < undo:
                studies.undo(store, study, name)
        if isinstance(found, Waiting) and found.reason == "owner":
            rows = studies.present_states(store, study)
            report = {arm: rng.choice(states) for arm in rows}
            studies.observe(store, study, report)
        studies.advance(store, study)
    return saved


def digest(store: Store, study: str) -> str:
    """Of all that the learner holds now."""
    return blobs.digest(studies.load_learner(store, study).state())


def check_replay(
    store: Store, study: str, tell: Callable[[str], None] = lambda how: None
) -> Learner:
    """The learner, which is the same to the bit whether the log is folded or played again."""
    replayed = studies.replay_study(store, study, tell)
    state, folded = replayed.state(), studies.load_learner(store, study).state()
    assert state.keys() == folded.keys()
    for name, array in state.items():
        assert array.tobytes() == folded[name].tobytes(), name
    return replayed


def everyone(state: str = "High") -> dict[str, str]:
    """A report of the clinic: all are in this state."""
    return dict.fromkeys(("p1", "p2", "p3", "p4"), state)


def answer_open(store: Store, study: str, name: str = "Ann") -> None:
    """Somebody says left to everything that is asked."""
    while isinstance(found := studies.next_duel(store, study, name), Ask):
        studies.answer(store, found.impression, "left", too_fast_ms=0)


def one_answer(store: Store, study: str, name: str) -> None:
    """Somebody answers one duel, and it is saved."""
    found = studies.next_duel(store, study, name)
    assert isinstance(found, Ask)
    assert studies.answer(store, found.impression, "left", too_fast_ms=0).saved


def cohort(people: int, states: Sequence[str], seed: int, **rules: object) -> StudyConfig:
    """An observed study of many people, their first states drawn at random."""
    rng = random.Random(seed)
    rows = "".join(f"p{n},{rng.choice(states)}\n" for n in range(people))
    arms = studies.read_roster(f"id,state\n{rows}".encode(), states)
    own = {"title": "Cohort", "seed": seed, "practice": False}
    return studies.from_roster(arms, states, **(own | rules))


def report_from(
    store: Store, study: str, rng: np.random.Generator, helped: Sequence[str] | None = None
) -> None:
    """Report a week in which help brings 7 in 10 up a state, and 3 in 10 move without it.

    helped: the list where None
    """
    labels = [state.label for state in studies.get_study(store, study).config.states]
    if helped is None:
        helped = [one.id for one in studies.read_lists(store, study, last=1)[-1].listed]
    after = {}
    for arm, state in studies.present_states(store, study).items():
        here = labels.index(state or labels[0])
        if arm in helped:
            here += rng.random() < 0.7
        elif rng.random() < 0.3:
            here += rng.choice((-1, 1))
        after[arm] = labels[min(max(here, 0), len(labels) - 1)]
    studies.observe(store, study, after, helped=helped)


def played(store: Store, clock: Clock, config: studies.StudyConfig, clicks: int = 60) -> str:
    """A study with answers of three sittings, by people with difficult names."""
    study = studies.create_study(store, config)
    names = ("Ann", "=Bob()", "'Cy\n, Dr.")
    labels = [state.label for state in config.states]
    for part in range(3):
        play(store, study, clicks // 3, people=names, seed=part, clock=clock, states=labels)
        clock.wait(4000)  # leases run out, sessions end
    return study
