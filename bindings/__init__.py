"""Codelets in C++, and in any language with a C interface: found, compiled, loaded.

A file is preprocessed once to find the names of its vertex classes. A class is compiled when a graph uses it; the
compiler itself says what its fields are. The result is a library with the driver that Python codelets have too.
"""

from popcore.bindings.cache import cache_folder
from popcore.bindings.calls import NATIVE_SITE, Caller, NativeFault, fault_of, print_text
from popcore.bindings.unit import NativeField, NativeType, Unit, compile_all, open_unit

__all__ = [
    "NATIVE_SITE",
    "Caller",
    "NativeFault",
    "NativeField",
    "NativeType",
    "Unit",
    "cache_folder",
    "compile_all",
    "fault_of",
    "open_unit",
    "print_text",
]
