"""The estimate of a codelet in C++: all of it is counted as it runs."""

from __future__ import annotations

from popcore.bindings import names
from popcore.codelet import NativeCodelet
from popcore.estimate import issue
from popcore.estimate.compiled import weights_of
from popcore.estimate.regions import Estimate, Part


def estimate_native(codelet: NativeCodelet) -> Estimate | None:
    """The estimate of a codelet; None if the compiler does not say what it made of it."""
    for name, weights in weights_of(codelet.native.code()).items():
        if names.alike(names.canonical(name), codelet.name) or names.canonical(name) == codelet.name:
            return Estimate(Part(bundles=issue.ENTER), {(0, counter, "counter"): bundles for counter, bundles in weights.items() if bundles})
    return None
