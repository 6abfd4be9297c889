"""Codelets as native code: compiled when they are added to a graph, kept in the object cache, called by an engine."""

from __future__ import annotations

import os
from pathlib import Path

from popcore.dialect import Lowered
from popcore.kernels import objects


def cache_folder() -> Path:
    """Where compiled code is kept: $POPCORE_CACHE_DIR, or the user's cache folder."""
    if given := os.environ.get("POPCORE_CACHE_DIR"):
        return Path(given)
    import platformdirs

    return Path(platformdirs.user_cache_dir("popcore"))


def falls_back() -> bool:
    """Whether Numba's internals are to be left alone, $POPCORE_FALLBACK: codelets then run as Python."""
    return os.environ.get("POPCORE_FALLBACK") == "1"


def interpreted() -> bool:
    """Whether codelets run as plain Python, $POPCORE_INTERPRET: a debugger then stops in them."""
    return falls_back() or os.environ.get("POPCORE_INTERPRET", "") not in ("", "0")


def load_driver(lowered: Lowered) -> int:
    """The address of a codelet's driver; see ``kernels.compile`` for its interface.

    Raises:
        CodeletError: only compiling shows that it cannot be compiled, as where a variable has two types.
    Costs: a compile of some 50 ms where the cache has none; no Numba where it has.
    """
    symbol = f"popcore_driver_{lowered.fingerprint[:32]}"

    def build() -> bytes:
        from popcore.kernels.compile import compile_driver

        return bytes(compile_driver(lowered, symbol))

    (address,) = objects.load(objects.Cache(cache_folder()), objects.key_of("driver", lowered.fingerprint), (symbol,), build)
    return address
