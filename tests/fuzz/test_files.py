"""Damaged, forged and foreign files: each is refused by name or read as it was written; nothing crashes, and nothing in a file is run."""

import logging
import os
import zipfile

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import popcore as pc
from popcore import FLOAT, UNSIGNED_INT, archive, errors, program
from popcore.bindings import cache
from popcore.kernels import objects
from popcore.ops import popops
from tests.codelets import Axpy, SumRows
from tests.fuzz.choices import Drawn, FromHypothesis
from tests.fuzz.compare import compare, observed
from tests.fuzz.damage import DAMAGES, any_bytes, entries_of, forged, zip_of
from tests.fuzz.draw import draw_case
from tests.fuzz.run import TookTooLong, limited
from tests.fuzz.vertices import POOL

MANY = settings(suppress_health_check=list(HealthCheck), max_examples=60, deadline=None)
REFUSED = (errors.ExecutableFileError, errors.StateFileError, errors.CodeletError, errors.StreamError)


@st.composite
def choices(draw):
    return FromHypothesis(lambda bound: draw(st.integers(0, bound - 1)))


class Kept:
    """A file of each kind, and how it is read: to what ``content`` gives the same bytes of again."""

    def __init__(self, folder):
        self.folder = folder
        graph = pc.Graph(pc.Device("M2000", num_ipus=2, tiles_per_ipu=2).target, replication_factor=2)
        x = graph.add_variable(FLOAT, (4, 6), name="x", mapping="linear")
        graph.set_initial_value(x, np.arange(24).reshape(4, 6))
        out = graph.add_variable(FLOAT, (), name="out", tile=1)
        going = graph.add_constant(UNSIGNED_INT, (), 1, tile=0)
        cs = graph.add_compute_set("rows")
        graph.add_vertex(cs, SumRows, {"rows": x[1:3], "out": out}, tile=1)
        graph.add_vertex(cs, Axpy, {"x": x[3], "y": x[0], "k": 2.0}, tile=0)
        fifo, remote = graph.add_host_to_device_fifo("in", FLOAT, 6), graph.add_remote_buffer("far", FLOAT, 6, repeats=2)
        graph.create_host_read("x", x)
        body = program.Sequence(program.Copy(fifo, x[0]), program.Execute(cs), program.Copy(x[0], remote, 1), program.CrossReplicaCopy(x[0], x[1], [1, 0]))
        popops.add_in_place(graph, x[3], x[0], body)
        self.executable = pc.compile_graph(graph, program.Sequence(program.Repeat(2, body), program.Switch(going, {1: program.Copy(x[1], x[2])})))
        self.engine = self.new_engine(self.executable)
        self.engine.run()
        self.executable.save(folder / "executable")
        self.engine.save_state(folder / "state")

    @staticmethod
    def new_engine(executable):
        engine = pc.Engine(executable, options={"engine.threads": 1})
        engine.connect_stream("in", np.arange(24, dtype=np.float32).reshape(4, 6))
        return engine

    def content(self, kind):
        return (self.folder / kind).read_bytes()

    def read(self, kind, content):
        """Read a file with this content as an engine that has it."""
        path = self.folder / "other"
        path.write_bytes(content)
        if kind == "executable":
            return self.new_engine(pc.Executable.load(path, codelets=[Axpy, SumRows]))
        self.engine.load()
        self.engine.connect_stream("in", np.arange(24, dtype=np.float32).reshape(4, 6))
        self.engine.load_state(path)
        return self.engine

    def again(self, kind, engine):
        path = self.folder / "again"
        engine.executable.save(path) if kind == "executable" else engine.save_state(path)
        return path.read_bytes()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return Kept(tmp_path_factory.mktemp("files"))


@pytest.mark.parametrize("kind", ["executable", "state"])
@pytest.mark.parametrize("damage", ["bytes", "entries"])
@MANY
@given(choose=choices())
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_no_damage_goes_unnoticed(files, kind, damage, choose):
    """
    Cut off, flipped, spliced, entries twice or missing or with strange names: refused, or what is read is what was written.
    """
    before, refused = sorted(os.listdir(files.folder)), None
    try:
        engine = files.read(kind, DAMAGES[damage](files.content(kind), choose))
    except REFUSED as error:
        refused = str(error)
    assert files.again(kind, engine) == files.content(kind) if refused is None else "other" in refused and "try: " in refused
    assert set(os.listdir(files.folder)) <= {*before, "other", "again"}  # nothing was unpacked


@pytest.mark.parametrize("kind", ["executable", "state"])
@MANY
@given(choose=choices())
def test_a_forged_file_cannot_hurt(files, kind, choose):
    """
    By somebody who makes all checksums right: refused, or it runs as a program does, to an end, an error with a name, or for ever.
    """
    try:
        engine = files.read(kind, forged(files.content(kind), choose))
        with limited(3):
            engine.run()
            engine.read_tensor("x")
            engine.profile().summary()
    except (errors.PopcoreError, TookTooLong):
        pass


@pytest.mark.parametrize("number", range(6))
def test_forged_programs_of_the_fuzzer_cannot_hurt(number, tmp_path):
    """
    The same for Executables that have everything.
    """
    case = draw_case(Drawn(f"0:{number}"))
    pc.compile_graph(case.graph, case.programs, {"debug.check": ("off", "full")[number % 2]}).save(tmp_path / "file")
    content = (tmp_path / "file").read_bytes()
    for attempt in range(12):
        (tmp_path / "other").write_bytes(forged(content, Drawn(f"{number}:{attempt}")))
        try:
            with limited(3):
                observed(pc.Engine(pc.Executable.load(tmp_path / "other", codelets=[*POOL, *case.needs]), options={"engine.threads": 1}), case)
        except (errors.PopcoreError, TookTooLong):
            continue


def test_programs_with_all_checks_are_read_again(tmp_path):
    """
    What a test of memory looks at lies outside of the staging area; so it may.
    """
    graph = pc.Graph(pc.Device("M2000", num_ipus=1, tiles_per_ipu=2).target)
    x, y = (graph.add_variable(FLOAT, (1000,), name=name, tile=0) for name in "xy")
    graph.set_initial_value(x, np.ones(1000))
    test = graph.add_variable(UNSIGNED_INT, (), name="test", tile=1)
    graph.set_initial_value(test, 1)
    made = pc.compile_graph(graph, program.Sequence(program.Copy(x, y), program.If(test, program.Copy(y, x))), {"debug.check": "full"})
    made.save(tmp_path / "file")
    pc.Engine(pc.Executable.load(tmp_path / "file")).run()
    assert not compare(draw_case(Drawn("0:0")), tmp_path)


def test_entries_that_no_writer_made(files, monkeypatch):
    """
    Twice the same name, a method of compression that is never used, one entry too many, and more than the memory can hold.
    """
    content = files.content("executable")
    entries = list(entries_of(content).items())
    with pytest.warns(UserWarning, match="Duplicate"):
        twice = zip_of([*entries, entries[3]])
    with pytest.raises(errors.ExecutableFileError, match="twice"):
        files.read("executable", twice)
    strange = zipfile.ZipInfo("arrays/more.npy")
    with pytest.raises(errors.ExecutableFileError, match=r"do not agree on 'arrays/more\.npy'"):
        files.read("executable", zip_of([*entries, (strange, b"x")]))
    with zipfile.ZipFile(files.folder / "other", "w", zipfile.ZIP_LZMA) as out:
        out.writestr("header.msgpack", bytes(1000))
    with pytest.raises(errors.ExecutableFileError, match="compressed as none is"):
        pc.Executable.load(files.folder / "other")
    for kind in ("executable", "state"):
        with monkeypatch.context() as patch:
            patch.setattr(archive, "_most_bytes", lambda: 100)
            with pytest.raises((errors.ExecutableFileError, errors.StateFileError), match=r"would unpack to [\d,]+ bytes"):
                files.read(kind, files.content(kind))
    assert archive._most_bytes() > 1 << 28


def test_a_bomb_is_not_unpacked(files):
    """
    A small file that says it holds more than the machine has is refused before anything of it is read.
    """
    content = bytearray(zip_of(list(entries_of(files.content("executable")).items())))
    at = content.rindex(b"header.msgpack") - 46  # in the central directory
    content[at + 24 : at + 28] = (0xFFFFFFF0).to_bytes(4, "little")
    for name in (b"arrays/code.npy", b"arrays/rows.npy", b"arrays/words.npy", b"arrays/spans.npy"):
        at = content.rindex(name) - 46
        content[at + 24 : at + 28] = (0xFFFFFFF0).to_bytes(4, "little")
    with pytest.raises(errors.ExecutableFileError, match=r"would unpack to|no Executable"):
        files.read("executable", bytes(content))


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo], ids=["folder", "pipe"])
def test_what_is_no_file_is_not_waited_for(files, tmp_path, make):
    """
    Opening a pipe would wait for a writer.
    """
    make(tmp_path / "x")
    with pytest.raises(errors.ExecutableFileError, match="no plain file"):
        pc.Executable.load(tmp_path / "x")
    with pytest.raises(errors.StateFileError, match="no plain file"):
        files.engine.load_state(tmp_path / "x")


def test_names_in_a_file_are_only_names(files):
    """
    A codelet is found among what the user passed and what popcore has; nothing is imported or evaluated by its name.
    """
    for name in ("os:system", "__import__('os').system('true')", "../../codelets", "popcore.codelet.Vertex"):
        entries = entries_of(files.content("executable"))
        header = msgspec.msgpack.decode(entries["header.msgpack"])
        header["codelets"][0]["name"] = name
        header["codelets"][0]["generated"] = None
        entries["header.msgpack"] = msgspec.msgpack.encode(header)
        entries["digest"] = archive.digest(entries["header.msgpack"]).encode()
        with pytest.raises(errors.CodeletError, match="no class of that name was passed"):
            files.read("executable", zip_of(list(entries.items())))


# The cache


@MANY
@given(choose=choices())
def test_a_damaged_object_is_built_again(choose, tmp_path_factory):
    """
    Any damage to compiled code, or to what is remembered of C++ codelets: it is as good as absent, and the log says so.
    """
    said = []
    listener = logging.Handler()
    listener.emit = lambda record: said.append(record.getMessage())
    logging.getLogger("popcore.cache").addHandler(listener)
    try:
        folder = tmp_path_factory.mktemp("cache")
        folder.chmod(0o700)
        store = objects.Cache(folder)
        store.put("key", b"code " * 20)
        cache.keep(folder / "unit.record", b'{"types": {}}' * 10)
        for name, read in (("key", lambda: store.get("key")), ("unit.record", lambda: cache.kept(folder / "unit.record"))):
            whole = (folder / name).read_bytes()
            changed = any_bytes(whole, choose)
            (folder / name).write_bytes(changed)
            said.clear()
            if changed != whole:
                assert read() is None
                assert any(name in line and "again" in line for line in said)
    finally:
        logging.getLogger("popcore.cache").removeHandler(listener)


def test_libraries_have_the_content_of_their_names(tmp_path, caplog):
    """
    So a record that names another file, wherever, loads nothing.
    """
    tmp_path.chmod(0o700)
    (tmp_path / "built").write_bytes(b"\x7fELF library")
    name = cache.keep_library(tmp_path / "built", tmp_path)
    assert cache.is_whole(tmp_path, name)
    (tmp_path / name).write_bytes(b"\x7fELF another")
    assert not cache.is_whole(tmp_path, name)
    assert "compiled again" in caplog.text
    outside = tmp_path / "evil.so"
    outside.write_bytes(b"\x7fELF evil")
    for each in ("../evil.so", str(outside), "evil.so", ""):
        assert not cache.is_whole(tmp_path, each)


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_folder_that_others_may_write_is_not_used(mode, tmp_path, caplog, monkeypatch):
    """
    Not read, not written; compiled codelets are kept nowhere, those in C++ in a folder of the process.
    """
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    store = objects.Cache(folder)
    assert store.put("key", b"code")
    (folder / "cpp").mkdir(mode=0o700)
    folder.chmod(mode)
    assert store.get("key") is None
    assert not store.put("other", b"code")
    assert sorted(os.listdir(folder)) == ["cpp", "key"]
    assert "others could write there" in caplog.text
    monkeypatch.setenv("POPCORE_CACHE_DIR", str(folder))
    (folder / "cpp").chmod(mode)
    assert cache.work_folder().parent != folder
    assert cache.work_folder().stat().st_mode & 0o777 == 0o700


def test_files_are_for_their_owner(files, tmp_path, monkeypatch):
    """
    Executables, states, caches: whatever the umask is, nobody else reads them.
    """
    before = os.umask(0)
    try:
        files.executable.save(tmp_path / "executable")
        files.engine.save_state(tmp_path / "state")
        monkeypatch.setenv("POPCORE_CACHE_DIR", str(tmp_path / "cache"))
        objects.Cache(tmp_path / "cache").put("key", b"code")
        cache.keep(cache.work_folder() / "unit.record", b"{}")
        made = [tmp_path / name for name in ("executable", "state", "cache/key", "cache/cpp/unit.record")]
        assert [path.stat().st_mode & 0o777 for path in made] == [0o600] * 4
        assert [path.stat().st_mode & 0o777 for path in (tmp_path / "cache", tmp_path / "cache" / "cpp")] == [0o700] * 2
    finally:
        os.umask(before)


def test_a_link_is_replaced_not_followed(files, tmp_path):
    """
    Saving to a name that is a link leaves what the link points to alone.
    """
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "file").symlink_to(tmp_path / "precious")
    files.executable.save(tmp_path / "file")
    assert (tmp_path / "precious").read_text() == "precious"
    assert not (tmp_path / "file").is_symlink()
