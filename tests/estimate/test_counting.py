"""Cycles that data decides: counted as codelets run, the same by every way of running them."""

import numpy as np
import pytest

import popcore as pc
from popcore import FLOAT, INT, InOut, Input, MultiVertex, Output, Vector, Vertex, program
from popcore.engine.engine import Engine
from popcore.executable import Executable

CPP = """
#include <poplar/Vertex.hpp>
using namespace poplar;
struct Halve : public Vertex {
  InOut<Vector<float>> x;
  bool compute() {
    for (unsigned i = 0; i < x.size(); ++i)
      while (x[i] > 1) {
        x[i] = x[i] * 0.5f;
      }
    return true;
  }
};
"""


class Halve(Vertex):
    x: InOut[Vector[FLOAT]]

    def compute(self):
        for i in range(len(self.x)):
            while self.x[i] > 1:
                self.x[i] *= 0.5


class HalveTogether(MultiVertex):
    x: InOut[Vector[FLOAT]]

    def compute(self, worker):
        for i in range(worker, len(self.x), 6):
            while self.x[i] > 1:
                self.x[i] *= 0.5


class Find(Vertex):
    x: Input[Vector[FLOAT]]
    at: Output[INT]

    def compute(self):
        self.at = self.place()

    def place(self):
        for i in range(len(self.x)):
            if self.x[i] > 0:
                return i
        return len(self.x)


def _engine(codelet, values, estimates=None, options=None, repeat=1, tiles=None):
    """One vertex for each row of ``values``."""
    graph = pc.Graph(pc.Device("M2000", num_ipus=1, tiles_per_ipu=8).target)
    if isinstance(codelet, str):
        graph.add_codelets(CPP)
    compute = graph.add_compute_set("halve")
    for row, value in enumerate(values):
        tile = row if tiles is None else tiles[row]
        x = graph.add_variable(FLOAT, (len(value),), name=f"x{row}")
        graph.set_tile_mapping(x, tile)
        graph.set_initial_value(x, np.asarray(value, np.float32))
        vertex = graph.add_vertex(compute, codelet, {"x": x}, tile)
        if estimates is not None and estimates[row] is not None:
            graph.set_perf_estimate(vertex, estimates[row])
    return pc.Engine(graph, program.Repeat(repeat, program.Execute(compute)), options=options)


def _cycles(*arguments, **named):
    engine = _engine(*arguments, **named)
    engine.run()
    return engine.profile().cycles_by_kind["compute"]


def _round():
    """Tile cycles of one round of the loop."""
    return _cycles(Halve, [[4.0]]) - _cycles(Halve, [[2.0]])


def test_every_round_counts():
    """
    A value of 2 ** k is halved k times, at six tile cycles for each of a worker.
    """
    base, one = _cycles(Halve, [[1.0]]), _round()
    assert one > 0
    assert one % 6 == 0
    assert [_cycles(Halve, [[2.0**k]]) for k in range(6)] == [base + k * one for k in range(6)]


def test_a_step_lasts_as_long_as_its_slowest_tile():
    """
    The most work on one tile, not the sum.
    """
    assert _cycles(Halve, [[2.0], [32.0], [4.0]]) == _cycles(Halve, [[32.0]])


def test_a_tile_hands_vertices_to_six_workers():
    """
    Six side by side; the seventh after the first.
    """
    six = _cycles(Halve, [[2.0**k] for k in range(6)], tiles=[0] * 6)
    assert six == _cycles(Halve, [[32.0]])
    assert _cycles(Halve, [[2.0**k] for k in (5, 0, 1, 2, 3, 4, 3)], tiles=[0] * 7) == _cycles(Halve, [[32.0]]) + _cycles(Halve, [[8.0]])


def test_each_execution_counts_by_itself():
    """
    The second time nothing is left to halve.
    """
    assert _cycles(Halve, [[32.0]], repeat=3) == _cycles(Halve, [[32.0]]) + 2 * _cycles(Halve, [[1.0]])


def test_workers_that_share_a_vertex_wait_for_the_slowest():
    """
    Only worker 1 has something to do.
    """
    idle = _cycles(HalveTogether, [[1.0] * 6])
    assert _cycles(HalveTogether, [[1, 16, 1, 1, 1, 1]]) - idle == 4 * _round()


@pytest.mark.parametrize("codelet", [Halve, HalveTogether, "Halve"], ids=["Python", "six workers", "C++"])
@pytest.mark.parametrize("check", ["bounds", "full"])
def test_checks_do_not_change_the_count(codelet, check):
    """
    Cycles are the machine's, whatever the emulation looks at besides.
    """
    values = [[2.0**k, 1.0, 3.0] for k in range(8)]
    assert _cycles(codelet, values, options={"debug.check": check}) == _cycles(codelet, values)


def test_a_process_of_its_own_counts_the_same():
    """
    What the codelets add up lies where both processes see it.
    """
    values = [[2.0**k, 3.0] for k in range(8)]
    assert _cycles("Halve", values, options={"debug.isolate": True}) == _cycles("Halve", values)


def test_interpreted_codelets_count_the_same(monkeypatch):
    """
    Python that a debugger stops in has the same counters.
    """
    values = [[2.0**k, 1.0, 3.0] for k in range(8)]
    compiled = _cycles(Halve, values), _cycles(HalveTogether, values)
    monkeypatch.setenv("POPCORE_INTERPRET", "1")
    assert (_cycles(Halve, values), _cycles(HalveTogether, values)) == compiled


def test_threads_do_not_change_the_count():
    """
    Large phases are shared by threads.
    """
    values = [[2.0 ** (k % 5)] * 3000 for k in range(8)]
    assert _cycles(Halve, values, options={"engine.threads": 2}) == _cycles(Halve, values, options={"engine.threads": 1})


@pytest.mark.parametrize("codelet", [Halve, "Halve"], ids=["Python", "C++"])
def test_a_given_estimate_wins(codelet):
    """
    Of vertices that have one nothing is counted; of others beside them it is.
    """
    engine = _engine(codelet, [[32.0], [2.0]], estimates=[10, None])
    engine.run()
    profile = engine.profile()
    assert profile.codelets["Halve"].cycles_from == {"user": 1, "automatic": 1}
    assert profile.cycles_by_kind["compute"] == max(10 * 6 + 6, _cycles(codelet, [[2.0]]))
    assert "the user's and automatic, counted" in profile.summary()


def test_a_saved_executable_counts(tmp_path):
    """
    The tables are in the file.
    """
    engine = _engine(Halve, [[8.0], [2.0]])
    engine.run()
    engine.executable.save(tmp_path / "halve")
    again = Engine(Executable.load(tmp_path / "halve", [Halve]))
    again.run()
    assert again.profile().cycles_by_kind == engine.profile().cycles_by_kind


def test_a_reset_profile_starts_over():
    """
    What was counted before is forgotten.
    """
    engine = _engine(Halve, [[32.0]])
    engine.run()
    engine.reset_profile()
    assert engine.profile().total_cycles == 0
    engine.run()
    assert engine.profile().cycles_by_kind["compute"] == _cycles(Halve, [[1.0]])


def test_a_return_out_of_a_loop_is_counted():
    """
    As far as it went, in a method that compute calls.
    """

    def cycles(place):
        graph = pc.Graph(pc.Device("M2000", num_ipus=1, tiles_per_ipu=1).target)
        x, at = graph.add_variable(FLOAT, (64,), name="x"), graph.add_variable(INT, (), name="at")
        for t in (x, at):
            graph.set_tile_mapping(t, 0)
        graph.set_initial_value(x, (np.arange(64) == place).astype(np.float32))
        graph.create_host_read("at", at)
        compute = graph.add_compute_set("find")
        graph.add_vertex(compute, Find, {"x": x, "at": at}, 0)
        engine = pc.Engine(graph, program.Execute(compute))
        engine.run()
        assert engine.read_tensor("at") == place
        return engine.profile().cycles_by_kind["compute"]

    assert cycles(40) - cycles(20) == 2 * (cycles(20) - cycles(10)) > 0


def test_replicas_wait_for_the_slowest():
    """
    All run in step.
    """
    graph = pc.Graph(pc.Device("M2000", num_ipus=2, tiles_per_ipu=4).target, replication_factor=2)
    x = graph.add_variable(FLOAT, (1,), name="x")
    graph.set_tile_mapping(x, 0)
    graph.create_host_write("x", x)
    compute = graph.add_compute_set("halve")
    graph.add_vertex(compute, Halve, {"x": x}, 0)
    engine = pc.Engine(graph, program.Execute(compute))
    engine.write_tensor("x", np.array([[2.0], [32.0]], np.float32))
    engine.run()
    assert engine.profile().cycles_by_kind["compute"] == _cycles(Halve, [[32.0]])
