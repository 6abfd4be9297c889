"""A small graph to try one thing on: variables with values, vertices in one compute set, a run."""

import numpy as np

from popcore import program


class Bench:
    """A graph, and one compute set called "work"."""

    def __init__(self, graph):
        self.graph = graph
        self.compute_set = graph.add_compute_set("work")

    def variable(self, name, values, dtype, tile=0):
        """A variable that holds ``values`` when an engine loads, and that the host can read and write by its name."""
        values = np.asarray(values)
        made = self.graph.add_variable(dtype, values.shape, name=name, tile=tile)
        self.graph.set_initial_value(made, values)
        self.graph.create_host_read(name, made)
        self.graph.create_host_write(name, made)
        return made

    def vertex(self, codelet, fields, tile=3, compute_set=None):
        """One vertex; of the compute set "work" unless another is given."""
        return self.graph.add_vertex(compute_set or self.compute_set, codelet, fields, tile=tile)

    def run(self, engine_class, *steps, **options):
        """An engine that has run ``steps`` once, or the compute set if there are none."""
        prog = program.Sequence(*steps) if steps else program.Execute(self.compute_set)
        engine = engine_class(self.graph, prog, options=options)
        engine.run()
        return engine
