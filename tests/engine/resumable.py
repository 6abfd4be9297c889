"""Programs whose runs depend on all that a state holds: built anew in another process, they are to go on bit for bit.

``python -m tests.engine.resumable FOLDER`` loads the state of each case from a folder, goes on, and leaves what it found there.
"""

import sys
from pathlib import Path

import numpy as np

import popcore as pc
from popcore import FLOAT, HALF, INT, UNSIGNED_INT, InOut, Input, Vector, Vertex, program
from popcore.ops import gcl, poprand
from popcore.program import Copy, Execute, Repeat, Sequence, StreamCallback
from tests.codelets import Axpy, Increment, SumRows
from tests.small_codelets import Counter

CODELETS = Path(__file__).parents[1] / "bindings" / "codelets"
ADD = gcl.CollectiveOperator.ADD


class Halve(Vertex):
    """w -= 0.01 * g, in half: rounded, by chance where that is asked for"""

    w: InOut[Vector[HALF]]
    g: Input[Vector[HALF]]

    def compute(self):
        for i in range(len(self.w)):
            self.w[i] = self.w[i] - HALF(0.01) * self.g[i]


class Numbers(StreamCallback):
    """0, 1, 2, ... by prefetching. Where it is, is for its user to keep."""

    def __init__(self, at=0):
        self.at = at

    def prefetch(self, buffer):
        buffer[:] = self.at
        self.at += 1
        return True

    fetch = prefetch


class Case:
    """A graph, its programs, and which of them run before and after the state is saved.

    ``inputs``: arrays or callbacks by stream, as they are at first; ``outputs``: shapes of arrays that streams fill.
    """

    def __init__(self, tiles=4, replicas=1, **options):
        self.graph = pc.Graph(pc.Device("POD16", num_ipus=replicas, tiles_per_ipu=tiles).target, replication_factor=replicas)
        self.programs, self.options, self.before, self.after = [], options, [0, 0], [0, 0]
        self.inputs, self.outputs, self.remotes, self.shown = {}, {}, {}, []

    def variable(self, name, dtype, values, tile=0):
        made = self.graph.add_variable(dtype, np.shape(values), name=name, tile=tile)
        self.graph.set_initial_value(made, values)
        self.graph.create_host_read(name, made)
        self.graph.create_host_write(name, made)
        self.shown.append(name)
        return made

    def step(self, *vertices, name="work"):
        made = self.graph.add_compute_set(name)
        for codelet, fields, tile in vertices:
            self.graph.add_vertex(made, codelet, fields, tile=tile)
        return Execute(made)

    def engine(self, **options):
        """An engine whose streams are connected, and the arrays that they fill."""
        engine = pc.Engine(self.graph, self.programs, options={**self.options, **options})
        for handle, endpoint in self.inputs.items():
            engine.connect_stream(handle, endpoint)
        filled = {handle: np.zeros(shape, np.int32) for handle, shape in self.outputs.items()}
        for handle, array in filled.items():
            engine.connect_stream(handle, array)
        return engine, filled

    def remember(self):
        """What the user keeps beside the state."""
        return {handle: endpoint.at for handle, endpoint in self.inputs.items() if isinstance(endpoint, Numbers)}

    def found(self, engine, filled):
        """Everything that can be seen of an engine."""
        rows = {f"{name}.{row}": engine.copy_from_remote_buffer(name, row) for name, count in self.remotes.items() for row in range(count)}
        return {**{name: engine.read_tensor(name) for name in self.shown}, **filled, **rows, "cycles": np.array(engine.profile().total_cycles)}


def training():
    """Replicas, stochastic rounding, the tiles' random generators, an all-reduce, a ring of batches that wraps."""
    case = Case(replicas=4, **{"prng.seed": 77})
    w = case.variable("w", HALF, np.linspace(-1, 1, 24).astype(np.float16), tile=1)
    g = case.variable("g", HALF, np.zeros(24, np.float16), tile=2)
    batch = case.graph.add_host_to_device_fifo("batch", HALF, 24)
    case.inputs["batch"] = np.random.default_rng(1).standard_normal((4 * 5, 24)).astype(np.float16)
    prog = Sequence()
    pc.set_stochastic_rounding(case.graph, prog, True)
    body = Sequence(Copy(batch, g))
    gcl.all_reduce_in_place_cross_replica(case.graph, g, ADD, body)
    noise = poprand.normal(case.graph, None, 0, w, HALF, 0, 1, body)
    body.add(case.step((Halve, {"w": w, "g": g}, 1)))
    body.add(case.step((Halve, {"w": w, "g": noise}, 3), name="noisy"))
    prog.add(Repeat(2, body))
    case.programs = [prog]
    return case


def control():
    """Vertex state, a loop by a predicate, several programs, a cycle counter, a floating-point state that one program leaves to the next."""
    case = Case()
    x = case.variable("x", UNSIGNED_INT, 1)
    half = case.variable("half", HALF, np.full(8, 60000, np.float16), tile=2)
    left = case.variable("left", INT, [3], tile=3)
    count = case.step((Counter, {"x": x}, 1), name="count")
    grow = case.step((Halve, {"w": half, "g": half}, 2), name="grow")
    down = case.step((Increment, {"x": left}, 3), name="down")
    behave = Sequence()
    pc.set_floating_point_behaviour(case.graph, behave, pc.FloatingPointBehaviour(inv=False, div0=False, oflo=False, esr=True, nanoo=True))
    measured = Sequence(count, program.RepeatWhileTrue(down, left.reinterpret("int")[0], count))
    ticks = program.cycle_count(case.graph, measured, 0)
    case.graph.create_host_read("ticks", ticks)
    case.shown.append("ticks")
    case.graph.create_host_write("again", left)
    case.programs = [behave, Sequence(count, grow), measured]
    case.before, case.after = [0, 1], [1, 1]
    return case


def streams():
    """A ring that is left in the middle, one that is filled, and a callback that has fetched three transfers ahead."""
    case = Case(**{"exchange.prefetchDepth": 3})
    x, y = case.variable("x", INT, [0, 0]), case.variable("y", INT, [0], tile=1)
    ring, ahead = case.graph.add_host_to_device_fifo("ring", INT, 2), case.graph.add_host_to_device_fifo("ahead", INT, 1)
    out = case.graph.add_device_to_host_fifo("out", INT, 2)
    case.inputs = {"ring": np.arange(14, dtype=np.int32), "ahead": Numbers()}
    case.outputs = {"out": (20,)}
    bump = case.step((Increment, {"x": x}, 0), (Increment, {"x": y}, 1))
    case.programs = [Repeat(3, Sequence(Copy(ring, x), Copy(ahead, y), bump, Copy(x, out)))]
    return case


def remote():
    """Rows of remote buffers, chosen by a tensor that the program changes."""
    case = Case()
    row, x = case.variable("row", INT, [0]), case.variable("x", INT, np.arange(6), tile=1)
    far = case.graph.add_remote_buffer("far", INT, 6, 20)
    case.remotes = {"far": 20}
    bump = case.step((Increment, {"x": x}, 1), (Increment, {"x": row}, 0))
    case.programs = [Repeat(2, Sequence(Copy(x, far, row.reinterpret(UNSIGNED_INT)), bump))]
    return case


def compiled():
    """C++: variables outside of vertices, local ones that are kept, the tile's random builtins."""
    case = Case()
    case.graph.add_codelets(CODELETS / "globals.cpp")
    case.graph.add_codelets(CODELETS / "intrinsics.cpp")
    out, start = case.variable("out", FLOAT, np.zeros((3, 6))), case.variable("start", FLOAT, 0.5)
    uniform, normal = case.variable("uniform", FLOAT, np.zeros(8), tile=3), case.variable("normal", FLOAT, np.zeros(8), tile=3)
    fill = case.step(*(("Fill", {"start": start}, tile) for tile in range(2)), name="fill")
    look = case.step(*(("Look", {"out": out[tile]}, tile) for tile in range(3)), name="look")
    noise = case.step(("Noise", {"uniform": uniform, "normal": normal}, 3), name="noise")
    case.programs = [Sequence(fill, look, noise)]
    return case


def checked():
    """The shadow of the full check is part of the state."""
    case = Case(**{"debug.check": "full"})
    rows, out = case.variable("rows", FLOAT, np.arange(12, dtype=np.float32).reshape(3, 4)), case.variable("out", FLOAT, 0.0, tile=1)
    case.programs = [case.step((SumRows, {"rows": [rows[0], rows[1]], "out": out}, 1))]
    return case


def wide():
    """Some megabytes on two tiles, so that memory has large pages, and pages that nothing touches."""
    case = Case()
    made = [case.variable(name, FLOAT, np.zeros(60_000, np.float32), tile=i) for i, name in enumerate(("x", "y"))]
    case.graph.create_host_write("values", made[1])
    case.programs = [case.step((Axpy, {"x": made[0], "y": made[1], "k": 0.3}, 0))]
    return case


CASES = {each.__name__: each for each in (training, control, streams, remote, compiled, checked, wide)}


def go_on(folder):
    """Load each case's state from a folder, go on, and leave what is found there."""
    for name, build in CASES.items():
        case = build()
        kept = np.load(folder / f"{name}.kept.npz")
        for handle in kept.files:
            case.inputs[handle].at = int(kept[handle])
        engine, filled = case.engine()
        engine.load_state(folder / f"{name}.state")
        for index in case.after:
            engine.run(index)
        np.savez(folder / f"{name}.npz", **case.found(engine, filled))


if __name__ == "__main__":
    go_on(Path(sys.argv[1]))
