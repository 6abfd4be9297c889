"""Graph: everything a program is about. Variables and where they live, compute sets and their vertices, what the host sees.

It keeps columns of numbers, never an object for an element or a vertex, and stays editable after an Engine was made.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from popcore.codelet import Codelet
from popcore.debug import Site, user_site
from popcore.errors import GraphConnectionError, GraphError, ValueRangeError
from popcore.graph import bulk, connect, order, text
from popcore.graph import finalise as finalising
from popcore.graph.host import HostEnds
from popcore.graph.registry import Codelets
from popcore.graph.storage import Storage
from popcore.graph.tensor import Interval, Tensor
from popcore.graph.variable import Variable, Variables
from popcore.graph.vertex import UNMAPPED, ComputeSet, FieldRef, VertexGroup, VertexRange, VertexRef
from popcore.target import Device, Target
from popcore.types import Array


@dataclass(frozen=True, eq=False)
class Function:
    """A program that several places Call. Made by ``Graph.add_function``."""

    id: int
    name: str
    program: Any
    site: Site


class Graph(Storage, HostEnds):
    """Grows by its ``add_`` methods; every mistake is reported by the call that makes it.

    Args:
        target: What it is for; a Device does too.
        replication_factor: So many copies of the graph run at once, each with its own data. ``graph.target`` is then that of one.

    Attributes:
        variables, compute_sets, functions: Lists, each entry's ``id`` its index.
        host_reads, host_writes, streams, remotes: By handle.
        replica_indices: Tensors of 32-bit elements that hold the replica's number when an engine loads.
        machine_state: What tiles keep that no program declares, by name: made by the operations that need it.
    """

    def __init__(self, target: Target | Device, replication_factor: int = 1) -> None:
        super().__init__()
        if isinstance(replication_factor, bool) or not isinstance(replication_factor, int) or replication_factor < 1:
            raise GraphError(f"replication_factor is {replication_factor!r}", "1 or more")
        whole = target.target if isinstance(target, Device) else target
        if whole.num_ipus % replication_factor:
            raise GraphError(
                f"replication_factor {replication_factor} does not divide the {whole.num_ipus} IPUs of {whole}",
                f"a divisor of {whole.num_ipus}, or a device of {-(-whole.num_ipus // replication_factor) * replication_factor} IPUs",
            )
        self.target = whole.with_ipus(whole.num_ipus // replication_factor)
        self.replication_factor = replication_factor
        self.variables = Variables(self)
        self.compute_sets: list[ComputeSet] = []
        self.functions: list[Function] = []
        self.replica_indices: list[Tensor] = []
        self.machine_state: dict[str, Tensor] = {}
        self.codelets = Codelets()
        self._hidden: dict[Any, Variable] = {}
        self._num_tiles = self.target.num_tiles
        self._translation: Array | None = None
        self._top: Graph | None = None  # of which this is the replicated view

    # Codelets, compute sets, vertices

    def add_codelets(self, *codelets: Any, cxxflags: str | Sequence[str] = ()) -> None:
        """Make codelets known by their names.

        Args:
            codelets: Vertex classes; paths of C++ files; lists of either (the files of a list are linked together);
                or C++ source as a text of several lines.
            cxxflags: For the C++ compiler: "-I../include -DWIDTH=8".

        Raises: CodeletError, with the user's line, for one a tile cannot run.
        """
        for codelet in codelets:
            many = codelet if isinstance(codelet, (list, tuple)) else (codelet,)
            if all(isinstance(each, (str, os.PathLike)) for each in many):
                self.codelets.add_files(codelet, cxxflags)
            else:
                for each in many:
                    self.codelets.add(each)

    def has_codelet(self, name: Any) -> bool:
        return name in self.codelets

    def add_compute_set(self, name: str = "") -> ComputeSet:
        made = ComputeSet(self.variables.graph, len(self.compute_sets), name or f"compute set {len(self.compute_sets)}", user_site())
        self.compute_sets.append(made)
        return made

    def add_vertex(self, compute_set: ComputeSet, codelet: Any, connections: Mapping[str, Any] | None = None, tile: int | None = None) -> VertexRef:
        """Add one vertex, a run of ``codelet`` (a class or its name), and connect its fields.

        Args:
            connections: Field to tensor, list of tensors, or literal (an Input; also the initial value of a state field).
            tile: Where it runs; or later, ``set_tile_mapping(vertex, tile)``.

        Raises:
            UnknownNameError: no such codelet or field, with near matches.
            GraphConnectionError: a tensor that the field cannot be connected to.
            ValueRangeError: a literal that the field's type cannot hold.
            TileMappingError: a tile that the target does not have.
        """
        if tile is None:
            tile = UNMAPPED
        elif tile.__class__ is not int or not 0 <= tile < self._num_tiles or self._translation is not None:
            tile = self.tile_of(tile, codelet)
        try:
            group = compute_set.plans[codelet]
        except (KeyError, TypeError, AttributeError):
            group = self._group(compute_set, codelet)
        return group.add(connections, tile)

    def add_vertices(self, compute_set: ComputeSet, codelet: Any, connections: Mapping[str, Any], tiles: Any, cycles: Any = None) -> VertexRange:
        """Add a vertex on each of ``tiles``, connected by arrays.

        Args:
            connections: Field to one of

                * a tensor of the field's rank: all vertices share it;
                * a tensor of one rank more: vertex i gets ``t[i]``;
                * ``(tensor, start, length)``, ``(tensor, start)`` for a scalar field, ``(tensor, start, rows, columns)`` for a matrix:
                  vertex i gets elements ``start[i]`` to ``start[i] + length[i]`` of the flattened tensor;
                * a literal, or an array of one value a vertex, for a scalar Input or state field.
            tiles: int[n]
            cycles: Estimate of each vertex, one number or int[n].

        Raises: as ``add_vertex``; then nothing was added.
        """
        group = self._group(compute_set, codelet)
        made = bulk.checked_tiles(tiles, self._num_tiles, repr(group))
        return bulk.add_many(group, connections, made if self._translation is None else self._translation[made].astype(np.int32), cycles)

    def connect(self, field: FieldRef, what: Any) -> None:
        """Connect a field, or one vector of a list field (``v["f"][i]``), to a tensor, a list of tensors or a literal."""
        if not isinstance(field, FieldRef):
            raise GraphConnectionError(f"connect({field!r}, ...)", 'connect(vertex["field"], tensor)')
        group, index = field.vertex.group, field.vertex.index
        if field.row is None:
            connect.connect(field.column, index, what, self.variables, group.label)
        else:
            self._own_tensor(what, f"connect({field!r}, ...)")
            connect.connect_row(field.column, index, field.row, what, self.variables, group.label)

    def set_field_size(self, field: FieldRef, size: int) -> None:
        """Elements of a Vector field that nothing is connected to: state, or a buffer that only this vertex sees."""
        connect.set_size(field.column, field.vertex.index, int(size), field.vertex.group.label)

    def set_perf_estimate(self, vertex: VertexRef, cycles: int, flops: int = 0) -> None:
        """Cycles that the model charges for one run of the vertex."""
        if cycles < 0 or flops < 0:
            raise ValueRangeError(f"estimate of {vertex!r}: {cycles} cycles, {flops} flops", "0 or more")
        vertex.group.set_estimate(vertex.index, int(cycles), int(flops))

    set_cycle_estimate = set_perf_estimate

    # Programs and sub-graphs

    def add_function(self, program: Any, name: str = "") -> Function:
        """A program kept once and called from several places."""
        made = Function(len(self.functions), name or f"function {len(self.functions)}", program, user_site())
        self.functions.append(made)
        return made

    def add_replication_index_constant(self, name: str = "replication index") -> Tensor:
        """An UNSIGNED_INT scalar: the number of the replica; 0 in a graph of one."""
        made = self.add_constant("unsigned int", (), 0, name=name)
        self.replica_indices.append(made)
        return made

    def create_replicated_graph(self, replication_factor: int) -> Graph:
        """The older way to replicate: this graph seen by one of so many replicas, each on an equal share of its IPUs.

        Needs: nothing was added to this graph yet. Afterwards both are views of one graph that every replica has for itself, whatever is
        added through either; their ``target`` and ``replication_factor`` differ. ``Graph(target, replication_factor=n)`` does it in one call.

        Raises: GraphError: this graph is not empty or is itself a part of another, or a factor that does not divide its IPUs.
        """
        if self.variables.graph is not self or self._top is not None:
            raise GraphError(f"a replicated graph of {self!r}, which is a view of another", "replicate that one: get_top_level_graph()")
        if any((len(self.variables), self.compute_sets, self.functions, self.streams, self.remotes, self.host_reads, self.host_writes)):
            raise GraphError(f"a replicated graph of {self!r}, which is not empty", "replicate first, or Graph(target, replication_factor=n)")
        made = Graph(self.target, replication_factor)
        made.replication_factor *= self.replication_factor
        own = {"target": self.target, "replication_factor": self.replication_factor}
        self.__dict__.update(made.__dict__)
        self.__dict__.update(own)
        made._top = self
        return made

    def get_top_level_graph(self) -> Graph:
        """The graph that this is a view of, replicated or virtual; itself if it is none."""
        whole: Graph = self.variables.graph
        return whole._top or whole

    def create_virtual_graph(self, tiles: int | Sequence[int], upper: int | None = None) -> Graph:
        """This graph seen through some of its tiles: the first ``n``, those from ``lower`` to ``upper``, or a list. Shares everything else."""
        from popcore.graph.virtual import VirtualGraph  # a kind of Graph

        return VirtualGraph(self, tiles, upper)

    # Layout

    def get_sorted_contiguous_regions(
        self, tensor: Tensor, regions: Sequence[Sequence[int]] | None = None, remove_aliased: bool = False
    ) -> list[list[Interval]]:
        """See ``order.sorted_contiguous_regions``."""
        self._own_tensor(tensor, "get_sorted_contiguous_regions")
        return order.sorted_contiguous_regions(tensor, regions, remove_aliased)

    def find_unbroadcast_tensor(self, tensor: Tensor) -> Tensor:
        """The tensor that ``tensor`` broadcasts; itself if it is no broadcast."""
        return order.find_unbroadcast_tensor(tensor)

    def reorder_to_simplify(self, tensor: Tensor, others: Sequence[Tensor] = ()) -> tuple[Tensor, list[Tensor]]:
        """Flat views of ``tensor`` and ``others``, all in the order in which ``tensor`` lies in memory."""
        return order.reorder_to_simplify(tensor, others)

    # For the compiler

    def finalise(self) -> None:
        """Give every field of every vertex elements of a variable: see ``finalise.finalise``. May be called any number of times."""
        finalising.finalise(self.variables, self.compute_sets, self._hidden)

    # Text

    def dump(self, limit: int = 40) -> str:
        """Everything in the graph as text: at most ``limit`` lines of each kind of thing."""
        return text.dump(self, limit)

    def __repr__(self) -> str:
        return text.summary(self)

    def _repr_html_(self) -> str:
        return text.html(self)

    # Inside

    def _group(self, compute_set: Any, key: Any) -> VertexGroup:
        if not isinstance(compute_set, ComputeSet) or compute_set.graph is not self.variables.graph:
            raise GraphError(f"{compute_set!r} is no compute set of this graph", "graph.add_compute_set(name)")
        found: Codelet = self.codelets.find(key)
        group = compute_set.groups.get(found)
        if group is None:
            group = compute_set.groups[found] = VertexGroup(compute_set, found, self.variables, user_site())
        compute_set.plans[key] = group
        return group

    def _set_field_value(self, field: FieldRef, value: Any) -> None:
        if field.row is not None:
            raise GraphConnectionError(f"{field!r} has no initial value", "connect a tensor and give that one")
        connect.set_value(field.column, field.vertex.index, value, field.vertex.group.label)
