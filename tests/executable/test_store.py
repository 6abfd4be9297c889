"""Executables as files: what is loaded is what was saved, and nothing else is ever believed."""

import dataclasses
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import popcore as pc
from popcore import BOOL, FLOAT, errors, program
from popcore.executable.check import check_tables
from popcore.executable.opcodes import Op
from tests.codelets import Axpy, CopyVector, SumRows


@pytest.fixture
def executable(graph):
    """One of everything: vertices with lists, loops, branches, streams, remote buffers, prints, constants."""
    x = graph.add_variable(FLOAT, (8, 6), name="x")
    for i in range(8):
        graph.set_tile_mapping(x[i], i)
    out = graph.add_variable(FLOAT, (), name="out", tile=3)
    going = graph.add_constant(BOOL, (), False, tile=0)
    cs = graph.add_compute_set("rows")
    graph.add_vertex(cs, SumRows, {"rows": x[2:5], "out": out}, tile=3)
    graph.add_vertex(cs, Axpy, {"x": x[7], "y": x[1], "k": 2.0}, tile=7)
    fifo = graph.add_host_to_device_fifo("in", FLOAT, 6)
    remote = graph.add_remote_buffer("far", FLOAT, 6, repeats=2)
    graph.create_host_read("x", x)
    graph.create_host_write("x", x)
    body = program.Sequence(program.Copy(fifo, x[0]), program.Execute(cs), program.Copy(x[0], remote, 1), program.PrintTensor("out", out))
    return pc.compile_graph(graph, program.Sequence(program.Repeat(2, body), program.RepeatWhileTrue(program.Sequence(), going, body)))


CODELETS = (Axpy, SumRows, CopyVector)


def test_what_is_loaded_runs_like_what_was_saved(executable, tmp_path, capsys):
    """
    A file and its Executable give the same results, and saving again gives the same bytes.
    """
    executable.save(tmp_path / "one")
    loaded = pc.Executable.load(tmp_path / "one", codelets=CODELETS)
    loaded.save(tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    results = []
    for each in (executable, loaded):
        engine = pc.Engine(each)
        engine.connect_stream("in", np.arange(6, dtype=np.float32))
        engine.write_tensor("x", np.arange(48, dtype=np.float32))
        engine.run()
        results.append((engine.read_tensor("x").tolist(), engine.copy_from_remote_buffer("far", 1).tolist(), engine.profile().total_cycles))
    assert results[0] == results[1]


def test_a_stream_that_no_program_uses_needs_no_room(tmp_path):
    """
    One that is larger than anything that is moved.
    """
    graph = pc.Graph(pc.Device("M2000", num_ipus=1, tiles_per_ipu=1).target)
    graph.add_device_to_host_fifo("out", FLOAT, 100)
    pc.compile_graph(graph, program.Sequence()).save(tmp_path / "saved")
    assert [s.name for s in pc.Executable.load(tmp_path / "saved").streams] == ["out"]


def test_codelets_are_asked_for_by_name(executable, tmp_path):
    """
    A file holds no code, so a missing class is an error that says what to pass.
    """
    executable.save(tmp_path / "file")
    with pytest.raises(errors.CodeletError, match=r"(?s)SumRows.*codelets=\[SumRows"):
        pc.Executable.load(tmp_path / "file", codelets=[Axpy])


def test_a_changed_codelet_is_noticed(executable, tmp_path):
    """
    A class of the same name with another body is not what was compiled.
    """

    class SumRows(pc.Vertex):
        rows: pc.Input[pc.VectorList[FLOAT]]
        out: pc.Output[FLOAT]
        calls: pc.INT

        def compute(self):
            self.out = 0.0

    executable.save(tmp_path / "file")
    with pytest.raises(errors.CodeletError, match="another codelet 'SumRows'"):
        pc.Executable.load(tmp_path / "file", codelets=[Axpy, SumRows])


@pytest.mark.parametrize("content", [b"", b"PK", b"not a zip at all", bytes(1000)])
def test_other_files_are_refused(content, tmp_path):
    """
    A foreign file is named as such.
    """
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(errors.ExecutableFileError, match=r"(?s)file.*try:"):
        pc.Executable.load(tmp_path / "file")


def test_a_missing_file_is_named(tmp_path):
    """
    The path is in the message.
    """
    with pytest.raises(errors.ExecutableFileError, match="nowhere"):
        pc.Executable.load(tmp_path / "nowhere")


def test_another_version_is_refused(executable, tmp_path, monkeypatch):
    """
    A file of a later format names both versions.
    """
    monkeypatch.setattr("popcore.executable.store.VERSION", 99)
    executable.save(tmp_path / "file")
    monkeypatch.undo()
    with pytest.raises(errors.ExecutableFileError, match=r"version 99.*version 5"):
        pc.Executable.load(tmp_path / "file")


def test_a_failed_save_leaves_the_old_file(executable, tmp_path, monkeypatch):
    """
    A file is written whole or not at all, and no scraps stay behind.
    """
    target = tmp_path / "file"
    target.write_bytes(b"old")

    def fails(*_):
        raise OSError("disk full")

    monkeypatch.setattr(zipfile.ZipFile, "writestr", fails)
    with pytest.raises(OSError, match="disk full"):
        executable.save(target)
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
    assert target.read_bytes() == b"old"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150, deadline=None)
@given(at=st.floats(0, 1, exclude_max=True), flip=st.integers(1, 255))
def test_no_damage_goes_unnoticed(executable, tmp_path, at, flip):
    """
    Any byte may change: the file is refused, or what was read is exactly what was written.
    """
    path = tmp_path / "file"
    if not path.exists():
        executable.save(path)
    content = bytearray(path.read_bytes())
    content[int(at * len(content))] ^= flip
    damaged = tmp_path / "damaged"
    damaged.write_bytes(content)
    try:
        loaded = pc.Executable.load(damaged, codelets=CODELETS)
    except errors.ExecutableFileError:
        return
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    ("op", "column"), [(Op.RUN, 1), (Op.YIELD, 1), (Op.JUMP, 1), (Op.REPEAT, 1), (Op.REPEAT, 3), (Op.END, 2), (Op.BRANCH, 1), (Op.BRANCH, 3)]
)
def test_operands_that_lead_outside_are_refused(executable, op, column):
    """
    Every operand that is an index or an address is checked.
    """
    code = executable.code.copy()
    code[np.flatnonzero(code[:, 0] == op)[0], column] = 1 << 40
    with pytest.raises(errors.ExecutableFileError, match=r"file.*damaged"):
        check_tables(dataclasses.replace(executable, code=code), "file")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200, deadline=None)
@given(data=st.data())
def test_tables_that_lead_outside_are_refused(executable, data):
    """
    A table with a huge number somewhere never passes the check, whatever column it is in.
    """
    name = data.draw(st.sampled_from(["code", "entries", "phases", "groups", "spans", "batches", "tiles", "rows", "initial"]))
    table = getattr(executable, name)
    changed = table.copy().reshape(-1)
    if not changed.size:
        return
    where = data.draw(st.integers(0, changed.size - 1))
    column = where % table.shape[1] if table.ndim == 2 else 0
    free = {"code": {1, 2, 3}, "phases": {4, 5}, "groups": {11, 1, 3, 4, 5, 6, 7, 8, 9, 10}, "batches": {5, 6, 7}}  # columns some rows do not use
    if column in free.get(name, ()):
        return
    changed[where] = np.iinfo(table.dtype).max
    broken = dataclasses.replace(executable, **{name: changed.reshape(table.shape)})
    with pytest.raises(errors.ExecutableFileError):
        check_tables(broken, "file")
