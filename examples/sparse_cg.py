"""Conjugate gradients on a sparse matrix, all of it on the device: the heat of a plate with a few hot spots.

The plate is a square of points, each the mean of its four neighbours but for what heats it: Poisson's equation. Its matrix has five diagonals. popsparse cuts
the rows over the tiles of an IPU; of the vector a tile gets its neighbours' edge only. The loop, with its two dot products, runs until the
residual is small; the host looks at the result once.
"""

import numpy as np

import popcore as pc
from popcore import FLOAT, INT, program
from popcore.ops import popops, popsparse
from popcore.ops.popops.expr import _1, _2, _3
from popcore.ops.popsparse import static_

SIDE = 64
TOLERANCE = 1e-5  # of the residual, against that of a cold plate
MOST_STEPS = 500


def poisson(side):
    """The five-point matrix of a square with cold edges, as CSR."""
    at = np.arange(side * side).reshape(side, side)
    pairs = [(at, at, 4.0)]
    for a, b in ((at[1:], at[:-1]), (at[:, 1:], at[:, :-1])):
        pairs += [(a, b, -1.0), (b, a, -1.0)]
    row = np.concatenate([a.ravel() for a, _, _ in pairs])
    column = np.concatenate([b.ravel() for _, b, _ in pairs])
    value = np.concatenate([np.full(a.size, v, np.float32) for a, _, v in pairs])
    order = np.lexsort((column, row))
    return popsparse.CSRMatrix(at.size, at.size, value[order], column[order], np.searchsorted(row[order], np.arange(at.size + 1)))


def dot(graph, a, b, prog):
    """The product of two vectors, a scalar."""
    product = popops.map(graph, _1 * _2, [a, b], prog)
    return popops.reduce(graph, product.flatten(), [0], popops.Operation.ADD, prog)


def build(graph, matrix):
    """The tensors that the host writes or reads, and the program."""
    size = matrix.num_rows
    params = static_.MatMulParams.create_for_sparse_dense(1, size, size, 1)
    a = static_.create_sparse_dense_mat_mul_lhs(graph, FLOAT, params, matrix, "matrix")
    p = static_.create_sparse_dense_mat_mul_rhs(graph, FLOAT, params, matrix, "direction")[0]
    b, x, r = (graph.clone(p, name) for name in ("heat", "temperature", "residual"))
    rr, limit = (graph.add_variable(FLOAT, (), name=name, tile=0) for name in ("residual squared", "limit"))
    steps = graph.add_variable(INT, (), name="steps", tile=0)

    start = program.Sequence()
    popops.zero(graph, x, start)
    popops.zero(graph, steps, start)
    start.add(program.Copy(b, r))
    start.add(program.Copy(b, p))
    start.add(program.Copy(dot(graph, r, r, start), rr))
    popops.map_with_output(graph, _1 * TOLERANCE**2, [rr], limit, start)

    test = program.Sequence()
    goes_on = popops.map(graph, (_1 > _2) & (_3 < MOST_STEPS), [rr, limit, steps], test)

    step = program.Sequence()
    ap = static_.sparse_dense_mat_mul(graph, a, p, step)
    alpha = popops.map(graph, _1 / _2, [rr, dot(graph, p, ap, step)], step)
    popops.map_in_place(graph, _1 + _3 * _2, [x, p, alpha], step)
    popops.map_in_place(graph, _1 - _3 * _2, [r, ap, alpha], step)
    now = dot(graph, r, r, step)
    beta = popops.map(graph, _1 / _2, [now, rr], step)
    popops.map_in_place(graph, _3 * _1 + _2, [p, r, beta], step)
    step.add(program.Copy(now, rr))
    popops.map_in_place(graph, _1 + 1, [steps], step)

    graph.create_host_write("matrix", a.get_nz_values_tensor())
    graph.create_host_write("heat", b)
    graph.create_host_read("temperature", x)
    graph.create_host_read("steps", steps)
    values = static_.Partitioner(params, FLOAT, graph.target).create_sparsity_data_impl(matrix).nz_values
    return values, program.Sequence(start, program.RepeatWhileTrue(test, goes_on, step))


def main():
    """Build, solve, compare with the definition."""
    matrix = poisson(SIDE)
    device = pc.Device("M2000", num_ipus=1)
    graph = pc.Graph(device.target)
    values, prog = build(graph, matrix)
    engine = pc.Engine(graph, prog, device=device)
    heat = np.zeros((SIDE, SIDE), np.float32)
    heat[SIDE // 4, SIDE // 3], heat[SIDE // 2, SIDE - 9], heat[-5, 7] = 100, 40, -60
    engine.write_tensor("matrix", values)
    engine.write_tensor("heat", heat.reshape(-1, 1))
    engine.run()

    x = np.pad(engine.read_tensor("temperature").reshape(SIDE, SIDE).astype(np.float64), 1)
    residual = heat - (4 * x[1:-1, 1:-1] - x[2:, 1:-1] - x[:-2, 1:-1] - x[1:-1, 2:] - x[1:-1, :-2])
    relative = np.linalg.norm(residual) / np.linalg.norm(heat)
    if relative > 2 * TOLERANCE:
        raise SystemExit(f"the residual is {relative:.2e}, not below {TOLERANCE}")
    profile = engine.profile()
    steps = int(engine.read_tensor("steps"))
    print(f"unknowns {matrix.num_rows:,}, non-zero values {matrix.nz_values.size:,}, on {device.target.num_tiles:,} tiles")
    print(f"steps {steps}, residual {relative:.1e} of that of a cold plate")
    print(f"temperature from {x.min():.2f} to {x.max():.2f}")
    print(f"modelled device time {profile.device_seconds * 1e6:,.0f} us, {profile.total_cycles // steps:,} cycles a step")


if __name__ == "__main__":
    main()
