"""The machine on Numba's public interface alone: for a Numba whose internals ``native`` and ``compile`` do not know.

Chosen by POPCORE_FALLBACK=1, which must be set before popcore compiles anything. Slower to start, since nothing is cached,
and codelets then run as Python. The results are the same.
"""

from functools import lru_cache

from numba import cfunc, types

from popcore.kernels import findings, native, vm


@lru_cache(maxsize=1)
def _compiled():
    signature = types.int64(types.int64, types.int64)
    return tuple(cfunc(signature, error_model="numpy")(function) for function in (vm.run, vm.work, findings.note))


def machine_addresses() -> list[int]:
    """Addresses of ``vm.run``, ``vm.work`` and ``findings.note``; the code lives as long as the process."""
    if not native.FALLBACK:
        raise RuntimeError("POPCORE_FALLBACK was set after popcore had begun to compile")
    return [made.address for made in _compiled()]
