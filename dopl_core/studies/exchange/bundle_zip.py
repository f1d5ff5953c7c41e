"""The zip of a bundle, unpacked: what is too large or not as we write it is refused."""

import io
import zipfile
from collections.abc import Sequence
from pathlib import Path

from dopl_core.studies.model.errors import CsvError
from dopl_core.studies.store.blobs import DAMAGES, PLAIN

LARGEST = 1 << 28  # bytes that all members may unpack to: some 500,000 answers

_BOMB = 400  # times that a member of some size is larger unpacked: real ones are by 30
_SMALL = 1 << 20


def unzip(source: Path | bytes, wanted: Sequence[str]) -> dict[str, bytes]:
    """The wanted files that a bundle has; nothing else is read, and nothing grows huge."""
    name = source.name if isinstance(source, Path) else "the bundle"
    content = source if isinstance(source, bytes) else _content(source)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as bundle:
            members = [m for m in bundle.infolist() if m.filename in wanted]
            _check_members(members)
            files = {member.filename: _read_member(bundle, member) for member in members}
    except CsvError:
        raise
    except DAMAGES:
        raise CsvError(f"{name}: not a zip file, or a damaged one") from None
    if "study.json" not in files:
        raise CsvError("study.json is missing")
    return files


def _read_member(bundle: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """The content of a member, read part by part: zlib needs twice what it is asked for."""
    content = io.BytesIO()
    with bundle.open(member) as file:
        while part := file.read(_SMALL):
            content.write(part)
            if content.tell() > LARGEST:
                raise CsvError(f"{member.filename}: larger than it says; not a bundle of dopl")
    return content.getvalue()


def _content(source: Path) -> bytes:
    with source.open("rb") as file:
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise CsvError(f"{source.name}: over {LARGEST >> 20} MB; not a bundle of dopl")
    return content


def _check_members(members: list[zipfile.ZipInfo]) -> None:
    """Refuse, before unpacking, what would be too large, or is not as we write it."""
    names = [member.filename for member in members]
    for member in members:
        if names.count(member.filename) > 1:
            raise CsvError(f"{member.filename} is there twice")
        if member.compress_type not in PLAIN or member.flag_bits & 1:
            raise CsvError(f"{member.filename}: compressed in a way that is not ours, or encrypted")
        if member.file_size > max(_SMALL, _BOMB * member.compress_size):
            raise CsvError(
                f"{member.filename}: {member.file_size >> 20} MB out of "
                f"{member.compress_size >> 10} kB; not a bundle of dopl"
            )
    if sum(member.file_size for member in members) > LARGEST:
        raise CsvError(f"over {LARGEST >> 20} MB when it is unpacked; not a bundle of dopl")
