"""Kinds of vertices and the language around them."""

import math

import numpy as np
import pytest

from popcore import errors, poputil
from popcore.types import FLOAT, INT
from tests.bindings.vertex import run

FILES = ("kinds.cpp",)

X = np.linspace(-2, 3, 25).astype(np.float32)


def test_workers():
    """
    A MultiVertex runs once for each of six workers.
    """
    found = run("kinds.cpp", "Workers", {"x": X, "y": np.zeros_like(X), "who": np.zeros(25, np.uint32)})
    assert np.array_equal(found["y"], X * X)
    assert np.array_equal(found["who"], np.arange(25) % 6)


def test_workers_run_from_the_last_to_the_first():
    """
    Worker 0 sees what the others wrote.
    """
    x = np.arange(50, dtype=np.int32)
    assert run("kinds.cpp", "TwoSteps", {"x": x, "partials": np.zeros(6, np.int32), "total": np.int32(0)})["total"] == x.sum()


def test_supervisors():
    """
    A SupervisorVertex runs once; so does what is a supervisor only where there is assembly.
    """
    assert run("kinds.cpp", "Supervised", {"x": np.arange(5, dtype=np.int32)})["x"].tolist() == [0, -1, -2, -3, -4]
    found = run("kinds.cpp", "MaybeSupervised", {"x": X, "y": np.zeros_like(X)})
    assert np.array_equal(found["y"], np.where(X > 0, X, np.float32(0.1) * X))


def test_namespaces():
    """
    A qualified name, and the same without its namespace.
    """
    for name in ("ops::Limit<float,true>", "Limit<float, true>", poputil.template_vertex("ops::Limit", FLOAT, True)):
        assert np.array_equal(run("kinds.cpp", name, {"x": X}, {"low": -1, "high": 2})["x"], np.clip(X, -1, 2))
    assert np.array_equal(run("kinds.cpp", "ops::Limit<float,false>", {"x": X}, {"low": -1, "high": 2})["x"], X)


def test_inherited_fields():
    """
    Fields of a base class that is a template come before the vertex's own.
    """
    x = np.arange(4, dtype=np.int32)
    found = run("kinds.cpp", poputil.template_vertex("Derived", INT), {"from": x, "to": np.zeros_like(x)}, {"offset": 5})
    assert np.array_equal(found["to"], x + 5)


def test_specialisations():
    """
    A full specialisation is a codelet of its own.
    """
    assert np.array_equal(run("kinds.cpp", "Power<float>", {"x": X})["x"], X * X)
    assert run("kinds.cpp", "Power<int>", {"x": np.int32([2, 3])})["x"].tolist() == [8, 27]


def test_macros():
    """
    Vertices that a macro makes.
    """
    b = X[::-1].copy()
    assert np.array_equal(run("kinds.cpp", "Less", {"a": X, "b": b, "out": np.zeros(25, bool)})["out"], b > X)
    assert np.array_equal(run("kinds.cpp", "GreaterEqual", {"a": X, "b": b, "out": np.zeros(25, bool)})["out"], b <= X)


def test_bodies_outside_of_the_class():
    """
    A compute that is defined after its class, with a goto and std::tie.
    """
    a, b = np.int32([12, 35, 7]), np.int32([18, 10, 0])
    found = run("kinds.cpp", "Euclid", {"a": a, "b": b, "divisor": np.zeros(3, np.int32)})
    assert found["divisor"].tolist() == [math.gcd(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]


def test_only_what_is_used_is_instantiated():
    """
    A type of the file that cannot be compiled matters only to whoever uses it, and is then named with the user's line.
    """
    with pytest.raises(errors.CodeletError, match=r"kinds\.cpp:\d+: (.|\n)*no_such_member") as caught:
        run("kinds.cpp", "Impossible<float>", {"x": X})
    assert "popcore-generated" not in str(caught.value)
    assert "driver.hpp" not in str(caught.value)
