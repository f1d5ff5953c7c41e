"""A clinic in which everything happened that has names in it, and a search for these names."""

import base64
import io
import json
import unicodedata
import zipfile
from collections.abc import Iterator

from playing import STATES, trial

from dopl_core import studies
from dopl_core.studies import Ask, Store, StudyConfig

NAMES = ("Zoë Quist", "=Hopkins()", "'Wim\n, Dr.")
ROSTER = """id,state,label,group,Größe,Viertel,Rufnummer
Pat-017,Low,Jörg Möller,Zürich-West,181,Altstetten,+41 555 017
Pat-018,High,=Ada+Lovelace,Zürich-West,162,Wiedikon,+41 555 018
Pat-019,Moderate,Bo Ångström,Hönggerberg,170,Altstetten,@555019
Pat-020,Low,Cy O'Brien,Hönggerberg,177,Wiedikon,+41 555 020
"""
RECORDS = (
    "id,when,state,helped\nPat-017,2026-01-05,High,0\nPat-017,2026-01-12,Low,1\n"
    "Früher-9,2026-01-05,Low,0\nFrüher-9,2026-01-12,High,1\n"
)
ANSWERS = """annotator,winner,loser,when
modell-7b,Pat-018,Pat-017,
Zoë Quist,Pat-019,Früher-9,2026-01-05
"""
CODE = "C0DE-4711"
COMMENT = 'Frau "Möller" told Zoë Quist something else'
WHY = "limps less"  # names nobody
KEPT = "Größe"
TEXTS = ("Ask Prof. Grünspan", "For Prof. Grünspan's report", COMMENT, "called in sick", CODE, WHY)
SECRETS = (
    *(*NAMES, *TEXTS, "Quist", "Hopkins", "modell-7b", "panel-7f3a", "Panel A"),
    *("Möller", "Lovelace", "Ångström", "O'Brien", "Di Gärtner"),
    *("Pat-017", "Pat-020", "Pat-021", "Früher-9", "Zürich", "Hönggerberg", "Oerlikon"),
    *("Viertel", "Rufnummer", "Altstetten", "Wiedikon", "+41 555 017", "@555019"),
    *("Hausnummer", "Seitenstraße 12", "181 cm"),
)


def config() -> StudyConfig:
    arms = studies.read_roster(ROSTER.encode(), STATES)
    columns = {"hidden_columns": "Rufnummer", "list_columns": f"Rufnummer, {KEPT}"}
    fair = {"fair_column": "Viertel", "fair_rule": "shares"}
    texts = {"instructions": TEXTS[0], "why": TEXTS[1], "completion_code": CODE}
    texts |= {"reason_tags": "gait, mood"}
    return studies.from_roster(
        arms,
        STATES,
        **{"title": "Clinic", "budget": 2, "practice": False, "sitting": 4, "own_codes": True},
        by_lot=1,
        **{"unused_columns": "Viertel", "quota": 50, "fair_shares": "Altstetten 30, Wiedikon 10"},
        reason_every=1,
        **columns,
        **fair,
        **texts,
    )


def lived(store: Store) -> str:
    """A clinic in which everything happened that an event can tell of."""
    past = studies.read_history(RECORDS.encode(), config())
    study = studies.create_study(store, config(), past, protocol=trial(config()))
    studies.add_answers(store, study, ANSWERS.encode())
    limits = f"[{NAMES[0]}]\nnever = Pat-017"
    studies.change_settings(store, study, limited_pairs=True, annotator_limits=limits)
    studies.change_settings(store, study, limited_pairs=False, annotator_limits="")
    for name in NAMES:
        answer(store, study, name)
    studies.undo(store, study, NAMES[2])
    answer(store, study, "Panel A", participant="panel-7f3a")
    studies.exclude(store, study, NAMES[1])
    studies.close_duels(store, study)
    studies.advance(store, study)
    listed = [one.id for one in studies.read_lists(store, study)[0].listed]
    studies.change_list(store, study, remove=listed[:1], because="called in sick")
    studies.keep_photos(store, study, {"Pat-017": b"one"})
    news = {"Pat-017": {KEPT: "181 cm", "Hausnummer": "Seitenstraße 12"}}
    new = studies.Arm("Pat-021", "Di Gärtner", "Oerlikon", "Low", {"Viertel": "Wiedikon"})
    studies.join(store, study, [new])
    studies.observe(store, study, {"Pat-021": "High"})
    studies.undo_report(store, study, 1)
    studies.observe(store, study, dict.fromkeys(present(store, study), "Low"), news, helped=listed)
    studies.leave(store, study, ["Pat-020"])
    studies.change_settings(store, study, fair_shares="Altstetten 20", hidden_columns="Viertel")
    studies.correct(store, study, 1, {"Pat-018": "High"}, {"Pat-019": True})
    studies.include(store, study, NAMES[1])
    studies.advance(store, study)
    more = {"instructions": TEXTS[0] + "!", "fair_column": "group", "fair_shares": "Oerlikon 10"}
    studies.change_settings(store, study, **more)
    answer(store, study, "Gone Away")
    studies.erase_annotator(store, study, "Gone Away")
    studies.change_settings(store, study, consent="Ask Prof. Grünspan about your data")
    known = {"Rufnummer": ["+41 555 017", "@555019"], "Hausnummer": ["Seitenstraße 12"]}
    studies.limit_annotator(store, study, NAMES[0], known, ["Pat-017", "Pat-019"])
    version = studies.coming_config(store, study).consent_version
    studies.agree(store, study, NAMES[0], version)
    return study


def answer(store: Store, study: str, name: str, participant: str = "") -> None:
    found = studies.next_duel(store, study, name, participant)
    assert isinstance(found, Ask)
    own = studies.participant_name(name, participant) if participant else name
    studies.flag(store, found.impression, own, COMMENT)
    studies.answer(store, found.impression, "left", too_fast_ms=0)
    studies.give_reason(store, found.impression, own, ["gait"], reason_of(own))


def reason_of(name: str) -> str:
    """What an annotator gives as the reason for each answer."""
    return f"{WHY} {sum(map(ord, name))}"


def present(store: Store, study: str) -> list[str]:
    return list(studies.present_states(store, study))


def every_file(content: bytes, where: str = "") -> Iterator[tuple[str, bytes]]:
    """Everything in a zip, and in zips inside of it."""
    with zipfile.ZipFile(io.BytesIO(content)) as bundle:
        for name in bundle.namelist():
            inside = bundle.read(name)
            yield f"{where}{name}", name.encode() + b"\n" + inside
            if zipfile.is_zipfile(io.BytesIO(inside)):
                yield from every_file(inside, f"{where}{name}/")


def spellings(secret: str) -> Iterator[bytes]:
    """A text as files may hold it: any case, JSON, CSV, other Unicode, base64."""
    for text in (secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]):
        for one in (text, text.replace('"', '""'), text.encode("unicode_escape").decode()):
            for form in ("NFC", "NFD"):
                yield unicodedata.normalize(form, one).casefold().encode()
    yield secret.casefold().encode("utf-16-le")
    for shift in range(3):
        whole = base64.b64encode(b"\0" * shift + secret.encode())
        yield whole[4 if shift else 0 : -4].lower() or whole.lower()


def found_in(content: bytes, secrets: tuple[str, ...]) -> list[tuple[str, str]]:
    members = [
        (name, inside, inside.decode("utf-8", "replace").casefold().encode())
        for name, inside in every_file(content)
        if name != "codebook.md"  # the same for every study
    ]
    return [
        (name, secret)
        for secret in secrets
        for spelt in set(spellings(secret))
        if len(spelt) > 3
        for name, inside, folded in members
        if spelt in folded or spelt in inside.lower()
    ]
