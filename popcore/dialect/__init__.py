"""The language of codelets: Python whose arithmetic is that of a tile.

``lower`` rewrites a codelet so that each operator, literal and call names an operation. Bound to the operations of
``arithmetic`` the result runs as Python (``interpret``); bound to those of ``popcore.kernels.arith`` it becomes
native code. Both follow one law and agree bit for bit:

* values are FLOAT, HALF, 64-bit integers (signed, or unsigned for UNSIGNED_LONGLONG) and bool; there is no double;
* HALF with HALF or an integer gives HALF, rounded once; FLOAT with anything gives FLOAT; integers wrap at 64 bits,
  ``int / int`` gives FLOAT, ``//`` and ``%`` round down as in Python; an unsigned integer makes the other unsigned;
* a store converts to the field's type: integers wrap at its width; a float truncates toward zero, stops at the
  type's limits, and is 0 if it is NaN; a float rounds to the nearest HALF, ties to even;
* ``round``, ``math.floor``, ``math.ceil`` and ``math.trunc`` of a float give a float, unlike in Python;
* ``x ** 2`` and ``x ** 3`` with these literals multiply, other powers of floats are ``powf``; a negative power of an
  integer, and an integer divided by zero with ``//`` or ``%``, are errors; shifts use the low six bits of the distance;
* functions of ``math`` and of NumPy's scalars are single-precision: square root and roundings are exact, the others are the
  C library's (``mathematics``);
* a variable keeps one type: ``total = 0`` that later becomes ``total + 1.5`` is refused by the compiler. One that was not
  assigned on the way taken is an error in the interpreter, and any value in native code;
* numbers from outside (globals, closures, tuples and 1-D arrays of numbers) keep the value they have when lowered;
* an FP8 field holds raw bytes: reading an element gives 0 to 255.
"""

from popcore.dialect.interpret import interpret, make_view
from popcore.dialect.lower import lower
from popcore.dialect.lowered import MAX_VALUES, FaultSite, Lowered, LoweredFunction
from popcore.dialect.views import ListView, MatrixView, ScalarBox, VectorView

__all__ = [
    "MAX_VALUES",
    "FaultSite",
    "ListView",
    "Lowered",
    "LoweredFunction",
    "MatrixView",
    "ScalarBox",
    "VectorView",
    "interpret",
    "lower",
    "make_view",
]
