"""Engine options: what each means, its type and default, and where a value may come from.

The environment wins over the program, as in Poplar: ``POPLAR_ENGINE_OPTIONS`` and then
``POPCORE_ENGINE_OPTIONS`` hold a JSON object of the same keys. Values may be strings ("true", "2").
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import msgspec

from popcore.errors import OptionError, near_matches

_LOG = logging.getLogger("popcore.options")
_ENVIRONMENT = ("POPLAR_ENGINE_OPTIONS", "POPCORE_ENGINE_OPTIONS")


@dataclass(frozen=True, slots=True)
class Option:
    """One engine option."""

    key: str
    type: Any
    default: Any
    meaning: str
    effective: bool = True  # False: taken so that programs written for Poplar run, without effect here


OPTIONS: tuple[Option, ...] = (
    Option("debug.compute", bool, True, "False: only the cycle model is walked, no data is moved or computed"),
    Option("debug.check", Literal["off", "bounds", "full"], "off", "bounds: indices outside a field stop the run; full: reads of what nothing wrote and workers that race, too"),
    Option("debug.check.collect", bool, False, "True: a run goes on after what debug.check finds, and ends in one error that has all"),
    Option("debug.first_nan", bool, False, "True: the run stops at the vertex that makes the first NaN, infinity or half of 65504"),
    Option("debug.schedule_seed", int, 0, "not 0: vertices, workers, messages, callbacks and replicas come in an order of this seed; a right program gives the same"),
    Option("debug.isolate", bool, False, "C++ codelets run in a process of their own, on one thread: one that crashes is an error"),
    Option("debug.allowOutOfMemory", bool, False, "go on when a tile is too small, so that the profile can be read"),
    Option("engine.threads", int, 0, "host threads that execute tiles; 0: one per core"),
    Option("engine.fuseTiles", bool, True, "run a tile's incoming copies and its vertices together where that is proved safe"),
    Option("engine.progress", bool, True, "show a progress bar for compiles over two seconds on a terminal"),
    Option("exchange.prefetchDepth", int, 1, "how many transfers of a StreamCallback are fetched ahead"),
    Option("exchange.enablePrefetch", bool, True, "False: a StreamCallback's prefetch is never called"),
    Option("target.floatingPoint", Literal["device", "ieee"], "device", "device: half saturates and denormals of float are zero, as on an IPU; ieee: infinity and denormals"),
    Option("target.hostSyncTimeout", float, 300.0, "seconds of the device that a callback may take; only one that popcore.faults makes late does"),
    Option("prng.seed", int, 1, "seed of the random bits of stochastic rounding"),
    Option("debug.instrument", bool, True, "cycles are always modelled here", effective=False),
    Option("debug.instrumentCompute", bool, True, "cycles are always modelled here", effective=False),
    Option("debug.instrumentControlFlow", bool, True, "cycles are always modelled here", effective=False),
    Option("debug.instrumentExternalExchange", bool, True, "cycles are always modelled here", effective=False),
    Option("debug.computeInstrumentationLevel", str, "vertex", "cycles are always modelled here", effective=False),
    Option("debug.retainDebugInformation", bool, True, "names and lines are always kept", effective=False),
    Option("debug.verify", bool, True, "graphs are always verified", effective=False),
    Option("debug.outputAllSymbols", bool, False, "there is no symbol table", effective=False),
    Option("exchange.streamBufferOverlap", str, "any", "host buffers never overlap", effective=False),
    Option("target.deterministicWorkers", str, "true", "runs are always deterministic", effective=False),
    Option("target.saveArchive", str, "", "there is no archive", effective=False),
    Option("opt.enableMultiAccessCopies", bool, True, "the emulator chooses its own copies", effective=False),
    Option("opt.internalExchangeOptimisationTarget", str, "cycles", "exchange has one plan", effective=False),
    Option("opt.maxCompilationThreads", int, 0, "compiles use one thread", effective=False),
    Option("opt.enableSkipSyncs", bool, True, "the model keeps every sync", effective=False),
)  # fmt: skip
_BY_KEY = {option.key: option for option in OPTIONS}
_INTEGERS = {"engine.threads": (0, 1024), "exchange.prefetchDepth": (0, 1 << 20), "prng.seed": (0, (1 << 63) - 1), "debug.schedule_seed": (0, (1 << 63) - 1)}


def options() -> dict[str, str]:
    """Every engine option with its default and meaning."""
    return {o.key: f"{o.meaning} (default: {o.default!r}{'' if o.effective else '; accepted, no effect'})" for o in OPTIONS}


def resolve_options(given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Defaults, then ``given``, then the environment; every value of its option's type.

    Raises:
        OptionError: an unknown key (with near matches), a value of the wrong type, malformed JSON.
    """
    values = {o.key: o.default for o in OPTIONS}
    for source, pairs in (("options", given or {}), *((name, _from_environment(name)) for name in _ENVIRONMENT)):
        for key, value in pairs.items():
            values[key] = _checked(source, key, value)
    return values


def _from_environment(name: str) -> Mapping[str, Any]:
    text = os.environ.get(name)
    if not text:
        return {}
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise OptionError(f"the environment variable {name} is not a JSON object: {error}", f"""{name}='{{"debug.compute": false}}'""") from None


def _checked(source: str, key: str, value: Any) -> Any:
    option = _BY_KEY.get(key)
    if option is None:
        raise OptionError(f"{source}: there is no option {key!r}", near_matches(key, _BY_KEY, OptionError.hint))
    try:
        converted = msgspec.convert(value, option.type, strict=False)
    except msgspec.ValidationError as error:
        choices = ", ".join(repr(choice) for choice in get_args(option.type))
        hint = f"one of {choices}" if choices else f"a value like {option.default!r}"
        raise OptionError(f"{source}: option {key!r} cannot be {value!r}: {error}", hint) from None
    if key in _INTEGERS and not _INTEGERS[key][0] <= converted <= _INTEGERS[key][1]:
        low, high = _INTEGERS[key]
        raise OptionError(f"{source}: option {key!r} is {converted}, outside {low} to {high}", f"a value like {option.default!r}")
    if not option.effective and converted != option.default:
        _LOG.info("option %s=%r is accepted and has no effect: %s", key, value, option.meaning)
    return converted
