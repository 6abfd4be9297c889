"""Every element-wise operation on every type it takes: both engines, against NumPy."""

import math
import warnings

import numpy as np
import pytest

import popcore as pc
from popcore import errors, program
from popcore.codelets.operations import ROWS, BinaryOpType, TernaryOpType, UnaryOpType
from popcore.ops import popops
from popcore.types import BOOL, CHAR, FLOAT, HALF, INT, LONGLONG, SHORT, UNSIGNED_CHAR, UNSIGNED_INT, UNSIGNED_LONGLONG
from tests.ops.popops.runs import new_graph, run


def erf(x):
    return np.vectorize(math.erf, otypes=[float])(x)


def erfc(x):
    return np.vectorize(math.erfc, otypes=[float])(x)


def toward_zero(a, b):
    return np.array([int(abs(x) // abs(y)) * (1 if (x < 0) == (y < 0) else -1) for x, y in zip(a.tolist(), b.tolist(), strict=True)], object)


UNARY = {
    UnaryOpType.ABSOLUTE: np.abs, UnaryOpType.ASIN: np.arcsin, UnaryOpType.BITWISE_NOT: np.invert, UnaryOpType.CBRT: np.cbrt,
    UnaryOpType.CEIL: np.ceil, UnaryOpType.COS: np.cos, UnaryOpType.ERF: erf, UnaryOpType.EXPONENT: np.exp, UnaryOpType.EXPONENT2: np.exp2,
    UnaryOpType.COUNT_LEADING_ZEROS: lambda x: np.array([32 - int(v & 0xFFFFFFFF).bit_length() for v in x.tolist()]),
    UnaryOpType.EXPONENT_MINUS_ONE: np.expm1, UnaryOpType.FLOOR: np.floor, UnaryOpType.GELU_ERF: lambda x: 0.5 * x * erfc(-x / math.sqrt(2)),
    UnaryOpType.INVERSE: lambda x: 1 / x, UnaryOpType.IS_FINITE: np.isfinite, UnaryOpType.IS_INF: np.isinf, UnaryOpType.IS_NAN: np.isnan,
    UnaryOpType.LOGARITHM: np.log, UnaryOpType.LOGARITHM_ONE_PLUS: np.log1p, UnaryOpType.LOGICAL_NOT: np.logical_not,
    UnaryOpType.NEARBY_INT: np.rint, UnaryOpType.NEGATE: np.negative,
    UnaryOpType.POPCOUNT: lambda x: np.array([(v & 0xFFFFFFFF).bit_count() for v in x.tolist()]),
    UnaryOpType.RELU: lambda x: np.maximum(x, 0), UnaryOpType.ROUND: lambda x: np.sign(x) * np.floor(np.abs(x) + 0.5),
    UnaryOpType.RSQRT: lambda x: 1 / np.sqrt(x), UnaryOpType.SIGMOID: lambda x: 1 / (1 + np.exp(-x)),
    UnaryOpType.SIGNUM: lambda x: np.where(np.isnan(x.astype(float)), 0, np.sign(x)), UnaryOpType.SIN: np.sin, UnaryOpType.SQRT: np.sqrt,
    UnaryOpType.SQUARE: np.square, UnaryOpType.TAN: np.tan, UnaryOpType.TANH: np.tanh, UnaryOpType.TRUNC: np.trunc,
}  # fmt: skip
BINARY = {
    BinaryOpType.ADD: np.add, BinaryOpType.ATAN2: np.arctan2, BinaryOpType.BITWISE_AND: np.bitwise_and, BinaryOpType.BITWISE_OR: np.bitwise_or,
    BinaryOpType.BITWISE_XNOR: lambda a, b: ~(a ^ b), BinaryOpType.BITWISE_XOR: np.bitwise_xor,
    BinaryOpType.DIVIDE: lambda a, b: a / b if a.dtype.kind == "f" else toward_zero(a, b), BinaryOpType.EQUAL: np.equal,
    BinaryOpType.GREATER_THAN: np.greater, BinaryOpType.GREATER_THAN_EQUAL: np.greater_equal,
    BinaryOpType.INV_STD_DEV_TO_VARIANCE: lambda a, b: 1 / (a * a) - b, BinaryOpType.LESS_THAN: np.less, BinaryOpType.LESS_THAN_EQUAL: np.less_equal,
    BinaryOpType.LOGICAL_AND: np.logical_and, BinaryOpType.LOGICAL_OR: np.logical_or, BinaryOpType.MAXIMUM: lambda a, b: np.where(b > a, b, a),
    BinaryOpType.MINIMUM: lambda a, b: np.where(b < a, b, a),
    BinaryOpType.MULTIPLY: np.multiply, BinaryOpType.NOT_EQUAL: np.not_equal, BinaryOpType.POWER: np.power, BinaryOpType.REMAINDER: np.fmod,
    BinaryOpType.SHIFT_LEFT: np.left_shift, BinaryOpType.SHIFT_RIGHT: lambda a, b: a.view(a.dtype.str.replace("i", "u")) >> b.astype(a.dtype.str.replace("i", "u")),
    BinaryOpType.SHIFT_RIGHT_SIGN_EXTEND: np.right_shift, BinaryOpType.SUBTRACT: np.subtract,
    BinaryOpType.VARIANCE_TO_INV_STD_DEV: lambda a, b: 1 / np.sqrt(a + b),
}  # fmt: skip
TERNARY = {TernaryOpType.CLAMP: lambda a, b, c: np.minimum(np.maximum(a, b), c), TernaryOpType.SELECT: lambda a, b, c: np.where(c, a, b)}
SMALL = (BinaryOpType.SHIFT_LEFT, BinaryOpType.SHIFT_RIGHT, BinaryOpType.SHIFT_RIGHT_SIGN_EXTEND, BinaryOpType.POWER)


def operands(dtype):
    """Two arrays and a third of the type, ordinary values and extreme ones; the second has no zero."""
    if dtype is BOOL:
        return [np.array(v, bool) for v in ([0, 0, 1, 1], [0, 1, 0, 1], [1, 1, 0, 0])]
    if dtype.is_integral:
        low, high = (int(getattr(np.iinfo(dtype.numpy), n)) for n in ("min", "max"))
        a = [0, 1, 7, 5, low, high, high - 1, 100, low + 1, 3, 7]
        b = [1, 2, 3, 7, 1, 2, high, 3, 5, 3, 2]
        if dtype.kind == "int":
            a, b = [*a, -7, -8, 7, -7, low, low], [*b, 3, 1, -3, 2, 3, -1]
        return [np.array(v, dtype.numpy) for v in (a, b, b[::-1])]
    a = [0.0, -0.0, 1, -1, 0.5, 1.5, 2.5, -2.5, 0.49997, -3.75, 100, 1e4, np.inf, -np.inf, np.nan, 0.3, 6e-5, 2.75]
    b = [1.0, 2, -3, 0.25, 7, 0.1, 5, 3, 2, -0.5, 3, 1e3, 2, 1, 1, 0.75, 2, 3]
    return [np.array(v, dtype.numpy) for v in (a, b, b[::-1])]


def expected(function, arrays, dtype, row):
    """NumPy's answer, computed wider than the type and rounded once."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if dtype.kind in ("float", "half"):
            wide = [a.astype(np.float32 if dtype is HALF else np.float64) if a.dtype != bool else a for a in arrays]
            found = function(*wide)
            return found if row.gives_bool else np.asarray(found).astype(np.float64).astype(dtype.numpy)
        found = np.asarray(function(*arrays))
        if found.dtype == object:
            bits = 8 * dtype.nbytes
            found = np.array([((int(v) + (1 << bits - 1)) % (1 << bits)) - (1 << bits - 1) if dtype.kind == "int" else int(v) for v in found])
        return found if row.gives_bool else found.astype(dtype.numpy)


@pytest.mark.parametrize(
    ("dtype", "mode"), [*((t, "ieee") for t in (FLOAT, HALF, INT, UNSIGNED_INT, BOOL, SHORT, UNSIGNED_CHAR, LONGLONG)), (FLOAT, "device"), (HALF, "device")]
)
def test_all_operations(dtype, mode):
    """
    Values with a meaning and at the limits; transcendentals within two units in the last place. As on a device: where numbers stay numbers.
    """
    graph, prog = new_graph(), program.Sequence()
    arrays = operands(dtype)
    tensors = [graph.add_variable(dtype, a.shape, "linear") for a in arrays]
    truth = graph.add_variable(BOOL, arrays[0].shape, "linear")
    known = np.arange(arrays[0].size) % 2 == 0
    reads, wanted = {}, {}
    for op, function in {**UNARY, **BINARY, **TERNARY}.items():
        row = ROWS[op]
        if not row.takes(dtype):
            continue
        count = 1 if op in UNARY else 2 if op in BINARY else 3
        given, seen = tensors[:count], arrays[:count]
        if op is TernaryOpType.SELECT:
            given, seen = [*tensors[:2], truth], [*arrays[:2], known]
        if op in SMALL and dtype.is_integral:
            given, seen = [tensors[0], graph.add_constant(dtype, arrays[0].shape, np.arange(arrays[0].size) % 5, tile=1)], [
                arrays[0],
                (np.arange(arrays[0].size) % 5).astype(dtype.numpy),
            ]  # fmt: skip
        reads[op.name] = getattr(popops, op.value)(graph, *given, prog)
        wanted[op.name] = expected(function, seen, dtype, row)
    found = run(graph, prog, {**dict(zip(tensors, arrays, strict=True)), truth: known}, reads, options={"target.floatingPoint": mode})
    for name, array in found.items():
        if array.dtype.kind == "f":
            if mode == "device":
                plain = np.isfinite(wanted[name]) & np.isfinite(np.stack([a.astype(float) for a in arrays])).all(0)
                assert dtype is FLOAT or not np.isinf(array[np.isfinite(arrays[0])]).any(), name
                array, wanted[name] = array[plain], wanted[name][plain]
            with np.errstate(invalid="ignore"):
                ulp = np.spacing(np.abs(np.nan_to_num(wanted[name], posinf=0, neginf=0)))
                close = np.abs(array.astype(float) - wanted[name].astype(float)) <= 2 * ulp
            same = (array == wanted[name]) | (np.isnan(array) & np.isnan(wanted[name]))
            assert np.all(close | same), (name, array[~(close | same)], wanted[name][~(close | same)])
        else:
            np.testing.assert_array_equal(array, wanted[name], err_msg=name)


def test_the_forms_of_one_operation():
    """
    To a new tensor, in place, to an output; with a number on either side.
    """
    graph, prog = new_graph(), program.Sequence()
    a, b, out = (graph.add_variable(FLOAT, (5,), "linear") for _ in range(3))
    c = popops.sub(graph, 1, a, prog)
    d = popops.sub(graph, a, 1, prog, "step")
    popops.sub_with_output(graph, a, b, out, prog)
    popops.neg_with_output(graph, out, b, prog)
    popops.mul_in_place(graph, a, 3, prog)
    popops.abs_in_place(graph, a, prog)
    popops.clamp_in_place(graph, a, 2, 7.5, prog)
    x, y = np.arange(5, dtype=np.float32) - 2, np.arange(5, dtype=np.float32) ** 2
    found = run(graph, prog, {a: x, b: y}, {"a": a, "b": b, "c": c, "d": d, "out": out})
    for name, array in {"a": np.clip(abs(3 * x), 2, 7.5), "b": y - x, "c": 1 - x, "d": x - 1, "out": x - y}.items():
        np.testing.assert_array_equal(found[name], array)
    assert prog.programs[1].name == "step/sub"


def test_clamp_where_the_limits_cross():
    """
    The upper one wins.
    """
    graph, prog = new_graph(), program.Sequence()
    a = graph.add_variable(FLOAT, (4,), "linear")
    out = popops.clamp(graph, a, 1, -1, prog)
    assert (run(graph, prog, {a: np.array([-2, -1, 1, 2], np.float32)}, {"out": out})["out"] == -1).all()


@pytest.mark.parametrize("op", ["div", "rem"])
@pytest.mark.parametrize("dtype", [INT, UNSIGNED_INT, UNSIGNED_LONGLONG, CHAR], ids=repr)
def test_an_integer_divided_by_zero_stops_the_run(op, dtype, engine_class):
    """
    As a codelet of one's own would.
    """
    graph, prog = new_graph(), program.Sequence()
    a, b = (graph.add_variable(dtype, (3,), "linear") for _ in range(2))
    getattr(popops, op)(graph, a, b, prog)
    with pytest.raises(errors.VertexError, match="integer division by zero"):
        engine_class(graph, prog).run()


def test_numbers_share_code():
    """
    A number given to a function does not make another codelet.
    """
    graph, prog = new_graph(), program.Sequence()
    a = graph.add_variable(FLOAT, (4,), "linear")
    for k in range(5):
        popops.mul_in_place(graph, a, k + 0.5, prog)
    assert len({c for cs in graph.compute_sets for c in cs.groups}) == 1


def test_an_operation_refuses_a_type_it_does_not_take():
    """
    The types that it takes are named.
    """
    graph, prog = new_graph(), program.Sequence()
    a, h, i, b = (graph.add_variable(t, (4,), "linear") for t in (FLOAT, HALF, INT, BOOL))
    for call in (
        lambda: popops.add(graph, b, b, prog),
        lambda: popops.exp(graph, i, prog),
        lambda: popops.add(graph, a, h, prog),
        lambda: popops.shift_left(graph, a, a, prog),
        lambda: popops.select(graph, a, a, a, prog),
        lambda: popops.eq_in_place(graph, a, a, prog),
        lambda: popops.logical_and(graph, i, i, prog),
    ):
        with pytest.raises(errors.ElementTypeError, match="try: "):
            call()
    with pytest.raises(errors.ValueRangeError):
        popops.add(graph, i, 0.5, prog)
    with pytest.raises(errors.GraphError, match="no tensor"):
        popops.add(graph, 1, 2, prog)
    with pytest.raises(errors.OptionError, match="enableGenerateCodelet"):
        popops.add(graph, a, a, prog, options={"enableGenerateCodelets": True})
    assert not prog.programs
    assert isinstance(popops.add(graph, a, a, prog), pc.Tensor)
