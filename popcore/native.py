"""Codelets as native code: compiled when they are added to a graph, kept in the object cache, called by an engine."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable
from dataclasses import dataclass

from popcore.bindings.cache import cache_folder
from popcore.bindings.toolchain import CHECK_RULES
from popcore.codelet import Codelet, NativeCodelet
from popcore.dialect import Lowered, lower
from popcore.estimate import adds, counted_form, estimate_of
from popcore.kernels import objects
from popcore.kernels.behaviour import DEFAULT, IEEE, NAN, SATURATE, Arithmetic, without_halves

__all__ = ["Build", "cache_folder", "drivers", "executed_form", "falls_back", "fingerprint", "forget", "interpreted", "load_driver", "may_print", "rules_of"]


@dataclass(frozen=True)
class Build:
    """What drivers are compiled for besides an arithmetic.

    check     of memory accesses: "off", "bounds" or "full"
    collects  they go on after what a check finds, see ``kernels.findings``
    ordered   workers of a vertex run in the order that the caller asks for
    """

    check: str = "off"
    collects: bool = False
    ordered: bool = False

    @property
    def checks(self) -> bool:
        """Whether indices are checked."""
        return self.check != "off"

    @property
    def rules(self) -> tuple[str, ...]:
        """The same as definitions for a compiler of C++."""
        return (*CHECK_RULES[self.check], *(("-DPOPCORE_COLLECT",) if self.collects else ()), *(("-DPOPCORE_ORDER",) if self.ordered else ()))


PLAIN = Build()


def fingerprint(codelet: Codelet) -> str:
    """A digest of what a codelet computes; equal on every machine, and where only positions in its file have changed."""
    return codelet.native.fingerprint if isinstance(codelet, NativeCodelet) else lower(codelet).fingerprint


def drivers(codelets: Iterable[Codelet], arithmetic: Arithmetic = DEFAULT, build: Build = PLAIN, counted: Container[Codelet] = ()) -> list[int]:
    """For each codelet the address of a driver that computes by ``arithmetic``. Whatever is not in the cache is compiled.

    ``counted``: codelets that add up what they take.

    Raises: CodeletError for one that cannot be compiled.
    """
    every, rules = list(codelets), (*rules_of(arithmetic), *build.rules)
    compiled = [c.native for c in every if isinstance(c, NativeCodelet)]
    if compiled:
        from popcore.bindings.unit import compile_all  # most graphs have none

        compile_all(compiled, rules)
    for each in every:
        if isinstance(each, NativeCodelet) and each in counted and (estimate := estimate_of(each)) is not None:
            each.native.weigh(adds(estimate), rules)
    return [
        c.native.driver(rules) if isinstance(c, NativeCodelet) else load_driver(executed_form(c, build.checks, c in counted), arithmetic, build) for c in every
    ]


def executed_form(codelet: Codelet, checks: bool, counted: bool) -> Lowered:
    """A codelet in Python as an engine runs it."""
    lowered, estimate = lower(codelet, checks), estimate_of(codelet) if counted else None
    return lowered if estimate is None else counted_form(lowered, estimate)


def rules_of(arithmetic: Arithmetic) -> tuple[str, ...]:
    """``arithmetic`` as definitions for a compiler of C++."""
    of_halves = {SATURATE: ("SATURATES",), NAN: ("SATURATES", "NANOO"), IEEE: ("IEEE",) if arithmetic.stochastic else ()}[arithmetic.rule]
    names = [f"HALF_{name}" for name in (*of_halves, *(("STOCHASTIC",) if arithmetic.stochastic else ()))]
    return (*(f"-DPOPCORE_{name}" for name in names), *((f"-DPOPCORE_TRAPS={arithmetic.traps}",) if arithmetic.traps else ()))


def may_print(codelet: Codelet) -> bool:
    """Whether a codelet may print. One in C++ that is not compiled yet may."""
    return codelet.native.may_print() if isinstance(codelet, NativeCodelet) else lower(codelet).prints


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


def load_driver(lowered: Lowered, arithmetic: Arithmetic = DEFAULT, build: Build = PLAIN) -> int:
    """The address of a codelet's driver that computes by ``arithmetic``; see ``kernels.compile`` for its interface.

    Raises:
        CodeletError: only compiling shows that it cannot be compiled, as where a variable has two types.
    Costs: a compile of some 50 ms where the cache has none; no Numba where it has.
    """
    if not lowered.narrows:
        arithmetic = without_halves(arithmetic)
    shadowed, ordered = build.check == "full", build.ordered and lowered.codelet.workers > 1
    kind = "".join(("shadowed_" * shadowed, "collecting_" * build.collects, "ordered_" * ordered, "driver"))
    symbol = f"popcore_{kind}_{lowered.fingerprint[:32]}_{arithmetic.key}"

    def compiled() -> bytes:
        from popcore.kernels.compile import compile_driver

        return bytes(compile_driver(lowered, symbol, arithmetic, shadowed, build.collects, ordered))

    key = objects.key_of(kind, lowered.fingerprint, arithmetic.key)
    (address,) = objects.load(objects.Cache(cache_folder()), key, (symbol,), compiled)
    return address
