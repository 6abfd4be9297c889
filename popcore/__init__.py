"""popcore: an emulator of Graphcore IPUs with a Poplar-style graph API.

Public names only. Names that stand for more than a declaration are looked up when they are first used,
so that ``import popcore`` costs little more than NumPy and loads neither Numba nor LLVM.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from popcore import errors
from popcore.codelet import InOut, Input, Matrix, MultiVertex, Output, Vector, VectorList, Vertex
from popcore.target import Device, Target, systems
from popcore.types import (
    BOOL,
    CHAR,
    FLOAT,
    HALF,
    INT,
    LONG,
    LONGLONG,
    QUARTER_F143,
    QUARTER_F152,
    SHORT,
    SIGNED_CHAR,
    UNSIGNED_CHAR,
    UNSIGNED_INT,
    UNSIGNED_LONG,
    UNSIGNED_LONGLONG,
    UNSIGNED_SHORT,
    ElementType,
)

if TYPE_CHECKING:
    from popcore import faults, program
    from popcore.compiler import compile_graph
    from popcore.compiler.options import options
    from popcore.engine.engine import Engine
    from popcore.executable import Executable
    from popcore.graph import CloneMethod, Graph, PopcoreWarning, ReplicatedStreamMode, Tensor, concat
    from popcore.ops import poputil
    from popcore.program import FloatingPointBehaviour, get_and_modify_floating_point_behaviour, set_floating_point_behaviour, set_stochastic_rounding
    from popcore.reference import ReferenceEngine

__version__ = "0.1.0"

__all__ = [
    "BOOL",
    "CHAR",
    "FLOAT",
    "HALF",
    "INT",
    "LONG",
    "LONGLONG",
    "QUARTER_F143",
    "QUARTER_F152",
    "SHORT",
    "SIGNED_CHAR",
    "UNSIGNED_CHAR",
    "UNSIGNED_INT",
    "UNSIGNED_LONG",
    "UNSIGNED_LONGLONG",
    "UNSIGNED_SHORT",
    "CloneMethod",
    "Device",
    "ElementType",
    "Engine",
    "Executable",
    "FloatingPointBehaviour",
    "Graph",
    "InOut",
    "Input",
    "Matrix",
    "MultiVertex",
    "Output",
    "PopcoreWarning",
    "ReferenceEngine",
    "ReplicatedStreamMode",
    "Target",
    "Tensor",
    "Vector",
    "VectorList",
    "Vertex",
    "compile_graph",
    "concat",
    "errors",
    "faults",
    "get_and_modify_floating_point_behaviour",
    "options",
    "poputil",
    "program",
    "set_floating_point_behaviour",
    "set_stochastic_rounding",
    "systems",
]

_MODULES = {"faults": "popcore.faults", "poputil": "popcore.ops.poputil", "program": "popcore.program"}
_HOMES = {
    "CloneMethod": "popcore.graph",
    "Engine": "popcore.engine.engine",
    "Executable": "popcore.executable",
    "FloatingPointBehaviour": "popcore.program",
    "Graph": "popcore.graph",
    "PopcoreWarning": "popcore.graph",
    "ReferenceEngine": "popcore.reference",
    "ReplicatedStreamMode": "popcore.graph",
    "Tensor": "popcore.graph",
    "compile_graph": "popcore.compiler",
    "concat": "popcore.graph",
    "get_and_modify_floating_point_behaviour": "popcore.program",
    "options": "popcore.compiler",
    "set_floating_point_behaviour": "popcore.program",
    "set_stochastic_rounding": "popcore.program",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        found: Any = importlib.import_module(_MODULES[name])
    elif name in _HOMES:
        found = getattr(importlib.import_module(_HOMES[name]), name)
    else:
        raise AttributeError(f"module 'popcore' has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
