"""Codelets as native code: compiled when they are added to a graph, kept in the object cache, called by an engine."""

from __future__ import annotations

import os
from collections.abc import Iterable

from popcore.bindings.cache import cache_folder
from popcore.codelet import Codelet, NativeCodelet
from popcore.dialect import Lowered, lower
from popcore.kernels import objects

__all__ = ["cache_folder", "drivers", "falls_back", "fingerprint", "forget", "interpreted", "load_driver"]


def fingerprint(codelet: Codelet) -> str:
    """A digest of what a codelet computes; equal on every machine, and where only positions in its file have changed."""
    return codelet.native.fingerprint if isinstance(codelet, NativeCodelet) else lower(codelet).fingerprint


def drivers(codelets: Iterable[Codelet], check: str = "off") -> list[tuple[int, bool]]:
    """For each codelet the address of its driver, and whether it prints. Whatever is not in the cache is compiled.

    ``check``: of memory accesses: "off", "bounds" or "full".

    Raises: CodeletError for one that cannot be compiled.
    """
    every = list(codelets)
    compiled = [c.native for c in every if isinstance(c, NativeCodelet)]
    if compiled:
        from popcore.bindings.unit import compile_all  # most graphs have none

        compile_all(compiled)
    return [c.native.driver() if isinstance(c, NativeCodelet) else _python_driver(c, check) for c in every]


def _python_driver(codelet: Codelet, check: str) -> tuple[int, bool]:
    lowered = lower(codelet, check != "off")
    return load_driver(lowered, check == "full"), lowered.prints


def forget(codelets: Iterable[Codelet], memory: int) -> None:
    """Give variables that compiled codelets keep outside of their vertices their first values, for all tiles of the arena at ``memory``."""
    for unit in {id(c.native.unit): c.native.unit for c in codelets if isinstance(c, NativeCodelet)}.values():
        unit.forget(memory)


def falls_back() -> bool:
    """Whether Numba's internals are to be left alone, $POPCORE_FALLBACK: codelets then run as Python."""
    return os.environ.get("POPCORE_FALLBACK") == "1"


def interpreted() -> bool:
    """Whether codelets run as plain Python, $POPCORE_INTERPRET: a debugger then stops in them."""
    return falls_back() or os.environ.get("POPCORE_INTERPRET", "") not in ("", "0")


def load_driver(lowered: Lowered, shadowed: bool = False) -> int:
    """The address of a codelet's driver; see ``kernels.compile`` for its interface.

    Raises:
        CodeletError: only compiling shows that it cannot be compiled, as where a variable has two types.
    Costs: a compile of some 50 ms where the cache has none; no Numba where it has.
    """
    kind = "shadowed_driver" if shadowed else "driver"
    symbol = f"popcore_{kind}_{lowered.fingerprint[:32]}"

    def build() -> bytes:
        from popcore.kernels.compile import compile_driver

        return bytes(compile_driver(lowered, symbol, shadowed))

    (address,) = objects.load(objects.Cache(cache_folder()), objects.key_of(kind, lowered.fingerprint), (symbol,), build)
    return address
