"""Photos of arms: read from a zip, scaled down, stored in the database, shown on cards.

A file belongs to the arm whose id is its name (p-017.jpg). Each photo is decoded and encoded again,
small and upright, so that only its pixels are stored: no location, no camera, no hidden content.
"""

import base64
import hashlib
import io
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import sqlalchemy as sa
from PIL import Image, ImageOps

from dopl_core.studies.collect.limits import permission
from dopl_core.studies.model.errors import CsvError
from dopl_core.studies.model.event_bodies import PhotosAdded
from dopl_core.studies.model.study_config import StudyConfig
from dopl_core.studies.store import tables
from dopl_core.studies.store.blobs import DAMAGES, PLAIN
from dopl_core.studies.store.database import Store
from dopl_core.studies.store.study_reader import read_study
from dopl_core.studies.store.transaction import write_study

SIDE = 320  # pixels of the longer side as stored
FORMATS = ("JPEG", "PNG", "WEBP")
_MOST_FILES = 20_000
_LARGEST_FILE = 25 << 20  # bytes
_LARGEST = 1 << 29  # bytes of all files of a zip, unpacked
# Pixels of a picture. Baseline JPEG is decoded at a reduced size, everything else as a whole.
_MOST_PIXELS, _MOST_DECODED = 50_000_000, 16_000_000
_UNREADABLE: tuple[type[Exception], ...] = (
    *DAMAGES,
    SyntaxError,  # raised by Pillow for a broken PNG
    Image.DecompressionBombError,
    Image.DecompressionBombWarning,
)

_photos = tables.photos.c
_OF_ARMS = sa.select(_photos.arm, _photos.content).where(
    _photos.study == sa.bindparam("study"), _photos.arm.in_(sa.bindparam("arms", expanding=True))
)


@dataclass(frozen=True)
class PhotoZip:
    """The photos of a zip as JPEG by arm id, and the names of files that match no id."""

    photos: dict[str, bytes]
    unmatched: tuple[str, ...]


def read_photos(source: Path | bytes, config: StudyConfig, name: str = "photos.zip") -> PhotoZip:
    """Read the photos of a study's arms from a zip."""
    if isinstance(source, Path):
        name, source = source.name, source.read_bytes()
    try:
        with zipfile.ZipFile(io.BytesIO(source)) as opened:
            members = _members(opened, name)
            arm_of = _arm_finder(config)
            photos: dict[str, bytes] = {}
            unmatched = []
            for member in members:
                path = PurePosixPath(member.filename)
                arm = arm_of(path.stem)
                if arm is None:
                    unmatched.append(path.name)
                elif arm in photos:
                    raise CsvError(f'{name}: there are two photos of "{arm}"')
                else:
                    photos[arm] = small_jpeg(opened.read(member), f"{name}: {path.name}")
    except CsvError:
        raise
    except DAMAGES as error:
        raise CsvError(f"{name}: not a zip file, or damaged: {error}") from None
    return PhotoZip(photos, tuple(unmatched))


def _arm_finder(config: StudyConfig) -> Callable[[str], str | None]:
    """Finds the id that a file is named after: exactly, or in another case if only one fits."""
    exact = {arm.id for arm in config.arms}
    count = Counter(arm.casefold() for arm in exact)
    any_case = {arm.casefold(): arm for arm in exact if count[arm.casefold()] == 1}
    return lambda name: name if name in exact else any_case.get(name.casefold())


def _members(opened: zipfile.ZipFile, name: str) -> list[zipfile.ZipInfo]:
    """The files of a zip without folders and hidden files; refuses too many or too large ones."""
    found = []
    for member in opened.infolist():
        path = PurePosixPath(member.filename)
        if member.is_dir() or path.name.startswith(".") or "__MACOSX" in path.parts:
            continue
        if member.file_size > _LARGEST_FILE:
            raise CsvError(f"{name}: {path.name} is over {_LARGEST_FILE >> 20} MB")
        if member.compress_type not in PLAIN or member.flag_bits & 1:
            raise CsvError(f"{name}: {path.name} is encrypted, or its compression is not supported")
        found.append(member)
    if len(found) > _MOST_FILES or sum(one.file_size for one in found) > _LARGEST:
        raise CsvError(
            f"{name}: at most {_MOST_FILES:,} files and {_LARGEST >> 20} MB unpacked are allowed; "
            "split the photos into several zips"
        )
    return found


def small_jpeg(content: bytes, name: str) -> bytes:
    """The picture as a small, upright JPEG without metadata."""
    _check_pixels(_webp_size(content), _MOST_DECODED, name)  # opening it takes memory for them
    try:
        with warnings.catch_warnings(), Image.open(io.BytesIO(content), formats=FORMATS) as opened:
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            is_reduced = opened.format != "PNG" and not opened.info.get("progressive")
            _check_pixels(opened.size, _MOST_PIXELS if is_reduced else _MOST_DECODED, name)
            opened.draft("RGB", (2 * SIDE, 2 * SIDE))  # decodes large JPEGs at a reduced size
            picture = _eight_bits(opened)
            picture.thumbnail((SIDE, SIDE))
            picture = ImageOps.exif_transpose(picture).convert("RGBA")
    except CsvError:
        raise
    except _UNREADABLE:
        raise CsvError(f"{name}: cannot be read as a picture; use JPEG, PNG or WebP") from None
    flat = Image.new("RGB", picture.size, "white")
    flat.paste(picture, mask=picture.getchannel("A"))
    kept = io.BytesIO()
    flat.save(kept, "JPEG", quality=82, optimize=True)
    return kept.getvalue()


def _check_pixels(size: tuple[int, int], most: int, name: str) -> None:
    if size[0] * size[1] > most:
        raise CsvError(
            f"{name}: has over {most // 10**6} million pixels; save a smaller copy, or a JPEG"
        )


def _webp_size(content: bytes) -> tuple[int, int]:
    """Width and height in the header of a WebP file; zeros for anything else."""
    if content[:4] != b"RIFF" or content[8:12] != b"WEBP" or len(content) < 30:
        return 0, 0
    kind = content[12:16]
    if kind == b"VP8X":  # 24 bits each, less one
        width, height = (1 + int.from_bytes(content[n : n + 3], "little") for n in (24, 27))
        return width, height
    if kind == b"VP8L":  # 14 bits each, less one
        bits = int.from_bytes(content[21:25], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    width, height = (int.from_bytes(content[n : n + 2], "little") & 0x3FFF for n in (26, 28))
    return width, height


def _eight_bits(opened: Image.Image) -> Image.Image:
    """The picture in a mode that can be scaled down; 16 bits of grey become 8, not white."""
    if opened.mode.startswith("I"):
        return opened.convert("I").point(lambda grey: grey * (1 / 257)).convert("L")
    return opened if opened.mode in ("RGB", "RGBA", "L") else opened.convert("RGBA")


def keep_photos(store: Store, study: str, photos: Mapping[str, bytes]) -> int:
    """Store small JPEGs of arms in place of their previous ones; cards show them from now on.

    Photos that are stored already change nothing. The number of new ones.
    """
    with write_study(store, study) as tx:
        for arm in photos:
            tx.next_config.arm_number(arm)
        stored = ((arm, _read(tx.connection, study, [arm])) for arm in photos)  # one at a time
        new = {arm: photos[arm] for arm, found in stored if found.get(arm) != photos[arm]}
        if new:
            _remove(tx.connection, study, new)
            rows = [{"study": study, "arm": arm, "content": one} for arm, one in new.items()]
            tx.connection.execute(sa.insert(tables.photos), rows)
            known = {arm: hashlib.sha256(one).hexdigest() for arm, one in new.items()}
            tx.append("photos_added", PhotosAdded(known))
        return len(new)


def remove_photos(store: Store, study: str) -> None:
    """Delete all photos of a study."""
    with write_study(store, study) as tx:
        gone = tx.connection.execute(sa.delete(tables.photos).where(_photos.study == study))
        if gone.rowcount:
            tx.append("photos_removed")


def count_photos(store: Store, study: str) -> int:
    """How many arms of a study have a photo."""
    query = sa.select(sa.func.count()).where(_photos.study == study)
    with store.read() as connection:
        return int(connection.execute(query).scalar_one())


def photo_addresses(
    store: Store, study: str, annotator: str, arms: Iterable[str]
) -> dict[str, str]:
    """Photos of some arms as data URLs: arm id -> URL; none that are kept from the annotator.

    They are part of the page, so the server has no photo URL that others could open.
    annotator: who looks; "" for those who run the study
    """
    with read_study(store, study) as reader:
        config = reader.next_config
        if config.limits and (limited := permission(reader, annotator)):
            arms = [arm for arm in arms if limited.shows(config.arm_number(arm))]
        found = _read(reader.connection, study, arms)
    return {
        arm: "data:image/jpeg;base64," + base64.b64encode(content).decode()
        for arm, content in found.items()
    }


def _read(connection: sa.Connection, study: str, arms: Iterable[str]) -> dict[str, bytes]:
    """The photos that some arms have."""
    found = connection.execute(_OF_ARMS, {"study": study, "arms": list(arms)})
    return {arm: content for arm, content in found}  # noqa: C416


def _remove(connection: sa.Connection, study: str, arms: Iterable[str]) -> None:
    statement = sa.delete(tables.photos).where(
        _photos.study == study, _photos.arm == sa.bindparam("one")
    )
    for arm in arms:
        connection.execute(statement, {"one": arm})
