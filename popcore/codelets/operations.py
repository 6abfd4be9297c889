"""The element-wise operations: their names, element types, what they compute and what they cost, as one table."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from popcore.types import ElementType, as_element_type

FLOAT_TYPE, INT_TYPE, BOOL_TYPE = (as_element_type(name) for name in ("float", "int", "bool"))
"""The same as FLOAT, ..., which checkers take for the Python types they behave as."""
KIND_LETTERS: Mapping[str, str] = {"float": "f", "half": "h", "int": "i", "uint": "u", "bool": "b", "quarter": "q"}


class UnaryOpType(enum.Enum):
    """Operations of one operand."""

    ABSOLUTE = "abs"
    ASIN = "asin"
    BITWISE_NOT = "bitwise_not"
    CBRT = "cbrt"
    CEIL = "ceil"
    COS = "cos"
    COUNT_LEADING_ZEROS = "count_leading_zeros"
    ERF = "erf"
    EXPONENT = "exp"
    EXPONENT2 = "exp2"
    EXPONENT_MINUS_ONE = "expm1"
    FLOOR = "floor"
    GELU_ERF = "gelu_erf"
    INVERSE = "inv"
    IS_FINITE = "is_finite"
    IS_INF = "is_inf"
    IS_NAN = "is_nan"
    LOGARITHM = "log"
    LOGARITHM_ONE_PLUS = "log1p"
    LOGICAL_NOT = "logical_not"
    NEARBY_INT = "nearbyint"
    NEGATE = "neg"
    POPCOUNT = "popcount"
    RELU = "relu"
    ROUND = "round"
    RSQRT = "rsqrt"
    SIGMOID = "sigmoid"
    SIGNUM = "signum"
    SIN = "sin"
    SQRT = "sqrt"
    SQUARE = "square"
    TAN = "tan"
    TANH = "tanh"
    TRUNC = "trunc"


class BinaryOpType(enum.Enum):
    """Operations of two operands."""

    ADD = "add"
    ATAN2 = "atan2"
    BITWISE_AND = "bitwise_and"
    BITWISE_OR = "bitwise_or"
    BITWISE_XNOR = "bitwise_xnor"
    BITWISE_XOR = "bitwise_xor"
    DIVIDE = "div"
    EQUAL = "eq"
    GREATER_THAN = "gt"
    GREATER_THAN_EQUAL = "gteq"
    INV_STD_DEV_TO_VARIANCE = "inv_std_dev_to_variance"
    LESS_THAN = "lt"
    LESS_THAN_EQUAL = "lteq"
    LOGICAL_AND = "logical_and"
    LOGICAL_OR = "logical_or"
    MAXIMUM = "max"
    MINIMUM = "min"
    MULTIPLY = "mul"
    NOT_EQUAL = "neq"
    POWER = "pow"
    REMAINDER = "rem"
    SHIFT_LEFT = "shift_left"
    SHIFT_RIGHT = "shift_right"
    SHIFT_RIGHT_SIGN_EXTEND = "shift_right_sign_extend"
    SUBTRACT = "sub"
    VARIANCE_TO_INV_STD_DEV = "variance_to_inv_std_dev"


class TernaryOpType(enum.Enum):
    """Operations of three operands."""

    CLAMP = "clamp"
    SELECT = "select"


OpType = UnaryOpType | BinaryOpType | TernaryOpType


def operand_count(op: OpType) -> int:
    """How many operands an operation has."""
    return 1 if isinstance(op, UnaryOpType) else 2 if isinstance(op, BinaryOpType) else 3


# Worker cycles per so many elements, by kind of element; after PopLibs' tables of measured loops, loads and stores included.
_Cost = Mapping[str, tuple[int, int]]
_VECTOR: _Cost = {"f": (3, 2), "h": (3, 4), "i": (7, 1), "u": (7, 1), "b": (5, 4)}
_UNARY_VECTOR: _Cost = {"f": (6, 2), "h": (6, 4), "i": (6, 1), "u": (6, 1), "b": (17, 1)}
_COMPARE: _Cost = {"f": (8, 2), "h": (8, 4), "i": (7, 1), "u": (7, 1), "b": (5, 4)}


@dataclass(frozen=True, slots=True)
class Row:
    """One operation.

    kinds: Letters of the element types it takes (f FLOAT, h HALF, i and u integers, b BOOL).
    code: What it computes of operands {0}, {1}, {2}, by kind; "" for any. {T} is the element type, {mask} its bits set.
    gives_bool: The result is BOOL, not of the operands' type.
    rounds: Of HALF the code gives FLOAT, of an integer more bits than the type has: convert the result.
    bits: Widths of integers it takes, if not any.
    """

    kinds: str
    code: Mapping[str, str]
    cost: _Cost
    gives_bool: bool = False
    rounds: str = ""
    bits: int | None = None

    def code_of(self, dtype: ElementType) -> str:
        letter = KIND_LETTERS[dtype.kind]
        return self.code.get(letter) or self.code[""]

    def takes(self, dtype: ElementType) -> bool:
        return KIND_LETTERS[dtype.kind] in self.kinds and (self.bits is None or not dtype.is_integral or 8 * dtype.nbytes == self.bits)


def _row(kinds: str, code: str | Mapping[str, str], cost: _Cost = _UNARY_VECTOR, *, gives_bool: bool = False, rounds: str = "", bits: int | None = None) -> Row:
    return Row(kinds, {"": code} if isinstance(code, str) else code, cost, gives_bool, rounds, bits)


def _each(f: tuple[int, int], h: tuple[int, int], i: tuple[int, int] = (7, 1), b: tuple[int, int] = (5, 4)) -> _Cost:
    return {"f": f, "h": h, "i": i, "u": i, "b": b}


ROWS: Mapping[OpType, Row] = {
    UnaryOpType.ABSOLUTE: _row("fhi", "abs({0})", _each((5, 1), (5, 1), (6, 1)), rounds="i"),
    UnaryOpType.ASIN: _row("fh", "math.asin({0})", _each((106, 1), (106, 1))),
    UnaryOpType.BITWISE_NOT: _row("iub", {"": "~{0}", "b": "not {0}"}, _each((5, 2), (5, 4), (5, 2)), rounds="u"),
    UnaryOpType.CBRT: _row("fh", "math.cbrt({0})", _each((31, 2), (21, 4))),
    UnaryOpType.CEIL: _row("fh", "math.ceil({0})"),
    UnaryOpType.COS: _row("fh", "math.cos({0})", _each((2304, 1), (25, 1))),
    UnaryOpType.COUNT_LEADING_ZEROS: _row("iu", "count_leading_zeros({0})", _each((5, 1), (5, 1), (5, 1)), bits=32),
    UnaryOpType.ERF: _row("fh", "math.erf({0})", _each((41, 1), (13, 1))),
    UnaryOpType.EXPONENT: _row("fh", "math.exp({0})", _each((6, 2), (4, 4))),
    UnaryOpType.EXPONENT2: _row("fh", "math.exp2({0})", _each((6, 2), (4, 4))),
    UnaryOpType.EXPONENT_MINUS_ONE: _row("fh", "math.expm1({0})", _each((8, 1), (9, 4))),
    UnaryOpType.FLOOR: _row("fh", "math.floor({0})"),
    UnaryOpType.GELU_ERF: _row("fh", "gelu_erf(FLOAT({0}))", _each((22, 1), (16, 1)), rounds="h"),
    UnaryOpType.INVERSE: _row("fh", "1.0 / {0}", _each((6, 2), (15, 4)), rounds="h"),
    UnaryOpType.IS_FINITE: _row("fh", "math.isfinite({0})", _each((9, 2), (9, 4)), gives_bool=True),
    UnaryOpType.IS_INF: _row("fh", "math.isinf({0})", _each((7, 2), (9, 4)), gives_bool=True),
    UnaryOpType.IS_NAN: _row("fh", "math.isnan({0})", _each((7, 2), (7, 4)), gives_bool=True),
    UnaryOpType.LOGARITHM: _row("fh", "math.log({0})", _each((12, 2), (4, 4))),
    UnaryOpType.LOGARITHM_ONE_PLUS: _row("fh", "math.log1p({0})", _each((22, 2), (22, 4))),
    UnaryOpType.LOGICAL_NOT: _row("b", "not {0}", _each((21, 1), (21, 1), b=(21, 1)), gives_bool=True),
    UnaryOpType.NEARBY_INT: _row("fh", "round({0})"),
    UnaryOpType.NEGATE: _row("fhi", "-{0}", _each((2, 2), (2, 4), (6, 1)), rounds="i"),
    UnaryOpType.POPCOUNT: _row("iu", "popcount({0})", _each((5, 1), (5, 1), (5, 1)), bits=32),
    UnaryOpType.RELU: _row("fh", "max({0}, {T}(0.0))", _each((2, 2), (2, 4))),
    UnaryOpType.ROUND: _row("fh", "round_half_away(FLOAT({0}))", rounds="h"),
    UnaryOpType.RSQRT: _row("fh", "1.0 / math.sqrt(FLOAT({0}))", _each((10, 2), (23, 4)), rounds="h"),
    UnaryOpType.SIGMOID: _row("fh", "sigmoid(FLOAT({0}))", _each((8, 2), (4, 2)), rounds="h"),
    UnaryOpType.SIGNUM: _row("fhi", "{T}(({0} > 0) - ({0} < 0))", _each((9, 2), (9, 4), (9, 1))),
    UnaryOpType.SIN: _row("fh", "math.sin({0})", _each((2304, 1), (25, 1))),
    UnaryOpType.SQRT: _row("fh", "math.sqrt({0})", _each((10, 2), (23, 4))),
    UnaryOpType.SQUARE: _row("fhiu", "{0} * {0}", _each((2, 2), (2, 4), (6, 1)), rounds="iu"),
    UnaryOpType.TAN: _row("fh", "math.tan({0})", _each((3900, 1), (45, 1))),
    UnaryOpType.TANH: _row("fh", "math.tanh({0})", _each((6, 2), (2, 2))),
    UnaryOpType.TRUNC: _row("fh", "math.trunc({0})"),
    BinaryOpType.ADD: _row("fhiu", "{0} + {1}", _VECTOR, rounds="iu"),
    BinaryOpType.ATAN2: _row("fh", "math.atan2({0}, {1})", _each((272, 2), (578, 4))),
    BinaryOpType.BITWISE_AND: _row("iub", "{0} & {1}", _VECTOR),
    BinaryOpType.BITWISE_OR: _row("iub", "{0} | {1}", _VECTOR),
    BinaryOpType.BITWISE_XNOR: _row("iu", "~({0} ^ {1})", _VECTOR, rounds="u"),
    BinaryOpType.BITWISE_XOR: _row("iub", "{0} ^ {1}", _VECTOR),
    BinaryOpType.DIVIDE: _row("fhiu", {"": "{0} / {1}", "i": "divide({0}, {1})", "u": "{0} // {1}"}, _each((10, 2), (21, 4), (277, 1)), rounds="i"),
    BinaryOpType.EQUAL: _row("fhiub", "{0} == {1}", _COMPARE, gives_bool=True),
    BinaryOpType.GREATER_THAN: _row("fhiu", "{0} > {1}", _COMPARE, gives_bool=True),
    BinaryOpType.GREATER_THAN_EQUAL: _row("fhiu", "{0} >= {1}", _COMPARE, gives_bool=True),
    BinaryOpType.INV_STD_DEV_TO_VARIANCE: _row("fh", "1.0 / (FLOAT({0}) * FLOAT({0})) - FLOAT({1})", _each((7, 1), (14, 2)), rounds="h"),
    BinaryOpType.LESS_THAN: _row("fhiu", "{0} < {1}", _COMPARE, gives_bool=True),
    BinaryOpType.LESS_THAN_EQUAL: _row("fhiu", "{0} <= {1}", _COMPARE, gives_bool=True),
    BinaryOpType.LOGICAL_AND: _row("b", "{0} & {1}", _VECTOR, gives_bool=True),
    BinaryOpType.LOGICAL_OR: _row("b", "{0} | {1}", _VECTOR, gives_bool=True),
    BinaryOpType.MAXIMUM: _row("fhiu", "max({0}, {1})", _each((3, 2), (4, 4), (8, 1))),
    BinaryOpType.MINIMUM: _row("fhiu", "min({0}, {1})", _each((3, 2), (4, 4), (8, 1))),
    BinaryOpType.MULTIPLY: _row("fhiu", "{0} * {1}", _VECTOR, rounds="iu"),
    BinaryOpType.NOT_EQUAL: _row("fhiub", "{0} != {1}", _COMPARE, gives_bool=True),
    BinaryOpType.POWER: _row("fhiu", {"": "math.pow({0}, {1})", "i": "{0} ** {1}", "u": "{0} ** {1}"}, _each((312, 1), (325, 1), (32, 1)), rounds="iu"),
    BinaryOpType.REMAINDER: _row("fhiu", {"": "math.fmod({0}, {1})", "i": "remainder({0}, {1})", "u": "{0} % {1}"}, _each((133, 2), (300, 4), (292, 1))),
    BinaryOpType.SHIFT_LEFT: _row("iu", "{0} << {1}", _VECTOR, rounds="iu"),
    BinaryOpType.SHIFT_RIGHT: _row("iu", {"i": "({0} & {mask}) >> {1}", "u": "{0} >> {1}"}, _VECTOR, rounds="i"),
    BinaryOpType.SHIFT_RIGHT_SIGN_EXTEND: _row("i", "{0} >> {1}", _VECTOR),
    BinaryOpType.SUBTRACT: _row("fhiu", "{0} - {1}", _VECTOR, rounds="iu"),
    BinaryOpType.VARIANCE_TO_INV_STD_DEV: _row("fh", "1.0 / math.sqrt(FLOAT({0}) + FLOAT({1}))", _each((7, 1), (14, 2)), rounds="h"),
    TernaryOpType.CLAMP: _row("fhiu", "min(max({0}, {1}), {2})", _each((6, 2), (6, 4), (14, 1))),
    TernaryOpType.SELECT: _row("fhiub", "{0} if {2} else {1}", _each((9, 1), (9, 1), (9, 1), (9, 1))),
}
"""What each operation does to one element of each operand."""
