"""From the log to the learner, and the check that a log can be played again."""
