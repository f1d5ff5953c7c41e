"""Settings that are texts of several parts: [name] on a line, then lines such as key = value.

An indented line continues the line above it; a line that begins with # is a comment.
"""

import configparser

from dopl_core.studies.model.errors import StudyError


def read_parts(
    content: str, setting: str, *, comes_first: str, line: str
) -> dict[str, dict[str, str]]:
    """Name of a part -> key -> value.

    setting: the name of the setting, for errors
    comes_first, line: what an error says of a line before the first part, and of one without =
    """
    parser = configparser.ConfigParser(
        delimiters=("=",),
        comment_prefixes=("#",),
        interpolation=None,
        default_section="",
    )
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # keys keep their case
    try:
        parser.read_string(content, source=setting)
    except configparser.MissingSectionHeaderError as error:
        raise StudyError(f"{setting} line {error.lineno}: {comes_first}") from None
    except configparser.DuplicateOptionError as error:
        raise StudyError(
            f'{setting} line {error.lineno}: "{error.option[:80]}" is given twice'
        ) from None
    except configparser.DuplicateSectionError as error:
        raise StudyError(
            f"{setting} line {error.lineno}: [{error.section[:80]}] is given twice"
        ) from None
    except configparser.Error as error:
        number = error.errors[0][0] if isinstance(error, configparser.ParsingError) else 1
        raise StudyError(f"{setting} line {number}: {line}") from None
    return {name: dict(parser[name].items()) for name in parser.sections()}
