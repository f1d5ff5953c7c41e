"""The README's six weeks of a clinic, run as they are written."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.long
def test_the_six_weeks_of_the_readme_run_as_written(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(r"## Six weeks of a clinic\n.*?```\n(.*?)```", text, re.DOTALL)
    assert found is not None
    script = found[1].replace("clinic.zip", f"{tmp_path}/clinic.zip")
    (tmp_path / "dopl").write_text(f'#!/bin/bash\nexec {sys.executable} -m dopl_core.cli "$@"\n')
    (tmp_path / "dopl").chmod(0o755)
    environment = os.environ | {
        "DOPL_DATABASE_URL": f"sqlite:///{tmp_path}/clinic.db",
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
    }
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout
    assert "week 2 reported: " in said
    assert "2 unknown" in said
    assert "week 2 is corrected" in said
    assert "2 joined, 0 left" in said
    assert "0 joined, 1 left" in said
    assert "the list of week 6 is made, 3 to help" in said
    assert "everything comes out the same" in said
