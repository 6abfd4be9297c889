"""Cycles of the user's own codelets, without numbers written by hand: from what the code does, and how often."""

from __future__ import annotations

from popcore.codelet import Codelet, NativeCodelet
from popcore.dialect import lower
from popcore.estimate.counters import adds, counted_form
from popcore.estimate.regions import Estimate, Unknown

__all__ = ["Estimate", "Unknown", "adds", "counted_form", "estimate_of"]


def estimate_of(codelet: Codelet) -> Estimate | None:
    """The estimate of a codelet's code; None if there is something in it that is not understood. A Codelet keeps it."""
    if "_estimate" not in codelet.__dict__:
        codelet.__dict__["_estimate"] = _read(codelet)
    found: Estimate | None = codelet.__dict__["_estimate"]
    return found


def _read(codelet: Codelet) -> Estimate | None:
    """Each language has a reader, which only codelets that say no cycles need."""
    if isinstance(codelet, NativeCodelet):
        from popcore.estimate.native_code import estimate_native

        return estimate_native(codelet)
    from popcore.estimate.walk import estimate_python

    return estimate_python(lower(codelet))
