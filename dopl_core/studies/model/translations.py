"""The owner's own texts in several languages, as one setting: parts of lines, one part a language.

    [de]
    question = Welcher Patientin geht es besser?
    Low = Niedrig
    instructions = Achten Sie auf die letzten Nächte.
        Eine eingerückte Zeile setzt die Zeile darüber fort.

Left of the first = stands the name of a setting, or a text itself: of a state, a column or a tag.
"""

import configparser
import re
from collections.abc import Mapping

from dopl_core.studies.model.errors import StudyError

_CODE = re.compile("[a-z]{2,3}")


def read_translations(content: str, texts: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Code of a language -> a text of the owner's -> its translation.

    texts: the owner's text settings by name
    """
    parser = configparser.ConfigParser(
        delimiters=("=",),
        comment_prefixes=("#",),
        interpolation=None,
        default_section="",
    )
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # keys keep their case
    try:
        parser.read_string(content, source="translations")
    except configparser.Error as error:
        raise StudyError(_complaint(error)) from None
    found: dict[str, dict[str, str]] = {}
    for code in parser.sections():
        if not _CODE.fullmatch(code):
            raise StudyError(
                f'translations: "[{code[:80]}]" is not a language; write a code such as [de]'
            )
        given = {texts.get(key, key): value for key, value in parser[code].items()}
        found[code] = {text: value for text, value in given.items() if text and value}
    return found


def _complaint(error: configparser.Error) -> str:
    """What is wrong with the text, and where."""
    if isinstance(error, configparser.MissingSectionHeaderError):
        return (
            f"translations line {error.lineno}: texts come after a line that names their language, "
            "such as [de]"
        )
    if isinstance(error, configparser.DuplicateOptionError):
        return f'translations line {error.lineno}: "{error.option[:80]}" is given twice'
    if isinstance(error, configparser.DuplicateSectionError):
        return f"translations line {error.lineno}: [{error.section[:80]}] is given twice"
    line = error.errors[0][0] if isinstance(error, configparser.ParsingError) else 1
    return f"translations line {line}: write a text, = and its translation"
