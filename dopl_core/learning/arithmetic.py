"""How numbers are rounded here: by the processor, and by the versions of NumPy and SciPy."""

import hashlib
import platform
from functools import cache

import numpy as np
import scipy
from scipy.special import digamma, expit, gammaln, log_expit, logsumexp

from dopl_core.learning.bandit import FloatArray

_SIZES = (3, 8, 37, 90)  # of matrices: libraries take other ways for small ones


@cache
def fingerprint() -> str:
    """The same where everything that is learnt and planned comes out the same to the last bit.

    Elsewhere sums are added up in another order: all is the same but for rounding.
    """
    made_by = (np.__version__, scipy.__version__, platform.system(), platform.machine())
    return hashlib.sha256(" ".join([*made_by, rounding()]).encode()).hexdigest()[:12]


def rounding() -> str:
    """A hash of some calculations: every bit of what they come to here."""
    sha = hashlib.sha256()
    for size in _SIZES:
        for found in _calculations(size):
            sha.update(np.ascontiguousarray(found).tobytes())
    return sha.hexdigest()[:12]


def _calculations(n: int) -> list[FloatArray]:
    """What the learner's maths is made of, on matrices [n, n] that are the same everywhere."""
    x = (np.arange(n * n) * 7919 % 10007 / 10007).reshape(n, n)
    curvature = x @ x.T + np.eye(n)
    values, basis = np.linalg.eigh(curvature)
    batch = np.stack([curvature, curvature + np.diag(values)])
    parts = [x, curvature, values, basis, (basis * values) @ basis.T, x @ values, values @ x]
    parts += [np.linalg.inv(batch), np.linalg.solve(curvature, x), np.linalg.slogdet(batch)[1]]
    parts += [np.linalg.cholesky(curvature), x.sum(axis=0), x.sum(axis=1), x**3]
    parts += [np.einsum("ij,ij->j", x, x), np.einsum("kij,ij->ki", batch, x)]
    parts += [np.exp(x), np.log(x + 1), np.log1p(x), expit(x), log_expit(x)]
    return [*parts, gammaln(x + 1), digamma(x + 1), logsumexp(x, axis=1)]
