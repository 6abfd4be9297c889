"""Programs that are wrong, each next to one that is almost the same and right: are all found, and no other?"""

import numpy as np
import pytest

import popcore as pc
from popcore import FLOAT, INT, errors, program
from tests.cases.defects.codelets import AddAt, ReadAt

N = 4


class Build:
    """Makes a program on a graph, wrong or almost so, and does the rest of what a run needs."""

    def __init__(self, graph, wrong):
        self.graph, self.wrong = graph, wrong
        self.reads, self.stream = [], None

    def variable(self, name, dtype=FLOAT, shape=(N,), tile=0, value=None):
        made = self.graph.add_variable(dtype, shape, name=name, tile=tile)
        if value is not None:
            self.graph.set_initial_value(made, np.full(shape, value, dtype.numpy))
        return made

    def index(self):
        """What is another number on each replica."""
        made = self.graph.add_replication_index_constant()
        self.graph.set_tile_mapping(made, 0)
        return made

    def fill(self, target):
        """A Copy of ones."""
        return program.Copy(self.graph.add_constant(target.dtype, target.shape, 1, tile=1), target)

    def vertex(self, codelet, k=0, cs=None, tile=0, **fields):
        cs = self.graph.add_compute_set("work") if cs is None else cs
        self.graph.add_vertex(cs, codelet, {**fields, "k": self.graph.add_constant(INT, (), k, tile=tile)}, tile=tile)
        return program.Execute(cs)

    def run(self, made):
        engine = pc.Engine(self.graph, made, options={"debug.check": "full"})
        if self.stream is not None:
            engine.connect_stream("out", np.zeros(N, np.float32))
        engine.run()
        for name in self.reads:
            engine.read_tensor(name)


def branch(b):
    flag = b.variable("flag", INT, (), value=None if b.wrong else 0)
    return program.If(flag, program.Sequence(), program.Sequence())


def loop(b):
    """Case F5: how often it goes round depends on what nothing wrote."""
    flag = b.variable("flag", INT, (), value=None if b.wrong else 0)
    return program.RepeatWhileTrue(program.Sequence(), flag, program.Sequence())


def switch(b):
    flag = b.variable("flag", INT, (), value=None if b.wrong else 0)
    return program.Switch(flag, {1: program.Sequence()})


def ended(b):
    x, y = b.variable("x", value=1), b.variable("y")
    use = b.vertex(ReadAt, x=x, y=y)
    return program.Sequence(use, program.WriteUndef(x), *([] if b.wrong else [b.fill(x)]), use)


def ended_elsewhere(b):
    x, y = b.variable("x", value=1), b.variable("y")
    return program.Sequence(program.WriteUndef(x[:1] if b.wrong else x[1:]), b.vertex(ReadAt, x=x, y=y))


def copied(b):
    x, z, y = b.variable("x"), b.variable("z", tile=2), b.variable("y")
    return program.Sequence(b.fill(x[1:] if b.wrong else x), program.Copy(x, z), b.vertex(ReadAt, x=z, y=y))


def output_again(b):
    """The second run of a vertex does not see what the first wrote to its Output beyond what it writes again."""
    x, y, z = b.variable("x", value=1), b.variable("y", value=1), b.variable("z")
    return program.Sequence(b.vertex(ReadAt, x=x, y=y), b.vertex(ReadAt, k=1 if b.wrong else 0, x=y, y=z))


def host_read(b):
    x = b.variable("x")
    b.graph.create_host_read("x", x)
    b.reads.append("x")
    return b.fill(x[:3] if b.wrong else x)


def stream_out(b):
    x = b.variable("x")
    b.stream = b.graph.add_device_to_host_fifo("out", FLOAT, N)
    return program.Sequence(b.fill(x[:3] if b.wrong else x), program.Copy(x, b.stream))


def printed(b):
    x = b.variable("x")
    return program.Sequence(b.fill(x[:3] if b.wrong else x), program.PrintTensor("x", x))


def in_a_loop(b):
    """Defined in the first turn, and ended by it."""
    x, y = b.variable("x", value=1), b.variable("y")
    return program.Repeat(2, program.Sequence(b.vertex(ReadAt, x=x, y=y), *([program.WriteUndef(x)] if b.wrong else [])))


def two_writers(b):
    y, cs = b.variable("y", value=1), b.graph.add_compute_set("work")
    b.vertex(AddAt, cs=cs, y=y[:2])
    return b.vertex(AddAt, cs=cs, tile=1, y=y[1:3] if b.wrong else y[2:])


def reader_and_writer(b):
    y, z, cs = b.variable("y", value=1), b.variable("z"), b.graph.add_compute_set("work")
    first = b.vertex(AddAt, cs=cs, y=y)
    second = b.vertex(ReadAt, cs=cs if b.wrong else None, tile=1, x=y, y=z)
    return first if b.wrong else program.Sequence(first, second)


def unmapped(b):
    x = b.graph.add_variable(FLOAT, (N,), name="x")
    if not b.wrong:
        b.graph.set_tile_mapping(x, 0)
    return b.fill(x)


def too_large(b):
    x = b.variable("x", shape=(160_000 if b.wrong else 150_000,))
    return program.Copy(b.graph.add_constant(FLOAT, (1,), 0, tile=0).broadcast(x.shape[0], 0), x)


def parted(b):
    """Replicas that disagree on where to go on."""
    b.graph = pc.Graph(pc.Device("M2000", num_ipus=2, tiles_per_ipu=8).target, replication_factor=2)
    flag = b.index() if b.wrong else b.variable("flag", INT, (), value=1)
    return program.If(flag, program.Sequence(), program.Sequence())


def promised(b):
    """A promise that replicas hold the same."""
    b.graph = pc.Graph(pc.Device("M2000", num_ipus=2, tiles_per_ipu=8).target, replication_factor=2)
    which = b.index() if b.wrong else b.variable("flag", INT, (), value=1)
    return program.AssumeEqualAcrossReplicas(which, "flag")


UNDEFINED = errors.UninitialisedReadError
CASES = [
    (branch, UNDEFINED, "'flag'"), (loop, UNDEFINED, "'flag'"), (switch, UNDEFINED, "'flag'"),
    (ended, UNDEFINED, "element 0 of 'x'"), (ended_elsewhere, UNDEFINED, "element 0 of 'x'"), (copied, UNDEFINED, "element 0 of 'z'"),
    (output_again, UNDEFINED, "element 1 of 'y'"), (host_read, UNDEFINED, "host read 'x'.*element 3 of 4"), (stream_out, UNDEFINED, "'out'.*element 3 of 4"),
    (printed, UNDEFINED, "PrintTensor 'x'.*element 3 of 4"),
    (in_a_loop, UNDEFINED, "element 0 of 'x'"), (two_writers, errors.RaceError, "'?y'?.*work"), (reader_and_writer, errors.RaceError, "'?y'?.*work"),
    (unmapped, errors.UnmappedError, "'x'"), (too_large, errors.OutOfTileMemoryError, "tile 0.*x"),
    (parted, errors.ProgramError, "part ways.*0 on replica 0, 1 on replica 1"), (promised, errors.ProgramError, "replica 1 and replica 0"),
]  # fmt: skip
IDS = [case[0].__name__ for case in CASES]


@pytest.mark.parametrize(("make", "error", "says"), CASES, ids=IDS)
def test_what_is_wrong_is_found(graph, make, error, says):
    """
    With the variable, and the line that made it.
    """
    build = Build(graph, True)
    with pytest.raises(error, match=rf"(?s){says}.*try:") as caught:
        build.run(make(build))
    if make not in (host_read, stream_out, printed):
        assert "test_programs.py:" in str(caught.value)


@pytest.mark.parametrize(("make", "error", "says"), CASES, ids=IDS)
def test_what_is_almost_wrong_is_right(graph, make, error, says, capsys):
    """
    One element, one step or one mapping away.
    """
    build = Build(graph, False)
    build.run(make(build))
