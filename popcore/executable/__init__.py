"""Executable: frozen data, the contract between the compiler and the engine."""

from popcore.executable.executable import (
    KINDS,
    CollectiveCall,
    Costs,
    Decision,
    Executable,
    Handle,
    MemoryMap,
    RemoteBuffer,
    Shadow,
    Stream,
    Yield,
    no_shadow,
)

__all__ = ["KINDS", "CollectiveCall", "Costs", "Decision", "Executable", "Handle", "MemoryMap", "RemoteBuffer", "Shadow", "Stream", "Yield", "no_shadow"]
