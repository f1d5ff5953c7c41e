"""The paper's figures of a table of episodes: reward, cumulative regret, and DOPL's errors."""

from pathlib import Path
from typing import IO

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from dopl_core.experiments.learners import LEARNERS

LINES = {
    (name, confidence): line
    for name, kind in LEARNERS.items()
    for confidence, line in kind.lines.items()
}
OTHERS = ("#44aa99", "#aa4499", "#999933", "#661100")  # for learners from outside, in turn
ERRORS = {
    "index_error": "Order of the index (Kendall's tau, 1 is the oracle's)",
    "f_error": "Preferences F (root mean square error)",
    "p_error": "Transitions P (root mean square error)",
    "r_error": "Overestimated rewards Q (root mean square error)",
}


def reward_and_regret(table: pd.DataFrame, path: str | Path | IO[bytes], title: str) -> None:
    """Two panels as PNG: reward of an episode (moving mean), and cumulative regret.

    Lines are means over seeds, bands one standard deviation. Both are in the paper's unit: sums
    over the epochs of an episode.
    """
    figure = Figure(figsize=(11, 4.6), layout="constrained")
    reward, regret = figure.subplots(1, 2)
    for key, (label, colour) in lines(table).items():
        rows = table[(table.learner == key[0]) & (table.confidence == key[1])]
        _line(reward, rows, rows.reward * rows.epochs, label, colour, window(table))
        if key[0] != "oracle":
            _line(regret, rows, rows.cumulative_regret * rows.epochs, label, colour, 1)
    reward.set(title="Reward", xlabel="Episode", ylabel="Reward of an episode")
    regret.set(title="Regret", xlabel="Episode", ylabel="Cumulative regret")
    handles, labels = reward.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    save(figure, path, title)


def errors(table: pd.DataFrame, path: str | Path | IO[bytes], title: str) -> None:
    """DOPL's four errors (paper, appendix F) as PNG, one panel each."""
    figure = Figure(figsize=(11, 7), layout="constrained")
    panels: list[Axes] = list(figure.subplots(2, 2).flat)
    for panel, (column, name) in zip(panels, ERRORS.items(), strict=True):
        for key, (label, colour) in LINES.items():
            rows = table[(table.learner == key[0]) & (table.confidence == key[1])]
            if key[0] == "dopl" and not rows.empty:
                _line(panel, rows, rows[column], label, colour, window(table))
        panel.set(title=name, xlabel="Episode")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    save(figure, path, title)


def lines(table: pd.DataFrame) -> dict[tuple[str, str], tuple[str, str]]:
    """Label and colour of each learner and confidence in a table, in the order of the legend."""
    there = [tuple(key) for key in table[["learner", "confidence"]].drop_duplicates().to_numpy()]
    found = {key: line for key, line in LINES.items() if key in there}
    strangers = (key for key in there if key not in LINES)
    return found | {
        key: (key[0], OTHERS[number % len(OTHERS)]) for number, key in enumerate(strangers)
    }


def window(table: pd.DataFrame) -> int:
    """The episodes of a moving mean: a hundredth of all, as in the authors' plots."""
    return max(1, int(table.episode.max()) // 100)


def _line(
    panel: Axes, rows: pd.DataFrame, values: pd.Series, label: str, colour: str, window: int
) -> None:
    by_seed = values.set_axis(pd.MultiIndex.from_frame(rows[["episode", "seed"]])).unstack()
    smooth = by_seed.rolling(window, min_periods=1).mean()
    middle, spread = smooth.mean(axis=1), smooth.std(axis=1, ddof=0)
    panel.plot(middle.index, middle, color=colour, label=label, linewidth=1.5)
    panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    panel.fill_between(
        middle.index, middle - spread, middle + spread, color=colour, alpha=0.2, linewidth=0
    )


def save(figure: Figure, path: str | Path | IO[bytes], title: str) -> None:
    """Write a figure as PNG under a title."""
    figure.suptitle(title)
    for panel in figure.axes:
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(alpha=0.25)
    figure.savefig(path, format="png", dpi=130)
