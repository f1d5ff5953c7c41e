"""Small studies to play in tests, and people who play them."""

import random
from collections.abc import Callable, Sequence

from dopl_core.learning.dopl import Dopl
from dopl_core.studies import arrays, service
from dopl_core.studies.service import Ask, Store, StudyConfig, Waiting


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
    return service.from_environment("cpap", **(small | {"practice": False} | rules))


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
    return service.from_roster(service.read_roster(ROSTER, STATES), STATES, **(small | rules))


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
        found = service.next_duel(store, study, name)
        if isinstance(found, Ask):
            allowed = service.get_study(store, study).config.outcomes
            outcome = rng.choice(allowed)
            receipt = service.answer(store, found.impression, outcome, too_fast_ms=0)
            saved += receipt.saved
            if rng.random() < undo:
                service.undo(store, study, name)
        if isinstance(found, Waiting) and found.reason == "owner":
            rows = service.present_states(store, study)
            report = {arm: rng.choice(states) for arm in rows}
            service.observe(store, study, report)
        service.advance(store, study)
    return saved


def digest(store: Store, study: str) -> str:
    """Of all that the learner holds now."""
    return arrays.digest(service.load_learner(store, study).state())


def check_replay(store: Store, study: str, tell: Callable[[str], None] = lambda how: None) -> Dopl:
    """The learner, which is the same to the bit whether the log is folded or played again."""
    replayed = service.replay_study(store, study, tell)
    state, folded = replayed.state(), service.load_learner(store, study).state()
    assert state.keys() == folded.keys()
    for name, array in state.items():
        assert array.tobytes() == folded[name].tobytes(), name
    return replayed


def everyone(state: str = "High") -> dict[str, str]:
    """A report of the clinic: all are in this state."""
    return dict.fromkeys(("p1", "p2", "p3", "p4"), state)


def answer_open(store: Store, study: str, name: str = "Ann") -> None:
    """Somebody says left to everything that is asked."""
    while isinstance(found := service.next_duel(store, study, name), Ask):
        service.answer(store, found.impression, "left", too_fast_ms=0)
