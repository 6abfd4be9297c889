"""Element types and their arithmetic, against NumPy."""

import numpy as np
import pytest

from popcore import LONG, UNSIGNED_LONG
from tests.bindings.vertex import run

FILES = ("types.cpp",)

RNG = np.random.default_rng(5)
HALVES = RNG.standard_normal(200).astype(np.float16)
NUMPY = {
    "float": "float32", "half": "float16", "int": "int32", "unsigned int": "uint32", "short": "int16", "unsigned short": "uint16",
    "char": "int8", "signed char": "int8", "unsigned char": "uint8", "long long": "int64", "unsigned long long": "uint64",
}  # fmt: skip


@pytest.mark.parametrize("name", [n for n in NUMPY if n != "signed char"])
def test_every_element_type(name):
    """
    A template instance for each type, with state of the same type; integers wrap at their width.
    """
    dtype = np.dtype(NUMPY[name])
    x = np.array([1, 2, 100, 120], dtype)
    with np.errstate(over="ignore"):
        wanted = (x + dtype.type(100)).astype(dtype)
    found = run("types.cpp", f"Increment<{name}>", {"x": x}, {"by": 100})
    assert np.array_equal(found["x"], wanted)


def test_names_are_forgiving():
    """
    Spaces, fixed-width names and plain ``unsigned`` name the same type.
    """
    for name in ("Increment< unsigned >", "Increment<uint32_t>", "Increment<std::uint32_t>", "Increment<unsigned   int>"):
        assert run("types.cpp", name, {"x": np.uint32([1])}, {"by": 2})["x"].tolist() == [3]


@pytest.mark.parametrize(("source", "target"), [("float", "half"), ("half", "float"), ("int", "half"), ("half", "int")])
def test_casts(source, target):
    """
    To half rounds to the nearest, ties to even; to int truncates.
    """
    x = (RNG.standard_normal(300) * 3000).astype(NUMPY[source])
    x[:3] = [2049, 2051, -7]
    found = run("types.cpp", f"CastTo<{source},{target}>", {"in": x, "out": np.zeros(300, NUMPY[target])})
    assert np.array_equal(found["out"], x.astype(np.float32).astype(NUMPY[target]))


def test_bools():
    """
    A bool is one byte.
    """
    mask, x = RNG.random(33) < 0.5, np.arange(33, dtype=np.float32)
    assert np.array_equal(run("types.cpp", "Masked", {"mask": mask, "x": x})["x"], np.where(mask, x, 0))
    assert run("types.cpp", "CastTo<bool,float>", {"in": mask, "out": x})["out"].tolist() == mask.tolist()


@pytest.mark.parametrize("op", ["ADD", "SUBTRACT", "MULTIPLY", "DIVIDE"])
def test_half_rounds_after_every_operation(op):
    """
    Arithmetic of halves is NumPy's to the bit.
    """
    a, b = HALVES[:100], HALVES[100:]
    function = {"ADD": np.add, "SUBTRACT": np.subtract, "MULTIPLY": np.multiply, "DIVIDE": np.divide}[op]
    found = run("types.cpp", f"Binary<Op::{op},half>", {"a": a, "b": b, "out": np.zeros_like(a)})
    assert np.array_equal(found["out"], function(a, b))


def test_half_products_are_rounded_before_they_are_added():
    """
    There is no fused multiply-add.
    """
    a, b, c = HALVES[:60], HALVES[60:120], HALVES[120:180]
    found = run("types.cpp", "HalfMultiplyAdd", {"a": a, "b": b, "c": c, "out": np.zeros_like(a), "largest": np.float16(0)})
    assert np.array_equal(found["out"], a * b + c)
    assert found["largest"] == (a * b + c).max()


def test_functions_of_halves():
    """
    The standard functions take halves and give halves, rounded once.
    """
    found = run("types.cpp", "HalfFunctions", {"x": HALVES})
    assert np.array_equal(found["x"], np.sqrt(np.abs(HALVES)) + np.float16(0.5))


def test_enumerators_as_arguments():
    """
    An enumerator is found with and without its enumeration's name.
    """
    a = np.float32([1, 2, 3])
    for name in ("Binary<Op::DIVIDE,float>", "Binary<DIVIDE, float>"):
        assert np.array_equal(run("types.cpp", name, {"a": a, "b": a[::-1].copy(), "out": a})["out"], a / a[::-1])


def test_long_has_32_bits():
    """
    Edges, state and arithmetic of long are those of a tile; size_t is 32 bits wide too.
    """
    x = RNG.integers(0, 2**32, 20, dtype=np.uint32)
    h, wanted = 5381, []
    for v in x.tolist():
        h = (h * 3000000019 + v) % 2**32
        wanted.append(h >> 1)
    longs = {"popcore": LONG}, {"popcore": UNSIGNED_LONG}
    fields = {"x": x.astype(np.dtype("uint32", metadata=longs[1])), "out": np.zeros(20, np.dtype("int32", metadata=longs[0]))}
    found = run("types.cpp", "LongHash", fields, {"factor": 3000000019})
    assert found["out"].tolist() == wanted


def test_bytes():
    """
    uint8_t and uint32_t are the types they stand for.
    """
    x = RNG.integers(0, 256, 500, dtype=np.uint8)
    found = run("types.cpp", "Histogram", {"x": x, "bins": np.zeros(10, np.uint32)})
    assert np.array_equal(found["bins"], np.bincount(x % 10, minlength=10))


def test_double():
    """
    double works, as it does on a tile.
    """
    x = np.float32([1e8, 1, -1e8, 1])
    assert run("types.cpp", "Mean", {"x": x, "mean": np.float32(0)})["mean"] == 0.5
