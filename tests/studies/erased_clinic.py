"""A clinic whose people are erased, and a search of the files for what is left of them."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from named_clinic import NAMES, found_in, lived
from playing import check_replay

from dopl_core import studies
from dopl_core.studies import Store, access

PHOTO = b"photo of Joerg, 0123456789"
PERSON = ("Pat-017", "Jörg Möller", "Möller", "+41 555 017", "Seitenstraße 12", PHOTO.decode())


def filled(store: Store) -> str:
    """The clinic, with a photo, a draft and links as well."""
    study = lived(store)
    studies.keep_photos(store, study, {"Pat-017": PHOTO})
    week = studies.read_lists(store, study)[-1].week

    def write(draft: studies.Draft) -> None:
        draft.states["Pat-017"], draft.columns["Pat-017"] = "Low", {"note": "Seitenstraße 12"}

    studies.change_draft(store, study, week, write)
    for name in NAMES[:2]:
        access.invite(store, study, name)
    link = access.find_invite(store, access.invite(store, study, "Panel A"))
    assert link is not None
    access.take_seat(store, link, "panel-7f3a", "a browser")
    return study


def on_disk(store: Store, tmp_path: Path) -> bytes:
    """All bytes that the database and a backup made now have on disk."""
    if store.is_sqlite:
        copy = sqlite3.connect(tmp_path / "backup.db")
        with closing(sqlite3.connect(store.name)) as raw, closing(copy) as backup:
            raw.backup(backup)
        return b"".join(file.read_bytes() for file in tmp_path.iterdir() if file.is_file())
    with store.engine.connect() as connection:
        connection.exec_driver_sql("CHECKPOINT")
        query = "SELECT oid FROM pg_database WHERE datname = current_database()"
        number = connection.exec_driver_sql(query).scalar_one()
    folder = Path(str(store.engine.url.query["host"])) / "data" / "base" / str(number)
    return b"".join(file.read_bytes() for file in folder.iterdir() if file.is_file())


def check_gone(store: Store, study: str, tmp_path: Path, secrets: tuple[str, ...]) -> None:
    """No file has any of these texts, and the study verifies, replays and survives an import."""
    found = on_disk(store, tmp_path)
    assert [one for one in secrets if one.encode() in found] == []
    assert [one for one in secrets if json.dumps(one)[1:-1].encode() in found] == []
    check_replay(store, study)
    content = studies.export_bundle(store, study)
    assert found_in(content, secrets) == []
    studies.replay_bundle(content)
