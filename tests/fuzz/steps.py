"""Draws programs without others inside: copies, compute sets, streams, remote buffers, prints, ops, and what replicas do together."""

from __future__ import annotations

import numpy as np

import popcore as pc
from popcore import BOOL, FLOAT, HALF, INT, SHORT, UNSIGNED_INT, ReplicatedStreamMode, program
from popcore.graph import Tensor
from popcore.ops import gcl, popops, poprand
from popcore.ops.popops import Operation
from tests.fuzz.vertices import Vertices

REINTERPRETED = [(FLOAT, INT), (INT, UNSIGNED_INT), (UNSIGNED_INT, FLOAT), (HALF, SHORT), (SHORT, HALF)]
OPERATORS = {
    FLOAT: ["ADD", "MEAN", "MUL", "MIN", "MAX", "SQUARE_ADD", "LOCAL"],
    HALF: ["ADD", "MEAN", "MIN", "MAX"],
    INT: ["ADD", "MUL", "MIN", "MAX"],
    BOOL: ["LOGICAL_AND", "LOGICAL_OR"],
}


class Steps(Vertices):
    """Leaves of programs."""

    def leaf(self) -> program.Program:
        leaves = [
            self.copy, self.copy, self.execute, self.execute, self.stream_in, self.stream_out, self.temporary, self.remote, self.print, self.reinterpreted,
            self.op, self.small,
        ]  # fmt: skip
        if self.replicas > 1:
            leaves += [self.collective, self.collective, self.cross_copy, self.numbered]
        if self.ipus > 1:
            leaves.append(self.within_replica)
        return self.choose.of(leaves)()

    # Copies

    def copy(self) -> program.Program:
        target = self.target(self.dtype())
        source = self.sized(target.dtype, target.num_elements)
        self.note("Copy")
        return program.Copy(source.reshape(target.shape), target) if self.choose.once_in(2) else program.Copy(source, target)

    def reinterpreted(self) -> program.Program:
        """A copy of bits to another type of the same size."""
        kind, other = self.choose.of(REINTERPRETED)
        target = self.target(kind)
        self.note("view: reinterpret")
        return program.Copy(self.sized(other, target.num_elements).reinterpret(kind), target)

    def temporary(self) -> program.Program:
        """Through a variable that lives from one copy to the next."""
        target = self.target(self.dtype())
        between = self.graph.add_variable(target.dtype, (target.num_elements,), name=self.name("t"))
        self.map(between)
        there, back = program.Copy(self.sized(target.dtype, target.num_elements), between), program.Copy(between.reverse(0), target.flatten())
        if self.choose.once_in(2):
            self.note("WriteUndef")
            return program.Sequence(there, back, program.WriteUndef(between))
        return program.Sequence(there, back)

    # Streams and remote buffers

    def stream_in(self) -> program.Program:
        target = self.target(self.dtype())
        each = self.replicas > 1 and self.choose.once_in(2)
        mode = ReplicatedStreamMode.REPLICATE if each else ReplicatedStreamMode.BROADCAST
        stream = self.graph.add_host_to_device_fifo(self.name("in"), target.dtype, target.num_elements, mode)
        how = self.choose.of(["array", "array", "function", "callback"])
        self.case.inputs[stream.name] = (how, self.values(target.dtype, (self.choose.between(1, 3), target.num_elements)))
        self.note(f"stream in: {how}")
        return program.Copy(stream, target)

    def stream_out(self) -> program.Program:
        source = self.source(self.dtype())
        stream = self.graph.add_device_to_host_fifo(self.name("out"), source.dtype, source.num_elements)
        self.case.outputs[stream.name] = np.zeros((self.choose.between(1, 3), source.num_elements), source.dtype.numpy)
        self.note("stream out")
        return program.Copy(source, stream)

    def remote(self) -> program.Program:
        """Rows out and in again, by fixed number, by several, or by tensor; the host may write a row first."""
        dtype, rows, elements = self.dtype(), self.choose.between(1, 4), self.choose.between(0, 5)
        store = self.graph.add_remote_buffer(self.name("r"), dtype, elements, repeats=rows)
        number = self.graph.add_constant(UNSIGNED_INT, (), self.choose.below(rows), tile=self.tile())
        if self.choose.once_in(3):
            self.case.script.append(("row", store.name, self.choose.below(rows), self.values(dtype, (elements,))))
        there = [self.choose.below(rows) for _ in range(self.choose.between(1, 2))]
        target = self.variable(dtype, (elements,))
        self.note("remote buffer")
        return program.Sequence(program.Copy(self.sized(dtype, elements * len(there)), store, there), program.Copy(store, target, number))

    def print(self) -> program.Program:
        self.note("PrintTensor")
        return program.PrintTensor(self.name("p"), self.source(self.dtype()))

    # Small ones

    def small(self) -> program.Program:
        """A sync, a rounding mode, a count of cycles that nobody reads."""
        kind = self.choose.below(3)
        if kind == 0:
            self.note("Sync")
            return program.Sync(self.choose.of(["internal", "external", "global"]))
        if kind == 1:
            self.note("floating-point behaviour")
            made = program.Sequence()
            esr, nanoo = self.choose.once_in(2), self.choose.once_in(2)
            pc.set_floating_point_behaviour(self.graph, made, pc.FloatingPointBehaviour(inv=False, div0=False, oflo=False, esr=esr, nanoo=nanoo))
            return made
        self.note("CycleCount")
        made = program.Sequence(self.copy())
        program.cycle_count(self.graph, made, self.tile())
        return made

    # Ops

    def op(self) -> program.Program:
        """An op of the library on views, its result kept for the host to see."""
        made, kind = program.Sequence(), self.choose.below(7)
        dtype = self.choose.of([FLOAT, HALF, INT])
        if kind == 0:
            a = self.source(dtype)
            result = self.choose.of([popops.add, popops.mul, popops.max])(self.graph, a, self.sized(dtype, a.num_elements).reshape(a.shape), made)
        elif kind == 1:
            result = popops.cast(self.graph, self.source(dtype), self.choose.of([FLOAT, HALF, INT, BOOL]), made)
        elif kind == 2:
            t = self.part(dtype)
            gone = [dim for dim in range(t.rank) if self.choose.once_in(2)]
            result = popops.reduce(self.graph, t, gone, self.choose.of([Operation.ADD, Operation.MAX]), made)
        elif kind == 3:
            target = self.target(dtype)
            popops.fill(self.graph, target, made, 3)
            result = target
        elif kind == 4:
            t = self.variable(dtype, (self.choose.between(1, 6), self.choose.between(1, 4)))
            offset = self.graph.add_constant(UNSIGNED_INT, (1,), self.choose.below(t.dim(0)), tile=self.tile())
            result = popops.dynamic_slice(self.graph, t, offset, [0], [1], made)
        elif kind == 5:
            result = popops.sort(self.graph, self.variable(dtype, (self.choose.between(0, 9),)), 0, made)
        else:
            result = poprand.uniform(self.graph, None, 0, self.variable(FLOAT), FLOAT, 0.0, 1.0, made)
        self.note(f"op: {('element-wise', 'cast', 'reduce', 'fill', 'dynamic_slice', 'sort', 'poprand')[kind]}")
        self.keep(result, made)
        return made

    def keep(self, result: Tensor, made: program.Sequence) -> None:
        """A copy of a result, for the host."""
        made.add(program.Copy(result, self.variable(result.dtype, result.shape)))

    # Replicas

    def group(self) -> gcl.CommGroup:
        divisors = [n for n in range(1, self.replicas + 1) if self.replicas % n == 0]
        kind = self.choose.of([gcl.CommGroupType.ALL, gcl.CommGroupType.CONSECUTIVE, gcl.CommGroupType.ORTHOGONAL])
        return gcl.CommGroup() if kind is gcl.CommGroupType.ALL else gcl.CommGroup(kind, self.choose.of(divisors))

    def collective(self) -> program.Program:
        made, group = program.Sequence(), self.group()
        dtype = self.choose.of(list(OPERATORS))
        operator = gcl.CollectiveOperator[self.choose.of(OPERATORS[dtype])]
        kind = self.choose.of(["all_reduce", "all_reduce_in_place", "reduce_scatter", "all_gather", "all_to_all", "broadcast"])
        options = {"partialsType": "float"} if dtype is HALF and kind.startswith(("all_reduce", "reduce")) and self.choose.once_in(2) else None
        self.note(f"collective: {kind}")
        if kind == "all_reduce_in_place":
            gcl.all_reduce_in_place_cross_replica(self.graph, self.target(dtype), operator, made, group, options=options)
            return made
        size = group.size or self.replicas
        if kind == "all_reduce":
            result = gcl.all_reduce_cross_replica(self.graph, self.part(dtype), operator, made, group, options=options)
        elif kind == "reduce_scatter":
            result = gcl.reduce_scatter_cross_replica(self.graph, self.part(dtype), operator, made, group, options=options)
        elif kind == "all_gather":
            result = gcl.all_gather_cross_replica(self.graph, self.part(dtype), made, group)
        elif kind == "all_to_all":
            result = gcl.all_to_all_cross_replica(self.graph, self.variable(dtype, (size, self.choose.between(0, 3))), made, group)
        else:
            result = gcl.broadcast_cross_replica(self.graph, self.part(dtype), made, group, self.choose.below(size))
        self.keep(result, made)
        return made

    def within_replica(self) -> program.Program:
        """A collective over the IPUs of each replica, whose parts have a first dimension of ranks."""
        self.note("collective within a replica")
        dtype, made = self.choose.of([FLOAT, HALF, INT]), program.Sequence()
        operator = gcl.CollectiveOperator[self.choose.of(["ADD", "MAX", "MIN"])]
        data = self.variable(dtype, (self.ipus, self.choose.between(0, 9)))
        within, tile = self.tiles // self.ipus, self.tile()
        for rank in range(self.ipus):
            self.graph.set_tile_mapping(data[rank], rank * within + tile % within)
        if self.choose.once_in(2):
            self.keep(gcl.all_reduce_within_replica(self.graph, data, operator, made), made)
        else:
            self.keep(gcl.all_gather_within_replica(self.graph, gcl.reduce_scatter_within_replica(self.graph, data, operator, made), made), made)
        return made

    def cross_copy(self) -> program.Program:
        self.note("CrossReplicaCopy")
        target = self.target(self.dtype())
        source = self.sized(target.dtype, target.num_elements)
        return program.CrossReplicaCopy(source, target, [self.choose.below(self.replicas) for _ in range(self.replicas)])

    def numbered(self) -> program.Program:
        """The replica's number into something; or a promise that replicas are alike, which may not hold."""
        if self.choose.once_in(4):
            self.note("AssumeEqualAcrossReplicas")
            return program.AssumeEqualAcrossReplicas(self.part(INT))
        self.note("replica's number")
        number = self.graph.add_replication_index_constant(self.name("n"))
        self.graph.set_tile_mapping(number, self.tile())
        target = self.target(UNSIGNED_INT)
        return program.Copy(number.expand([0]).broadcast(target.num_elements, 0), target)
