"""Photos of arms: read from a zip, made small, kept in the database, shown on cards.

A file belongs to the arm whose id it is named after (p-017.jpg). Each is decoded and encoded anew,
small and upright, so nothing but its pixels is kept: no place, no camera, no hidden content.
"""

import base64
import hashlib
import io
import warnings
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import sqlalchemy as sa
from PIL import Image, ImageOps

from dopl_core.studies import schema
from dopl_core.studies.arrays import DAMAGES, PLAIN
from dopl_core.studies.config import StudyConfig
from dopl_core.studies.csvtext import CsvError
from dopl_core.studies.store import Store
from dopl_core.studies.turn import take_turn

SIDE = 320  # pixels, the longer side as it is kept
FORMATS = ("JPEG", "PNG", "WEBP")
_MOST_FILES = 20_000
_LARGEST_FILE = 25 << 20  # bytes
_LARGEST = 1 << 29  # bytes that all of a zip's files may unpack to
_MOST_PIXELS = 50_000_000
_UNREADABLE: tuple[type[Exception], ...] = (
    *DAMAGES,
    SyntaxError,  # Pillow's word for a broken PNG
    Image.DecompressionBombError,
    Image.DecompressionBombWarning,
)

_photos = schema.photos.c
_OF_ARMS = sa.select(_photos.arm, _photos.content).where(
    _photos.study == sa.bindparam("study"), _photos.arm.in_(sa.bindparam("arms", expanding=True))
)


@dataclass(frozen=True)
class Found:
    """Photos in a zip by arm id, JPEG each, and names of files that are no arm's."""

    photos: dict[str, bytes]
    others: tuple[str, ...]


def read_photos(source: Path | bytes, config: StudyConfig, name: str = "photos.zip") -> Found:
    """The photos of a study's arms in a zip, or what is wrong with it."""
    if isinstance(source, Path):
        name, source = source.name, source.read_bytes()
    try:
        with zipfile.ZipFile(io.BytesIO(source)) as opened:
            members = _members(opened, name)
            arms = {arm.id.casefold(): arm.id for arm in config.arms}
            photos: dict[str, bytes] = {}
            others = []
            for member in members:
                path = PurePosixPath(member.filename)
                arm = arms.get(path.stem.casefold())
                if arm is None:
                    others.append(path.name)
                elif arm in photos:
                    raise CsvError(f'{name}: there are two photos of "{arm}"')
                else:
                    photos[arm] = small(opened.read(member), f"{name}: {path.name}")
    except CsvError:
        raise
    except DAMAGES as error:
        raise CsvError(f"{name}: not a zip, or a damaged one: {error}") from None
    return Found(photos, tuple(others))


def _members(opened: zipfile.ZipFile, name: str) -> list[zipfile.ZipInfo]:
    """The files of a zip that people put there, if they are not too many or too large."""
    found = []
    for member in opened.infolist():
        path = PurePosixPath(member.filename)
        if member.is_dir() or path.name.startswith(".") or "__MACOSX" in path.parts:
            continue
        if member.file_size > _LARGEST_FILE:
            raise CsvError(f"{name}: {path.name} is over {_LARGEST_FILE >> 20} MB")
        if member.compress_type not in PLAIN or member.flag_bits & 1:
            raise CsvError(f"{name}: {path.name} is packed in a way, or locked, that is not read")
        found.append(member)
    if len(found) > _MOST_FILES or sum(one.file_size for one in found) > _LARGEST:
        raise CsvError(
            f"{name}: at most {_MOST_FILES} files and {_LARGEST >> 20} MB when it is unpacked; "
            "send the photos in several zips"
        )
    return found


def small(content: bytes, name: str) -> bytes:
    """A picture as a small, upright JPEG without anything but its pixels."""
    try:
        with warnings.catch_warnings(), Image.open(io.BytesIO(content), formats=FORMATS) as opened:
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            if opened.width * opened.height > _MOST_PIXELS:
                raise CsvError(f"{name}: over {_MOST_PIXELS // 10**6} million pixels")
            opened.draft("RGB", (2 * SIDE, 2 * SIDE))  # large JPEGs are not decoded in full
            picture = ImageOps.exif_transpose(opened).convert("RGBA")
    except CsvError:
        raise
    except _UNREADABLE:
        raise CsvError(
            f"{name}: not a picture that can be read: JPEG, PNG or WebP needed"
        ) from None
    picture.thumbnail((SIDE, SIDE))
    flat = Image.new("RGB", picture.size, "white")
    flat.paste(picture, mask=picture.getchannel("A"))
    kept = io.BytesIO()
    flat.save(kept, "JPEG", quality=82, optimize=True)
    return kept.getvalue()


def keep_photos(store: Store, study: str, photos: Mapping[str, bytes]) -> None:
    """Keep small JPEGs of arms, in place of those they had; cards show them from now on."""
    with take_turn(store, study) as turn:
        for arm in photos:
            turn.coming.arm_number(arm)
        _remove(turn.connection, study, photos)
        rows = [{"study": study, "arm": arm, "content": one} for arm, one in photos.items()]
        if rows:
            turn.connection.execute(sa.insert(schema.photos), rows)
        known = {arm: hashlib.sha256(one).hexdigest() for arm, one in photos.items()}
        turn.append("photos_added", body={"photos": known})


def remove_photos(store: Store, study: str) -> None:
    """Keep no photo of any arm of a study."""
    with take_turn(store, study) as turn:
        turn.connection.execute(sa.delete(schema.photos).where(_photos.study == study))
        turn.append("photos_removed")


def count_photos(store: Store, study: str) -> int:
    """How many arms of a study have one."""
    query = sa.select(sa.func.count()).where(_photos.study == study)
    with store.read() as connection:
        return int(connection.execute(query).scalar_one())


def addresses(store: Store, study: str, arms: Iterable[str]) -> dict[str, str]:
    """Photos of some arms as data addresses, arm id -> address.

    They travel with the page to whoever may see it; nothing is left at an address of the server.
    """
    with store.read() as connection:
        found = connection.execute(_OF_ARMS, {"study": study, "arms": list(arms)}).all()
    return {
        arm: "data:image/jpeg;base64," + base64.b64encode(content).decode()
        for arm, content in found
    }


def _remove(connection: sa.Connection, study: str, arms: Iterable[str]) -> None:
    statement = sa.delete(schema.photos).where(
        _photos.study == study, _photos.arm == sa.bindparam("one")
    )
    for arm in arms:
        connection.execute(statement, {"one": arm})
