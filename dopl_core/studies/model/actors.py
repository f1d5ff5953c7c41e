"""Actors: who acts in a study, how they came in, and which roles they have."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from dopl_core.studies.model.errors import StudyError

Role = Literal["owner", "coordinator", "reader", "annotator"]
Entry = Literal["key", "local", "command line", "signed in", "link", "nobody"]

ROLES: tuple[Role, ...] = get_args(Role)
ALL_STUDIES = ""  # in place of a study's id: every study, those to come as well


class RefusedError(StudyError):
    """Somebody asked for what their role does not allow; nothing was changed."""


@dataclass(frozen=True)
class Actor:
    """Who acts.

    came_by: how they came in
    roles: their roles by study; those under ALL_STUDIES hold in every study
    """

    name: str
    came_by: Entry
    roles: Mapping[str, frozenset[Role]]

    def roles_in(self, study: str) -> frozenset[Role]:
        """Their roles in a study."""
        nothing: frozenset[Role] = frozenset()
        return self.roles.get(study, nothing) | self.roles.get(ALL_STUDIES, nothing)


def everywhere(name: str, came_by: Entry) -> Actor:
    """An owner of all studies."""
    return Actor(name, came_by, {ALL_STUDIES: frozenset(["owner"])})


COMMAND_LINE = everywhere("Owner", "command line")
NOBODY = Actor("Nobody", "nobody", {})
