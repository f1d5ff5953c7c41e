"""DOPL: whom to help next, learned from which-of-these-two answers."""

import os

# One thread for linear algebra, before NumPy is loaded: the matrices are small, and sums come out
# the same to the bit whatever the machine.
for _library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")
