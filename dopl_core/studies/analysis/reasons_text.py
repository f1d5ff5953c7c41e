"""Texts and tables about the reasons that annotators gave, for Insights."""

from collections.abc import Mapping

import pandas as pd

from dopl_core.studies.analysis.chart_text import Finding, share_of
from dopl_core.studies.model.plurals import count


def tags_finding(answers: pd.DataFrame) -> Finding | None:
    """How often a reason was given where it was asked, and each tag; None if nobody was asked.

    answers: as studies.answers returns them
    """
    asked = answers[answers.reason_asked == 1]
    if asked.empty:
        return None
    given = asked[(asked.reason_tags != "") | (asked.reason != "")]
    if given.empty:
        title = f"Nobody gave a reason yet; people were asked {count(len(asked), 'time')}"
        return Finding(title, pd.DataFrame())
    title = (
        f"People gave a reason {share_of(len(given), len(asked), ' times')} that they were asked"
    )
    tags = given.assign(tag=given.reason_tags.str.split(", ")).explode("tag")
    tags = tags[tags.tag != ""]
    data = tags.groupby("tag").agg(answers=("tag", "size"), people=("annotator", "nunique"))
    data = data.sort_values("answers", ascending=False, kind="stable").reset_index(names="reason")
    data.insert(2, "of reasons given", len(given))
    return Finding(title, data, "Nothing is learnt from reasons. One answer can have several.")


def words_finding(answers: pd.DataFrame, names: Mapping[str, str]) -> Finding | None:
    """Reasons in people's own words, the newest first; None if there are none.

    names: of the people on the cards, by id
    """
    said = answers[(answers.reason_asked == 1) & (answers.reason.fillna("") != "")]
    if said.empty:
        return None
    said = said.sort_values("answered_at", ascending=False, kind="stable")
    left, right = (said[side].map(lambda arm: names.get(arm, arm)) for side in _ARMS)
    pairs = zip(said.outcome, left, right, strict=True)
    data = pd.DataFrame(
        {
            "person": said.annotator.to_list(),
            "answer": [_answer(*pair) for pair in pairs],
            "reason": said.reason.to_list(),
            "chosen reasons": said.reason_tags.to_list(),
            "time": said.answered_at.to_list(),
        }
    )
    return Finding(f"{count(len(said), 'reason')} in people's own words", data)


_ARMS = ("left_arm", "right_arm")


def _answer(outcome: str, left: str, right: str) -> str:
    if outcome == "tie":
        return f"{left} and {right} are equal"
    return f"{left} over {right}" if outcome == "left" else f"{right} over {left}"
