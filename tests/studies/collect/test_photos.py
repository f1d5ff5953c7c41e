"""Photos: scaled down, without metadata, matched by id; a bad zip changes nothing."""

import base64
import io
import struct
import zlib

import pytest
from bundles import files, picture, zipped
from PIL import Image
from playing import clinic

from dopl_core import studies
from dopl_core.studies import CsvError, Store, StudyError
from dopl_core.studies.collect import photos


def test_photos_match_ids_in_any_folder_case_and_format() -> None:
    given = {"ward/P1.JPG": picture(), "p2.png": picture("PNG"), "p3.webp": picture("WEBP")}
    given |= {"__MACOSX/p4.jpg": b"x", ".DS_Store": b"x", "notes.txt": b"x", "p44.jpg": picture()}
    found = photos.read_photos(zipped(given), clinic())
    assert sorted(found.photos) == ["p1", "p2", "p3"]
    assert found.unmatched == ("notes.txt", "p44.jpg")
    for content in found.photos.values():
        with Image.open(io.BytesIO(content)) as kept:
            assert (kept.format, kept.size) == ("JPEG", (320, 240))


def test_a_stored_photo_is_upright_and_has_no_metadata() -> None:
    exif = Image.Exif()
    exif[0x0112], exif[0x010F] = 6, "A camera"  # rotated by 90 degrees
    turned = picture(size=(640, 480), exif=exif, comment=b"secret place")
    kept = photos.small_jpeg(turned, "p1.jpg")
    with Image.open(io.BytesIO(kept)) as opened:
        assert opened.size == (240, 320)
        assert not opened.getexif()
    assert b"secret" not in kept
    assert b"camera" not in kept


def test_transparent_pixels_become_white() -> None:
    content = io.BytesIO()
    Image.new("RGBA", (10, 10), (0, 0, 0, 0)).save(content, "PNG")
    with Image.open(io.BytesIO(photos.small_jpeg(content.getvalue(), "p1.png"))) as opened:
        assert opened.getpixel((5, 5)) == (255, 255, 255)


def _bomb() -> bytes:
    content = io.BytesIO()
    Image.new("1", (20_000, 20_000)).save(content, "PNG")
    return content.getvalue()


# Functions, so that not every worker makes the contents while it collects tests.
BAD = {
    "no zip": (lambda: b"no zip", "not a zip file, or damaged"),
    "no picture": (
        lambda: zipped({"p1.jpg": b"no picture"}),
        "p1.jpg: cannot be read as a picture",
    ),
    "svg": (lambda: zipped({"p1.jpg": b"<svg onload='alert(1)'/>"}), "cannot be read as a picture"),
    "cut off": (lambda: zipped({"p1.jpg": picture()[:900]}), "p1.jpg: cannot be read as a picture"),
    "twice": (
        lambda: zipped({"p1.jpg": picture(), "p1.png": picture("PNG")}),
        'two photos of "p1"',
    ),
    "bomb": (lambda: zipped({"p1.png": _bomb()}), "p1.png: "),
    "large": (lambda: zipped({"p1.png": bytes((25 << 20) + 1)}), "p1.png is over 25 MB"),
    "much": (
        lambda: zipped({f"{n}.png": bytes(25 << 20) for n in range(21)}, level=1),
        "512 MB unpacked",
    ),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_zip_is_refused_with_its_name_and_the_reason(kind: str) -> None:
    content, words = BAD[kind]
    with pytest.raises(CsvError, match=words):
        photos.read_photos(content(), clinic(), "some.zip")


def test_photos_can_be_stored_replaced_shown_and_removed(store: Store) -> None:
    study, other = (studies.create_study(store, clinic()) for _ in range(2))
    found = photos.read_photos(zipped({"p1.jpg": picture(), "p2.jpg": picture()}), clinic())
    studies.keep_photos(store, study, found.photos)
    studies.keep_photos(store, study, {"p1": b"newer"})
    assert studies.count_photos(store, study) == 2
    shown = photos.photo_addresses(store, study, "Ann", ["p1", "p3"])
    assert shown == {"p1": "data:image/jpeg;base64," + base64.b64encode(b"newer").decode()}
    assert photos.photo_addresses(store, other, "Ann", ["p1"]) == {}
    with pytest.raises(StudyError, match='arm id "p9"'):
        studies.keep_photos(store, study, {"p3": b"x", "p9": b"y"})
    assert studies.count_photos(store, study) == 2
    studies.remove_photos(store, study)
    assert studies.count_photos(store, study) == 0


def test_deleting_a_study_deletes_its_photos_and_the_log_keeps_their_digests(store: Store) -> None:
    study = studies.create_study(store, clinic())
    studies.keep_photos(store, study, {"p1": b"one"})
    studies.replay_study(store, study)
    content = studies.export_bundle(store, study)
    assert b"photos_added" in files(content)["events.csv"]
    studies.delete_study(store, study)
    studies.import_bundle(store, content)
    assert studies.count_photos(store, study) == 0
    assert studies.export_bundle(store, study) == content


def grey(value: int, mode: str = "I;16") -> bytes:
    content = io.BytesIO()
    Image.new(mode, (40, 40), value).save(content, "PNG")
    return content.getvalue()


@pytest.mark.parametrize("value", [0, 12_000, 40_000, 65_535])
def test_sixteen_bits_of_grey_are_scaled_to_eight(value: int) -> None:
    with Image.open(io.BytesIO(photos.small_jpeg(grey(value), "p1.png"))) as kept:
        assert abs(kept.convert("L").getpixel((9, 9)) - value / 257) <= 2


def test_a_file_belongs_to_the_id_that_is_exactly_its_name() -> None:
    arms = [studies.Arm(one, one, state="Low") for one in ("p1", "P1", "P2", "PI", "pi")]
    config = studies.from_roster(arms, ["Low", "High"], title="Ward", budget=2)
    found = photos.read_photos(zipped({"P1.jpg": picture(), "p2.jpg": picture()}), config)
    assert sorted(found.photos) == ["P1", "P2"]
    found = photos.read_photos(zipped({"p1.jpg": picture(), "Pi.jpg": picture()}), config)
    assert sorted(found.photos) == ["p1"]
    assert found.unmatched == ("Pi.jpg",)  # PI or pi


def _header(kind: str) -> bytes:
    """A few bytes that claim to be a picture of 4,001 by 4,001 pixels."""
    if kind == "png":
        body = struct.pack(">IIBBBBB", 4001, 4001, 16, 6, 0, 0, 1)  # 16 bits of RGBA, interlaced
        parts = ((b"IHDR", body), (b"IDAT", b"x"), (b"IEND", b""))
        chunks = (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
            for name, data in parts
        )
        return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)
    size = {
        "VP8X": b"\0" * 4 + (4000).to_bytes(3, "little") * 2,
        "VP8L": b"\x2f" + (4000 | 4000 << 14).to_bytes(4, "little") + b"\0" * 9,
        "VP8 ": b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 4001, 4001),
    }[kind]
    return b"RIFF\0\0\0\0WEBP" + kind.encode() + b"\x0a\0\0\0" + size + b"\0" * 20


@pytest.mark.parametrize("kind", ["png", "VP8X", "VP8L", "VP8 "])
def test_a_picture_that_would_take_much_memory_is_refused_by_its_header(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoding = AssertionError("it is decoded")
    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", lambda _: (_ for _ in ()).throw(decoding))
    with pytest.raises(CsvError, match="p1: has over 16 million pixels; save a smaller copy"):
        photos.small_jpeg(_header(kind), "p1")
