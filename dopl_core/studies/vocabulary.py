"""The words that stand in the database and in bundles, each of them once."""

STATUSES = ("running", "paused", "closed")

ANSWERS = ("left", "right", "tie", "skip")  # outcomes that are ratings; a skip has no weight
OUTCOMES = (*ANSWERS, "expired", "undone")
CREDIT = {"left": 1.0, "right": 0.0, "tie": 0.5}  # what an answer credits the left side with

PURPOSES = ("policy", "sitting", "repeat", "gold", "practice")
LEARNT = ("policy", "sitting")  # purposes of the duels whose answers the learner counts

SOURCES = ("simulated", "owner")  # who says where the arms have gone

# What can happen, and whether the next plan depends on it.
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
    "flagged": False,
    "duels_closed": False,
    "listed": False,
    "observed": True,
    "corrected": True,
    "planned": True,
    "history_added": True,
    "settings_changed": True,
    "arms_joined": True,
    "arms_left": True,
    "person_excluded": True,
    "person_included": True,
    "photos_added": False,
    "photos_removed": False,
}
SAID = ("answered", "undone")  # events that change what was answered
TRUST = ("person_excluded", "person_included")  # whose answers count from the next plan on
CHANGES = ("history_added", "settings_changed", "arms_joined", "arms_left")  # see changes.py
