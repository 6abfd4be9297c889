"""The processor's handling of denormals, set and put back around code that stands for a tile.

On x86-64 it is two bits of MXCSR, which glibc's ``fegetenv`` and ``fesetenv`` pass on: denormal operands read as zero, denormal
results become zero. NumPy's scalars and the C library then compute as compiled codelets do. On other processors denormals are kept.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

FLUSH = 0x8040  # MXCSR: flush to zero, denormals are zero
_ENVIRONMENT_WORDS, _MXCSR = 8, 7  # of fenv_t, 32-bit words


@cache
def _library() -> Any:
    """The C library's functions; None where they do not lead to MXCSR."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return None
    name = ctypes.util.find_library("m")
    library = ctypes.CDLL(name) if name else None
    return library if library is not None and hasattr(library, "fesetenv") else None


@contextmanager
def denormals(flush: bool) -> Iterator[None]:
    """Denormals of float32 are flushed, or kept, by this thread inside. What it was comes back."""
    library = _library()
    if library is None:
        yield
        return
    before = (ctypes.c_uint32 * _ENVIRONMENT_WORDS)()
    library.fegetenv(before)
    inside = (ctypes.c_uint32 * _ENVIRONMENT_WORDS)(*before)
    inside[_MXCSR] = before[_MXCSR] & ~FLUSH | (FLUSH if flush else 0)
    library.fesetenv(inside)
    try:
        yield
    finally:
        library.fesetenv(before)
