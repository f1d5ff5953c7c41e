"""Answers of real people, predicted: log loss of held-out answers, ours beside choix.

`dopl bench answers FOLDER` reads all CSV files of a folder (columns judge, chosen, other; gzip too;
a column session splits a file). A share of the answers is known, the rest is predicted: by our
strengths, by ours with the annotators' sureness, and by choix with alpha 1 and 0.1. Beside stand
the reliability of all answers and the number of judges whose answers fit too badly. DOPL_SEEDS sets
the number of random splits (4), DOPL_ITEMS the most items of a session (110).
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import choix
import numpy as np
import pandas as pd
from scipy.special import log_expit

from dopl_core.learning import annotators, preferences
from dopl_core.learning.bandit import FloatArray, IntArray
from dopl_core.learning.bradley_terry import reliability
from dopl_core.learning.counts import Counts

SHARES = (0.25, 0.75)
ALPHAS = (1.0, 0.1)


class Session(NamedTuple):
    """Answers [D] of a session, as codes from 0."""

    name: str
    judge: IntArray
    chosen: IntArray
    other: IntArray

    @property
    def items(self) -> int:
        """The number of items."""
        return int(max(self.chosen.max(), self.other.max())) + 1

    def some(self, at: IntArray) -> "Session":
        """A part of the answers."""
        return Session(self.name, self.judge[at], self.chosen[at], self.other[at])


def main(folder: str = "") -> None:
    """Print log losses by session, their means, and the bars."""
    if not folder:
        print("answers: give a folder with CSV files (judge, chosen, other): bench answers FOLDER")
        return
    seeds, most = (int(os.environ.get(f"DOPL_{x}", y)) for x, y in (("SEEDS", 4), ("ITEMS", 110)))
    sessions = [session for session in read(Path(folder)) if session.items <= most]
    if not sessions:
        raise ValueError(f"{folder}: no CSV file with answers about at most {most} items")
    print(f"answers: {len(sessions)} sessions of at most {most} items, {seeds} splits; log loss")
    heads = [f"{share:.0%} {what}" for share in SHARES for what in ("ours", "sure", "a=1", "a=.1")]
    print(f"{'session':24}{'items':>6}{'judges':>7}{'answers':>8}", end="")
    print(f"{'SSR (95 %)':>18}{'halves (95 %)':>18}{'misfits':>8}", end="")
    print("".join(f"{head:>10}" for head in heads), flush=True)
    found = []
    for session in sessions:
        losses = np.mean([_losses(session, seed) for seed in range(seeds)], axis=0)
        found.append(losses)
        print(f"{session.name[:23]:24}{session.items:6}{len(np.unique(session.judge)):7}", end="")
        print(f"{len(session.judge):8}{_reliability(session)}", end="")
        print("".join(f"{loss:10.3f}" for loss in losses.ravel()), flush=True)
    _print_bars(np.array(found))


def _reliability(session: Session) -> str:
    """SSR and split halves with intervals, and how many judges have an infit surely above 1."""
    rng, answers = np.random.default_rng(0), (session.chosen, session.other)
    halves = reliability.split_halves(*answers, session.judge, rng, reliability.RESAMPLES)
    both = reliability.separation_interval(*answers, session.items, rng), halves
    texts = [f"{one.value:.2f} ({one.low:.2f}-{one.high:.2f})" for one in both]
    misfits = sum(fit.low > 1 for fit in reliability.infit(*answers, session.judge, rng))
    return "".join(f"{text:>18}" for text in texts) + f"{misfits:8}"


def read(folder: Path) -> Iterator[Session]:
    """The sessions of all CSV files of a folder."""
    for path in sorted([*folder.glob("*.csv"), *folder.glob("*.csv.gz")]):
        table = pd.read_csv(path, dtype=str)
        if not {"judge", "chosen", "other"} <= set(table.columns):
            continue
        name = path.name.removesuffix(".gz").removesuffix(".csv")
        names = table["session"] if "session" in table.columns else pd.Series(name, table.index)
        for one, part in table.groupby(names):
            items = pd.factorize(pd.concat([part["chosen"], part["other"]]))[0]
            chosen, other = np.split(np.asarray(items, dtype=np.int64), 2)
            yield Session(str(one), pd.factorize(part["judge"])[0].astype(int), chosen, other)


def _losses(session: Session, seed: int) -> FloatArray:
    """Log losses [share, 4]: ours, ours with sureness, choix with each alpha."""
    found = []
    for share in SHARES:
        order = np.random.default_rng(seed).permutation(len(session.judge))
        known, held_out = (session.some(at) for at in np.split(order, [round(share * len(order))]))
        counts = Counts(session.items)
        counts.add(known.chosen, known.other, 1.0, known.judge)

        def fit(k: FloatArray | None, counts: Counts = counts) -> preferences.Preferences:
            return preferences.calibrated(counts, 1, None, sureness=k)

        belief, k = annotators.weighed(counts, fit)
        sureness = np.ones(int(session.judge.max()) + 1)
        sureness[: len(k)] = k
        rivals = [
            choix.opt_pairwise(session.items, list(zip(*known[2:], strict=True)), alpha=alpha)
            for alpha in ALPHAS
        ]
        found.append(
            [
                loss(fit(None).mean.ravel(), held_out),
                loss(belief.mean.ravel(), held_out, sureness[held_out.judge]),
                *(loss(strengths, held_out) for strengths in rivals),
            ]
        )
    return np.array(found)


def loss(strengths: FloatArray, session: Session, k: FloatArray | float = 1.0) -> float:
    """The mean of -ln p(answer) for strengths [items], and sureness [D] where annotators differ."""
    return float(-log_expit(k * (strengths[session.chosen] - strengths[session.other])).mean())


def _print_bars(losses: FloatArray) -> None:
    """losses: [session, share, 4]."""
    for at, share in enumerate(SHARES):
        ours, sure, *rivals = losses[:, at].T
        means = [float(rival.mean()) for rival in rivals]
        best = int(np.argmin(means))
        worst = float((ours - rivals[best]).max())
        helped = float((sure < ours).mean())
        print(
            f"{share:.0%} known: ours {ours.mean():.4f}, with sureness {sure.mean():.4f}, "
            f"choix {means[0]:.4f} (alpha 1), {means[1]:.4f} (alpha .1); worst session against "
            f"alpha {ALPHAS[best]:g} {worst:+.3f} (bar .04); "
            f"sureness helps in {helped:.0%} (bar 70 %)"
        )


if __name__ == "__main__":
    main()
