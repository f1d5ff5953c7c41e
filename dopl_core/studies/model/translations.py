"""The owner's own texts in several languages, as one setting: parts of lines, one part a language.

    [de]
    question = Welcher Patientin geht es besser?
    Low = Niedrig
    instructions = Achten Sie auf die letzten Nächte.
        Eine eingerückte Zeile setzt die Zeile darüber fort.

Left of the first = stands the name of a setting, or a text itself: of a state, a column or a tag.
"""

import re
from collections.abc import Mapping

from dopl_core.studies.model.errors import StudyError
from dopl_core.studies.model.ini_text import read_parts

_CODE = re.compile("[a-z]{2,3}")


def read_translations(content: str, texts: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Code of a language -> a text of the owner's -> its translation.

    texts: the owner's text settings by name
    """
    parts = read_parts(
        content,
        "translations",
        comes_first="texts come after a line that names their language, such as [de]",
        line="write a text, = and its translation",
    )
    found: dict[str, dict[str, str]] = {}
    for code, lines in parts.items():
        if not _CODE.fullmatch(code):
            raise StudyError(
                f'translations: "[{code[:80]}]" is not a language; write a code such as [de]'
            )
        given = {texts.get(key, key): value for key, value in lines.items()}
        found[code] = {text: value for text, value in given.items() if text and value}
    return found
