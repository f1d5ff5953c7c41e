"""Where tests keep their files: in memory, where a promise to the disk costs nothing."""

import os
import shutil
from pathlib import Path

_ENOUGH = 2 << 30  # bytes


def folder_in_memory() -> Path | None:
    """A folder whose files are in memory, if there is room and programs may be run from it."""
    memory = Path("/dev/shm")  # noqa: S108
    if not os.access(memory, os.W_OK) or shutil.disk_usage(memory).free < _ENOUGH:
        return None
    return None if os.statvfs(memory).f_flag & os.ST_NOEXEC else memory
