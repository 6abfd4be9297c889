"""Draws small graphs with programs, host data and streams: what any two engines must agree on.

Drawn so that everything a case shows is defined: no races, no loop without an end, nothing read that was never written.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import numpy as np
from hypothesis import strategies as st

import popcore as pc
from popcore import BOOL, FLOAT, HALF, INT, LONGLONG, SHORT, UNSIGNED_CHAR, UNSIGNED_INT, program
from popcore.graph import Tensor, concat
from tests.small_codelets import AddTo, Below, Convert, Counter, Dot, IncrementBytes, Integers, Pivot, RowSums, Scale, Smooth, Strided, Transpose

DTYPES = [FLOAT, HALF, INT, UNSIGNED_INT, BOOL, UNSIGNED_CHAR, SHORT, LONGLONG]
ADDED = [FLOAT, HALF, INT, UNSIGNED_INT, SHORT, UNSIGNED_CHAR, LONGLONG]
SPECIAL = [0.0, -0.0, 1.0, -1.5, 0.1, 3e-8, 6e4, np.inf, -np.inf, np.nan]

small_shapes = st.lists(st.integers(0, 7), max_size=3).map(tuple)
big_shapes = st.tuples(st.integers(8, 70), st.sampled_from([1, 3, 4, 16]))
shapes = st.one_of(small_shapes, small_shapes, big_shapes)


@dataclass
class Case:
    """A graph with programs, what the host writes before the first run, and what streams are connected to."""

    graph: pc.Graph
    programs: list[program.Program] = field(default_factory=list)
    runs: list[int] = field(default_factory=list)
    writes: dict[str, np.ndarray] = field(default_factory=dict)
    inputs: dict[str, np.ndarray] = field(default_factory=dict)
    outputs: dict[str, np.ndarray] = field(default_factory=dict)  # what the arrays hold before

    def __repr__(self) -> str:
        variables = "\n".join(f"  {v!r} on {[tuple(map(int, i)) for i in zip(*v.mapping.intervals(), strict=True)]}" for v in self.graph.variables)
        vertices = "\n".join(f"  {g!r} on tiles {g.tile.tolist()}" for cs in self.graph.compute_sets for g in cs.groups.values())
        return f"{self.graph.target}, runs {self.runs}\n{variables}\n{vertices}\n{program.text(*self.programs)}"

    def _repr_pretty_(self, printer, cycle: bool) -> None:
        """What Hypothesis shows of a case that fails."""
        printer.text(repr(self))


class Drawing:
    """One case being drawn."""

    def __init__(self, draw) -> None:
        self.draw = draw
        self.tiles = draw(st.integers(1, 8))
        self.graph = pc.Graph(pc.Device("M2000", num_ipus=draw(st.sampled_from([1, 1, 1, 2])), tiles_per_ipu=self.tiles).target)
        self.tiles = self.graph.target.num_tiles
        self.case = Case(self.graph)
        self.seed = np.random.default_rng(draw(st.integers(0, 1 << 16)))
        self.pool: list[Tensor] = []  # variables that live as long as the engine: the host reads them
        self.functions = []
        self.handles = 0

    # Data

    def values(self, dtype, shape):
        """Random values, special ones among them."""
        count = int(np.prod(shape))
        if dtype.is_floating:
            made = np.where(self.seed.random(count) < 0.3, self.seed.choice(SPECIAL, count), self.seed.standard_normal(count) * 4)
            return made.astype(dtype.numpy).reshape(shape)
        if dtype is BOOL:
            return self.seed.integers(0, 2, count).astype(bool).reshape(shape)
        limits = np.iinfo(dtype.numpy)
        wide = self.seed.integers(limits.min, limits.max, count, dtype=dtype.numpy, endpoint=True)
        return np.where(self.seed.random(count) < 0.5, wide, self.seed.integers(0, 4, count, dtype=dtype.numpy)).astype(dtype.numpy).reshape(shape)

    def tile(self) -> int:
        return self.draw(st.integers(0, self.tiles - 1))

    def name(self, kind: str) -> str:
        self.handles += 1
        return f"{kind}{self.handles}"

    def map(self, tensor: Tensor) -> None:
        """Map it: to one tile, evenly, or cut into random parts."""
        how = self.draw(st.integers(0, 2))
        n = tensor.num_elements
        if how == 0 or n < 2:
            self.graph.set_tile_mapping(tensor, self.tile())
        elif how == 1:
            pc.poputil.map_tensor_linearly(self.graph, tensor)
        else:
            flat = tensor.flatten()
            cuts = sorted({0, n, *self.draw(st.lists(st.integers(0, n), max_size=5))})
            for low, high in itertools.pairwise(cuts):
                self.graph.set_tile_mapping(flat[low:high], self.tile())

    def variable(self, dtype, shape=None) -> Tensor:
        """A new variable that the host writes and reads."""
        shape = self.draw(shapes) if shape is None else shape
        name = self.name("v")
        made = self.graph.add_variable(dtype, shape, name=name)
        self.map(made)
        if self.draw(st.booleans()):
            self.graph.set_initial_value(made, self.values(dtype, shape))
        else:
            self.graph.create_host_write(name, made)
            self.case.writes[name] = self.values(dtype, shape)
        self.graph.create_host_read(name, made)
        self.pool.append(made)
        return made

    def constant(self, dtype, shape) -> Tensor:
        made = self.graph.add_constant(dtype, shape, self.values(dtype, shape), name=self.name("k"))
        self.map(made)
        return made

    def scalar(self, dtype) -> Tensor:
        """One element of something."""
        flat = self.source(dtype).flatten()
        return flat[self.draw(st.integers(0, flat.num_elements - 1))] if flat.num_elements else self.variable(dtype, ())

    # Views

    def of(self, dtype) -> Tensor:
        """A variable of this type: one there is, or a new one."""
        there = [t for t in self.pool if t.dtype is dtype]
        return self.draw(st.sampled_from(there)) if there and self.draw(st.integers(0, 3)) else self.variable(dtype)

    def view(self, t: Tensor, may_alias: bool) -> Tensor:
        """Up to three steps away from ``t``."""
        for _ in range(self.draw(st.integers(0, 3))):
            t = self.step(t, may_alias)
        return t

    def step(self, t: Tensor, may_alias: bool) -> Tensor:
        how = self.draw(st.sampled_from(["slice", "slice", "reverse", "shuffle", "flatten", "sub", "index", "expand", "concat", "broadcast"]))
        dim = self.draw(st.integers(0, t.rank - 1)) if t.rank else 0
        if how == "flatten" or not t.rank:
            return t.flatten()
        size = t.dim(dim)
        if how == "slice":
            low = self.draw(st.integers(0, size))
            return t.slice(low, self.draw(st.integers(low, size)), dim)
        if how == "reverse":
            return t.reverse(dim)
        if how == "shuffle":
            return t.dim_shuffle(self.draw(st.permutations(range(t.rank))))
        if how == "sub":
            return t.sub_sample(self.draw(st.integers(1, 3)), dim)
        if how == "index" and t.dim(0):
            return t[self.draw(st.integers(0, t.dim(0) - 1))]
        if how == "expand":
            return t.expand([dim])
        if how == "concat" and t.rank == 1:
            other = self.of(t.dtype).flatten()
            joined = concat(self.draw(st.permutations([t, other])))
            return joined if may_alias or joined.is_parallel_writeable else t
        if how == "broadcast" and may_alias and t.num_elements < 100:
            return t.broadcast(self.draw(st.integers(0, 3)), dim)
        return t

    def source(self, dtype) -> Tensor:
        """Something to read."""
        return self.constant(dtype, self.draw(small_shapes)) if self.draw(st.integers(0, 7)) == 0 else self.view(self.of(dtype), True)

    def target(self, dtype) -> Tensor:
        """Something to write."""
        return self.view(self.of(dtype), False)

    def sized(self, dtype, count: int) -> Tensor:
        """Something to read, of rank 1 and ``count`` elements."""
        flat = self.source(dtype).flatten()
        if not flat.num_elements:
            return self.variable(dtype, (count,))
        flat = concat([flat] * -(-count // flat.num_elements)) if count > flat.num_elements else flat
        low = self.draw(st.integers(0, flat.num_elements - count))
        return flat[low : low + count]

    # Programs without others inside

    def copy(self) -> program.Program:
        dtype = self.draw(st.sampled_from(DTYPES))
        target = self.target(dtype)
        source = self.sized(dtype, target.num_elements)
        return program.Copy(source.reshape(target.shape), target) if self.draw(st.booleans()) else program.Copy(source, target)

    def reinterpreted(self) -> program.Program:
        """A copy of bits to another type of the same size."""
        kind, other = self.draw(st.sampled_from([(FLOAT, INT), (INT, UNSIGNED_INT), (UNSIGNED_INT, FLOAT), (HALF, SHORT), (SHORT, HALF)]))
        target = self.target(kind)
        return program.Copy(self.sized(other, target.num_elements).reinterpret(kind), target)

    def stream_in(self) -> program.Program:
        target = self.target(self.draw(st.sampled_from(DTYPES)))
        stream = self.graph.add_host_to_device_fifo(self.name("in"), target.dtype, target.num_elements)
        self.case.inputs[stream.name] = self.values(target.dtype, (self.draw(st.integers(1, 3)), target.num_elements))
        return program.Copy(stream, target)

    def stream_out(self) -> program.Program:
        source = self.source(self.draw(st.sampled_from(DTYPES)))
        stream = self.graph.add_device_to_host_fifo(self.name("out"), source.dtype, source.num_elements)
        self.case.outputs[stream.name] = np.zeros((self.draw(st.integers(1, 3)), source.num_elements), source.dtype.numpy)
        return program.Copy(source, stream)

    def remote(self) -> program.Program:
        """Rows out and in again, by fixed number or by tensor."""
        dtype, rows, elements = self.draw(st.sampled_from(DTYPES)), self.draw(st.integers(1, 4)), self.draw(st.integers(0, 5))
        store = self.graph.add_remote_buffer(self.name("r"), dtype, elements, repeats=rows)
        number = self.graph.add_constant(UNSIGNED_INT, (), self.draw(st.integers(0, rows - 1)), tile=self.tile())
        target = self.variable(dtype, (elements,))
        there = program.Copy(self.sized(dtype, elements), store, self.draw(st.integers(0, rows - 1)))
        return program.Sequence(there, program.Copy(store, target, number))

    def temporary(self) -> program.Program:
        """Through a variable that lives from one copy to the next."""
        dtype = self.draw(st.sampled_from(DTYPES))
        target = self.target(dtype)
        between = self.graph.add_variable(dtype, (target.num_elements,), name=self.name("t"))
        self.map(between)
        there, back = program.Copy(self.sized(dtype, target.num_elements), between), program.Copy(between.reverse(0), target.flatten())
        return program.Sequence(there, back, *([program.WriteUndef(between)] if self.draw(st.booleans()) else []))

    def print(self) -> program.Program:
        return program.PrintTensor(self.name("p"), self.source(self.draw(st.sampled_from(DTYPES))))

    def execute(self) -> program.Program:
        """A compute set of up to six vertices that do not meet."""
        compute_set = self.graph.add_compute_set(self.name("cs"))
        read: list[Tensor] = []
        written: list[Tensor] = []
        for _ in range(self.draw(st.integers(1, 6))):
            codelet, reads, writes, state = self.vertex()
            inside = [*_tensors(reads.values()), *writes.values()]
            apart = [a.intersects_with(b) for i, a in enumerate(writes.values()) for b in [*_tensors(reads.values()), *list(writes.values())[i + 1 :]]]
            apart += [t.intersects_with(w) for t in inside for w in written] + [w.intersects_with(r) for w in writes.values() for r in read]
            if any(apart) or not all(w.is_parallel_writeable for w in writes.values()):
                continue
            vertex = self.graph.add_vertex(compute_set, codelet, {**reads, **writes}, tile=self.tile())
            for name, value in state.items():
                if np.ndim(value):
                    self.graph.set_field_size(vertex[name], len(value))
                if np.size(value):
                    self.graph.set_initial_value(vertex[name], value)
            read += _tensors(reads.values())
            written += writes.values()
        return program.Execute(compute_set)

    def vertex(self):
        """A codelet, and what its fields read, write and start with."""
        return self.draw(st.sampled_from([self.adding, self.adding, self.floats, self.halves, self.integers, self.structured, self.stateful]))()

    def adding(self):
        dtype = self.draw(st.sampled_from(ADDED))
        return AddTo[dtype], {"x": self.source(dtype).flatten()}, {"y": self.target(dtype).flatten()}, {}

    def floats(self):
        if self.draw(st.booleans()):
            out = self.target(FLOAT).flatten()
            return Strided, {"x": self.sized(FLOAT, out.num_elements)}, {"out": out}, {}
        x = self.source(FLOAT).flatten()
        outputs = {"whole": INT, "half": HALF, "flag": BOOL, "byte": UNSIGNED_CHAR}
        return Convert, {"x": x}, {name: self.variable(dtype, (x.num_elements,)) for name, dtype in outputs.items()}, {}

    def halves(self):
        kind = self.draw(st.integers(0, 2))
        if kind == 0:
            return Dot, {"a": self.source(FLOAT).flatten(), "b": self.source(HALF).flatten()}, {"out": self.element(FLOAT)}, {}
        if kind == 1:
            rows, columns = self.draw(st.integers(0, 4)), self.draw(st.integers(1, 7))
            return Pivot, {"k": self.scalar(FLOAT)}, {"m": self.variable(HALF, (columns, rows)).transpose()}, {}
        out = self.target(HALF).flatten()
        k = self.scalar(HALF) if self.draw(st.booleans()) else 0.3
        return Scale, {"x": self.sized(HALF, out.num_elements), "k": k}, {"out": out}, {}

    def integers(self):
        kind = self.draw(st.integers(0, 2))
        if kind == 0:
            return IncrementBytes, {}, {"x": self.target(UNSIGNED_CHAR).flatten()}, {}
        if kind == 1:
            return Below, {"x": self.scalar(INT), "limit": self.scalar(INT)}, {"flag": self.element(BOOL)}, {}
        return Integers, {"a": self.source(LONGLONG).flatten(), "b": self.source(INT).flatten()}, {"out": self.target(LONGLONG).flatten()}, {}

    def structured(self):
        if self.draw(st.booleans()):
            rows, columns = self.draw(st.integers(0, 5)), self.draw(st.integers(1, 5))
            return Transpose, {"m": self.sized(INT, rows * columns).reshape((rows, columns))}, {"out": self.variable(INT, (columns, rows))}, {}
        rows = [self.source(INT).flatten() for _ in range(self.draw(st.integers(1, 4)))]
        listed = self.sized(INT, 3 * len(rows)).reshape((len(rows), 3)) if self.draw(st.booleans()) else rows
        return RowSums, {"rows": listed}, {"sums": self.variable(INT, (len(rows),))}, {}

    def stateful(self):
        if self.draw(st.booleans()):
            return Counter, {}, {"x": self.element(UNSIGNED_INT)}, {"calls": self.draw(st.integers(-3, 3))}
        kept = self.values(FLOAT, (self.draw(st.integers(0, 5)),))
        return Smooth, {"x": self.source(FLOAT).flatten()}, {"out": self.target(FLOAT).flatten()}, {"kept": kept}

    def element(self, dtype) -> Tensor:
        """One element to write."""
        flat = self.target(dtype).flatten()
        return flat[self.draw(st.integers(0, flat.num_elements - 1))] if flat.num_elements else self.variable(dtype, ())

    # Programs with others inside

    def program(self, depth: int) -> program.Program:
        leaves = [
            self.copy,
            self.copy,
            self.execute,
            self.execute,
            self.stream_in,
            self.stream_out,
            self.temporary,
            self.remote,
            self.print,
            self.reinterpreted,
        ]
        if depth == 0:
            return self.draw(st.sampled_from(leaves))()
        how = self.draw(st.integers(0, 9))
        if how < 4:
            return self.draw(st.sampled_from(leaves))()
        nests = [self.sequence, self.repeat, self.branch, self.switch, self.loop, self.call]
        return nests[how - 4](depth - 1)

    def sequence(self, depth: int) -> program.Program:
        return program.Sequence([self.program(depth) for _ in range(self.draw(st.integers(0, 3)))])

    def repeat(self, depth: int) -> program.Program:
        return program.Repeat(self.draw(st.integers(0, 3)), self.program(depth))

    def branch(self, depth: int) -> program.Program:
        predicate = self.scalar(self.draw(st.sampled_from([BOOL, INT, UNSIGNED_CHAR])))
        return program.If(predicate, self.program(depth), self.program(depth) if self.draw(st.booleans()) else None)

    def switch(self, depth: int) -> program.Program:
        dtype = self.draw(st.sampled_from([INT, UNSIGNED_INT, SHORT, UNSIGNED_CHAR]))
        values = self.draw(st.lists(st.integers(0, 3), unique=True, max_size=3))
        return program.Switch(self.scalar(dtype), {v: self.program(depth) for v in values}, self.program(depth) if self.draw(st.booleans()) else None)

    def loop(self, depth: int) -> program.Program:
        """A while loop that counts in variables of its own, so that it ends."""
        i, flag = (
            self.graph.add_variable(INT, (), name=self.name("i"), tile=self.tile()),
            self.graph.add_variable(BOOL, (), name=self.name("b"), tile=self.tile()),
        )
        zero, one, limit = (self.graph.add_constant(INT, (1,), v, tile=self.tile()) for v in (0, 1, self.draw(st.integers(0, 3))))
        add, test = self.graph.add_compute_set(self.name("add")), self.graph.add_compute_set(self.name("test"))
        self.graph.add_vertex(add, AddTo[INT], {"x": one, "y": i.flatten()}, tile=self.tile())
        true = self.draw(st.booleans())
        x, y = (i, limit[0]) if true else (limit[0], i)
        self.graph.add_vertex(test, Below, {"x": x, "limit": y, "flag": flag}, tile=self.tile())
        kind = program.RepeatWhileTrue if true else program.RepeatWhileFalse
        loop = kind(program.Execute(test), flag, program.Sequence(self.program(depth), program.Execute(add)))
        return program.Sequence(program.Copy(zero, i), loop)

    def call(self, depth: int) -> program.Program:
        if not self.functions or self.draw(st.booleans()):
            self.functions.append(self.graph.add_function(self.program(depth)))
        return program.Call(self.draw(st.sampled_from(self.functions)))


def _tensors(values) -> list[Tensor]:
    """The tensors among what fields are connected to."""
    return [t for v in values for t in (v if isinstance(v, list) else [v]) if isinstance(t, Tensor)]


@st.composite
def cases(draw, depth: int = 3) -> Case:
    """A graph with one or two programs, some runs of them, and their data."""
    drawing = Drawing(draw)
    for _ in range(draw(st.integers(1, 3))):
        drawing.variable(draw(st.sampled_from(DTYPES)))
    for _ in range(draw(st.integers(1, 2))):
        steps = [drawing.program(depth) for _ in range(draw(st.integers(1, 4)))]
        drawing.case.programs.append(program.Sequence(steps))
    drawing.case.runs = draw(st.lists(st.integers(0, len(drawing.case.programs) - 1), min_size=1, max_size=3))
    return drawing.case
