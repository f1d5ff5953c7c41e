"""The version of the maths, and a fingerprint of how this machine rounds."""

import hashlib
import platform
from functools import cache

import numpy as np
import scipy
from scipy.special import digamma, expit, gammaln, log_expit

from dopl_core.learning.bandit import FloatArray

# The version of the maths. Plans record it. Every change that alters a bit of any result raises it,
# so that replay knows which plans it can recompute exactly.
MATHS = 10

_SIZES = (3, 8, 37, 90)  # of matrices: libraries use other algorithms for small ones


@cache
def fingerprint() -> str:
    """Equal on two machines if everything learnt and planned is equal there to the last bit.

    On other hardware sums are added in another order, so results are equal within rounding.
    """
    made_by = (np.__version__, scipy.__version__, platform.system(), platform.machine())
    return hashlib.sha256(" ".join([*made_by, rounding()]).encode()).hexdigest()[:12]


def rounding() -> str:
    """A hash of all bits of some calculations on this machine."""
    sha = hashlib.sha256()
    for size in _SIZES:
        for found in _calculations(size):
            sha.update(np.ascontiguousarray(found).tobytes())
    return sha.hexdigest()[:12]


def _calculations(n: int) -> list[FloatArray]:
    """The operations that the learner's maths uses, on matrices [n, n] of fixed numbers."""
    x = (np.arange(n * n) * 7919 % 10007 / 10007).reshape(n, n)
    curvature = x @ x.T + np.eye(n)
    values, basis = np.linalg.eigh(curvature)
    batch = np.stack([curvature, curvature + np.diag(values)])
    parts = [x, curvature, values, basis, (basis * values) @ basis.T, x @ values, values @ x]
    parts += [np.linalg.inv(batch), np.linalg.solve(curvature, x), np.linalg.slogdet(batch)[1]]
    parts += [np.linalg.cholesky(curvature), x.sum(axis=0), x.sum(axis=1), x**3]
    parts += [np.einsum("ij,ij->j", x, x), np.einsum("kij,ij->ki", batch, x)]
    parts += [np.exp(x), np.log(x + 1), np.log1p(x), expit(x), log_expit(x)]
    return [*parts, gammaln(x + 1), digamma(x + 1)]
