"""Roles: who may call what in a study, and what the audit trail says of it.

One row for each service call of `dopl_core.studies`, of `access` and of `assessment`. The gate in
access.py reads this table at every call for somebody; a call without a row is refused, and a test
fails. Programs that use `dopl_core.studies` without naming an actor are not asked.
"""

from collections.abc import Callable, Mapping, Sized
from dataclasses import dataclass
from typing import Any, Literal

from dopl_core.studies.model.actors import Role

Scope = Literal["study", "impression", "all", "mine", "open"]
About = Callable[[Mapping[str, Any], Any], str]

_OWNER: frozenset[Role] = frozenset(["owner"])
_TEAM: frozenset[Role] = _OWNER | {"coordinator"}
_READERS: frozenset[Role] = _TEAM | {"reader"}
_ANNOTATORS: frozenset[Role] = _OWNER | {"annotator"}
_ALL: frozenset[Role] = _READERS | {"annotator"}


def _nothing(given: Mapping[str, Any], result: Any) -> str:
    return ""


def _week(given: Mapping[str, Any], result: Any) -> str:
    return "" if given.get("week") is None else f"week {given['week']}"


def _last_week(given: Mapping[str, Any], result: Any) -> str:
    return f"week {result[-1].week}" if result else ""


def _count(name: str, noun: str) -> About:
    """How many: of an argument whose length is known."""

    def about(given: Mapping[str, Any], result: Any) -> str:
        many = given.get(name)
        return f"{len(many)} {noun}" if isinstance(many, Sized) else ""

    return about


@dataclass(frozen=True)
class Call:
    """What is asked before a call, and recorded of it.

    may: the roles that may call it
    act: what is recorded if it changes something;  look: what is recorded when it only reads
    scope: where the role is needed: in the study of the first argument; in that of the impression
        there; in all studies; in each study of the result, which leaves out the others; or
        "open": it is asked before anybody is known
    own: annotators may ask about themselves only
    about: what else is recorded, from the arguments by name and the result (None for an act)
    """

    may: frozenset[Role]
    act: str = ""
    look: str = ""
    scope: Scope = "study"
    own: bool = False
    about: About = _nothing


def _links(given: Mapping[str, Any], result: Any) -> str:
    return {"list": "link to the list", "duels": "link to comparisons"}[given["opens"]]


def _names(given: Mapping[str, Any], result: Any) -> str:
    return "without names" if given["without_names"] else "with names"


def _member(given: Mapping[str, Any], result: Any) -> str:
    role = f" is {given['role']}" if "role" in given else " has no role"
    return f"{given['claim']} {given['value']}{role}"


def _title(given: Mapping[str, Any], result: Any) -> str:
    title: str = given["config"].title
    return title


CALLS: dict[str, Call] = {
    # All studies
    "create_study": Call(_OWNER, "study made", scope="all", about=_title),
    "import_bundle": Call(_OWNER, "study imported", scope="all"),
    "list_studies": Call(_ALL, scope="mine"),
    "list_unreadable": Call(_OWNER, scope="all"),
    # What annotators do; the study's log has it
    "next_duel": Call(_ANNOTATORS),
    "answer": Call(_ANNOTATORS, scope="impression"),
    "undo": Call(_ANNOTATORS, own=True),
    "agree": Call(_ANNOTATORS),
    "skip_practice": Call(_ANNOTATORS, own=True),
    "own_answers": Call(_ANNOTATORS, own=True),
    "change": Call(_ANNOTATORS, scope="impression", own=True),
    "flag": Call(_ANNOTATORS, scope="impression", own=True),
    "give_reason": Call(_ANNOTATORS, scope="impression", own=True),
    "arrival": Call(_ANNOTATORS, own=True),
    "round_end": Call(_ANNOTATORS, own=True),
    # What pages of all roles need
    "get_study": Call(_ALL),
    "load_learner": Call(_TEAM | {"annotator"}),
    "photo_addresses": Call(_TEAM | {"annotator"}, own=True),
    # Lists
    "read_lists": Call(_READERS, look="list", about=_last_week),
    "epoch_list": Call(_READERS, look="list"),
    "change_list": Call(_TEAM, "list changed", about=_week),
    "explain": Call(_TEAM, look="reasons for a place on the list"),
    "close_duels": Call(_TEAM, "round ended"),
    "advance": Call(_TEAM),
    "download": Call(_READERS, "download", about=lambda given, _: str(given["what"])),
    "print_list": Call(_READERS, "print", about=_week),
    # Reports
    "observe": Call(_TEAM, "report sent", about=_week),
    "correct": Call(_TEAM, "report corrected", about=_week),
    "undo_report": Call(_TEAM, "report undone", about=_week),
    "last_report": Call(_TEAM),
    "is_last_report": Call(_TEAM),
    "report_config": Call(_TEAM, look="report"),
    "read_correction": Call(_TEAM, look="report", about=_week),
    "read_week": Call(_TEAM, look="report", about=_week),
    "read_draft": Call(_TEAM, look="report", about=_week),
    "change_draft": Call(_TEAM),
    "remember_columns": Call(_TEAM),
    "remembered_columns": Call(_TEAM),
    # People
    "coming_config": Call(_TEAM, look="people"),
    "present_states": Call(_TEAM, look="people"),
    "read_cards": Call(_TEAM, look="cards"),
    "join": Call(_TEAM, "people joined", about=_count("arms", "people")),
    "leave": Call(_TEAM, "people left", about=_count("ids", "people")),
    "update_people": Call(_TEAM, "people changed"),
    "count_photos": Call(_TEAM),
    "keep_photos": Call(_TEAM, "photos added", about=_count("photos", "photos")),
    "remove_photos": Call(_TEAM, "photos removed"),
    "flags": Call(_TEAM, look="flags"),
    "flagged_pair": Call(_TEAM, look="cards"),
    "finish_flag": Call(_TEAM, "flag done", scope="impression"),
    # Insights, and how annotators answer
    "read_protocol": Call(_TEAM),
    "trial_rules": Call(_TEAM),
    "trial_analysis": Call(_TEAM, look="insights"),
    "assessment.assess": Call(_TEAM, look="insights"),
    "reliability.measure_enough": Call(_TEAM, look="insights"),
    "answers": Call(_TEAM | {"annotator"}, look="answers", own=True),
    "consents": Call(_TEAM, look="consents"),
    "due": Call(_TEAM),
    "judging": Call(_TEAM),
    "limit_annotator": Call(_TEAM, "who judges whom changed"),
    "limit_pairs": Call(_TEAM, "who judges whom changed"),
    "participants": Call(_TEAM, look="participants"),
    "plans": Call(_TEAM),
    "sureness": Call(_TEAM, look="insights"),
    "past_annotators": Call(_TEAM),
    "excluded_annotators": Call(_TEAM),
    "exclude": Call(_TEAM, "answers of an annotator left out"),
    "include": Call(_TEAM, "answers of an annotator counted again"),
    "last_event": Call(_TEAM),
    # What only owners do
    "change_settings": Call(
        _OWNER, "settings changed", about=lambda given, _: ", ".join(sorted(given["settings"]))
    ),
    "add_history": Call(_OWNER, "past records added"),
    "add_answers": Call(_OWNER, "past answers added"),
    "pause_study": Call(_OWNER, "study paused"),
    "reopen_study": Call(_OWNER, "study reopened"),
    "close_study": Call(_OWNER, "study closed"),
    "delete_study": Call(_OWNER, "study deleted"),
    "rehearse": Call(_OWNER, look="rehearsal"),
    "export_bundle": Call(_OWNER, look="export", about=_names),
    "replay_study": Call(_OWNER),
    "seal_study": Call(_OWNER),
    "add_member": Call(_OWNER, "role changed", about=_member),
    "remove_member": Call(_OWNER, "role changed", about=_member),
    "list_members": Call(_OWNER),
    "read_audit": Call(_OWNER, look="audit trail"),
    "audit_days": Call(_OWNER, scope="all"),
    "keep_audit": Call(_OWNER, scope="all"),
    "forget_audit": Call(_OWNER, scope="all"),
    "erase_person": Call(_OWNER, "person erased"),
    "erase_annotator": Call(_OWNER, "annotator erased"),
    "erase_everybody": Call(_OWNER, "everybody erased"),
    "withdraw": Call(_ANNOTATORS, "annotator withdrew", own=True),
    "due_erasures": Call(_OWNER, scope="all"),
    "retain": Call(_OWNER, "what is due erased", scope="all"),
    # Links to a study
    "access.invite": Call(_TEAM, "link made", about=_links),
    "access.revoke": Call(_TEAM, "link revoked", about=_links),
    "access.invites": Call(_TEAM),
    "access.release_seat": Call(_TEAM, "participant id released"),
    # The door: asked before anybody is known
    "access.make_owner_key": Call(_OWNER, "new owner key", scope="all"),
    "access.first_owner_key": Call(_OWNER, "new owner key", scope="all"),
    "access.has_owner_key": Call(_ALL, scope="open"),
    "access.is_owner": Call(_ALL, scope="open"),
    "access.begin_session": Call(_ALL, scope="open"),
    "access.begin_member_session": Call(_ALL, scope="open"),
    "access.session_actor": Call(_ALL, scope="open"),
    "access.end_session": Call(_ALL, scope="open"),
    "access.has_session": Call(_ALL, scope="open"),
    "access.find_invite": Call(_ALL, scope="open"),
    "access.refuse_link": Call(_ALL, scope="open"),
    "access.refuse_page": Call(_ALL, scope="open"),
    "access.check_without_id": Call(_ALL, scope="open"),
    "access.take_seat": Call(_ALL, scope="open"),
    "access.has_seat": Call(_ALL, scope="open"),
}
