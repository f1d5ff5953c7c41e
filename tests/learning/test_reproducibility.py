"""A fingerprint of how numbers are rounded."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dopl_core.learning.reproducibility import fingerprint

ROOT = Path(__file__).resolve().parents[2]


def found_with(**environment: str) -> str:
    code = "from dopl_core.learning.reproducibility import fingerprint; print(fingerprint())"
    given = os.environ | {"PYTHONPATH": str(ROOT)} | environment
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, check=True, capture_output=True, text=True, env=given)
    return run.stdout.strip()


def test_the_fingerprint_is_the_same_in_every_process() -> None:
    assert found_with() == fingerprint() == fingerprint.__wrapped__()


def test_the_fingerprint_differs_if_other_kernels_multiply_matrices() -> None:
    if platform.machine() not in ("x86_64", "AMD64") or "openblas" not in str(
        np.show_config("dicts")
    ):
        pytest.skip("linear algebra is not OpenBLAS's here")
    assert len({found_with(OPENBLAS_CORETYPE=core) for core in ("Haswell", "Prescott")}) == 2
