"""Every form of field, against NumPy."""

import numpy as np
import pytest

from tests.bindings.vertex import run

FILES = ("fields.cpp",)


def f32(*values):
    return np.array(values, np.float32)


def i32(*values):
    return np.array(values, np.int32)


X = np.linspace(-3, 4, 37).astype(np.float32)


def test_input_and_output_vectors():
    """
    Input<Vector<T>> and Output<Vector<T>>, the latter with its size.
    """
    found = run("fields.cpp", "VectorAdd", {"a": X, "b": X[::-1].copy(), "sum": np.zeros_like(X)})
    assert np.array_equal(found["sum"], X + X[::-1])


def test_inout_vector_and_input_scalar():
    """
    InOut<Vector<T>> is changed in place; Input<T> is a number in an expression.
    """
    found = run("fields.cpp", "ScaleInPlace", {"x": X, "factor": np.float32(2.5)})
    assert np.array_equal(found["x"], X * np.float32(2.5))


def test_output_scalars():
    """
    Output<T> takes ``*f = v`` and ``f = v``; ``f->size()`` is a size.
    """
    found = run("fields.cpp", "SumToScalar", {"x": np.arange(10, dtype=np.int32), "total": np.int32(0), "mean": np.float32(0)})
    assert (found["total"], found["mean"]) == (45, 4.5)


def test_inout_scalars():
    """
    InOut<T> takes compound assignment, with and without the star.
    """
    found = run("fields.cpp", "Accumulate", {"x": np.float32(1.5), "total": np.float32(10), "count": np.uint32(4)}, runs=3)
    assert (found["total"], found["count"]) == (14.5, 7)


@pytest.mark.parametrize("doubled", [False, True])
def test_state(doubled):
    """
    Plain members keep their values between runs; private and const ones are set as others are.
    """
    state = {"scale": 0.5, "step": 3, "doubled": doubled}
    found = run("fields.cpp", "CountCalls", {"out": np.zeros(2, np.float32)}, state, runs=4)
    assert found["out"].tolist() == [0.5 * 12 * (1 + doubled)] * 2


def test_vector_of_input_vectors():
    """
    Vector<Input<Vector<T>>>: rows of their own lengths, an empty one too.
    """
    rows = [X[:5], X[5:5], X[5:]]
    found = run("fields.cpp", "JaggedSum", {"rows": rows, "sums": np.zeros(3, np.float32)})
    np.testing.assert_allclose(found["sums"], [r.sum(dtype=np.float64) for r in rows], rtol=1e-5, atol=1e-6)


def test_vector_of_output_vectors():
    """
    Vector<Output<Vector<T>>>, walked by range.
    """
    found = run("fields.cpp", "FillRows", {"rows": [np.zeros(n, np.int32) for n in (2, 3, 1)]})
    assert [found[f"rows.{i}"].tolist() for i in range(3)] == [[0, 1], [2, 3, 4], [5]]


def test_vector_of_inout_vectors():
    """
    Vector<InOut<Vector<T>>, ONE_PTR>, which does not know its length.
    """
    rows = [np.arange(n, dtype=np.int32) for n in (2, 4)]
    found = run("fields.cpp", "ShiftRows", {"rows": rows}, {"count": 2})
    assert np.array_equal(found["rows.0"], rows[0] + 1)
    assert np.array_equal(found["rows.1"], rows[1] + 2)


def test_vector_of_input_scalars():
    """
    Vector<Input<T>>: a vector is as many edges, and so is a list of scalars.
    """
    found = run("fields.cpp", "PickScalars", {"from": X[:6], "to": np.zeros(6, np.float32)})
    assert np.array_equal(found["to"], 2 * X[:6])
    found = run("fields.cpp", "PickScalars", {"from": [np.float32(v) for v in X[:3]], "to": np.zeros(3, np.float32)})
    assert np.array_equal(found["to"], 2 * X[:3])


def test_vector_of_inout_and_output_scalars():
    """
    Vector<InOut<T>> and Vector<Output<T>>.
    """
    assert run("fields.cpp", "BumpScalars", {"values": i32(1, 2, 3)})["values"].tolist() == [11, 12, 13]
    found = run("fields.cpp", "SpreadScalars", {"values": [np.int32(0)] * 4, "seed": np.int32(5)})
    assert [int(found[f"values.{i}"]) for i in range(4)] == [5, 6, 9, 14]


def test_vector_by_value():
    """
    Vector<T> by value is state whose size comes with its initial value.
    """
    found = run("fields.cpp", "Delay", {"x": np.float32(7), "y": np.float32(0)}, {"line": f32(1, 2, 3)}, runs=3)
    assert found["y"] == 1
    found = run("fields.cpp", "Delay", {"x": np.float32(7), "y": np.float32(0)}, {"line": f32(1, 2, 3)}, runs=4)
    assert found["y"] == 7


def test_const_vector_by_value():
    """
    A const vector is state that nothing writes.
    """
    assert run("fields.cpp", "Offsets", {"x": i32(1, 2)}, {"offsets": i32(10, 20)}, runs=2)["x"].tolist() == [21, 42]


def test_vector_lists():
    """
    Input<VectorList<T>> and InOut<VectorList<T>>.
    """
    rows = [np.zeros(n, np.int32) for n in (3, 0, 5)]
    assert run("fields.cpp", "ListLengths", {"rows": rows, "lengths": np.zeros(3, np.uint32)})["lengths"].tolist() == [3, 0, 5]
    found = run("fields.cpp", "ListScale", {"rows": [X[:4], X[4:9]]})
    assert np.array_equal(found["rows.0"], 2 * X[:4])
    assert np.array_equal(found["rows.1"], 3 * X[4:9])


def test_pointers():
    """
    ``&f[0]``, ``data()`` and the iterators are plain pointers to elements that lie together.
    """
    found = run("fields.cpp", "ThroughPointers", {"in": X, "out": np.zeros_like(X)})
    assert np.array_equal(found["out"], X[::-1])
