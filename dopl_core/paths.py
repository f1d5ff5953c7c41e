"""Where files are, in a checkout or in an installed wheel: the app and its data, and what is kept.

A wheel carries the app beside the package's own modules; what people make is never kept in there.
"""

import os
from pathlib import Path

import platformdirs

_PACKAGE = Path(__file__).resolve().parent

IS_CHECKOUT = (_PACKAGE.parent / "streamlit_app.py").is_file()

# streamlit_app.py, pages/, .streamlit/, data/effects.toml, data/environments, data/guides,
# data/locale, data/rosters.
ROOT = _PACKAGE.parent if IS_CHECKOUT else _PACKAGE / "app"

# The guides that the Help page shows.
GUIDES = ROOT / "data" / "guides"

# The local database, and simulations.
KEPT = ROOT / "data" if IS_CHECKOUT else Path(platformdirs.user_data_dir("dopl", appauthor=False))


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read."""
    with open(path, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        os.fchmod(file.fileno(), 0o600)  # of a file that was here before
        file.write(content)
