"""The files of bundles and of other zips; how a bundle is refused, and what is left of it."""

import csv
import io
import zipfile
from collections.abc import Callable

import sqlalchemy as sa
from PIL import Image

from dopl_core.environments import BadEnvironmentError
from dopl_core.studies import CsvError, Store, StudyError
from dopl_core.studies.model.errors import LogError, ReplayError
from dopl_core.studies.store import tables

OURS = (CsvError, StudyError, LogError, ReplayError, BadEnvironmentError)

Members = dict[str, bytes]
Edit = Callable[[list[dict[str, str]]], None]  # of the rows of a file


def files(content: bytes) -> Members:
    """What is in a zip, by name."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(
    members: Members, compression: int = zipfile.ZIP_DEFLATED, level: int | None = None
) -> bytes:
    """A zip of these files; level: 1 is quick, 9 is small."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression, compresslevel=level) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def edited(content: bytes, name: str, edit: Edit) -> bytes:
    """A bundle with one of its CSV files changed."""
    members = files(content)
    rows = list(csv.DictReader(io.StringIO(members[name].decode(), newline="")))
    columns = list(rows[0])
    edit(rows)
    buffer = io.StringIO(newline="")
    writer = csv.DictWriter(buffer, columns)
    writer.writeheader()
    writer.writerows(rows)
    return zipped(members | {name: buffer.getvalue().encode()})


def picture(kind: str = "JPEG", size: tuple[int, int] = (640, 480), **options: object) -> bytes:
    """A picture of one colour."""
    content = io.BytesIO()
    mode = "RGB" if kind == "JPEG" else "RGBA"
    Image.new(mode, size, "#aa3311").save(content, kind, **options)
    return content.getvalue()


def rows_kept(store: Store) -> int:
    """Rows of all tables."""
    with store.read() as connection:
        return sum(
            connection.execute(sa.select(sa.func.count()).select_from(t)).scalar_one()
            for t in tables.metadata.sorted_tables
        )
