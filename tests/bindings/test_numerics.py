"""Kernels of the sorts that programs are made of, and the tile's functions and builtins."""

import numpy as np
import pytest

from tests.bindings.vertex import TILE, run

FILES = ("numerics.cpp", "intrinsics.cpp")

RNG = np.random.default_rng(11)


def test_jacobi():
    """
    A step of Jacobi's method on a tile's rows, with halos from its neighbours.
    """
    grid = RNG.standard_normal((7, 8)).astype(np.float32)
    inner = grid[1:-1]
    padded = np.pad(grid, ((0, 0), (1, 1)))
    q = np.float32(0.25)
    wanted = q * (((grid[:-2] + grid[2:]) + padded[1:-1, :-2]) + padded[1:-1, 2:])
    fields = {"in": inner.ravel(), "north": grid[0], "south": grid[-1], "out": np.zeros(inner.size, np.float32), "change": np.float32(0)}
    found = run("numerics.cpp", "Jacobi", fields, {"width": 8})
    assert np.array_equal(found["out"], wanted.ravel())
    assert found["change"] == np.abs(wanted - inner).max()


def test_matrix_vector():
    """
    Rows as edges of their own.
    """
    m, x = RNG.integers(-9, 9, (5, 12)).astype(np.float32), RNG.integers(-9, 9, 12).astype(np.float32)
    found = run("numerics.cpp", "MatrixVector", {"matrix": list(m), "x": x, "y": np.zeros(5, np.float32)})
    assert np.array_equal(found["y"], m @ x)


def test_softmax_and_argmax():
    """
    std::exp, std::max and std::max_element on fields.
    """
    x = RNG.standard_normal(31).astype(np.float32)
    e = np.exp(x - x.max())
    np.testing.assert_allclose(run("numerics.cpp", "Softmax", {"x": x})["x"], e / e.sum(), rtol=1e-5)
    assert run("numerics.cpp", "ArgMax", {"x": x, "index": np.uint32(0)})["index"] == x.argmax()


def test_algorithms():
    """
    Standard algorithms take fields' iterators.
    """
    x = RNG.integers(-100, 100, 40).astype(np.int32)
    assert np.array_equal(run("numerics.cpp", "PrefixSum", {"in": x, "out": np.zeros_like(x)})["out"], np.cumsum(x))
    assert np.array_equal(run("numerics.cpp", "HeapSort", {"x": x})["x"], np.sort(x))


def test_gather():
    """
    memcpy between fields.
    """
    table, index = RNG.standard_normal((6, 3)).astype(np.float32), np.uint32([5, 0, 3, 3])
    found = run("numerics.cpp", "GatherRows", {"table": table.ravel(), "index": index, "out": np.zeros(12, np.float32)}, {"width": 3})
    assert np.array_equal(found["out"].reshape(4, 3), table[index])


def test_relaxation():
    """
    Six workers share the cells of a lattice.
    """
    cells = RNG.random((10, 9)).astype(np.float32)
    weight = np.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4)
    wanted = cells + 0.7 * (weight * cells.sum(1, keepdims=True) - cells)
    found = run("numerics.cpp", "Relax", {"cells": cells.ravel()}, {"omega": 0.7})
    np.testing.assert_allclose(found["cells"], wanted.ravel(), rtol=1e-5)


def test_post_increment():
    """
    Loads and stores that move their pointers on, of pairs.
    """
    x = RNG.standard_normal(8).astype(np.float32)
    assert np.array_equal(run("intrinsics.cpp", "PostIncrement", {"in": x, "out": np.zeros_like(x)}, {"pairs": 4})["out"], np.abs(x))


@pytest.mark.parametrize(("name", "dtype", "tolerance"), [("float", np.float32, 1e-6), ("half", np.float16, 1e-3)])
def test_functions(name, dtype, tolerance):
    """
    Functions of namespace ipu take float and half.
    """
    x = np.linspace(0.1, 3, 12).astype(dtype)
    found = run("intrinsics.cpp", f"Functions<{name}>", {"x": x, "out": [np.zeros_like(x) for _ in range(6)]})
    wide = x.astype(np.float64)
    wanted = [np.sqrt(wide), np.exp(wide), wide**-0.5, np.clip(wide, 0.5, 2), -wide, np.maximum(wide, 1.5)]
    for i, each in enumerate(wanted):
        np.testing.assert_allclose(found[f"out.{i}"], each, rtol=tolerance)


def test_axpy():
    """
    The multiply-add that keeps its result in an accumulator until the next.
    """
    x, y = (RNG.standard_normal(10).astype(np.float32) for _ in range(2))
    found = run("intrinsics.cpp", "Axpy", {"x": x, "y": y}, {"a": 1.5})
    assert np.array_equal(found["y"], np.float32(1.5) * x + y)


def test_tile_and_worker():
    """
    A codelet can ask for its tile and its worker.
    """
    found = run("intrinsics.cpp", "WhereAmI", {"out": np.zeros(6, np.uint32)})
    assert found["out"].tolist() == [100 * TILE + w for w in range(6)]


def test_bits():
    """
    Builtins on words.
    """
    found = run("intrinsics.cpp", "Bits", {"x": np.uint32([1, 0xFF01, 0x01800000, 0xABCD, 2])})
    assert found["x"].tolist() == [31, 9, 0x80010000, 0xAB00, 3]


def test_noise_depends_on_the_tile_alone():
    """
    Random numbers have the right range, and differ between tiles and not between engines with other threads.
    """
    from popcore import Engine
    from tests.bindings.vertex import Built

    def on(tile):
        return Built("intrinsics.cpp", "Noise", {"uniform": np.zeros(2000, np.float32), "normal": np.zeros(2000, np.float32)}, tile=tile).run(Engine)

    first, again, other = on(2), on(2), on(5)
    assert first["uniform"].min() >= -0.5
    assert first["uniform"].max() < 0.5
    assert abs(first["normal"].std() - 1) < 0.1
    assert np.array_equal(first["uniform"], again["uniform"])
    assert not np.array_equal(first["uniform"], other["uniform"])
