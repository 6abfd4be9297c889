"""Elementary functions of float32, each written once: what the interpreter computes and what codelets are compiled to."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np

from popcore.dialect.elementary import circular, exponential, logarithm, normal
from popcore.dialect.elementary.lanes import NUMPY, Formula, Lanes, Value

__all__ = ["FORMULAS", "NUMPY", "Formula", "Lanes", "Value", "evaluate", "fingerprint", "gelu_erf", "sigmoid"]

FORMULAS: Mapping[str, Formula] = {
    "exp": exponential.exp, "exp2": exponential.exp2, "expm1": exponential.expm1,
    "sinh": exponential.sinh, "cosh": exponential.cosh, "tanh": exponential.tanh, "sigmoid": exponential.sigmoid,
    "log": logarithm.log, "log2": logarithm.log2, "log10": logarithm.log10, "log1p": logarithm.log1p,
    "asinh": logarithm.asinh, "acosh": logarithm.acosh, "atanh": logarithm.atanh, "cbrt": logarithm.cbrt, "fpow": logarithm.power,
    "sin": circular.sin, "cos": circular.cos, "tan": circular.tan, "asin": circular.asin, "acos": circular.acos,
    "atan": circular.atan, "atan2": circular.atan2, "hypot": circular.hypot,
    "erf": normal.erf, "erfc": normal.erfc, "gelu_erf": normal.gelu_erf,
}  # fmt: skip
"""By the names that operations of the dialect have."""


def evaluate(name: str, *values: Value) -> Value:
    """What a formula gives of float32 numbers or arrays. What is infinite or invalid is so silently."""
    with np.errstate(all="ignore"):
        return FORMULAS[name](NUMPY, *values)


@cache
def fingerprint() -> str:
    """A digest of the source of all formulas: native code that contains one is worth no more than that."""
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def sigmoid(x: float) -> float:
    """1 / (1 + e**-x). Codelets may call it, as they call functions of ``math``."""
    return float(evaluate("sigmoid", np.float32(x)))


def gelu_erf(x: float) -> float:
    """x times the chance that a normal variable is below x. Codelets may call it, as they call functions of ``math``."""
    return float(evaluate("gelu_erf", np.float32(x)))
