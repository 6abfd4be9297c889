"""Draws vertices: a codelet of a fixed pool, in each dialect and with each shape of field, and what its fields are connected to."""

from __future__ import annotations

import functools
import itertools
from pathlib import Path
from typing import Any

import numpy as np

from popcore import BOOL, FLOAT, HALF, INT, LONGLONG, SHORT, SIGNED_CHAR, UNSIGNED_CHAR, UNSIGNED_INT, InOut, Matrix, VectorList, Vertex, program
from popcore.bindings import toolchain
from popcore.bindings.unit import open_unit
from popcore.codelet import Codelet, codelet_of
from popcore.errors import CodeletError
from popcore.graph import Tensor
from tests.fuzz.drawing import Drawing
from tests.small_codelets import AddTo, Below, Convert, Counter, Dot, IncrementBytes, Integers, Pivot, RowSums, Scale, Smooth, Strided, Transpose

ADDED = [FLOAT, HALF, INT, UNSIGNED_INT, SHORT, UNSIGNED_CHAR, LONGLONG]


class Ripple(Vertex):
    """Rows of different lengths in place: each element gets the one before it."""

    rows: InOut[VectorList[HALF]]
    m: InOut[Matrix[INT]]

    def compute(self):
        for row in self.rows:
            for i in range(1, len(row)):
                row[i] = row[i] + row[i - 1]
        for r in range(self.m.shape[0]):
            for c in range(self.m.shape[1]):
                self.m[r, c] = self.m[r, c] * (r + 1) + c


POOL = (AddTo, Below, Convert, Counter, Dot, IncrementBytes, Integers, Pivot, RowSums, Scale, Smooth, Strided, Transpose, Ripple)


@functools.cache
def cpp_codelets() -> Any:
    """The C++ codelets, for ``add_codelets`` and ``Executable.load``; None where there is no compiler for them."""
    try:
        toolchain.find_compiler()
        unit = open_unit(Path(__file__).with_name("codelets.cpp"))
        unit.find("CppBlend")
    except CodeletError as error:
        if "compiler" not in error.message:
            raise
        return None
    return Path(__file__).with_name("codelets.cpp")


@functools.cache
def made(codelet: Any) -> Codelet:
    """A codelet that several graphs share: it is lowered once, which would else take a third of the time."""
    return codelet_of(codelet)


class Vertices(Drawing):
    """And compute sets of vertices that do not meet."""

    def execute(self) -> program.Program:
        """A compute set of up to six vertices."""
        if self.choose.once_in(8):
            return self.in_bulk()
        home = self.graph
        low, high = 0, self.tiles
        if self.tiles > 2 and self.choose.once_in(8):
            self.note("virtual graph")
            low = self.choose.between(0, self.tiles - 2)
            high = self.choose.between(low + 1, self.tiles)
            home = self.graph.create_virtual_graph(low, high)
        compute_set = home.add_compute_set(self.name("cs"))
        read: list[Tensor] = []
        written: list[Tensor] = []
        for _ in range(self.choose.between(1, 6)):
            codelet, reads, writes, state = self.vertex()
            inside, outside = _tensors(reads.values()), _tensors(writes.values())
            apart = [a.intersects_with(b) for a, b in itertools.combinations(outside, 2)]
            apart += [a.intersects_with(b) for a in outside for b in (*inside, *written, *read)] + [a.intersects_with(b) for a in inside for b in written]
            if any(apart) or not all(w.is_parallel_writeable for w in outside):
                continue
            what = codelet if isinstance(codelet, str) or self.choose.once_in(8) else made(codelet)
            vertex = home.add_vertex(compute_set, what, {**reads, **writes}, tile=self.choose.below(high - low))
            self.note(f"codelet: {codelet if isinstance(codelet, str) else getattr(codelet, '__name__', str(codelet).rsplit('.')[-1])}")
            for name, value in state.items():
                if np.ndim(value):
                    home.set_field_size(vertex[name], len(value))
                if np.size(value):
                    home.set_initial_value(vertex[name], value)
            read += inside
            written += outside
        self.note("Execute")
        return program.Execute(compute_set)

    def in_bulk(self) -> program.Program:
        """A compute set whose vertices are added by arrays."""
        self.note("add_vertices")
        count, length = self.choose.between(1, 9), self.choose.between(0, 5)
        dtype = self.choose.of(ADDED)
        compute_set = self.graph.add_compute_set(self.name("cs"))
        x = self.sized(dtype, count * length).reshape((count, length))
        tiles = np.array([self.tile() for _ in range(count)])
        self.graph.add_vertices(compute_set, made(AddTo[dtype]), {"x": x, "y": self.variable(dtype, (count, length))}, tiles)
        return program.Execute(compute_set)

    def vertex(self) -> tuple[Any, dict[str, Any], dict[str, Any], dict[str, Any]]:
        """A codelet, and what its fields read, write and start with."""
        kinds = [self.adding, self.adding, self.floats, self.halves, self.integers, self.structured, self.stateful]
        if cpp_codelets() is not None:
            kinds.append(self.in_cpp)
        return self.choose.of(kinds)()

    def adding(self):
        dtype = self.choose.of(ADDED)
        return AddTo[dtype], {"x": self.source(dtype).flatten()}, {"y": self.target(dtype).flatten()}, {}

    def floats(self):
        if self.choose.once_in(2):
            self.note("several workers")
            out = self.target(FLOAT).flatten()
            return Strided, {"x": self.sized(FLOAT, out.num_elements)}, {"out": out}, {}
        x = self.source(FLOAT).flatten()
        outputs = {"whole": INT, "half": HALF, "flag": BOOL, "byte": UNSIGNED_CHAR}
        return Convert, {"x": x}, {name: self.variable(dtype, (x.num_elements,)) for name, dtype in outputs.items()}, {}

    def halves(self):
        kind = self.choose.below(3)
        if kind == 0:
            return Dot, {"a": self.source(FLOAT).flatten(), "b": self.source(HALF).flatten()}, {"out": self.element(FLOAT)}, {}
        if kind == 1:
            rows, columns = self.choose.between(0, 4), self.choose.between(1, 7)
            return Pivot, {"k": self.scalar(FLOAT)}, {"m": self.variable(HALF, (columns, rows)).transpose()}, {}
        out = self.target(HALF).flatten()
        k = self.scalar(HALF) if self.choose.once_in(2) else 0.3
        return Scale, {"x": self.sized(HALF, out.num_elements), "k": k}, {"out": out}, {}

    def integers(self):
        kind = self.choose.below(3)
        if kind == 0:
            return IncrementBytes, {}, {"x": self.target(UNSIGNED_CHAR).flatten()}, {}
        if kind == 1:
            return Below, {"x": self.scalar(INT), "limit": self.scalar(INT)}, {"flag": self.element(BOOL)}, {}
        out = self.target(LONGLONG).flatten()
        return Integers, {"a": self.sized(LONGLONG, out.num_elements), "b": self.sized(INT, out.num_elements)}, {"out": out}, {}

    def structured(self):
        kind = self.choose.below(3)
        if kind == 0:
            rows, columns = self.choose.between(0, 5), self.choose.between(1, 5)
            return Transpose, {"m": self.sized(INT, rows * columns).reshape((rows, columns))}, {"out": self.variable(INT, (columns, rows))}, {}
        self.note("vectors of vectors")
        if kind == 1:
            rows = [self.variable(HALF, (self.choose.between(0, 4),)) for _ in range(self.choose.between(1, 3))]
            return Ripple, {}, {"rows": rows, "m": self.variable(INT, (self.choose.between(1, 4), self.choose.between(0, 3)))}, {}
        reads, count = self.rows()
        return RowSums, {"rows": reads}, {"sums": self.variable(INT, (count,))}, {}

    def rows(self) -> tuple[Any, int]:
        """Rows to read and how many, as a list of vectors or as a matrix."""
        rows = [self.source(INT).flatten() for _ in range(self.choose.between(1, 4))]
        return (self.sized(INT, 3 * len(rows)).reshape((len(rows), 3)) if self.choose.once_in(2) else rows), len(rows)

    def stateful(self):
        self.note("vertex state")
        if self.choose.once_in(2):
            return Counter, {}, {"x": self.element(UNSIGNED_INT)}, {"calls": self.choose.between(-3, 3)}
        kept = self.values(FLOAT, (self.choose.between(0, 5),))
        return Smooth, {"x": self.source(FLOAT).flatten()}, {"out": self.target(FLOAT).flatten()}, {"kept": kept}

    def in_cpp(self):
        """One of the codelets in C++."""
        self.note("C++")
        if not self.case.needs:
            self.case.needs.append(cpp_codelets())
            self.graph.add_codelets(cpp_codelets())
        kind = self.choose.below(4)
        if kind == 0:
            out = self.target(HALF).flatten()
            return "CppBlend", {"x": self.sized(FLOAT, out.num_elements), "k": self.scalar(FLOAT)}, {"out": out}, {}
        if kind == 1:
            out = self.target(INT).flatten()
            return "CppShift", {"x": self.sized(INT, out.num_elements)}, {"out": out}, {}
        if kind == 2:
            reads, count = self.rows()
            return "CppRows", {"rows": reads}, {"sums": self.variable(INT, (count,))}, {"calls": self.choose.between(0, 3)}
        dtype = self.choose.of([UNSIGNED_CHAR, SIGNED_CHAR])
        x = self.target(dtype).flatten()
        return f"CppBytes<{dtype.poplar_name}>", {}, {"x": x, "odd": self.variable(BOOL, (x.num_elements,))}, {}


def _tensors(values: Any) -> list[Tensor]:
    """The tensors among what fields are connected to."""
    return [t for v in values for t in (v if isinstance(v, list) else [v]) if isinstance(t, Tensor)]
