"""What can be said of a study: gathered from its log and from what its learner believes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dopl_core.learning import draws
from dopl_core.learning.bandit import UNKNOWN, FloatArray, IntArray
from dopl_core.learning.dopl import Dopl
from dopl_core.learning.preferences import MOST_EXACT
from dopl_core.studies import believed, fold, working
from dopl_core.studies.arrays import unpack_states
from dopl_core.studies.believed import Worth
from dopl_core.studies.config import StudyConfig
from dopl_core.studies.history import Move
from dopl_core.studies.reading import coming_config, config_of, present_epoch, study_row
from dopl_core.studies.store import Store
from dopl_core.studies.whereabouts import where
from dopl_core.studies.working import NOTHING, Estimate, Lots, Pairs

MORE = 40  # answers that might still be asked for
MOST = 2_000  # people of whom it is worked out who belongs on the list: a plan for each draw


@dataclass(frozen=True)
class Belongs:
    """Somebody on the list, and the chance that a plan that knew the truth would help them now."""

    id: str
    label: str
    state: str | None
    by_lot: bool
    chance: float


@dataclass(frozen=True, eq=False)
class Verdict:
    """What can be said of a study; see working.py and believed.py.

    course: [w, 2, s] how many were where when each week had ended, not helped and helped in it
    effect, doubted: what help does, by the moves alone, and for who doubts that it does anything
    worth, belongs: of the present list; None and empty where it is not known, or (belongs) where
        there are more than MOST
    changing: how many of its places MORE answers would change, None where that is not known
    """

    config: StudyConfig
    weeks: int
    course: IntArray
    pairs: Pairs
    lots: Lots
    effect: Estimate
    doubted: Estimate
    over_lots: Estimate
    worth: Worth | None
    belongs: list[Belongs]
    changing: float | None

    @property
    def claimed(self) -> bool:
        """Help works, and that may be said."""
        return self.sign > 0

    @property
    def sign(self) -> int:
        """Whether help works (1), does harm (-1), or that is not known (0)."""
        return working.known_sign(self.effect, self.doubted, self.weeks)


def read(store: Store, study: str, learner: Dopl | None = None) -> Verdict:
    """The verdict on a study as it is now; the same each time, until something happens.

    learner: the study's, where it was folded already
    """
    with store.read() as connection:
        row = study_row(connection, study)
        config = config_of(store, connection, row)
        moves = fold.moves_so_far(connection, row, coming_config(store, connection, row))
        learner = learner or fold.fold(store, connection, row)
        epoch = present_epoch(connection, config, row) if row.episode else None
    S = config.n_states
    weeks = working.seen(moves, max((len(m.states) for m in moves), default=config.n_arms))
    rng = np.random.default_rng([config.seed % 2**32, row.seq])
    visits = learner.visits
    truths, doubting = (
        draws.moves(visits, learner.groups, _how_many(visits), rng, idle)
        for idle in (0.0, believed.IDLE)
    )
    gains = working.gains(truths)
    worth: Worth | None = None
    belongs: list[Belongs] = []
    changing: float | None = None
    if epoch is not None and learner.preferences is not None and learner.confidence != "paper":
        states = unpack_states(epoch.states)
        guess = _guessed(learner, states, moves)
        worth = _worth(learner, doubting, guess, rng)
        if learner.present.sum() <= MOST:
            belongs, changing = _belongs(config, learner, truths, (states, guess), moves[-1], rng)
    return Verdict(
        config=config,
        weeks=len(weeks.states),
        course=working.course(weeks, S),
        pairs=working.with_themselves(weeks, S),
        lots=working.by_lot(weeks, S),
        effect=working.effect(gains, visits) if len(weeks.states) else NOTHING,
        doubted=working.effect(working.gains(doubting), visits),
        over_lots=working.list_over_lots(gains[:, : weeks.states.shape[1]], weeks),
        worth=worth,
        belongs=belongs,
        changing=changing,
    )


def _how_many(visits: IntArray) -> int:
    """Draws of the truth that take a second at most."""
    return int(np.clip(4_000_000 // visits.size, 20, 600))


def _guessed(learner: Dopl, states: IntArray, moves: Sequence[Move]) -> IntArray:
    """Where everybody is [N]; those of whom it is not known, where they most likely are."""
    assert learner.dynamics is not None  # noqa: S101
    chances = where(states, moves[:-1], learner.present, learner.dynamics.mean)
    if chances is None:
        return np.maximum(states, 0)
    return np.where(states == UNKNOWN, chances.argmax(axis=1), states)


def _worth(learner: Dopl, truths: FloatArray, states: IntArray, rng: np.random.Generator) -> Worth:
    """How many are in the better half, in the weeks to come."""
    here = np.flatnonzero(learner.present)
    half = np.tile(working.better_half(learner.n_states).astype(float), (len(here), 1))
    had = believed.ahead(
        truths[:, here],
        half,
        learner.priority[here],
        states[here],
        learner.budget,
        rng,
        times=max(1, 200 // len(here)),
    )
    return believed.worth(had)


def _belongs(
    config: StudyConfig,
    learner: Dopl,
    truths: FloatArray,
    states: tuple[IntArray, IntArray],
    list_of: Move,
    rng: np.random.Generator,
) -> tuple[list[Belongs], float | None]:
    """Who on the list belongs there, and how many places more answers would change.

    states: as they are known, and as they are guessed
    """
    here = np.flatnonzero(learner.present)
    few = learner.n_arms * learner.n_states <= MOST_EXACT  # of more, each strength by itself
    assert learner.preferences is not None  # noqa: S101
    belief = learner.belief() if few else learner.preferences
    count = int(np.clip(4_000 // len(here), 10, 60))
    strengths = draws.strengths(belief, count, rng)[:, here]
    problem = (states[1][here], learner.budget, learner.pays)
    found = np.zeros(learner.n_arms)
    found[here] = believed.chance(believed.belonging(truths[:count, here], strengths, *problem))
    lots = set(list_of.by_lot.tolist())
    belongs = [
        Belongs(
            config.arms[n].id,
            config.arms[n].label,
            None if states[0][n] == UNKNOWN else config.states[states[0][n]].label,
            n in lots,
            float(found[n]),
        )
        for n in list_of.arms.tolist()
    ]
    changing = _changing(learner, states, rng) if few and len(lots) < learner.budget else None
    return sorted(belongs, key=lambda one: (one.by_lot, -one.chance)), changing


def _changing(
    learner: Dopl, states: tuple[IntArray, IntArray], rng: np.random.Generator
) -> float | None:
    """How many places of the list MORE answers to the most telling pairs would change."""
    known, guess = states
    duels = learner.telling(known, MORE, rng)
    if len(duels) < MORE or learner.dynamics is None:
        return None
    belief, here = learner.belief(), np.flatnonzero(learner.present)
    assert belief.covariance is not None  # noqa: S101
    pairs = duels[:, ::2] * learner.n_states + duels[:, 1::2]
    reach = believed.learnt_from(belief.covariance, pairs, belief.mean.ravel())
    P = learner.dynamics.mean[here]
    may = belief.mean.ravel() + rng.standard_normal((30, reach.shape[1])) @ reach.T
    means = np.concatenate([belief.mean.ravel()[None], may]).reshape(31, *belief.mean.shape)
    lists = believed.belonging(
        np.broadcast_to(P, (31, *P.shape)),
        means[:, here],
        guess[here],
        learner.budget,
        learner.pays,
    )
    return float((lists[0] & ~lists[1:]).sum(axis=1).mean())
