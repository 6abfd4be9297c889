"""What fields ask to be interleaved has to fit the interleaved region, and lies after everything else."""

import dataclasses

import numpy as np
import pytest

import popcore as pc
from popcore import FLOAT, errors, program
from popcore.codelet import codelet_of
from tests.codelets import CopyVector, SumRows

KIB_OF_FLOATS = 256
REGION_KIB = 416  # of 624 on a tile of a GC200


def interleaving(cls, *names):
    """A codelet with the flag that only fields in C++ have."""
    made = codelet_of(cls)
    return dataclasses.replace(made, fields=tuple(dataclasses.replace(f, interleaved=f.name in names) for f in made.fields))


def copied(graph, kib, *names, source_tile=0):
    """A program that copies one variable to another of as many KiB with a vertex on tile 0."""
    n = kib * KIB_OF_FLOATS
    source = graph.add_variable(FLOAT, (n,), name="source", tile=source_tile)
    target = graph.add_variable(FLOAT, (16,), name="target", tile=0)
    cs = graph.add_compute_set("copy")
    graph.add_vertex(cs, interleaving(CopyVector, *names), {"src": source, "dst": target}, tile=0)
    return program.Execute(cs)


def test_the_region_is_smaller_than_the_tile(graph):
    """
    A variable that fits a tile may not fit the region: it is named, with the region's size.
    """
    prog = copied(graph, REGION_KIB + 1, "src")
    with pytest.raises(errors.OutOfTileMemoryError, match=rf"of interleaved memory and has {REGION_KIB * 1024:,} B(.|\n)*source") as caught:
        pc.compile_graph(graph, prog)
    assert "target" not in str(caught.value)
    assert (caught.value.tile, caught.value.needed) == (0, (REGION_KIB + 1) * 1024)
    pc.compile_graph(graph, prog, options={"debug.allowOutOfMemory": True})


@pytest.mark.parametrize(("kib", "names"), [(REGION_KIB, ["src"]), (REGION_KIB + 1, []), (REGION_KIB + 1, ["dst"])])
def test_what_fits_is_compiled(graph, kib, names):
    """
    The limit is tight, and meant for what asks for it alone.
    """
    pc.compile_graph(graph, copied(graph, kib, *names))


def test_what_is_gathered_counts(graph):
    """
    An edge from another tile lies in an exchange buffer, which then has to be interleaved.
    """
    pc.compile_graph(graph, copied(graph, REGION_KIB, "src", source_tile=1))
    with pytest.raises(errors.OutOfTileMemoryError, match="exchange buffers"):
        pc.compile_graph(graph, copied(graph, REGION_KIB + 1, "src", source_tile=1))


def test_variables_that_share_memory_count_once(graph):
    """
    Of variables that live one after the other the largest counts, and all pieces of a list do.
    """
    big = 300 * KIB_OF_FLOATS
    rows = [graph.add_variable(FLOAT, (big,), name=name, tile=0) for name in "ab"]
    x = graph.add_variable(FLOAT, (big,), name="x", tile=1)
    out = graph.add_variable(FLOAT, (), name="out", tile=0)
    graph.create_host_write("x", x)
    steps = []
    for row in rows:
        cs = graph.add_compute_set(f"sum {row.name}")
        graph.add_vertex(cs, interleaving(SumRows, "rows"), {"rows": [row], "out": out}, tile=0)
        steps += [program.Copy(x, row), program.Execute(cs)]
    pc.compile_graph(graph, program.Sequence(*steps))
    with pytest.raises(errors.OutOfTileMemoryError, match=r"(?s)  a .*  b "):
        pc.compile_graph(graph, program.Sequence(steps[0], steps[2], steps[1], steps[3]), options={"debug.allowOutOfMemory": False})


def test_they_come_last_on_their_tile(graph):
    """
    Addresses ascend from what needs no interleaving to what does; results are the same.
    """
    first, plain, more = (graph.add_variable(FLOAT, (16,), name=name, tile=0) for name in ("first", "plain", "more"))
    graph.set_initial_value(first, np.arange(16, dtype=np.float32))
    cs, after = graph.add_compute_set("a"), graph.add_compute_set("b")
    graph.add_vertex(cs, interleaving(CopyVector, "src"), {"src": first, "dst": plain}, tile=0)
    graph.add_vertex(after, CopyVector, {"src": plain, "dst": more}, tile=0)
    for t in (first, more):
        graph.create_host_read(t.variable.name, t)
    exe = pc.compile_graph(graph, program.Sequence(program.Execute(cs), program.Execute(after)))
    assert exe.initial[:, 0].min() > 0  # nothing but ``first`` has a value at first
    engine = pc.Engine(exe)
    engine.run()
    assert np.array_equal(engine.read_tensor("more"), np.arange(16))
