"""Executable: frozen data, the contract between the compiler and the engine."""

from popcore.executable.executable import KINDS, Costs, Executable, Handle, MemoryMap, RemoteBuffer, Stream, Yield

__all__ = ["KINDS", "Costs", "Executable", "Handle", "MemoryMap", "RemoteBuffer", "Stream", "Yield"]
