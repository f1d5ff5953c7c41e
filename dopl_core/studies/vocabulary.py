"""The words that stand in the database and in bundles, each of them once."""

STATUSES = ("running", "paused", "closed")

ANSWERS = ("left", "right", "tie", "skip")  # outcomes that are ratings; a skip has no weight
OUTCOMES = (*ANSWERS, "expired", "undone")
CREDIT = {"left": 1.0, "right": 0.0, "tie": 0.5}  # what an answer credits the left side with

PURPOSES = ("policy", "repeat", "gold", "practice")
LEARNT = ("policy",)  # purposes of the duels whose answers the learner counts

SOURCES = ("simulated", "owner")  # who says where the arms have gone

# What can happen, and whether the learner counts it.
EVENTS = {
    "made": False,
    "imported": False,
    "paused": False,
    "reopened": False,
    "closed": False,
    "joined": False,
    "practice_skipped": False,
    "shown": False,
    "expired": False,
    "answered": True,
    "refused": False,
    "undone": True,
    "duels_closed": False,
    "observed": True,
    "planned": True,
}
SAID = ("answered", "undone")  # events that change what was answered
