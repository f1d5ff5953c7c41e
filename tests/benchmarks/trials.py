"""Real trials: how well next states are predicted, and what lists would have been worth.

`dopl bench trials` reads public trials (pip install 'dopl[trials]'). `dopl bench trials FOLDER`
adds those of a folder: history.csv (id, when, state, helped), roster.csv, states.csv (state; the
worst first), also as NAME_history.csv; and moves.csv (counts). None of the data is kept.

DOPL_TRIALS: some of the trials, with semicolons between them (all);  DOPL_STATES: states of
histories without a states.csv, from worst to best, with commas;  DOPL_RANDOMISED: names of
histories whose help was drawn at random, with commas (none)
"""

import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from dopl_core.experiments import trials
from dopl_core.experiments.trials import Trial
from dopl_core.experiments.trials.losses import OURS

sys.path.insert(0, str(Path(__file__).parent))
import _public_trials

MODELS = {
    **{"dopl": "ours", "shares": "shares", "pooled chain": "pooled", "personal chain": "personal"},
    "ordinal logistic": "ordinal",
}
RIVALS = ("worst first", "random")


def main(folder: str = "") -> None:
    """Print log losses and values of lists for all trials, then means by half."""
    chosen = find(folder)
    played = {trial.name: trials.play(trial) for trial in chosen}
    show_losses(chosen, played)
    show_values([trial for trial in chosen if trial.randomised], played)


def find(folder: str) -> list[Trial]:
    """The public trials and those of a folder; only the folder's if the package is missing."""
    own = _of_folder(Path(folder)) if folder else []
    try:
        public = _public_trials.read()
    except ValueError as error:
        if not folder:
            raise
        print(f"{error}\nwithout it, only the trials of {folder}:")
        public = []
    found = public + own
    wanted = [name for name in os.environ.get("DOPL_TRIALS", "").split(";") if name]
    if unknown := set(wanted) - {trial.name for trial in found}:
        names = "; ".join(trial.name for trial in found)
        raise ValueError(f"trials: {', '.join(sorted(unknown))} is unknown; there are {names}")
    return [trial for trial in found if not wanted or trial.name in wanted]


def _of_folder(folder: Path) -> list[Trial]:
    words = {
        name: [word.strip() for word in os.environ.get(name, "").split(",") if word.strip()]
        for name in ("DOPL_STATES", "DOPL_RANDOMISED")
    }
    found = trials.read_folder(
        folder,
        states=words["DOPL_STATES"],
        randomised=lambda name: name in words["DOPL_RANDOMISED"],
    )
    for trial in found:
        if trial.left_out:
            print(f"{trial.name}: a series of results is not used: {', '.join(trial.left_out)}")
        if not trial.ordered:
            print(f"{trial.name}: states have no order; give states.csv or DOPL_STATES")
    return found


def show_losses(chosen: list[Trial], played: dict[str, trials.Played]) -> None:
    """Losses of each trial, early and late; then means over trials."""
    print(
        "trials: log loss of the next state, one step ahead, ± standard error by person; last, ours"
        "\nless the simple model that was best in hindsight, and the 95 % interval (* excludes 0)"
    )
    print(f"{'trial':31}{'half':>5} {'part':6}{'states':>6}{'people':>7}{'moves':>6}", end="")
    print(f"{'ours':>14}" + "".join(f"{name:>9}" for name in list(MODELS.values())[1:]))
    kept = []
    for trial in chosen:
        table = trials.trial_table(trial, played=played[trial.name])
        kept.append(table.assign(trial=trial.name, half=_public_trials.half(trial.name)))
        for part in ("early", "late"):
            rows = table[table.part == part].set_index("model")
            if len(rows):
                show_row(trial, part, rows)
    show_means(pd.concat(kept))


def show_row(trial: Trial, part: str, rows: pd.DataFrame) -> None:
    """The losses of one part of a trial; rows: by model."""
    ours = rows.loc[OURS]
    print(f"{trial.name[:30]:31}{_public_trials.half(trial.name):>5} {part:6}", end="")
    print(f"{trial.n_states:6}{int(ours.people):7}{int(ours.moves):6}", end="")
    print(f"{ours.loss:7.3f} ± {ours.loss_se:.3f}", end="")
    losses = rows.loss.reindex(list(MODELS)[1:])
    print("".join(f"{loss:9.3f}" for loss in losses), end="")
    best = rows.loc[losses.idxmin()]
    sure = "*" if best.low > 0 or best.high < 0 else ""
    print(f"  {best.difference:+.3f} ({best.low:+.3f} to {best.high:+.3f}){sure}", flush=True)


def show_means(rows: pd.DataFrame) -> None:
    """Mean losses over trials by half, and how often ours is surely better or worse."""
    print("\nmeans over trials, each counting once (A: for choosing settings, B: for reporting)")
    for half in ("A", "B"):
        for part in ("early", "late", "all"):
            own = rows[(rows.half == half) & (rows.part == part)]
            if own.empty:
                continue
            means = own.groupby("model").loss.mean().reindex(list(MODELS))
            shown = "  ".join(f"{MODELS[name]} {loss:.3f}" for name, loss in means.items())
            print(f"{half} {part:6}{own.trial.nunique():3} trials: {shown}")
    of_all = rows[rows.part == "all"]
    for name in list(MODELS)[1:]:
        own = of_all[of_all.model == name]
        better, worse = int((own.high < 0).sum()), int((own.low > 0).sum())
        print(f"ours against {MODELS[name]}: better in {better}, worse in {worse} of {len(own)}")


def show_values(chosen: list[Trial], played: dict[str, trials.Played]) -> None:
    """What lists would have been worth in each trial whose help was drawn at random."""
    if not chosen:
        return
    print(
        "\ntrials: mean state after a step (0: all in the worst, 100: all in the best) with nobody"
        "\nhelped, and the gain of a list for a quarter of the people, ± standard error by person"
    )
    heads = ("nobody", "ours", *RIVALS, *(f"less {name}" for name in RIVALS))
    print(f"{'trial':31}{'places':>7}" + "".join(f"{head:>18}" for head in heads))
    z = []
    for trial in chosen:
        table = 100 * trials.value_table(trial, played[trial.name]).set_index("policy")
        ours, nobody = table.loc[OURS], table.loc["no help"]
        cells = [(ours.gain, ours.gain_se)]
        cells += [(table.gain[name], table.gain_se[name]) for name in RIVALS]
        against = [(table.difference[name], table.difference_se[name]) for name in RIVALS]
        z.append(against)
        print(f"{trial.name[:30]:31}{ours.places / 100:7.0f}", end="")
        print(f"{nobody.value:12.1f} ± {nobody.value_se:3.1f}", end="")
        texts = [f"{mean:+.1f} ± {error:.1f}" for mean, error in cells + against]
        print("".join(f"{text:>18}" for text in texts), flush=True)
    for name, (means, errors) in zip(RIVALS, np.array(z).transpose(1, 2, 0), strict=True):
        weights = 1 / errors**2
        mean, error = (weights * means).sum() / weights.sum(), 1 / np.sqrt(weights.sum())
        print(
            f"ours less {name}, by precision: {mean:+.2f} ± {error:.2f} (some trials share people)"
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
