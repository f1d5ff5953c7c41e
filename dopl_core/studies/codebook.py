"""What every column of a bundle means, in a sentence each."""

STUDY = "The id of the study."
ARM = "The owner's own id of the person or thing that can be helped."

COLUMNS = {
    "duels.csv": {
        "study": STUDY,
        "session": "The number of this sitting of the annotator, from 1.",
        "annotator": "The name of who was asked, or a pseudonym where those were chosen.",
        "episode": "The number of the plan by which it was asked, from 1; 0 is before the first.",
        "epoch": "The epoch (week) of that plan, from 0.",
        "duel": "The number of the question in its epoch, from 0.",
        "left_arm": "Who was shown on the left (above, on a phone), by the owner's id.",
        "left_state": "The state that the left one was in.",
        "right_arm": "Who was shown on the right (below, on a phone), by the owner's id.",
        "right_state": "The state that the right one was in.",
        "purpose": "Why it was asked: policy and sitting count, repeat, gold and practice do not.",
        "outcome": "left, right, tie, skip (cannot tell), expired or undone; empty while open.",
        "winner_arm": "Who was preferred; empty for ties and skips.",
        "loser_arm": "Who was not preferred; empty for ties and skips.",
        "shown_at": "When it was shown, UTC.",
        "answered_at": "When the answer arrived, UTC.",
        "response_ms": "Milliseconds from when the cards were seen to the click.",
        "confidence": "How the learner's widths are made: calibrated, or as in the paper.",
        "plan": "The number of the plan in force, the same as episode.",
        "trip_ms": "Milliseconds that the way to the server and back took.",
        "narrow": "1 where the cards were shown one above the other, as on a phone.",
        "participant": "The id that a panel gave the annotator in their link.",
    },
    "transitions.csv": {
        "study": STUDY,
        "episode": "The number of the plan in force, from 1.",
        "epoch": "The epoch (week) of that plan, from 0.",
        "arm": ARM,
        "state": "The state when the epoch began; empty where it is unknown.",
        "activated": "1 if really helped in this epoch.",
        "next_state": "The state when the epoch had ended; empty where it is unknown.",
        "source": "Who says so: the owner, or a simulated world; empty until it is reported.",
        "listed": "1 if on the list of this epoch.",
        "by_lot": "1 if that place was drawn by lot among all who were not on the list.",
        "corrected_at": "When the row was last corrected, UTC.",
        "reported": "What was said at first, as JSON, where a correction has changed it.",
    },
    "plans.csv": {
        "study": STUDY,
        "plan": "The number of the plan, from 1.",
        "made_at": "When it was made, UTC.",
        "engine": "The solver that made it.",
        "value": "What it is worth by optimistic beliefs; not to be compared with random_value.",
        "random_value": "What helping at random is worth by mean beliefs.",
        "multiplier": "What one more place on the list is worth.",
        "changed": "The share of decisions that differ from those of the plan before.",
        "answers": "How many answers it was made with.",
        "seconds": "How long it took to make.",
        "digest": "A checksum of all its numbers.",
    },
    "events.csv": {
        "study": STUDY,
        "seq": "The number of the event, from 1, without a gap.",
        "at": "When it happened, UTC.",
        "kind": "What happened.",
        "annotator": "Whose doing it was, or whose answers it is about.",
        "impression": "The row of duels.csv that it is about, from 1.",
        "outcome": "What was answered, or taken back.",
        "body": "What else there is to say of it, as JSON.",
    },
    "lists.csv": {
        "week": "The week (epoch over all plans) of the list, from 1.",
        "arm": ARM,
        "listed": "1 if on the list; 0 if helped without being on it.",
        "by_lot": "1 if that place was drawn by lot among all who were not on the list.",
        "helped": "1 if really helped; empty until it is reported.",
        "why": "Why they are on the list, as its reader was told.",
    },
}


def text() -> str:
    """The codebook as Markdown."""
    parts = ["# Codebook\n\nEvery column of every table. Times are UTC, ISO 8601.\n"]
    for name, columns in COLUMNS.items():
        lines = "\n".join(f"- `{column}`: {said}" for column, said in columns.items())
        parts.append(f"## {name}\n\n{lines}\n")
    more = (
        "`history.csv`, where there are past records, has the columns that its owner gave it: id, "
    )
    return "\n".join([*parts, f"{more}when, state and helped.\n"])
