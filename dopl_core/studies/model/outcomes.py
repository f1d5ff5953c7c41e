"""The words for answers, duels and studies that the database and bundles use."""

STATUSES = ("running", "paused", "closed")

ANSWERS = ("left", "right", "tie", "skip")  # a skip is an answer without weight
OUTCOMES = (*ANSWERS, "expired", "undone")
CREDIT = {"left": 1.0, "right": 0.0, "tie": 0.5}  # the credit of the left side

PURPOSES = ("policy", "sitting", "repeat", "gold", "practice")
LEARNT = ("policy", "sitting")  # the learner counts answers to these duels only

SOURCES = ("simulated", "owner")  # who reports the next states
