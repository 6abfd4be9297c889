"""The issue model: what an operation takes on a worker of an IPU, and how operations share its issue slots.

A worker issues one bundle in its turn: an instruction for the main pipeline (loads, stores, integers, control) and one for the
auxiliary one (floating point); of a result the next bundle knows already, since six turns lie between (ISA 2.3 to 2.5). Costs are in
such bundles, which are worker cycles. Those of arithmetic are of PopLibs' estimators (``popopsCycleEstimators.hpp``), which were
taken from a simulator of the machine; they agree with the instructions' latencies (ISA table 4.1) where these decide.
"""

from __future__ import annotations

from typing import NamedTuple

ENTER = 10  # a vertex's start and end, and its plain fields: PopLibs' estimators have 5 to 30 beside their loops
OF_FIELD = 2  # pointer and size of a vector
SETUP = 3  # a counted loop: how often, the branch around it if that is never, and ``rpt`` itself
STREAM = 1  # the address that a loop's accesses walk along
ROUND = 3  # a round of a loop that ``rpt`` cannot take: row PT-int32_add, 7 for two loads, an addition and a store
BRANCH = 2  # a branch on what is known only then: one for the branch, one for its condition's way to the main pipeline
AUX_REGISTERS = 16  # of a worker: ISA 2.4
VECTOR = {"f32": 2, "f16": 4}
"""Elements of an arithmetic instruction, which are those of 64 bits that a load or store moves."""


class Slots(NamedTuple):
    """Slots of the two pipelines."""

    main: float
    aux: float

    def __add__(self, other: object) -> Slots:
        assert isinstance(other, Slots)
        return Slots(self.main + other.main, self.aux + other.aux)


NOTHING = Slots(0, 0)
_ONE_EACH = ("add", "sub", "mul", "square", "neg", "abs", "fabs", "min", "max")
_CUBE, _COMPARE, _SELECT = 2, 1, 2
_FLOAT = {
    "truediv": 5,  # PT-divide_fp32
    "sqrt": 5, "exp": 3, "exp2": 3, "log": 6, "log2": 6, "log10": 7, "tanh": 5, "sigmoid": 5,  # ISA table 4.1; PT-sqrt_fp32, PT-exp_fp32, ...
    "sin": 2300, "cos": 2300, "tan": 5100, "fpow": 312, "pow": 312, "asin": 102, "acos": 102, "atan": 102, "atan2": 136, "cbrt": 14, "expm1": 4, "log1p": 180,
    "erf": 18, "gelu_erf": 22, "fmod": 65, "mod": 67, "floordiv": 73,
    "floor": 2, "ceil": 2, "trunc": 2, "rint": 2, "copysign": 3, "isnan": 1, "isinf": 1, "isfinite": 3, "hypot": 8, "cube": 2,
}  # fmt: skip
"""Issues of one FLOAT, or of one HALF of which nothing else is known."""
_OTHER_FUNCTION = 40  # no estimator is public: the length of such polynomials
_HALF = {"truediv": 5, "sqrt": 6, "exp": 1, "exp2": 1, "log": 1, "log2": 1, "tanh": 0.5, "sigmoid": 1, "sin": 26, "cos": 26, "fpow": 325, "mod": 75}
"""Of one HALF of four; ``f16v2exp`` and its like take two at once: ISA table 4.1, PT-exp_fp16, ..."""
_INTEGER = {"floordiv": 270, "mod": 285, "pow": 300, "abs": 2, "min": 2, "max": 2, "truediv": 9}
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")


def arithmetic(name: str, kind: str, width: int = 1) -> Slots:
    """Slots of an operation on ``width`` elements; ``kind`` is "f32", "f16", "int" or "bool"."""
    if kind in ("int", "bool"):
        return Slots(_INTEGER.get(name, 1) * width, 0)
    vectors = width / VECTOR[kind] if width > 1 else 1
    if name in _ONE_EACH:
        return Slots(0, vectors)
    if name in COMPARISONS:
        return Slots(0, _COMPARE * vectors)
    if name == "select":
        return Slots(0, _SELECT * vectors)
    table = _HALF if kind == "f16" else _FLOAT
    each = table.get(name, _FLOAT.get(name, _OTHER_FUNCTION))
    return Slots(0, max(1.0, each * width))


def conversion(source: str, target: str, width: int = 1) -> Slots:
    """Slots of converting ``width`` elements."""
    if source == target or {source, target} <= {"int", "bool"}:
        return NOTHING
    if {source, target} == {"f16", "f32"}:
        return Slots(0, max(1.0, width / 2))  # two at once
    return Slots(width, width)  # between an integer and a float it also changes the file of registers


def load(nbytes: int, width: int = 1) -> Slots:
    """A load of ``width`` neighbours, its address with it."""
    return Slots(max(1.0, nbytes * width / 8) if width > 1 else 1.0, 0)


def store(nbytes: int, width: int = 1) -> Slots:
    """A store; memory takes words of 32 and 64 bits, so that of less is a load, a merge and a store (ISA 2.8.6)."""
    if width > 1:
        return Slots(max(1.0, nbytes * width / 8), 0)
    return Slots(1 if nbytes >= 4 else 3, 0)


def bundles(slots: Slots, repeated: bool, live: float) -> float:
    """Bundles that slots of both pipelines take.

    A loop that ``rpt`` repeats is filled from both, one round reaching into the next, as PopLibs' own are, if the registers hold it:
    ``live``, the words that a round loads for arithmetic, twice. Anything else the compiler is taken to pair in nothing; the published
    cycles of compiled blurs, rows LB-PH, are those of their instructions one after the other.
    """
    if repeated and 2 * live <= AUX_REGISTERS:
        return max(slots.main, slots.aux)
    return slots.main + slots.aux
