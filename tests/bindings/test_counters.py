"""Which parts of a source get a counter, and does it still compile?"""

import numpy as np

import popcore as pc
from popcore import FLOAT, program
from popcore.bindings.counters import Counters
from popcore.bindings.extract import _parser


def _counted(source):
    """The source with its counters, shortened to their numbers; nothing of what is declared for them."""
    counters = Counters()
    counters.read(_parser().parse(source.encode()).root_node)
    text = source.encode()
    for edit in sorted(counters.edits, key=lambda e: e.begin, reverse=True):
        if b"Counting" in edit.text:
            made = b"<" + str(edit.text.count(b"popcore_w") - 1).encode() + b">"
        else:
            made = edit.text.replace(b" popcore_count.add(popcore_w", b"<").replace(b");", b">")
        text = text[: edit.begin] + made + text[edit.end :]
    return text.decode()


def test_bodies_loops_and_arms_count():
    """
    Braces are added where there are none; what follows an arm that leaves counts by itself.
    """
    source = "int f(int n) { for (;;) if (n) { g(); h(); break; } else k(n, 1); while (n) --n; return n; }"
    found = _counted(source)
    assert found.count("<") == 5
    assert "for (;;) {<1>if (n) {<2>" in found
    assert "else {<3>k(n, 1);}} while (n) {<4>--n;}" in found


def test_what_the_compiler_may_evaluate_does_not():
    """
    A constant expression can count nothing.
    """
    source = "constexpr int f(int n) { while (n) --n; return n; }"
    assert _counted(source) == source


def test_an_arm_that_only_stores_does_not():
    """
    A counter would keep the loop from being vectorised.
    """
    source = "void f(float *x, int n) { for (int i = 0; i < n; ++i) { if (x[i] > 1) x[i] = 1; } }"
    found = _counted(source)
    assert found.count("<") == 2 + source.count("<")


EVALUATED = """
#include <poplar/Vertex.hpp>
static_assert([](int n) { while (n > 1) n /= 2; return n; }(8) == 1);
struct Bump : public poplar::Vertex {
  poplar::InOut<poplar::Vector<float>> x;
  bool compute() {
    for (unsigned i = 0; i < x.size(); ++i)
      x[i] += 1;
    return true;
  }
};
"""


def test_what_does_not_compile_with_counters_runs_without():
    """
    A lambda that is evaluated by the compiler, which only the compiler knows.
    """
    graph = pc.Graph(pc.Device("M2000", num_ipus=1, tiles_per_ipu=1).target)
    graph.add_codelets(EVALUATED)
    x = graph.add_variable(FLOAT, (3,), name="x")
    graph.set_tile_mapping(x, 0)
    graph.set_initial_value(x, np.zeros(3))
    graph.create_host_read("x", x)
    compute = graph.add_compute_set("bump")
    graph.add_vertex(compute, "Bump", {"x": x}, 0)
    engine = pc.Engine(graph, program.Execute(compute))
    engine.run()
    assert engine.read_tensor("x").tolist() == [1, 1, 1]
    assert engine.profile().codelets["Bump"].cycles_from == {"stopgap": 1}
