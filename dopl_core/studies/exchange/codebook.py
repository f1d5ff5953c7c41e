"""What every column and every setting of a bundle means, in a sentence each."""

from dopl_core.studies.model.setting_rows import SETTINGS, Setting

STUDY = "The id of the study."
ARM = "The owner's own id of the person or thing that can be helped, or its number without names."

COLUMNS = {
    "duels.csv": {
        "study": STUDY,
        "session": "The number of this visit of the annotator, from 1.",
        "annotator": "The annotator's name, or a number in an export without names.",
        "episode": "The number of the plan in force, from 1; 0 before the first plan.",
        "epoch": "The epoch (week) of that plan, from 0.",
        "duel": "The number of the duel in its epoch, from 0; if a report was undone, the duels of "
        "the list that followed it come first.",
        "left_arm": "The owner's id of the left card (upper card on a phone).",
        "left_state": "The state of the left arm.",
        "right_arm": "The owner's id of the right card (lower card on a phone).",
        "right_state": "The state of the right arm.",
        "purpose": "Why it was asked. Answers to policy and sitting (first round) count, those to "
        "repeat, gold (plain comparison) and practice do not.",
        "outcome": "left, right, tie, skip (cannot tell), expired or undone; empty while open.",
        "winner_arm": "The preferred arm; empty for ties and skips.",
        "loser_arm": "The other arm; empty for ties and skips.",
        "shown_at": "When it was shown, UTC.",
        "answered_at": "When the answer arrived, UTC.",
        "response_ms": "Milliseconds from seeing the cards to the click.",
        "confidence": "How the learner computes uncertainty: calibrated, or as in the paper.",
        "plan": "The number of the plan in force, the same as episode.",
        "trip_ms": "Milliseconds of the round trip to the server.",
        "narrow": "1 if the cards stood one above the other, as on a phone.",
        "participant": "The annotator's id in a paid panel, from their link.",
        "reason_asked": "1 if the annotator was asked why; empty if not, or if the answer was "
        "undone.",
        "reason_tags": "The reasons that the annotator chose from reason_tags of the settings, "
        "separated by commas.",
        "reason": "The reason in the annotator's own words.",
    },
    "queue.csv": {
        "study": STUDY,
        "episode": "The number of the plan that asks it, from 1; 0 is before the first.",
        "epoch": "The epoch (week) of that plan, from 0.",
        "duel": "The number of the question in its epoch, from 0.",
        "purpose": "policy, sitting or practice, as in duels.csv.",
        "left_arm": "The left side, by the owner's id.",
        "left_state": "The state of the left side.",
        "right_arm": "The right side, by the owner's id.",
        "right_state": "The state of the right side.",
        "ratings": "How many answers it asks for; 0 where everybody is asked.",
    },
    "transitions.csv": {
        "study": STUDY,
        "episode": "The number of the plan in force, from 1.",
        "epoch": "The epoch (week) of that plan, from 0.",
        "arm": ARM,
        "state": "The state when the epoch began; empty where it is unknown.",
        "activated": "1 if helped in this epoch, as the owner reported.",
        "next_state": "The state when the epoch had ended; empty where it is unknown.",
        "source": "The owner or a simulated world; empty until it is reported.",
        "listed": "1 if the plan put them on the list of this epoch; lists.csv has the list as "
        "the owner changed it.",
        "by_lot": "1 if chosen at random: with listed 1, for a place among people off the list; "
        "with listed 0, to wait among people on it.",
        "corrected_at": "When the row was last corrected, UTC.",
        "reported": "The first report, as JSON, if a correction changed it.",
    },
    "plans.csv": {
        "study": STUDY,
        "plan": "The number of the plan, from 1.",
        "made_at": "When it was made, UTC.",
        "engine": "The solver that made it.",
        "value": "Its value under optimistic beliefs; do not compare it with random_value.",
        "random_value": "The value of helping at random under mean beliefs.",
        "multiplier": "The value of one more place on the list.",
        "changed": "The share of decisions that differ from those of the plan before.",
        "answers": "The number of answers it used.",
        "seconds": "Computing time in seconds.",
        "digest": "A checksum of all its numbers.",
    },
    "events.csv": {
        "study": STUDY,
        "seq": "The number of the event, from 1, without a gap.",
        "at": "When it happened, UTC.",
        "kind": "What happened.",
        "annotator": "The annotator who acted, or whose answers it is about.",
        "impression": "The row of duels.csv that it is about, from 1.",
        "outcome": "The answer that was given or undone.",
        "body": "All other fields, as JSON.",
    },
    "salts.csv": {
        "study": STUDY,
        "seq": "The number of the event in events.csv.",
        "salt": "Random; with it, the digest of the log covers annotator and body of the event.",
        "sealed": "That digest, where annotator or body was erased and the salt with them.",
    },
    "lists.csv": {
        "week": "The week (epoch over all plans) of the list, from 1.",
        "arm": ARM,
        "listed": "1 if on the list; 0 for people next in line, taken off, chosen at random to "
        "wait, or helped without being on the list.",
        "by_lot": "1 if chosen at random: for a place among people who were not on the list, or to "
        "wait among people who were on it; the reason says which.",
        "to_find_out": "1 if on the list to find out what help does in a state where nobody knows "
        "it yet.",
        "helped": "1 if helped, as the owner reported; empty until then.",
        "why": "The reason that the list gave.",
        "reserve": "1 if next in line: the person to help if somebody on the list is not there.",
        "changed": "on if the owner put them on the list, off if the owner took them off it.",
        "because": "The owner's reason for that.",
    },
    "reliability.csv": {
        "measure": "scale_separation (SSR: the share of the differences between people that is "
        "not chance), split_half (the correlation of two halves of the annotators), or infit (how "
        "well an annotator's answers fit those of all; 1 is as expected).",
        "annotator": "Whose infit it is; as in duels.csv.",
        "value": "Its value; there are no rows where answers are too few to tell.",
        "low": "The lower end of its 95 % interval.",
        "high": "The upper end of its 95 % interval.",
    },
}

# Of a trial only; shares are of people, from -1 to 1.
ANALYSIS = {
    "protocol": "The digest of the protocol: the SHA-256 of protocol.json.",
    "fixed_at": "When the protocol was fixed, UTC.",
    "analysis": "The version of the analysis.",
    "software": "The version of dopl that made the analysis.",
    "source": "The SHA-256 of its source code.",
    "weeks": "How many weeks (epochs) are reported, at most planned_weeks.",
    "planned_weeks": "After how many weeks the trial ends.",
    "next_look": "The week of the next look; null after the last one.",
    "looks": "The results at each look that the protocol allows and that was reached.",
    "looks.week": "The week after which the look was.",
    "looks.spent": "The error spent by this look, of the level of the protocol.",
    "looks.nominal": "The level of this look's own test and intervals.",
    "looks.p": "The two-sided p-value of the permutation test that help changes no outcome.",
    "looks.claim": "1 if help works, -1 if it does harm, 0 if p is above nominal.",
    "looks.effect": "The effect of help by lot, a difference of shares, with its interval.",
    "looks.others": "The same among people off the list, by those drawn for a place.",
    "looks.listed": "The same among people on the list, by those drawn to wait.",
    "looks.list_gain": "The effect of the list over lots: listed less others.",
    "looks.drawn": "How many were drawn for a place, each week they were.",
    "looks.drawn_known": "How many of these have a known state before and after.",
    "looks.waiting": "How many were drawn to wait, each week they were.",
    "looks.waiting_known": "How many of these have a known state before and after.",
    "flow": "The flow of people: at each step, people, and people times weeks.",
    "deviations": "How the study departed from its protocol.",
}


FIXED = {
    "world": "observed: the owner reports states; simulated: a known bandit makes them.",
    "arms": "Everybody who ever took part: id, label, group, first state, other columns, present.",
    "states": "Label and description of each state, from worst to best.",
    "environment": "The TOML text of the simulated bandit; empty in observed worlds.",
    "environment_name": "The name of the simulated bandit.",
    "environment_seed": "The seed of ranges in the environment that are drawn for each arm.",
    "engine": "The solver that makes plans.",
    "pays": "Whose rewards count: those of everybody (all), or of people helped (active).",
    "ordered": "Whether the learner knows that states are in order.",
}


def text() -> str:
    """The codebook as Markdown."""
    parts = ["# Codebook\n\nEvery column of every table. Times are UTC, ISO 8601.\n"]
    for name, columns in COLUMNS.items():
        parts.append(_section(name, columns))
    parts.append(
        "`history.csv`, where there are past records, has the columns id, when, state and helped.\n"
        "\n`answers.csv`, where there are past answers, has the columns annotator, winner, loser, "
        "when.\n"
    )
    parts.append(_section("analysis.json, of a trial with a protocol", ANALYSIS))
    settings = {name: _setting(setting) for name, setting in SETTINGS.items()}
    parts.append(_section("study.json, config: settings", settings))
    parts.append(_section("study.json, config: what never changes", FIXED))
    return "\n".join(parts)


def _section(name: str, entries: dict[str, str]) -> str:
    lines = "\n".join(f"- `{entry}`: {said}" for entry, said in entries.items())
    return f"## {name}\n\n{lines}\n"


def _setting(setting: Setting) -> str:
    about = setting.about
    changes = "Never changes" if about.changes == "never" else f"May change {about.changes}"
    return f"{about.label}. {about.help} Value: {setting.needed}. {changes}."
