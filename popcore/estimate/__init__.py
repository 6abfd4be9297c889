"""Cycles of the user's own codelets, without numbers written by hand: from what the code does, and how often."""

from __future__ import annotations

from popcore.codelet import Codelet, NativeCodelet
from popcore.dialect import lower
from popcore.estimate.counters import counted_form
from popcore.estimate.native_code import adds, estimate_native
from popcore.estimate.regions import Estimate, Unknown
from popcore.estimate.walk import estimate_python

__all__ = ["Estimate", "Unknown", "adds", "counted_form", "estimate_of"]


def estimate_of(codelet: Codelet) -> Estimate | None:
    """The estimate of a codelet's code; None if there is something in it that is not understood. A Codelet keeps it."""
    if "_estimate" not in codelet.__dict__:
        codelet.__dict__["_estimate"] = estimate_native(codelet) if isinstance(codelet, NativeCodelet) else estimate_python(lower(codelet))
    found: Estimate | None = codelet.__dict__["_estimate"]
    return found
