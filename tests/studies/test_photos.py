"""Photos on cards: small, nothing but pixels, by the arm's id; a bad zip changes nothing."""

import base64
import io

import pytest
from bundles import files, zipped
from PIL import Image
from playing import clinic

from dopl_core.studies import photos, service
from dopl_core.studies.service import CsvError, Store, StudyError


def picture(kind: str = "JPEG", size: tuple[int, int] = (640, 480), **options: object) -> bytes:
    content = io.BytesIO()
    mode = "RGB" if kind == "JPEG" else "RGBA"
    Image.new(mode, size, "#aa3311").save(content, kind, **options)
    return content.getvalue()


def test_photos_are_found_by_id_whatever_the_folder_case_and_format() -> None:
    given = {"ward/P1.JPG": picture(), "p2.png": picture("PNG"), "p3.webp": picture("WEBP")}
    given |= {"__MACOSX/p4.jpg": b"x", ".DS_Store": b"x", "notes.txt": b"x", "p44.jpg": picture()}
    found = photos.read_photos(zipped(given), clinic())
    assert sorted(found.photos) == ["p1", "p2", "p3"]
    assert found.others == ("notes.txt", "p44.jpg")
    for content in found.photos.values():
        with Image.open(io.BytesIO(content)) as kept:
            assert (kept.format, kept.size) == ("JPEG", (320, 240))


def test_nothing_but_upright_pixels_is_kept() -> None:
    exif = Image.Exif()
    exif[0x0112], exif[0x010F] = 6, "A camera"  # lies on its side
    turned = picture(size=(640, 480), exif=exif, comment=b"secret place")
    kept = photos.small(turned, "p1.jpg")
    with Image.open(io.BytesIO(kept)) as opened:
        assert opened.size == (240, 320)
        assert not opened.getexif()
    assert b"secret" not in kept
    assert b"camera" not in kept


def test_what_is_transparent_becomes_white() -> None:
    content = io.BytesIO()
    Image.new("RGBA", (10, 10), (0, 0, 0, 0)).save(content, "PNG")
    with Image.open(io.BytesIO(photos.small(content.getvalue(), "p1.png"))) as opened:
        assert opened.getpixel((5, 5)) == (255, 255, 255)


def _bomb() -> bytes:
    content = io.BytesIO()
    Image.new("1", (20_000, 20_000)).save(content, "PNG")
    return content.getvalue()


# Made when it is needed, and named: what is made while tests are collected is made by every worker.
BAD = {
    "no zip": (lambda: b"no zip", "not a zip, or a damaged one"),
    "no picture": (lambda: zipped({"p1.jpg": b"no picture"}), "p1.jpg: not a picture that can be"),
    "svg": (lambda: zipped({"p1.jpg": b"<svg onload='alert(1)'/>"}), "not a picture that can be"),
    "cut off": (lambda: zipped({"p1.jpg": picture()[:900]}), "p1.jpg: not a picture that can be"),
    "twice": (
        lambda: zipped({"p1.jpg": picture(), "p1.png": picture("PNG")}),
        'two photos of "p1"',
    ),
    "bomb": (lambda: zipped({"p1.png": _bomb()}), "p1.png: "),
    "large": (lambda: zipped({"p1.png": bytes((25 << 20) + 1)}), "p1.png is over 25 MB"),
    "much": (
        lambda: zipped({f"{n}.png": bytes(25 << 20) for n in range(21)}),
        "512 MB when it is unpacked",
    ),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_zip_is_refused_by_name_before_it_takes_room(kind: str) -> None:
    content, words = BAD[kind]
    with pytest.raises(CsvError, match=words):
        photos.read_photos(content(), clinic(), "some.zip")


def test_photos_are_kept_replaced_shown_and_removed(store: Store) -> None:
    study, other = (service.create_study(store, clinic()) for _ in range(2))
    found = photos.read_photos(zipped({"p1.jpg": picture(), "p2.jpg": picture()}), clinic())
    service.keep_photos(store, study, found.photos)
    service.keep_photos(store, study, {"p1": b"newer"})
    assert service.count_photos(store, study) == 2
    shown = photos.addresses(store, study, ["p1", "p3"])
    assert shown == {"p1": "data:image/jpeg;base64," + base64.b64encode(b"newer").decode()}
    assert photos.addresses(store, other, ["p1"]) == {}
    with pytest.raises(StudyError, match='arm id "p9"'):
        service.keep_photos(store, study, {"p3": b"x", "p9": b"y"})
    assert service.count_photos(store, study) == 2
    service.remove_photos(store, study)
    assert service.count_photos(store, study) == 0


def test_photos_go_with_their_study_and_the_log_says_which_were_seen(store: Store) -> None:
    study = service.create_study(store, clinic())
    service.keep_photos(store, study, {"p1": b"one"})
    service.replay_study(store, study)
    content = service.export_bundle(store, study)
    assert b"photos_added" in files(content)["events.csv"]
    service.delete_study(store, study)
    service.import_bundle(store, content)
    assert service.count_photos(store, study) == 0
    assert service.export_bundle(store, study) == content
