"""fuzz_schedules: are orders that a device does not promise found where a result depends on them?"""

import numpy as np
import pytest

import popcore as pc
from popcore import FLOAT, InOut, MultiVertex, Vector, errors, program
from popcore.bindings.unit import DEVICE_RULES, compile_all, open_unit
from popcore.native import Build
from popcore.testing import fuzz_schedules

SOURCE = """
#include <poplar/Vertex.hpp>
using namespace poplar;

struct Beyond : Vertex { // a raw pointer leads into what follows its field
  InOut<Vector<float>> x;
  float value;
  void compute() {
    float *p = &x[0];
    for (unsigned i = 0; i < x.size() + 1; ++i)
      p[i] = value;
  }
};

struct Within : Vertex {
  InOut<Vector<float>> x;
  float value;
  void compute() {
    float *p = &x[0];
    for (unsigned i = 0; i < x.size(); ++i)
      p[i] = value;
  }
};

struct Counts : Vertex { // a variable that the vertices of a tile share
  InOut<Vector<float>> x;
  float value;
  void compute() {
    static int calls = 0;
    x[0] = float(calls++);
  }
};
"""


@pytest.fixture(scope="module", autouse=True)
def compiled():
    """The C++ codelets, all in one library for each of the two builds."""
    unit = open_unit(SOURCE)
    for ordered in (False, True):
        compile_all([unit.find(name) for name in unit.names()], (*DEVICE_RULES, *Build(ordered=ordered).rules))


class LastOne(MultiVertex):
    """Whoever is last wins."""

    x: InOut[Vector[FLOAT]]

    def compute(self, worker):
        self.x[0] = worker


class Apart(MultiVertex):
    x: InOut[Vector[FLOAT]]

    def compute(self, worker):
        self.x[worker] = worker


def program_of(codelet):
    """Runs three vertices on each of four tiles, or one of a Python codelet."""

    def run(options):
        graph = pc.Graph(pc.Device("M2000", num_ipus=1, tiles_per_ipu=4).target)
        x, cs = graph.add_variable(FLOAT, (4, 24), name="x"), graph.add_compute_set("work")
        graph.set_initial_value(x, np.zeros((4, 24), np.float32))
        graph.create_host_read("x", x)
        if isinstance(codelet, str):
            graph.add_codelets(SOURCE)
        for tile in range(4):
            graph.set_tile_mapping(x[tile], tile)
            for k in range(3):
                vertex = graph.add_vertex(cs, codelet, {"x": x[tile, 8 * k : 8 * k + 8]}, tile=tile)
                if isinstance(codelet, str):
                    graph.set_initial_value(vertex["value"], float(k))
        engine = pc.Engine(graph, program.Execute(cs), options=options)
        engine.run()
        return engine

    return run


@pytest.mark.parametrize("codelet", ["Beyond", "Counts", LastOne])
def test_hidden_races_are_found(codelet):
    """
    The seed and the variable are named, and the seed gives the same again.
    """
    with pytest.raises(errors.ScheduleError, match=r"(?s)debug.schedule_seed \d+, 'x' differs in .*first at \(\d, \d+\).*try:") as caught:
        fuzz_schedules(program_of(codelet), range(1, 6))
    options = {"debug.schedule_seed": caught.value.seed}
    results = [program_of(codelet)(options).read_tensor("x").tobytes() for _ in range(2)]
    assert results[0] == results[1] != program_of(codelet)({}).read_tensor("x").tobytes()


@pytest.mark.parametrize("codelet", ["Within", Apart])
def test_right_programs_pass(codelet):
    """
    Whatever the seed.
    """
    fuzz_schedules(program_of(codelet), range(1, 4))


def test_anything_can_be_compared():
    """
    Arrays by name; NaN is equal to itself, and 0 is not -0.
    """
    fuzz_schedules(lambda options: {"a": np.array([np.nan, 1.0])}, [1])
    with pytest.raises(errors.ScheduleError, match=r"seed 2, 'a' differs in 1 of 2 elements, first at \(1,\): 0.0 in the usual order, -0.0 in this one"):
        fuzz_schedules(lambda options: {"a": np.array([1.0, -0.0 if options.get("debug.schedule_seed") == 2 else 0.0])}, [1, 2, 3])
