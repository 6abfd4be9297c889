"""Do compiled codelets, interpreted ones and the reference agree bit for bit in every floating-point mode?"""

import functools
import math
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import popcore as pc
from popcore import FLOAT, HALF, INT, InOut, Input, MultiVertex, Output, Vector, Vertex, errors, program
from tests.fuzz.compare import bits

SIZE, ROWS = 8, 16
HALVES = [0.0, -0.0, 1.0, -1.5, 6e-8, -6e-5, 300.0, -300.0, 2048.0, 60000.0, 65504.0, -65504.0, math.inf, -math.inf, math.nan]
FLOATS = [0.0, -0.0, 1.0, -1.0, 1e-45, -1e-40, 1.17549435e-38, 2.3e-38, 1e-30, 65519.0, 65520.0, -65536.0, 3e-8, 2.9e-8, 3e38, math.inf, -math.inf, math.nan]


class Halves(Vertex):
    a: Input[Vector[HALF]]
    b: Input[Vector[HALF]]
    x: Input[Vector[FLOAT]]
    n: Input[Vector[INT]]
    out: Output[Vector[HALF]]

    def compute(self):
        for i in range(len(self.a)):
            a, b = self.a[i], self.b[i]
            k = i * 16
            self.out[k] = a + b
            self.out[k + 1] = a - b
            self.out[k + 2] = a * b
            self.out[k + 3] = a / b
            self.out[k + 4] = a**2
            self.out[k + 5] = a**3
            self.out[k + 6] = a % b
            self.out[k + 7] = a // b
            self.out[k + 8] = math.sqrt(a)
            self.out[k + 9] = min(a, b) if a < b else abs(-a)
            self.out[k + 10] = self.x[i]
            self.out[k + 11] = HALF(self.x[i]) + 1
            self.out[k + 12] = self.n[i] * a
            self.out[k + 13] = math.exp(a)
            self.out[k + 14] = math.copysign(math.fabs(a), b)
            self.out[k + 15] = round(a)


class Floats(MultiVertex):
    a: Input[Vector[FLOAT]]
    b: Input[Vector[FLOAT]]
    out: InOut[Vector[FLOAT]]

    def compute(self, worker):
        for i in range(worker, len(self.a), 6):
            a, b = self.a[i], self.b[i]
            k = i * 16
            self.out[k] = a + b
            self.out[k + 1] = a - 0.0
            self.out[k + 2] = a * 1.0 + -0.0
            self.out[k + 3] = a / b
            self.out[k + 4] = max(a, b)
            self.out[k + 5] = self.a[i]
            self.out[k + 6] = -a
            self.out[k + 7] = math.fmod(a, b)
            self.out[k + 8] = a % b
            self.out[k + 9] = math.sqrt(a) * 1
            least = a
            if self.b[i] < least:
                least = self.b[i]
            self.out[k + 10] = least
            self.out[k + 11] = least * 1e-20
            self.out[k + 12] = 1e-30 * 1e-10 + a
            self.out[k + 13] = 1.0 if a == 0.0 else a
            self.out[k + 14] = math.floor(a)
            self.out[k + 15] += a


class Functions(Vertex):
    """Elementary functions, whose formulas take numbers apart."""

    a: Input[Vector[FLOAT]]
    b: Input[Vector[FLOAT]]
    out: Output[Vector[FLOAT]]

    def compute(self):
        for i in range(len(self.a)):
            a, b = self.a[i], self.b[i]
            k = i * 16
            self.out[k] = math.exp(a)
            self.out[k + 1] = math.log(a)
            self.out[k + 2] = math.pow(a, b)
            self.out[k + 3] = math.tanh(a)
            self.out[k + 4] = math.sin(a)
            self.out[k + 5] = math.erf(a)
            self.out[k + 6] = math.expm1(a)
            self.out[k + 7] = math.log1p(a)
            self.out[k + 8] = math.atan2(a, b)
            self.out[k + 9] = math.hypot(a, b)
            self.out[k + 10] = math.sinh(a)
            self.out[k + 11] = math.asin(a)
            self.out[k + 12] = math.tan(a)
            self.out[k + 13] = math.atanh(a)
            self.out[k + 14] = math.erfc(a)
            self.out[k + 15] = math.log2(a)


BEHAVIOURS = {
    "as loaded": None, "nanoo": {"nanoo": True}, "esr": {"esr": True}, "both": {"nanoo": True, "esr": True}, "stops": {"inv": True, "div0": True, "oflo": True},
    "stops at overflow": {"oflo": True}, "stops at NaN": {"inv": True, "nanoo": True}, "stops at zero": {"div0": True, "esr": True},
}  # fmt: skip
MODES = [*(("device", name) for name in BEHAVIOURS), ("ieee", "as loaded"), ("ieee", "esr"), ("ieee", "stops")]


def behaviour(**on):
    return pc.FloatingPointBehaviour(**{name: on.get(name, False) for name in ("inv", "div0", "oflo", "esr", "nanoo")})


@functools.cache
def engines(mode, name, codelet):
    """The three of them, on one graph: two tiles with two vertices each."""
    graph = pc.Graph(pc.Device("IPU-M2000", num_ipus=1, tiles_per_ipu=4).target)
    prog, compute = program.Sequence(), graph.add_compute_set("compute")
    if BEHAVIOURS[name] is not None:
        pc.set_floating_point_behaviour(graph, prog, behaviour(**BEHAVIOURS[name]))
    for field in codelet_fields(codelet):
        elements = 4 * SIZE * (ROWS if field.name == "out" else 1)
        t = graph.add_variable(field.dtype, (4, elements // 4), name=field.name)
        for vertex in range(4):
            graph.set_tile_mapping(t[vertex], 1 + vertex // 2)
        graph.create_host_write(field.name, t)
        graph.create_host_read(field.name, t)
        codelet_tensors[mode, name, codelet, field.name] = t
    for vertex in range(4):
        ends = {f.name: codelet_tensors[mode, name, codelet, f.name][vertex] for f in codelet_fields(codelet)}
        graph.add_vertex(compute, codelet, ends, tile=1 + vertex // 2)
    prog.add(program.Execute(compute))
    options = {"target.floatingPoint": mode, "prng.seed": 7}
    compiled = pc.Engine(graph, prog, options={**options, "engine.threads": 2})
    with mock.patch.dict("os.environ", {"POPCORE_INTERPRET": "1"}):
        interpreted = pc.Engine(graph, prog, options=options)
    return compiled, interpreted, pc.ReferenceEngine(graph, prog, options=options)


codelet_tensors = {}


def codelet_fields(codelet):
    from popcore.codelet import codelet_of

    return codelet_of(codelet, ()).fields


def drawn(field, rng, few):
    """A value for all vertices: half of them known to be awkward, half any bits. ``few``: all but two elements are one, so that a run gets far."""
    if field.name == "out":
        return np.zeros((4, SIZE * ROWS), field.dtype.numpy)
    if field.dtype is INT:
        return rng.integers(-70000, 70000, (4, SIZE), np.int32)
    known = np.array(HALVES if field.dtype is HALF else FLOATS).astype(field.dtype.numpy)
    anything = rng.integers(0, 256, (4, SIZE * field.dtype.nbytes), np.uint8).view(field.dtype.numpy)
    values = np.where(rng.random((4, SIZE)) < 0.5, rng.choice(known, (4, SIZE)), anything)
    return np.where(rng.random((4, SIZE)) < 0.07, values, field.dtype.numpy.type(1)) if few else values


def observed(engine, values):
    """Bits of what a run leaves; the exception, and where, if it stops."""
    engine.load()
    for name, array in values.items():
        engine.write_tensor(name, array)
    try:
        engine.run()
    except errors.FloatingPointVertexError as error:
        return error.exception, error.tile, error.vertex, error.compute_set, bits(np.array(error.values, np.float32))
    return bits(engine.read_tensor("out"))


@pytest.mark.parametrize(("mode", "name"), MODES)
@pytest.mark.parametrize("codelet", [Halves, Floats, Functions], ids=lambda c: c.__name__)
def test_all_three_agree(mode, name, codelet):
    """
    Every operation on values with a meaning, and on any.
    """

    @settings(deadline=None, max_examples=12)
    @given(st.integers(0, 2**32 - 1), st.booleans())
    def agree(seed, few):
        values = {f.name: drawn(f, np.random.default_rng(seed), few) for f in codelet_fields(codelet)}
        compiled, interpreted, reference = (observed(each, values) for each in engines(mode, name, codelet))
        assert compiled == interpreted == reference

    agree()
