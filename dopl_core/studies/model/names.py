"""Names, participants' ids and free text that people give: what can be kept, and how."""

import re
import unicodedata
from typing import Annotated, Any

from dopl_core.studies.model.errors import StudyError
from dopl_core.studies.model.study_config import Cells
from dopl_core.validation import check_value, text
from dopl_core.wording import _

OWNER = "Owner"  # annotator name of the owner's own answers
ERASED = "erased-"  # and a number: an id that was erased
ERASED_ANNOTATOR = "erased-annotator-"

_LONGEST_NAME = 200  # PostgreSQL cannot index texts of several thousand characters
_Text = Annotated[str, text(1 << 28)]
_Name = Annotated[str, text(_LONGEST_NAME, blank=False)]
_Participant = Annotated[str, text(_LONGEST_NAME)]
_LONGEST_ID = 100
_ID = re.compile(r"[A-Za-z0-9._@:-]+")
_PARTICIPANT = re.compile(rf".*, participant {_ID.pattern}", re.DOTALL)
_PSEUDONYM = re.compile(r"erased-(annotator-)?\d+")


def is_erased(name: str, label: str | None = None) -> bool:
    """Whether this is the pseudonym of an annotator, or of a person with this label."""
    return _PSEUDONYM.fullmatch(name) is not None and label in (None, name)


def check_name(annotator: str) -> str:
    """An annotator's name as it is kept: without blanks around it."""
    name = annotator.strip()
    if not name:
        raise StudyError("the annotator has no name")
    check_value("the annotator's name", name, _Name, StudyError)
    return name


def check_person(annotator: str) -> str:
    """The name of a person, as it is kept; those of participants have a form of their own."""
    name = check_name(annotator)
    if name.startswith(ERASED_ANNOTATOR):
        raise StudyError(f'"{name[:80]}" stands for somebody who was erased; use another name')
    if _PARTICIPANT.fullmatch(name):
        raise StudyError(f'"{name[:80]}" is how participants are named; use another name')
    return name


def participant_name(link: str, participant: str) -> str:
    """The name of an annotator who is a participant: one for each link and id.

    An id has no blank, so no two pairs of link and id have the same name, nor has a person.
    """
    if not participant:
        raise StudyError(_("The participant id is empty"))
    if len(participant) > _LONGEST_ID:
        raise StudyError(
            _("The participant id is longer than {most} characters").format(most=_LONGEST_ID)
        )
    if any(character.isspace() for character in participant):
        raise StudyError(_("The participant id has a blank in it"))
    if not _ID.fullmatch(participant):
        raise StudyError(
            _(
                "The participant id may have letters, digits, dots, hyphens, underscores, colons "
                "and @ only"
            )
        )
    return f"{link.strip()}, participant {participant}"


def read_participant(given: str) -> str | None:
    """The participant in a row of a bundle, None where there is none."""
    check_value("the participant's id", given, _Participant, StudyError)
    return given.strip() or None


def check_text(what: str, value: str) -> None:
    """Refuse text that databases and CSV files cannot hold."""
    check_value(what, value, _Text, StudyError)


def check_columns(what: str, value: Any) -> None:
    """Refuse columns of an arm that are not names and texts, or are too many."""
    check_value(what, value, Cells, StudyError)


def looks_like(name: str) -> str:
    """A name with case, width, blanks and invisible marks removed, to find look-alikes."""
    kept = (c for c in unicodedata.normalize("NFKC", name) if unicodedata.category(c)[0] in "LNPS")
    return "".join(kept).casefold()
