"""The benchmarks of PopLibs' own regression suite besides products: layers, reductions, embeddings, recurrent layers, pooling, solvers.

Sizes and options are those of PopLibs' ``tests/CMakeLists.txt`` at the parent of commit 3a650a11, the steps those of its tools at that commit with what
they do unless told otherwise: HALF, the forward pass and both gradients of a layer. Of the names in ``poplibs_convolutions.csv`` each is a layer.
"""

from __future__ import annotations

import csv
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import popcore as pc
from bench.fidelity.figures import Family, Figure
from bench.fidelity.programs import graph_of, modelled, system_of
from popcore import FLOAT, HALF, program
from popcore.ops import poplin, popops
from popcore.ops.poplin import ConvParams, InputTransform, OutputTransform
from popcore.ops.popnn import gru, lstm, pooling

LAYERS = Path(__file__).parent / "poplibs_convolutions.csv"
POOLS = {
    "pool1": (147, 64, 2, 0),
    "pool2": (71, 192, 2, 0),
    "i1_dmaxpool": (35, 192, 1, 1),
    "i2_dmaxpool": (35, 256, 1, 1),
    "i3_dmaxpool": (35, 288, 1, 1),
    "i4_cmaxpool": (35, 288, 2, 0),
    "i5_dmaxpool": (17, 768, 1, 1),
    "i6_dmaxpool": (17, 768, 2, 0),
    "i9_dmax_pool": (8, 1280, 1, 1),
    "i10_dmax_pool": (8, 2048, 1, 1),
}
"""Field, channels, stride and padding of the maxima over 3 x 3 that "inception_tr_bs1_" benchmarks name; channels lie in groups of eight, in i9 singly."""
REDUCTIONS = {
    "bert_reduce_0": ((16, 4, 16, 32, 8), (1, 3), "MAX", 1024),
    "bert_reduce_1": ((16, 4, 16, 32, 8), (1, 3), "ADD", 1024),
    "bert_reduce_2": ((16, 256, 8, 4), (1, 3), "ADD", 1024),
    "bert_reduce_3": ((16, 256, 8, 4), (1, 3), "SQUARE_ADD", 1024),
    "bert_reduce_4": ((128, 16, 8, 16), (0, 2), "ADD", None),
    "resnet50_tr_bs1_cnv_reduce": ((4, 25_088, 8), (1,), "SQUARE_ADD", None),
    "resnet50_tr_bs1_bm64L0A0_reduce": ((4, 6272, 8), (1,), "ADD", 1200),
    "resnet50_tr_bs1_bm128L0A0_reduce": ((4, 3136, 8), (1,), "ADD", None),
    "resnet50_tr_bs1_bm128L0_reduce": ((4, 12_544, 8), (1,), "ADD", None),
}
"""Shape, dimensions that go, operation, tiles if not all of the chip."""
EMBEDDINGS = {"embedding_small": (1000, 200, 21_600), "embedding_vlarge": (100_000, 200, 1440), "embedding_vlarge_large_indices": (100_000, 200, 11_520)}
"""Rows, columns, look-ups."""


def name_of(figure: Figure) -> str:
    """The benchmark that the row names."""
    return figure.benchmark.split()[-1]


def _parameters(figure: Figure, table: dict[str, Any]) -> Any:
    name = name_of(figure)
    if name not in table:
        raise LookupError(f"row {figure.id}: the sizes of benchmark {name!r} are not known; known are {', '.join(sorted(table))}")
    return table[name]


@cache
def layers() -> dict[str, ConvParams]:
    """The layers of the table, by name."""
    with open(LAYERS, newline="", encoding="utf-8") as file:
        return {row["name"]: _layer(row) for row in csv.DictReader(file)}


def _layer(row: dict[str, str]) -> ConvParams:
    field, kernel, stride, lower, upper = (_square(row[name]) for name in ("field", "kernel", "stride", "lower", "upper"))
    transform = InputTransform(padding_lower=lower, padding_upper=upper)
    sizes = (int(row["inputs"]), int(row["outputs"]), int(row["groups"]))
    return ConvParams(HALF, int(row["batch"]), field, kernel, *sizes, transform, output_transform=OutputTransform(stride=stride))


def _square(text: str) -> tuple[int, int]:
    """ "3" or "1x7" """
    numbers = [int(n) for n in text.split("x")]
    return numbers[0], numbers[-1]


def convolution(figure: Figure) -> float:
    """Cycles of a layer: forward, the gradient of its input, the update of its weights."""
    params = _parameters(figure, layers())
    backward = poplin.get_gradient_params(params)
    graph, steps = graph_of(figure), program.Sequence()
    data, weights, deltas = poplin.create_input(graph, params), poplin.create_weights(graph, params), poplin.create_input(graph, backward)
    poplin.convolution(graph, data, weights, params, False, steps)
    poplin.convolution(graph, deltas, weights, backward, True, steps)
    poplin.convolution_weight_update(graph, deltas, weights, data, params, -1.0, steps)
    return modelled(graph, steps).total_cycles


def pool(figure: Figure) -> float:
    """Cycles of maxima over windows and their gradient, of tensors that lie linearly on the tiles."""
    name = name_of(figure).removeprefix("inception_tr_bs1_")
    if name not in POOLS:
        raise LookupError(f"row {figure.id}: the sizes of benchmark {name!r} are not known; known are {', '.join(POOLS)}")
    field, channels, stride, pad = POOLS[name]
    group = 1 if name.startswith("i9_") else 8
    graph, steps = graph_of(figure), program.Sequence()
    params = pooling.PoolParams(pooling.PoolingType.MAX, (field,) * 2, (3, 3), (stride,) * 2, (pad,) * 2, (pad,) * 2, channels, 1, HALF)

    def activations(field: tuple[int, ...]) -> pc.Tensor:
        made = graph.add_variable(HALF, (channels // group, 1, *field, group), mapping="linear", name="activations")
        return made.dim_shuffle([1, 0, 4, 2, 3]).reshape((1, channels, *field))

    data, gradient = activations((field, field)), activations(pooling.get_output_field_shape(params))
    pooled = pooling.pool(graph, params, data, steps)
    pooling.pool_input_gradient(graph, params, data, pooled, gradient, False, steps)
    return modelled(graph, steps).total_cycles


def reduction(figure: Figure) -> float:
    """Cycles of popops.reduce of HALF that lies linearly on the tiles."""
    shape, dims, operation, tiles = _parameters(figure, REDUCTIONS)
    steps = program.Sequence()
    graph = pc.Graph(pc.Device(system_of(figure), num_ipus=1, tiles_per_ipu=tiles).target)
    data = graph.add_variable(HALF, shape, mapping="linear", name="data")
    popops.reduce(graph, data, dims, popops.Operation[operation], steps)
    return modelled(graph, steps).total_cycles


def embedding(figure: Figure) -> float:
    """Cycles of a planned look-up and of an update with as many rows."""
    rows, columns, lookups = _parameters(figure, EMBEDDINGS)
    graph, steps = graph_of(figure), program.Sequence()
    plan = popops.embedding.plan(graph, HALF, rows, columns, [lookups], {"usedForUpdate": "true"})
    table = popops.create_sliceable_tensor(graph, HALF, (rows, columns), [0], [1], plan)
    indices = popops.create_indices_tensor(graph, [0], lookups, plan)
    deltas = popops.create_slice_tensor(graph, HALF, (rows, columns), [0], [1], lookups, plan)
    popops.multi_slice(graph, table, indices, [0], [1], steps, plan)
    popops.multi_update_add(graph, table, deltas, indices, 1.0, [0], [1], steps, plan)
    graph.create_host_write("indices", indices)
    engine = pc.Engine(graph, steps, options={"debug.allowOutOfMemory": True})  # an update takes as many rounds as the indices need
    engine.write_tensor("indices", np.random.default_rng(0).integers(0, rows, (lookups, 1)).astype(np.uint32))
    engine.run()
    return engine.profile().total_cycles


def recurrent(figure: Figure) -> float:
    """Cycles of a recurrent layer forward, of "_train" of its gradients too; batch, steps, inputs, units and type are in the name."""
    name = name_of(figure)
    found = re.fullmatch(r"(lstm|gru)_(\d+)_(\d+)_(\d+)_(\d+)_(half|float)(?:_shuffled_cell_order)?(_train)?", name)
    if found is None:
        raise LookupError(f"row {figure.id}: benchmark {name!r} does not say batch, steps, inputs, units and type")
    layer: Any = lstm if found[1] == "lstm" else gru
    sizes = [int(n) for n in found.groups()[1:5]]
    graph, steps = graph_of(figure), program.Sequence()
    kind = lstm.LstmParams if layer is lstm else gru.GruParams
    params = kind(HALF if found[6] == "half" else FLOAT, *sizes[:2], tuple(sizes[2:]))
    data, state, weights = layer.create_input(graph, params), layer.create_initial_state(graph, params), layer.create_weights(graph, params)
    kept: list[pc.Tensor] | None = [] if found[7] else None
    out = (lstm.lstm_fwd if layer is lstm else gru.gru_fwd)(graph, params, state, data, weights, kept, steps)
    if kept is not None:
        output = out[0] if layer is lstm else out
        gradient = graph.add_variable(params.data_type, output.shape, mapping="linear", name="gradient")
        common = (graph, params, steps, state, kept[0], weights, data, output, gradient)
        _ = lstm.lstm_bwd_with_wu(*common, None, [], []) if layer is lstm else gru.gru_bwd_with_wu(*common, [], [])
    return modelled(graph, steps).total_cycles


def solver(figure: Figure) -> float:
    """Cycles of solving for a triangular matrix, or of its making: batch, sizes, side and type are in the name."""
    name, graph, steps = name_of(figure), graph_of(figure), program.Sequence()
    if found := re.fullmatch(r"cholesky_batch_(\d+)_dim_(\d+)_block_(\d+)_lower_(true|false)_type_(half|float)", name):
        lower, dtype, options = found[4] == "true", HALF if found[5] == "half" else FLOAT, {"blockSize": found[3]}
        shape = int(found[1]), int(found[2]), int(found[2])
        a = poplin.create_cholesky_input(graph, dtype, shape, lower, options=options)
        poplin.cholesky_in_place(graph, a, lower, steps, options=options)
    elif found := re.fullmatch(r"triangular_solve_(\d+)_(\d+)_(\d+)_(\d+)_(half|float)_(left|right)", name):
        batch, n, k = (int(found[i]) for i in (1, 2, 3))
        dtype, left, options = HALF if found[5] == "half" else FLOAT, found[6] == "left", {"blockSize": found[4]}
        shapes = (batch, n, n), (batch, n, k) if left else (batch, k, n)
        make = poplin.create_triangular_solve_input_lhs, poplin.create_triangular_solve_input_rhs
        a, b = (each(graph, dtype, dtype, *shapes, left, options=options) for each in make)
        poplin.triangular_solve(graph, a, b, left, True, True, steps, options=options)
    else:
        raise LookupError(f"row {figure.id}: benchmark {name!r} does not say batch, sizes and type")
    return modelled(graph, steps).total_cycles


TOOLS = {
    r"(lstm|gru)_.*": recurrent,
    r"embedding_.*": embedding,
    r"bert_reduce_.*|resnet50_tr_bs1_.*_reduce": reduction,
    r"inception_tr_bs1_.*pool.*": pool,
    r"(cholesky|triangular_solve)_.*": solver,
    r".*": convolution,
}
"""By the names of benchmarks, the first that fits; products are in ``products``."""


def benchmark(figure: Figure) -> float:
    """Cycles of the benchmark that the row names."""
    name = name_of(figure)
    return next(run for pattern, run in TOOLS.items() if re.fullmatch(pattern, name))(figure)


FAMILIES = (Family("PopLibs benchmarks", r"(PB|PC-3)-(?!fc_layer|gemm|bert_(?!reduce)).*", benchmark),)
