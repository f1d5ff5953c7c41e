"""Languages: every sentence has its translations, and each visit has a language of its own."""

import ast
import shutil
import string
import threading
from datetime import date
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po

from dopl_core import catalogues, cli, wording
from dopl_core.wording import LANGUAGE, _, ngettext

ROOT = Path(__file__).resolve().parents[1]
COMPLETE = ("de", "es", "fr", "hi", "pt")
LANGUAGES = ("ar", *COMPLETE)
# What annotators and readers of a list see. The functions below are for owners only.
PAGES = (
    *("annotate/board.py", "annotate/page.py", "annotate/reason.py", "annotate/side_views.py"),
    *("account.py", "list.py", "shared/account.py"),
    *("shared/duel_cards.py", "shared/errors.py", "shared/guards.py", "shared/languages.py"),
    *("studies/list_tab.py", "studies/list_table.py", "studies/print_sheet.py"),
)
FOR_OWNERS = {"choose_study", "show_learnt", "show", "why", "pick_person", "change", "downloads"}
SHOWS = {
    *("button", "caption", "error", "expander", "header", "info", "markdown", "metric", "popover"),
    *("progress", "radio", "selectbox", "spinner", "subheader", "success", "text", "text_area"),
    *("text_input", "title", "turn_away", "pills", "form_submit_button"),
}


@pytest.fixture(autouse=True)
def _english():
    token = LANGUAGE.set(wording.SOURCE)
    yield
    LANGUAGE.reset(token)


@pytest.fixture(scope="module")
def collected() -> Catalog:
    return catalogues.collect("de")


def read(code: str) -> Catalog:
    with open(catalogues.catalogue_path(code), "rb") as file:
        return read_po(file, locale=code)


def placeholders(text: str) -> set[str]:
    """The names in braces of a sentence."""
    return {name for _text, name, _form, _how in string.Formatter().parse(text) if name is not None}


def forms(text: object) -> tuple[str, ...]:
    return text if isinstance(text, tuple) else (str(text),)


@pytest.mark.parametrize("code", COMPLETE)
def test_every_sentence_is_translated_with_all_its_plural_forms(code, collected) -> None:
    known = read(code)
    for one in catalogues.sentences(collected):
        found = known.get(one.id)
        assert found, f"{code}: run `dopl translate {code}`: {one.id}"
        assert catalogues.is_translated(found), f"{code}: no translation of {one.id}"
        assert not found.fuzzy, f"{code}: unsure translation of {one.id}"
        assert len(forms(found.string)) == (known.num_plurals if found.pluralizable else 1), one.id


@pytest.mark.parametrize("code", LANGUAGES)
def test_no_translation_loses_or_renames_a_placeholder(code) -> None:
    for one in catalogues.sentences(read(code)):
        wanted = {name for text in forms(one.id) for name in placeholders(text)}
        for text in forms(one.string):
            if text:
                assert placeholders(text) == wanted, f"{code}: {text}"
                assert text.count("*") == forms(one.id)[-1].count("*"), f"{code}: {text}"


@pytest.mark.parametrize("code", LANGUAGES)
def test_no_catalogue_has_a_sentence_that_is_gone(code, collected) -> None:
    wanted = {forms(one.id) for one in catalogues.sentences(collected)}
    assert {forms(one.id) for one in catalogues.sentences(read(code))} <= wanted


@pytest.mark.parametrize("page", PAGES)
def test_no_page_of_annotators_or_readers_shows_a_sentence_that_is_not_marked(page) -> None:
    tree = ast.parse((ROOT / "pages" / page).read_text(encoding="utf-8"))
    kept = [n for n in tree.body if getattr(n, "name", "") not in FOR_OWNERS]
    for node in (inside for top in kept for inside in ast.walk(top)):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        first = node.args[0]
        parts = first.values if isinstance(first, ast.JoinedStr) else [first]
        plain = [p.value for p in parts if isinstance(p, ast.Constant) and isinstance(p.value, str)]
        words = [text for text in plain if any(letter.isalpha() for letter in text)]
        assert name not in SHOWS or not words, f"{page}:{node.lineno}: not marked: {words}"


def test_a_language_belongs_to_one_thread() -> None:
    said: dict[str, list[str]] = {}
    together = threading.Barrier(3)

    def visit(code: str) -> None:
        wording.speak(code)
        for _turn in range(5):
            together.wait(timeout=60)
            said.setdefault(code, []).append(_("Saved."))

    visits = [threading.Thread(target=visit, args=(code,)) for code in ("de", "en", "hi")]
    for one in visits:
        one.start()
    for one in visits:
        one.join()
    assert {code: set(words) for code, words in said.items()} == {
        "de": {"Gespeichert."},
        "en": {"Saved."},
        "hi": {"सहेज लिया गया।"},
    }


def test_a_function_keeps_the_language_in_which_it_was_made() -> None:
    wording.speak("fr")
    say = wording.in_this_language(lambda: _("Saved."))
    found: list[str] = []
    other = threading.Thread(target=lambda: found.append(say()))
    other.start()
    other.join()
    assert found == ["Enregistré."]


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        (("hi", "de"), "hi"),
        (("", "", "pt-BR,pt;q=0.9,en;q=0.8"), "pt"),
        (("xx", "browser", "nl;q=0.9, fr-CA;q=0.5, de;q=0.7"), "de"),
        (("", "en;q=0, es-419;q=0.1"), "es"),
        (("DE-at",), "de"),
        (("*",), "en"),
        (("../../etc", "d" * 9_000, ";;q=,,"), "en"),
    ],
)
def test_the_first_language_that_has_a_catalogue_is_chosen(wanted, code) -> None:
    assert wording.choose(*wanted) == code


@pytest.mark.parametrize(
    ("code", "number", "share", "day"),
    [
        ("en", "12,345", "8 %", "1 February 2026"),
        ("de", "12.345", "8\u00a0%", "1. Februar 2026"),
        ("fr", "12\u202f345", "8\u00a0%", "1 février 2026"),
        ("hi", "12,345", "8%", "1 फ़रवरी 2026"),
    ],
)
def test_numbers_and_days_are_written_as_the_language_does(code, number, share, day) -> None:
    wording.speak(code)
    assert wording.format_number(12_345) == number
    assert wording.format_percent(0.083) == share
    assert wording.format_day(date(2026, 2, 1)) == day


def test_a_number_has_one_decimal_at_most_and_only_below_ten() -> None:
    assert [wording.format_number(value) for value in (5.25, 5.0, 12.5, float("nan"))] == [
        *("5.2", "5", "12", "–"),
    ]


def test_plurals_follow_the_language() -> None:
    def weeks(code: str, count: int) -> str:
        wording.speak(code)
        return ngettext("{count} week", "{count} weeks", count).format(count=count)

    assert [weeks("de", n) for n in (0, 1, 2)] == ["0 Wochen", "1 Woche", "2 Wochen"]
    assert [weeks("fr", n) for n in (0, 1, 2)] == ["0 semaine", "1 semaine", "2 semaines"]
    assert [weeks("ar", n) for n in (3, 11)] == ["3 أسابيع", "11 أسبوعًا"]


def test_only_arabic_is_written_from_right_to_left() -> None:
    ways = {}
    for code in wording.languages():
        wording.speak(code)
        ways[code] = wording.direction()
    assert ways == dict.fromkeys(("de", "en", "es", "fr", "hi", "pt"), "ltr") | {"ar": "rtl"}


# --- dopl translate


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A copy of the German catalogue to write to."""
    shutil.copytree(wording.CATALOGUES / "de", tmp_path / "de")
    monkeypatch.setattr(catalogues, "CATALOGUES", tmp_path)
    return tmp_path


def test_translate_keeps_translations_adds_new_sentences_and_drops_old_ones(folder, capsys) -> None:
    file = catalogues.catalogue_path("de")
    before = file.read_text(encoding="utf-8")
    gone = '\nmsgid "Nobody says this"\nmsgstr "Das sagt niemand"\n'
    start, _found, rest = before.partition('msgid "Saved."')
    file.write_text(start.rpartition("\n#")[0] + "\n" + gone + rest.partition("\n\n")[2])
    cli.main(["translate", "de"])
    assert "dopl.po: 1 sentences without" in capsys.readouterr().out
    after = file.read_text(encoding="utf-8")
    assert after == before.replace('Gespeichert."\n', '"\n', 1)


def test_translate_writes_a_new_language_with_the_forms_that_it_needs(folder) -> None:
    path, missing = catalogues.translate("pl")
    assert missing == len(list(catalogues.sentences(catalogues.collect("pl"))))
    assert path == folder / "pl" / "LC_MESSAGES" / "dopl.po"
    assert path.read_text(encoding="utf-8").count("msgstr[2]") > 5


@pytest.mark.parametrize("code", ["english", "../x", "", "en"])
def test_translate_refuses_what_is_no_other_language(folder, code) -> None:
    with pytest.raises(ValueError, match="language"):
        catalogues.translate(code)
    assert [path.name for path in folder.iterdir()] == ["de"]


def test_a_plural_without_all_its_forms_stays_english(folder, monkeypatch) -> None:
    file = folder / "de" / "LC_MESSAGES" / "dopl.po"
    text = file.read_text(encoding="utf-8").replace('msgstr[1] "{count} Wochen"', 'msgstr[1] ""')
    file.write_text(text, encoding="utf-8")
    monkeypatch.setattr(wording, "CATALOGUES", folder)
    sentences = wording._catalogue.__wrapped__("de")
    assert sentences.ngettext("{count} week", "{count} weeks", 2) == "{count} weeks"
    assert sentences.gettext("Saved.") == "Gespeichert."
