"""What fails while an engine runs, and files that are not what they should be."""

import hashlib
import shutil
import zipfile

import msgspec
import numpy as np
import pytest

from popcore import FLOAT, INT, Engine, Executable, compile_graph, errors, program
from popcore.program import Copy, Execute, Repeat, Sequence, StreamCallback
from tests.cases.codelets import AddTo, Count, Refuse, Total

CODELETS = [AddTo, Count, Refuse, Total]


class Trouble(Exception):
    """A user's own exception."""


@pytest.mark.parametrize("error", [Trouble("mine"), KeyboardInterrupt(), SystemExit(3), errors.StreamError("mine", "nothing")], ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("how", ["function", "fetch", "prefetch", "complete", "out"])
def test_what_a_stream_callback_raises_arrives_unchanged(any_engine, bench, error, how):
    """The same object; the engine can be read, and runs again from the start once the host has recovered."""
    x, y = bench.variable("x", [5], INT), bench.variable("y", [0], INT)
    there, back = bench.graph.add_host_to_device_fifo("in", INT, 1), bench.graph.add_device_to_host_fifo("out", INT, 1)
    body = Sequence(Copy(there, x), Copy(x, back), Copy(x, y))
    engine = any_engine(bench.graph, Repeat(2, program.Call(bench.graph.add_function(Repeat(3, body)))))
    trouble = [error]

    def fail(*_):
        if trouble:
            raise trouble[0]

    class Callback(StreamCallback):
        def prefetch(self, buffer):
            fail() if how == "prefetch" else None
            return False

        def fetch(self, buffer):
            fail() if how == "fetch" else None
            buffer[:] = 9

        def complete(self):
            fail() if how == "complete" else None

    engine.connect_stream("in", fail if how == "function" else Callback())
    engine.connect_stream("out", fail if how == "out" else np.zeros(1, np.int32))
    with pytest.raises(type(error)) as caught:
        engine.run()
    assert caught.value is error
    assert engine.read_tensor("y").tolist() == [0]
    trouble.clear()
    engine.run()
    assert engine.read_tensor("y").tolist() == ([0] if how == "function" else [9])


def test_a_codelet_that_raises_is_named_with_its_place(any_engine, bench):
    """Exception and values, codelet, file and line, vertex, tile, compute set; as attributes too."""
    x = bench.variable("x", [1, 50, 2], INT)
    for i in range(3):
        bench.vertex(Refuse, {"x": x[i], "limit": 10}, tile=i + 2)
    engine = any_engine(bench.graph, Execute(bench.compute_set))
    with pytest.raises(errors.VertexError, match=r"(?s)Refuse.*vertex 1 on tile 3.*'work'.*ValueError: too large 50.*codelets\.py:\d+\ntry: ") as caught:
        engine.run()
    error = caught.value
    assert (error.codelet, error.vertex, error.tile, error.compute_set) == ("Refuse", 1, 3, "work")
    with open(error.file) as file:
        assert "raise ValueError" in file.read().splitlines()[error.line - 1]
    assert type(error.__cause__) is ValueError
    assert engine.read_tensor("x")[1] == 50


def test_an_engine_runs_on_after_a_codelet_raised(any_engine, bench):
    """Steps before it have happened, and the next run begins at the beginning."""
    x, y = bench.variable("x", 50, INT), bench.variable("y", 0, INT)
    bench.vertex(Refuse, {"x": x, "limit": 10})
    before = bench.graph.add_compute_set("before")
    bench.vertex(Count, {"x": y, "by": 1}, compute_set=before)
    engine = any_engine(bench.graph, Repeat(2, Sequence(Execute(before), Repeat(2, Execute(bench.compute_set)))))
    with pytest.raises(errors.VertexError):
        engine.run()
    assert engine.read_tensor("y") == 1
    engine.write_tensor("x", np.int32(0))
    engine.run()
    assert (engine.read_tensor("x"), engine.read_tensor("y")) == (4, 3)


@pytest.mark.parametrize("threads", [1, 2])
def test_of_several_codelets_that_raise_the_first_by_tile_is_named(bench, threads):
    """On any number of threads; the phase is large enough to be shared."""
    n = 1 << 14
    for tile in range(8):
        ones = bench.graph.add_variable(FLOAT, (n,), name=f"ones {tile}", tile=tile)
        bench.vertex(AddTo[FLOAT], {"x": ones, "y": bench.graph.add_variable(FLOAT, (n,), name=f"y {tile}", tile=tile)}, tile=tile)
    x = bench.variable("x", np.full(3, 50), INT)
    for i, tile in enumerate((7, 5, 2)):
        bench.vertex(Refuse, {"x": x[i], "limit": 10}, tile=tile)
    with pytest.raises(errors.VertexError) as caught:
        bench.run(Engine, **{"engine.threads": threads})
    assert (caught.value.tile, caught.value.vertex) == (2, 2)


STOPS = {
    "ErrorProgram": lambda x, p: program.ErrorProgram("no good", x),
    "Abort": lambda x, p: program.Abort("no good"),
    "AbortOnCondition": lambda x, p: program.AbortOnCondition(p, "no good"),
}


@pytest.mark.parametrize("kind", STOPS)
def test_a_program_that_stops_itself_says_why_and_where(any_engine, bench, kind):
    """The message, the user's line, and of an ErrorProgram the tensor; what came before has happened."""
    x, y, true = bench.variable("x", [7, 8], INT), bench.variable("y", [0, 0], INT), bench.variable("true", True, "bool")
    engine = any_engine(bench.graph, Sequence(Copy(x, y), STOPS[kind](x, true), Copy(y, x)))
    with pytest.raises(errors.ProgramError, match=r"(?s)test_failures\.py:\d+: no good" + (r"\n\[7, 8\]" if kind == "ErrorProgram" else "")):
        engine.run()
    assert engine.read_tensor("y").tolist() == [7, 8]


def test_a_condition_that_is_false_stops_nothing(any_engine, bench):
    """AbortOnCondition goes on."""
    x, y = bench.variable("x", [7], INT), bench.variable("y", [0], INT)
    engine = bench.run(any_engine, program.AbortOnCondition(bench.variable("false", False, "bool"), "no good"), Copy(x, y))
    assert engine.read_tensor("y") == [7]


def test_a_callback_may_read_the_engine_it_serves(any_engine, bench):
    """And write to it: the transfer at hand is not disturbed."""
    x, y = bench.variable("x", [5, 6], INT), bench.variable("y", [0, 0], INT)
    there, back = bench.graph.add_host_to_device_fifo("in", INT, 2), bench.graph.add_device_to_host_fifo("out", INT, 2)
    engine = any_engine(bench.graph, Sequence(Copy(there, y), Copy(x, back)))
    seen = []

    def fill(buffer):
        buffer[:] = engine.read_tensor("x")[::-1]
        engine.write_tensor("x", np.array([7, 8], np.int32))

    engine.connect_stream("in", fill)
    engine.connect_stream("out", lambda values: seen.extend([*engine.read_tensor("y"), *values]))
    engine.run()
    assert seen == [6, 5, 7, 8]


def test_a_callback_that_runs_the_engine_it_serves_is_refused(bench):
    """Its loops are under way; the run it disturbs goes on."""
    x = bench.variable("x", [0], INT)
    engine = Engine(bench.graph, Repeat(3, Copy(bench.graph.add_host_to_device_fifo("in", INT, 1), x)))
    calls = []

    def fill(buffer):
        calls.append(len(calls))
        if len(calls) == 2:
            with pytest.raises(errors.EngineError, match=r"(?s)run.*try:"):
                engine.run()
        buffer[:] = len(calls)

    engine.connect_stream("in", fill)
    engine.run()
    assert calls == [0, 1, 2]
    assert engine.read_tensor("x") == [3]


@pytest.fixture
def saved(bench, tmp_path):
    """A saved Executable; running it adds 1 to x and sums it."""
    x = bench.variable("x", np.arange(6), INT)
    bench.vertex(AddTo[INT], {"x": bench.graph.add_constant(INT, (6,), 1, tile=1), "y": x})
    compile_graph(bench.graph, Execute(bench.compute_set)).save(tmp_path / "good")
    return tmp_path / "good"


def test_a_saved_executable_runs_as_the_graph_does(saved):
    """Loaded with the codelets it was made from."""
    engine = Engine(Executable.load(saved, CODELETS))
    engine.run()
    assert engine.read_tensor("x").tolist() == [1, 2, 3, 4, 5, 6]


FOREIGN = {
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("not an executable\n" * 100),
    "zeros": lambda path: path.write_bytes(bytes(10_000)),
    "half of a zip": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "without its end": lambda path: path.write_bytes(path.read_bytes()[:-30]),
    "another zip": lambda path: shutil.make_archive(path, "zip", path.parent) and path.with_suffix(".zip").rename(path),
    "a NumPy file": lambda path: np.savez(path.with_suffix(".npz"), code=np.zeros(3)) or path.with_suffix(".npz").rename(path),
    "a pickle": lambda path: path.write_bytes(b"\x80\x04cos\nsystem\n."),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "nothing": lambda path: path.unlink(),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_file_that_is_no_executable_is_refused(saved, kind):
    """Naming the file, whatever it is."""
    FOREIGN[kind](saved)
    with pytest.raises(errors.ExecutableFileError, match=r"(?s)good.*try:"):
        Executable.load(saved, CODELETS)


def test_no_byte_of_a_file_can_change_unnoticed(saved, tmp_path):
    """Either it is refused as damaged, or the byte does not matter and what is loaded is the same."""
    good = saved.read_bytes()
    same = []
    for position in [*range(0, len(good), 41), *range(40), *range(len(good) - 60, len(good))]:
        bad = bytearray(good)
        bad[position] ^= 0x5A
        saved.write_bytes(bad)
        try:
            loaded = Executable.load(saved, CODELETS)
        except errors.ExecutableFileError:
            continue
        loaded.save(tmp_path / "again")
        same.append((tmp_path / "again").read_bytes() == good)
    assert all(same)


def rewritten(path, change):
    """Write the archive at ``path`` again with another header, checksum and all."""
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    header = msgspec.msgpack.decode(entries["header.msgpack"])
    change(header, entries)
    entries["header.msgpack"] = msgspec.msgpack.encode(header)
    entries["digest"] = hashlib.blake2b(entries["header.msgpack"], digest_size=20).hexdigest().encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content)


def test_a_file_of_another_version_says_which(saved):
    """The one it has and the one that can be read."""
    rewritten(saved, lambda header, _: header.update(version=999))
    with pytest.raises(errors.ExecutableFileError, match=r"(?s)version 999.*version \d+.*try:"):
        Executable.load(saved, CODELETS)


CHANGES = {
    "a field is missing": lambda header, _: header.pop("phase_names"),
    "a field is of another type": lambda header, _: header.update(loop_slots="many"),
    "an unknown field": lambda header, _: header.update(extra=1),
    "an array is missing": lambda header, _: header["digests"].pop("arrays/code.npy"),
    "an array is another": lambda _, entries: entries.update({"arrays/initial_bytes.npy": entries["arrays/initial_bytes.npy"][:-1] + b"?"}),
    "arena too small": lambda header, _: header.update(arena_bytes=64),
    "arena negative": lambda header, _: header.update(arena_bytes=-1),
    "absurd arena": lambda header, _: header.update(arena_bytes=2**62),
    "no such element type": lambda header, _: header["reads"][0].update(dtype="double"),
    "no such phase": lambda header, _: header["reads"][0].update(phase=99),
    "a larger tensor": lambda header, _: header["reads"][0].update(shape=[10**9]),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_a_header_that_lies_is_refused(saved, kind):
    """Checksums prove nothing about who wrote a file."""
    rewritten(saved, CHANGES[kind])
    with pytest.raises(errors.ExecutableFileError, match=r"(?s)good.*try:"):
        Executable.load(saved, CODELETS)


def test_codelets_that_a_file_needs_must_be_given(saved):
    """A file holds no code; the missing class is named."""
    with pytest.raises(errors.CodeletError, match=r"(?s)'AddTo<int>'.*try:.*codelets=\[AddTo"):
        Executable.load(saved)


def test_a_save_that_fails_leaves_nothing_behind(saved, monkeypatch):
    """Neither half a file nor a temporary one, and what was there stays."""
    before, executable = saved.read_bytes(), Executable.load(saved, CODELETS)

    def full(*_):
        raise OSError("no space left")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(OSError, match="no space left"):
        executable.save(saved)
    assert [p.name for p in saved.parent.iterdir()] == ["good"]
    assert saved.read_bytes() == before


def test_an_engine_takes_an_executable_or_programs_but_not_both(saved):
    """The message says what is too much."""
    with pytest.raises(errors.GraphError, match=r"(?s)Executable and programs.*try:"):
        Engine(Executable.load(saved, CODELETS), Sequence())
