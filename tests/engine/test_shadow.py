"""debug.check: is every read of what nothing wrote found, every race of workers, and nothing else?"""

import numpy as np
import pytest

import popcore as pc
from popcore import FLOAT, HALF, INT, UNSIGNED_CHAR, InOut, Input, Matrix, MultiVertex, Output, Vector, VectorList, Vertex, errors, program

FULL = {"debug.check": "full"}
TABLE = np.arange(4, dtype=np.float32)


class CopyAll(Vertex):
    src: Input[Vector[FLOAT]]
    dst: Output[Vector[FLOAT]]

    def compute(self):
        for i in range(len(self.dst)):
            self.dst[i] = self.src[i]


class Partly(Vertex):
    """Writes its first elements and reads all."""

    written: Input[INT]
    dst: Output[Vector[FLOAT]]
    total: Output[FLOAT]

    def compute(self):
        for i in range(self.written):
            self.dst[i] = 1.0
        total = 0.0
        for value in self.dst:
            total += value
        self.total = total


class Lookup(Vertex):
    """Reads a frozen table and a field through one name."""

    x: Input[Vector[FLOAT]]
    y: Output[Vector[FLOAT]]

    def compute(self):
        for i in range(len(self.y)):
            view = self.x if i % 2 == 0 else TABLE
            self.y[i] = view[i % 4]


class Rows(Vertex):
    m: Input[Matrix[HALF]]
    parts: Output[VectorList[HALF]]

    def compute(self):
        for r in range(len(self.parts)):
            for c in range(len(self.parts[r])):
                self.parts[r][c] = self.m[r, c]


class Halves(MultiVertex):
    """Worker w writes elements w, w + 6, ...: neighbours in one word."""

    out: Output[Vector[HALF]]

    def compute(self, worker):
        for i in range(worker, len(self.out), 6):
            self.out[i] = 1.0


class Pairs(MultiVertex):
    """Worker w writes elements 2w, 2w + 1: a word of its own."""

    out: Output[Vector[HALF]]

    def compute(self, worker):
        for i in range(2 * worker, len(self.out), 12):
            self.out[i] = 1.0
            if i + 1 < len(self.out):
                self.out[i + 1] = 2.0


class Bytes(MultiVertex):
    out: Output[Vector[UNSIGNED_CHAR]]

    def compute(self, worker):
        self.out[worker] = worker


class Alone(MultiVertex):
    """One worker writes everything."""

    out: Output[Vector[HALF]]
    who: Input[INT]

    def compute(self, worker):
        if worker == self.who:
            for i in range(len(self.out)):
                self.out[i] = 1.0


class Neighbour(MultiVertex):
    """Every worker reads what another one writes."""

    x: InOut[Vector[INT]]

    def compute(self, worker):
        self.x[worker] = self.x[(worker + 1) % 6]


class Shared(MultiVertex):
    """All workers read the same and write apart."""

    x: Input[Vector[INT]]
    y: InOut[Vector[INT]]

    def compute(self, worker):
        self.y[worker] += self.x[0]


@pytest.fixture(autouse=True, params=["compiled", "interpreted"])
def mode(request, monkeypatch):
    """Codelets as machine code, and as Python: the same findings."""
    monkeypatch.setenv("POPCORE_INTERPRET", str(int(request.param == "interpreted")))


def run(graph, prog, reads=(), **writes):
    """Run with the full check; returns what is read."""
    for name, (tensor, _) in writes.items():
        graph.create_host_write(name, tensor)
    for tensor in reads:
        graph.create_host_read(tensor.name, tensor)
    engine = pc.Engine(graph, prog, options=FULL)
    for name, (_, values) in writes.items():
        engine.write_tensor(name, values)
    engine.run()
    return [engine.read_tensor(tensor.name) for tensor in reads]


def vertex(graph, codelet, tile=0, **fields):
    """A program that runs one vertex."""
    cs = graph.add_compute_set("work")
    graph.add_vertex(cs, codelet, fields, tile=tile)
    return program.Execute(cs)


@pytest.mark.parametrize("tile", [0, 3])
def test_a_variable_that_nothing_wrote_is_named(graph, tile):
    """
    By its element, where it was made and who read it; through an exchange buffer too.
    """
    x, y = graph.add_variable(FLOAT, (8,), name="never", tile=0), graph.add_variable(FLOAT, (4,), name="y", tile=tile)
    with pytest.raises(errors.UninitialisedReadError, match=r"(?s)CopyAll.*tile \d.*'work'.*element 2 of 'never' \(test_shadow.py:\d+\).*try:") as caught:
        run(graph, vertex(graph, CopyAll, tile, src=x[2:6], dst=y))
    assert caught.value.code == "uninitialised-read"
    assert caught.value.line == CopyAll.compute.__code__.co_firstlineno + 2


@pytest.mark.parametrize(("written", "fine"), [(4, True), (3, False), (0, False)])
def test_an_output_is_undefined_until_it_is_written(graph, written, fine):
    """
    Whatever it held before.
    """
    count, dst, total = graph.add_constant(INT, (), written, tile=0), graph.add_variable(FLOAT, (4,), tile=0), graph.add_variable(FLOAT, (), tile=0)
    graph.set_initial_value(dst, [1, 2, 3, 4])
    prog = vertex(graph, Partly, written=count, dst=dst, total=total)
    if fine:
        run(graph, prog)
    else:
        with pytest.raises(errors.UninitialisedReadError, match=f"element {written} of"):
            run(graph, prog)


def test_copies_carry_what_was_written(graph):
    """
    A copy of the undefined is no mistake; reading the copy is.
    """
    x, y, z = (graph.add_variable(FLOAT, (4,), name=n, tile=t) for n, t in (("x", 0), ("y", 1), ("z", 2)))
    half = graph.add_constant(FLOAT, (2,), 5, tile=3)
    copies = program.Sequence(program.Copy(x, y), program.Copy(half, y[:2]))
    out = graph.add_variable(FLOAT, (2,), name="out", tile=0)
    assert run(graph, program.Sequence(copies, vertex(graph, CopyAll, src=y[:2], dst=out)), [out])[0].tolist() == [5, 5]
    with pytest.raises(errors.UninitialisedReadError, match="element 2 of 'y'"):
        run(graph, program.Sequence(copies, vertex(graph, CopyAll, src=y, dst=z)))


def test_what_write_undef_ended_is_undefined(graph):
    """
    Until it is written again.
    """
    x, y = graph.add_variable(FLOAT, (4,), name="x", tile=0), graph.add_variable(FLOAT, (4,), name="y", tile=1)
    graph.set_initial_value(x, [1, 2, 3, 4])
    use = vertex(graph, CopyAll, src=x, dst=y)
    again = program.Copy(graph.add_constant(FLOAT, (4,), 7, tile=0), x)
    assert run(graph, program.Sequence(use, program.WriteUndef(x), again, use), [y])[0].tolist() == [7] * 4
    with pytest.raises(errors.UninitialisedReadError, match="of 'x'"):
        run(graph, program.Sequence(use, program.WriteUndef(x), use))


def test_a_branch_on_nothing_is_found(graph):
    """
    Known trap F5: a loop or If whose predicate was never written.
    """
    flag = graph.add_variable(INT, (), name="flag", tile=1)
    for make in (
        lambda: program.If(flag, program.Sequence(), program.Sequence()),
        lambda: program.RepeatWhileTrue(program.Sequence(), flag, program.Sequence()),
        lambda: program.Switch(flag, {1: program.Sequence()}),
    ):
        with pytest.raises(errors.UninitialisedReadError, match=r"'flag'.*element 0"):
            run(graph, make())
    run(graph, program.If(flag, program.Sequence(), program.Sequence()), f=(flag, 0))


def test_the_host_reads_only_what_was_written(graph):
    """
    A host read, a stream out and PrintTensor name the first and last element.
    """
    x = graph.add_variable(FLOAT, (6,), name="x", tile=0)
    fill = program.Copy(graph.add_constant(FLOAT, (4,), 1, tile=0), x[1:5])
    with pytest.raises(errors.UninitialisedReadError, match=r"host read 'x'.*2 elements from 0 to 5 of 6"):
        run(graph, fill, [x])
    with pytest.raises(errors.UninitialisedReadError, match="PrintTensor 'title'"):
        run(graph, program.Sequence(fill, program.PrintTensor("title", x)))
    stream = graph.add_device_to_host_fifo("out", FLOAT, 6)
    engine = pc.Engine(graph, program.Sequence(fill, program.Copy(x, stream)), options=FULL)
    engine.connect_stream("out", np.zeros(6, np.float32))
    with pytest.raises(errors.UninitialisedReadError, match="stream 'out'"):
        engine.run()


def test_loading_anew_forgets(graph):
    """
    Known trap G8: what a load wiped is not read as if it were there.
    """
    x = graph.add_variable(FLOAT, (2,), name="x", tile=0)
    graph.create_host_write("x", x)
    graph.create_host_read("x", x)
    engine = pc.Engine(graph, program.Sequence(), options=FULL)
    engine.write_tensor("x", np.ones(2, np.float32))
    assert engine.read_tensor("x").tolist() == [1, 1]
    engine.load()
    with pytest.raises(errors.UninitialisedReadError, match="2 elements from 0 to 1"):
        engine.read_tensor("x")


def test_tables_and_all_kinds_of_views_raise_no_alarm(graph):
    """
    Constants have no shadow; matrices, lists and halves have one.
    """
    x, y = graph.add_variable(FLOAT, (4,), name="x", tile=0), graph.add_variable(FLOAT, (5,), name="y", tile=1)
    assert run(graph, vertex(graph, Lookup, x=x, y=y), [y], x=(x, np.full(4, 9, np.float32)))[0].tolist() == [9, 1, 9, 3, 9]
    m, parts = graph.add_variable(HALF, (2, 3), name="m", tile=2), graph.add_variable(HALF, (2, 3), name="parts", tile=3)
    values = np.arange(6, dtype=np.float16).reshape(2, 3)
    (seen,) = run(graph, vertex(graph, Rows, 3, m=m, parts=parts), [parts], m=(m, values))
    assert seen.tolist() == values.tolist()


@pytest.mark.parametrize(("codelet", "dtype", "code"), [(Halves, HALF, "shared-word"), (Bytes, UNSIGNED_CHAR, "shared-word"), (Pairs, HALF, None)])
def test_workers_that_write_into_one_word_are_found(graph, codelet, dtype, code):
    """
    Known trap I1: a tile stores whole words, so neighbours overwrite each other. Words of their own are fine.
    """
    out = graph.add_variable(dtype, (24,), name="out", tile=0)
    prog = vertex(graph, codelet, out=out)
    if code is None:
        run(graph, prog)
        return
    with pytest.raises(errors.WorkerRaceError, match=rf"(?s){codelet.__name__}.*worker 4.*of 'out'.*worker 5.*word") as caught:
        run(graph, prog)
    assert (caught.value.code, caught.value.other_worker) == (code, 5)


def test_a_field_that_begins_inside_of_a_word(graph):
    """
    Who wrote into its first word in the vertex before does not count.
    """
    out = graph.add_variable(HALF, (8,), name="out", tile=0)
    graph.set_initial_value(out, np.zeros(8, np.float16))
    who = [graph.add_constant(INT, (), w, tile=0) for w in (5, 2)]
    run(graph, program.Sequence(*(vertex(graph, Alone, out=out[1:4], who=w) for w in who)), [out])


def test_workers_that_read_what_others_write_are_found(graph):
    """
    Whatever the order in which they run; reading the same is no race.
    """
    x, y = graph.add_variable(INT, (6,), name="x", tile=0), graph.add_variable(INT, (6,), name="y", tile=0)
    values = np.arange(6, dtype=np.int32)
    with pytest.raises(errors.WorkerRaceError, match="of 'x'") as caught:
        run(graph, vertex(graph, Neighbour, x=x), x=(x, values))
    assert caught.value.code == "worker-race"
    assert run(graph, vertex(graph, Shared, x=x, y=y), [y], a=(x, values + 1), b=(y, values))[0].tolist() == [1, 2, 3, 4, 5, 6]


def test_an_executable_without_a_shadow_cannot_be_checked(graph):
    """
    The check is compiled in.
    """
    made = pc.compile_graph(graph, program.Sequence())
    with pytest.raises(errors.OptionError, match=r"(?s)debug.check.*compiled without.*try:"):
        pc.Engine(made, options=FULL)


def test_a_checked_executable_can_be_saved(graph, tmp_path):
    """
    And finds the same when it is loaded.
    """
    x, y = graph.add_variable(FLOAT, (4,), name="never", tile=0), graph.add_variable(FLOAT, (4,), name="y", tile=1)
    pc.compile_graph(graph, vertex(graph, CopyAll, src=x, dst=y), FULL).save(tmp_path / "file")
    engine = pc.Engine(pc.Executable.load(tmp_path / "file", codelets=[CopyAll]))
    with pytest.raises(errors.UninitialisedReadError, match="'never'"):
        engine.run()


class Shape(Vertex):
    m: Input[Matrix[FLOAT]]
    y: Output[FLOAT]

    def compute(self):
        self.y = float(self.m.shape[1] * 10 + self.m.shape[0])


@pytest.mark.parametrize("check", ["off", "bounds", "full"])
def test_members_of_a_shape_can_be_indexed(graph, check):
    """
    A tuple is no field: nothing of it is checked.
    """
    m, y = graph.add_constant(FLOAT, (2, 3), 1, tile=0), graph.add_variable(FLOAT, (), name="y", tile=0)
    graph.create_host_read("y", y)
    engine = pc.Engine(graph, vertex(graph, Shape, m=m, y=y), options={"debug.check": check})
    engine.run()
    assert engine.read_tensor("y") == 32
