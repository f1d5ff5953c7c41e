"""Records of real trials: how well next states are predicted, and what lists would have been worth.

Trial         states, help and columns of everybody, step by step
in_waves      people with one move each, in waves that one after the other can be predicted
read_folder   the trials of a folder: history.csv, roster.csv, states.csv, moves.csv
read_history  one trial from records (id, when, state, helped) and a roster
trial_table   log loss of the next state: the learner beside simple models
value_table   what the learner's lists would have been worth, where help was drawn at random
play          what the learner predicted and whom it listed, for both tables
report        both tables of an uploaded trial, within limits
"""

from dopl_core.experiments.trials.learnt import Played, play
from dopl_core.experiments.trials.losses import trial_table
from dopl_core.experiments.trials.reading import read_folder, read_history
from dopl_core.experiments.trials.report import Report, report
from dopl_core.experiments.trials.trial import Trial, in_waves
from dopl_core.experiments.trials.value import value_table

__all__ = [
    "Played",
    "Report",
    "Trial",
    "in_waves",
    "play",
    "read_folder",
    "read_history",
    "report",
    "trial_table",
    "value_table",
]
