"""The floating-point state of an engine: what the host sees of it, which drivers it links, what stops a run."""

import numpy as np
import pytest

import popcore as pc
from popcore import FLOAT, HALF, Executable, FloatingPointBehaviour, Input, Output, Vector, Vertex, errors, native, program
from popcore.executable.executable import MODIFY
from popcore.kernels import objects

DENORMAL = np.float32(1e-40)
OFF = {"inv": False, "div0": False, "oflo": False, "esr": False, "nanoo": False}


class Scale(Vertex):
    x: Input[Vector[FLOAT]]
    out: Output[Vector[FLOAT]]

    def compute(self):
        for i in range(len(self.x)):
            self.out[i] = self.x[i] * 0.5


class Guarded(Vertex):
    """Divides where it can: what a compiler may compute ahead of its test."""

    x: Input[Vector[FLOAT]]
    y: Input[Vector[FLOAT]]
    out: Output[Vector[FLOAT]]

    def compute(self):
        for i in range(len(self.x)):
            self.out[i] = self.x[i] / self.y[i] if self.y[i] != 0 else 0.0


class Round(Vertex):
    x: Input[Vector[FLOAT]]
    out: Output[Vector[HALF]]

    def compute(self):
        for i in range(len(self.x)):
            self.out[i] = self.x[i]


def graph_of(codelet, values, dtype=FLOAT, tiles=2, **behaviour):
    """A graph with a vertex on each tile, of rows of ``values``; and its program."""
    graph = pc.Graph(pc.Device("IPU-M2000", num_ipus=1, tiles_per_ipu=tiles).target)
    compute, prog = graph.add_compute_set("compute"), program.Sequence()
    if behaviour:
        pc.set_floating_point_behaviour(graph, prog, FloatingPointBehaviour(**{**OFF, **behaviour}))
    shape = next(iter(values.values())).shape
    tensors = {name: graph.add_variable(FLOAT, shape, name=name) for name in values} | {"out": graph.add_variable(dtype, shape, name="out")}
    for name, t in tensors.items():
        for tile in range(tiles):
            graph.set_tile_mapping(t[tile], tile)
        if name in values:
            graph.set_initial_value(t, values[name])
        graph.create_host_read(name, t)
    for tile in range(tiles):
        graph.add_vertex(compute, codelet, {name: t[tile] for name, t in tensors.items()}, tile=tile)
    prog.add(program.Execute(compute))
    return graph, prog


def test_the_users_numpy_never_flushes():
    """
    Not in a callback in the middle of a run, on one thread or two, and not afterwards; codelets do, on every thread.
    """
    x = np.full((64, 20_000), 2 * DENORMAL, np.float32)
    graph, prog = graph_of(Scale, {"x": x}, tiles=64)
    stream = graph.add_device_to_host_fifo("seen", FLOAT, 64)
    out = next(t for t in graph.host_reads.values() if t.name == "out")
    prog.add(program.Copy(out[:, 0], stream))
    prog = program.Repeat(3, prog)
    for threads in (1, 2):
        seen = []
        engine = pc.Engine(graph, prog, options={"engine.threads": threads})
        engine.connect_stream("seen", lambda data, seen=seen: seen.append((DENORMAL * np.float32(1), data.any())))
        engine.run()
        assert seen == [(DENORMAL, False)] * 3
        assert DENORMAL * np.float32(1) == DENORMAL
        assert not engine.read_tensor("out").any()
        assert (engine.read_tensor("x") == x).all()


def test_only_the_drivers_in_use_are_compiled(monkeypatch):
    """
    A program that begins with a change compiles no driver for the state before it, but the one that adding the codelet makes.
    """
    keys = []
    load = objects.load
    monkeypatch.setattr(native.objects, "load", lambda cache, key, symbols, build: keys.append(symbols[0]) or load(cache, key, symbols, build))
    graph, prog = graph_of(Round, {"x": np.ones((2, 3), np.float32)}, HALF, nanoo=True)
    added, keys[:] = list(keys), []
    engine = pc.Engine(graph, prog)
    assert not [key for key in keys if "driver" in key]
    engine.run()
    engine.run()
    assert [key.split("_")[-1] for key in keys if "driver" in key] == ["nan00"]
    assert [key.split("_")[-1] for key in added if "driver" in key] == ["saturate00"]


def test_codelets_without_halves_have_one_driver():
    """
    Rounding to half is nothing to them.
    """
    graph, prog = graph_of(Scale, {"x": np.ones((2, 3), np.float32)}, esr=True, nanoo=True)
    engine = pc.Engine(graph, prog, options={"target.floatingPoint": "ieee"})
    engine.run()
    assert (engine.read_tensor("out") == 0.5).all()


def test_a_guarded_division_stops_nothing():
    """
    Nor does what lies in lanes that are not chosen.
    """
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 1001)).astype(np.float32), rng.integers(-1, 2, (2, 1001)).astype(np.float32)
    graph, prog = graph_of(Guarded, {"x": x, "y": y}, inv=True, div0=True, oflo=True)
    engine = pc.Engine(graph, prog)
    engine.run()
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(engine.read_tensor("out"), np.where(y != 0, x / y, 0).astype(np.float32))


@pytest.mark.parametrize("engine_class", [pc.Engine, pc.ReferenceEngine])
def test_a_stop_names_the_vertex_and_the_values(engine_class):
    """
    Codelet, tile, vertex, compute set, which exception, operands and result; attributes hold the same.
    """
    x, y = np.full((2, 5), 3e38, np.float32), np.ones((2, 5), np.float32)
    y[1, 2] = 1e-3
    graph, prog = graph_of(Guarded, {"x": x, "y": y}, oflo=True)
    engine = engine_class(graph, prog)
    with pytest.raises(
        errors.FloatingPointVertexError, match=r"codelet Guarded \(vertex 1 on tile 1, compute set 'compute'\)\n  stopped at an overflow"
    ) as caught:
        engine.run()
    error = caught.value
    assert isinstance(error, FloatingPointError)
    assert (error.codelet, error.tile, error.vertex, error.compute_set, error.exception) == ("Guarded", 1, 1, "compute", "oflo")
    assert [float(v) for v in error.values] == [float(np.float32(3e38)), float(np.float32(1e-3)), np.inf]


@pytest.mark.parametrize("engine_class", [pc.Engine, pc.ReferenceEngine])
def test_a_product_of_infinity_stops_nothing(engine_class):
    """
    It is no overflow, and valid; a sum with one would not be.
    """
    graph, prog = graph_of(Scale, {"x": np.full((2, 3), np.inf, np.float32)}, inv=True, div0=True, oflo=True)
    engine = engine_class(graph, prog)
    engine.run()
    assert (engine.read_tensor("out") == np.inf).all()


def test_interpreted_codelets_say_the_line_too(monkeypatch):
    """
    There is a Python line to name.
    """
    monkeypatch.setenv("POPCORE_INTERPRET", "1")
    graph, prog = graph_of(Round, {"x": np.full((2, 3), 1e6, np.float32)}, HALF, oflo=True)
    with pytest.raises(errors.FloatingPointVertexError, match=r"of 1e\+06|: 1000000.0\n  at .*test_arithmetic.py:\d+"):
        pc.Engine(graph, prog).run()


def test_stochastic_rounding_depends_on_the_seed_and_not_on_threads():
    """
    The same after loading anew, other from run to run, from tile to tile, and with another seed. Its mean is the number.
    """
    x = np.full((16, 5000), 1.0004, np.float32)
    graph, prog = graph_of(Round, {"x": x}, HALF, tiles=16, esr=True)

    def runs(count=1, **options):
        engine = pc.Engine(graph, prog, options=options)
        found = []
        for _ in range(count):
            engine.run()
            found.append(engine.read_tensor("out"))
        engine.load()
        engine.run()
        assert np.array_equal(engine.read_tensor("out"), found[0])
        return found

    first, second = runs(2, **{"engine.threads": 1})
    assert np.array_equal(first, runs(**{"engine.threads": 2})[0])
    assert not np.array_equal(first, second)
    assert not np.array_equal(first, runs(**{"prng.seed": 2})[0])
    assert not np.array_equal(first[0], first[1])
    step = 2.0**-10
    share = (float(np.float32(1.0004)) - 1) / step
    assert abs(first.astype(float).mean() - np.float32(1.0004)) < 5 * step * np.sqrt(share * (1 - share) / first.size)


def test_an_executable_file_keeps_the_mode(tmp_path):
    """
    The option and the changes of the program; loaded options win.
    """
    graph, prog = graph_of(Round, {"x": np.full((2, 3), 1e6, np.float32)}, HALF, nanoo=True)
    pc.compile_graph(graph, prog, options={"target.floatingPoint": "ieee"}).save(tmp_path / "file")
    loaded = Executable.load(tmp_path / "file", codelets=[Round])
    assert [(y.clear, y.set) for y in loaded.yields if y.kind == MODIFY] == [(31, 16)]
    for options, wanted in (({}, np.inf), ({"target.floatingPoint": "device"}, np.nan)):
        engine = pc.Engine(loaded, options=options)
        engine.run()
        np.testing.assert_array_equal(engine.read_tensor("out"), np.full((2, 3), wanted, np.float16))


def test_an_unknown_mode_is_refused():
    """
    With the two there are.
    """
    graph, prog = graph_of(Scale, {"x": np.ones((2, 3), np.float32)})
    with pytest.raises(errors.OptionError, match="one of 'device', 'ieee'"):
        pc.Engine(graph, prog, options={"target.floatingPoint": "fast"})
