"""The files that translators fill in: every sentence of the pages that are translated."""

from collections.abc import Iterator
from pathlib import Path

from babel import Locale, UnknownLocaleError
from babel.messages.catalog import Catalog, Message
from babel.messages.extract import extract_from_file
from babel.messages.pofile import read_po, write_po

from dopl_core.paths import ROOT
from dopl_core.wording import CATALOGUES, SOURCE

# How a sentence is marked in the code, and which arguments are its singular and its plural.
MARKS = {"_": None, "gettext_noop": None, "ngettext": (1, 2)}
_HEADER = (
    "# {language} sentences of DOPL. `dopl translate {code}` adds new ones and drops old ones.\n#"
)


def catalogue_path(code: str) -> Path:
    """Where the sentences of a language are."""
    return CATALOGUES / code / "LC_MESSAGES" / "dopl.po"


def collect(code: str) -> Catalog:
    """All marked sentences, without translations; code: of the language they are meant for."""
    language = Locale.parse(code).get_language_name("en")
    header = _HEADER.format(language=language, code=code)
    found = Catalog(code, project="DOPL", version="1", header_comment=header, fuzzy=False)
    package = Path(__file__).resolve().parent
    app = [*ROOT.glob("streamlit_app.py"), *(ROOT / "pages").rglob("*.py")]
    for file in sorted({*app, *package.rglob("*.py")}):
        base = ROOT if file.is_relative_to(ROOT) else package.parent
        place = (file.relative_to(base).as_posix(), 0)
        for _line, sentence, notes, _context in extract_from_file("python", file, MARKS):
            found.add(sentence, locations=[place], auto_comments=notes)
    return found


def translate(code: str) -> tuple[Path, int]:
    """Write a language's file anew: kept translations, new sentences, none that are gone.

    Returns its path, and how many sentences have no translation yet.
    """
    if code == SOURCE:
        raise ValueError("the sentences in the code are English already; choose another language")
    try:
        wanted = collect(code)
    except (UnknownLocaleError, ValueError):
        raise ValueError(f'"{code[:80]}" is not a language; use a code such as de or hi') from None
    path = catalogue_path(code)
    if path.exists():
        with open(path, "rb") as file:
            known = read_po(file, locale=code)
        wanted.creation_date = known.creation_date
        for one in sentences(wanted):
            old = known.get(one.id)
            if old is not None and isinstance(old.string, tuple) == one.pluralizable:
                one.string = old.string
                one.flags |= old.flags & {"fuzzy"}
                one.user_comments = old.user_comments
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file:
        write_po(file, wanted, width=100, include_lineno=False)
    return path, sum(not is_translated(one) for one in sentences(wanted))


def sentences(found: Catalog) -> Iterator[Message]:
    """The sentences of a catalogue, without its header."""
    return (one for one in found if one.id)


def is_translated(one: Message) -> bool:
    """Whether a sentence has all its forms in the language of its catalogue."""
    return all(one.string) if isinstance(one.string, tuple) else bool(one.string)
