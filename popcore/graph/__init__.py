"""Graph, Tensor, ComputeSet, tile mapping: what a user builds before anything is compiled."""

from popcore.graph.cloning import CloneMethod
from popcore.graph.columns import EXTRA, UNCONNECTED, Column
from popcore.graph.graph import Function, Graph
from popcore.graph.host import ReplicatedStreamMode
from popcore.graph.mapping import TileMapping
from popcore.graph.regions import Regions
from popcore.graph.tensor import Interval, Tensor, append, concat
from popcore.graph.values import PopcoreWarning
from popcore.graph.variable import Variable
from popcore.graph.vertex import ComputeSet, FieldRef, VertexGroup, VertexRange, VertexRef
from popcore.graph.virtual import VirtualGraph

__all__ = [
    "EXTRA",
    "UNCONNECTED",
    "CloneMethod",
    "Column",
    "ComputeSet",
    "FieldRef",
    "Function",
    "Graph",
    "Interval",
    "PopcoreWarning",
    "Regions",
    "ReplicatedStreamMode",
    "Tensor",
    "TileMapping",
    "Variable",
    "VertexGroup",
    "VertexRange",
    "VertexRef",
    "VirtualGraph",
    "append",
    "concat",
]
