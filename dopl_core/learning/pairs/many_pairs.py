"""The most informative pairs where arms are too many to compare all pairs.

What is known of many strengths (large_strengths.py) is nearly this: state parts that all have in
common, an arm part that its states have in common, and the rest of each, independent. So what
an answer about an arm tells of others it tells of their states, and any few arm-states have a
covariance that is made when it is needed. The most uncertain arms are candidates, in rounds; among
them the best pairs are found one after the other, as pair_designs.py does among all.
"""

from dataclasses import dataclass

import numpy as np

from dopl_core.learning.bandit import FloatArray, IntArray
from dopl_core.learning.pairs.pair_designs import Information, exclude, informative

CANDIDATES = 128  # arm-states of one round
_ROUND = CANDIDATES // 2  # pairs of one round


@dataclass
class Unknown:
    """What is not known of n arm-states, each of another arm.

    common: [n, S] what varies with the state parts;  own: [n] the variance of all else
    strengths: [n] their means
    towards: [S, S] products of all arm-states' common parts, each weighted by how much it matters
    own_towards: [n, S], own_squares: [n] the same of the arm's own part with the common parts of
    its states, and with itself
    """

    common: FloatArray
    own: FloatArray
    strengths: FloatArray
    towards: FloatArray
    own_towards: FloatArray
    own_squares: FloatArray

    def information(self, some: IntArray) -> Information:
        """What answers about pairs of some of them tell."""
        common, towards = self.common[some], self.own_towards[some]
        both = common @ towards.T
        gram = common @ self.towards @ common.T + both + both.T
        gram[np.diag_indices(len(some))] += self.own_squares[some]
        covariance = common @ common.T + np.diag(self.own[some])
        return Information(gram, covariance, self.strengths[some])

    def scores(self) -> FloatArray:
        """How much an answer about each of them may tell [n]; at best it is worth 1/4."""
        gram = ((self.common @ self.towards + 2 * self.own_towards) * self.common).sum(axis=1)
        variance = (self.common**2).sum(axis=1) + self.own
        return np.asarray((gram + self.own_squares) / (4 + variance))

    def ask(self, pairs: IntArray) -> None:
        """Once pairs [D, 2] are compared, less is to be learnt of their arms, and of states."""
        i, j = pairs.T
        away = self.common[i] - self.common[j]
        noise = 4 + self.own[i] + self.own[j]  # an answer is worth 1/4 observation at best
        precision = np.eye(away.shape[1]) + (away.T / noise) @ away
        values, vectors = np.linalg.eigh(precision)
        told = np.zeros(len(self.own))
        for one, other in ((i, j), (j, i)):
            np.add.at(told, one, 1 / (4 + self.own[other] + (away**2).sum(axis=1)))
        left = 1 / (1 + self.own * told)
        self.own = self.own * left
        self.own_squares = self.own_squares * left**2
        root = vectors / np.sqrt(values)
        self.common = self.common @ root
        self.own_towards = left[:, None] * (self.own_towards @ root)
        self.towards = root.T @ self.towards @ root


def unknown(
    common: FloatArray,
    variance: FloatArray,
    strengths: FloatArray,
    matters: FloatArray,
    codes: IntArray,
) -> Unknown:
    """What is not known of the arm-states `codes` [n].

    common: [M, S + 1] (see Preferences);  variance, strengths: [M]
    matters: [N, S, S] how much strengths matter (decisions.py)
    """
    S = common.shape[1] - 1
    of_states, within = common[:, :S], common[:, S]
    rest = np.maximum(variance - (common**2).sum(axis=1), 0)
    arms, states = np.divmod(codes, S)
    # How an arm-state's own part goes together with those of its arm's states [n, S].
    mine = within[codes, None] * within.reshape(-1, S)[arms]
    mine[np.arange(len(codes)), states] += rest[codes]
    weighted = (matters[arms] @ mine[:, :, None])[:, :, 0]
    parts = of_states.reshape(-1, S, S)
    return Unknown(
        common=of_states[codes],
        own=within[codes] ** 2 + rest[codes],
        strengths=strengths[codes],
        towards=of_states.T @ (matters @ parts).reshape(-1, S),
        own_towards=np.einsum("ns,nsk->nk", weighted, parts[arms]),
        own_squares=(weighted * mine).sum(axis=1),
    )


def most_informative(
    about: Unknown, asked: IntArray, keys: FloatArray, *, once: bool = False
) -> IntArray:
    """Pairs [D, 2] of positions, as pair_designs.most_informative: keys [n + D], asked [D', 2]."""
    n = len(about.own)
    if len(asked):
        about.ask(asked)
    pairs = np.empty((0, 2), dtype=np.int64)
    while len(pairs) < len(keys) - n:
        some = np.lexsort((keys[:n], -about.scores()))[:CANDIDATES]
        information, excluded = about.information(some), np.eye(len(some), dtype=bool)
        if once:
            exclude(excluded, _among(some, np.concatenate([asked, pairs]), n))
        found = []
        for _ in range(min(_ROUND, len(keys) - n - len(pairs))):
            found.append(information.best(excluded))
            information.ask(*found[-1])
            if once:
                exclude(excluded, np.array(found[-1:]))
        more = some[np.array(found)]
        about.ask(more)
        pairs = np.concatenate([pairs, more])
    swap = keys[n:, None] < 0.5
    return np.where(swap, pairs[:, ::-1], pairs)


def _among(some: IntArray, pairs: IntArray, n: int) -> IntArray:
    """Those of pairs [D, 2] whose arm-states are both among `some`, as places in it."""
    place = np.full(n, -1)
    place[some] = np.arange(len(some))
    both = place[pairs]
    return both[(both >= 0).all(axis=1)]


def informative_tree(about: Unknown, keys: FloatArray) -> IntArray:
    """An informative tree of all positions [n - 1, 2]: of one group after the other, each with an
    arm in common with the one before. keys: as for pair_designs.informative
    """
    n = len(about.own)
    order = keys[:n].argsort()
    pairs = []
    for start in range(0, n - 1, CANDIDATES - 1):
        some = order[start : start + CANDIDATES]
        information = about.information(some)
        tree = informative(
            information.gram, information.covariance, about.strengths[some], np.tile(keys[some], 2)
        )
        pairs.append(some[tree])
    return np.concatenate(pairs)
