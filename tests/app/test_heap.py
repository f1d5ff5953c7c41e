"""The heaps of the C library, counted in a process of its own."""

import platform
import subprocess
import sys

import pytest

# Sixteen threads at once take memory from the C library; printed: heaps beside the first one.
THREADS = """
import ctypes, re, threading
from pages.shared.heap import share_one_heap
{}
malloc, together = ctypes.CDLL(None).malloc, threading.Barrier(17)
def take():
    malloc(1000)
    together.wait()
    together.wait()
threads = [threading.Thread(target=take) for _ in range(16)]
for one in threads: one.start()
together.wait()
aligned = r"^[0-9a-f]+[048c]000000-\\S+ rw-p 0+ 00:00 0 *$"
print(len(re.findall(aligned, open("/proc/self/maps").read(), re.M)))
together.wait()
"""


def heaps(call: str) -> int:
    done = subprocess.run(
        [sys.executable, "-c", THREADS.format(call)], capture_output=True, text=True, check=True
    )
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_threads_share_one_heap_and_would_not_by_themselves():
    assert heaps("share_one_heap()") == 0
    assert heaps("") > 1
