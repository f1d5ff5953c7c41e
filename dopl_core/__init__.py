"""DOPL: whom to help next, learned from which-of-these-two answers."""

import os

# One thread for linear algebra, before NumPy is loaded: the matrices are small, and sums come out
# the same to the bit however many cores there are. Other kinds of processors and versions of NumPy
# round differently (learning/arithmetic.py).
for _library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")
