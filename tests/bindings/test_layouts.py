"""Layouts and alignment: what a field promises holds, wherever its tensor lies."""

import numpy as np
import pytest

import popcore as pc
from popcore import FLOAT, errors, program
from tests.bindings.vertex import CODELETS, Built, run

FILES = ("layouts.cpp",)

LAYOUTS = ["SPAN", "SHORT_SPAN", "ONE_PTR", "COMPACT_PTR", "SCALED_PTR32", "SCALED_PTR64", "SCALED_PTR128"]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout(layout):
    """
    Each layout, named with and without its namespace.
    """
    x = np.arange(9, dtype=np.float32)
    for name in (f"CopyFrom<VectorLayout::{layout}>", f"CopyFrom<poplar::VectorLayout::{layout}>"):
        assert np.array_equal(run("layouts.cpp", name, {"in": x, "out": np.zeros_like(x)})["out"], x)


def test_vectors_over_aligned_fields():
    """
    float2 and half4 laid over fields that are aligned to 8 bytes; half4 rounds after every operation.
    """
    a, b = (np.random.default_rng(i).standard_normal(16).astype(np.float32) for i in (1, 2))
    found = run("layouts.cpp", "PairsOfFloats", {"a": a, "b": b})
    assert np.array_equal(found["b"], b + a * np.tile(np.float32([2, 3]), 8))
    a, b = a.astype(np.float16), b.astype(np.float16)
    assert np.array_equal(run("layouts.cpp", "QuadsOfHalves", {"a": a, "b": b})["b"], b * a + a)


@pytest.mark.parametrize("align", [4, 8, 16, 32])
@pytest.mark.parametrize("engine", ["Engine", "ReferenceEngine"])
def test_alignment_holds_for_slices(align, engine):
    """
    A slice that starts at any element is gathered where its address does not do; whole variables are used in place.
    """
    graph = pc.Graph(pc.Device("M2000", num_ipus=1, tiles_per_ipu=8).target)
    graph.add_codelets(CODELETS / "layouts.cpp")
    cs = graph.add_compute_set("cs")
    x = graph.add_variable(FLOAT, (64,), name="x", tile=2)
    odd = graph.add_variable(FLOAT, (3,), name="odd", tile=2)
    out = graph.add_variable(FLOAT, (10, 5), name="out", tile=2)
    for v in (x, odd, out):
        graph.set_initial_value(v, np.arange(v.num_elements, dtype=np.float32).reshape(v.shape))
    for i in range(10):
        fields = {"in": x[i : i + 4], "out": out[i], "rows": [x[i + 10 : i + 13], odd[i % 3 :]]}
        graph.add_vertex(cs, f"Misalignment<{align}>", fields, tile=2)
    graph.create_host_read("out", out)
    made = getattr(pc, engine)(graph, program.Execute(cs))
    made.run()
    found = made.read_tensor("out")
    assert not found[:, :3].any()
    assert found[:, 3].tolist() == [i + (i + 10) + i % 3 for i in range(10)]


def test_interleaved_fields_need_room_there():
    """
    The fourth argument of Vector: more of it than the interleaved region has is refused, by the variable's name.
    """
    n = 420 * 256
    built = Built("layouts.cpp", "Misalignment<8>", {"in": np.zeros(n, np.float32), "out": np.zeros(5, np.float32), "rows": [np.zeros(1, np.float32)] * 2})
    with pytest.raises(errors.OutOfTileMemoryError, match="of interleaved memory"):
        pc.compile_graph(built.graph, built.program)


def test_structs_over_bytes():
    """
    A struct laid over a field of bytes.
    """
    pixels = np.random.default_rng(3).integers(0, 256, 40, dtype=np.uint8)
    p = pixels.reshape(-1, 4).astype(int)
    found = run("layouts.cpp", "Grey", {"pixels": pixels, "grey": np.zeros(10, np.uint8)})
    assert np.array_equal(found["grey"], (p[:, 0] + 2 * p[:, 1] + p[:, 2]) // 4)
