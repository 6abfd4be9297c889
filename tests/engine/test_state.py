"""Does a run go on from a state as if nothing had happened, and is a state that is not whole or not its own refused?"""

import errno
import os
import subprocess
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import popcore as pc
from popcore import FLOAT, INT, errors, program
from popcore.engine import state
from tests.codelets import Increment
from tests.engine.resumable import CASES, Case, Numbers
from tests.processes import python
from tests.test_pages import linux


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A folder with the state of each case after its first runs, what another process found after going on, and what the first one found."""
    folder, expected = tmp_path_factory.mktemp("states"), {}
    for name, build in CASES.items():
        case = build()
        engine, filled = case.engine()
        for index in case.before:
            engine.run(index)
        engine.save_state(folder / f"{name}.state")
        np.savez(folder / f"{name}.kept.npz", **case.remember())
        for array in filled.values():
            array[...] = 0  # what was there before is the user's
        for index in case.after:
            engine.run(index)
        expected[name] = case.found(engine, filled)
    subprocess.run(**python("-m", "tests.engine.resumable", folder), check=True)
    return folder, expected


def agree(found, expected):
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        assert found[name].tobytes() == values.tobytes(), name


@pytest.mark.parametrize("name", CASES)
def test_another_process_goes_on_bit_for_bit(saved, name):
    """
    Tensors, remote rows, what streams took and gave, modelled cycles: equal to those of an engine that was never interrupted.
    """
    folder, expected = saved
    agree(dict(np.load(folder / f"{name}.npz")), expected[name])


@pytest.mark.parametrize("name", CASES)
def test_the_same_engine_goes_back(saved, name):
    """
    Twice to the same state, from wherever it is, with another number of threads.
    """
    folder, expected = saved
    case = CASES[name]()
    engine, filled = case.engine(**{"engine.threads": 2})
    for _ in range(2):
        engine.run(case.before[0])
        engine.load_state(folder / f"{name}.state")
        for handle, at in np.load(folder / f"{name}.kept.npz").items():
            case.inputs[handle].at = int(at)
        for array in filled.values():
            array[...] = 0
        for index in case.after:
            engine.run(index)
        agree(case.found(engine, filled), expected[name])


@pytest.mark.parametrize("name", CASES)
def test_cases_depend_on_what_is_saved(saved, name):
    """
    Without the state the same runs find something else, so that the tests above ask something.
    """
    _, expected = saved
    case = CASES[name]()
    engine, filled = case.engine()
    for index in case.after:
        engine.run(index)
    found = case.found(engine, filled)
    assert any(found[key].tobytes() != values.tobytes() for key, values in expected[name].items() if key != "cycles") or name in ("checked", "wide")


def counting(**options):
    """A small engine whose run adds one to x."""
    case = Case(**options)
    x = case.variable("x", INT, [1, 2, 3])
    case.programs = [case.step((Increment, {"x": x}, 0))]
    return case


def test_what_is_connected_after_loading_goes_on_too(tmp_path):
    """
    Streams may be connected before or after the state is loaded; connecting once more starts at the beginning.
    """
    case = CASES["streams"]()
    engine, filled = case.engine()
    engine.run()
    engine.save_state(tmp_path / "s")
    at = case.inputs["ahead"].at
    filled["out"][:] = 0
    engine.run()
    expected = filled["out"].copy()
    late = pc.Engine(case.graph, case.programs, options=case.options)
    late.load_state(tmp_path / "s")
    late.save_state(tmp_path / "t")
    assert (tmp_path / "t").read_bytes() == (tmp_path / "s").read_bytes(), "what waits for its connection is saved again"
    result = np.zeros(20, np.int32)
    for handle, endpoint in {"ring": case.inputs["ring"], "ahead": Numbers(at), "out": result}.items():
        late.connect_stream(handle, endpoint)
    late.run()
    assert np.array_equal(result, expected)
    late.connect_stream("out", result)
    late.run()
    assert result[0] != expected[0], "from the beginning again"


@pytest.mark.parametrize("after", [False, True])
def test_another_connection_is_refused(tmp_path, after):
    """
    A ring of other size, an array instead of a callback: named, before or after loading; nothing has changed.
    """
    case = CASES["streams"]()
    engine, _ = case.engine()
    engine.run()
    engine.save_state(tmp_path / "s")
    other = pc.Engine(case.graph, case.programs, options=case.options)
    connect = [lambda: other.connect_stream("ring", np.zeros(4, np.int32)), lambda: other.connect_stream("ahead", np.zeros(4, np.int32))]
    for each, message in zip(connect, ["'ring' was connected to an array of 14", "'ahead' was connected to a callback"], strict=True):
        if after:
            other.load_state(tmp_path / "s")
            with pytest.raises(errors.StreamError, match=message):
                each()
        else:
            each()
            with pytest.raises(errors.StreamError, match=message):
                other.load_state(tmp_path / "s")
            assert other.read_tensor("y").tolist() == [0]
        other = pc.Engine(case.graph, case.programs, options=case.options)


def test_the_state_of_another_program_is_refused_by_name(tmp_path):
    """
    What differs is in the message: the program, the codelets, the target, remote buffers; the line of a file where something was made is not.
    """
    counting().engine()[0].save_state(tmp_path / "s")
    counting().engine()[0].load_state(tmp_path / "s")
    twice = counting()
    twice.programs = [program.Sequence(twice.programs[0], twice.programs[0])]
    with pytest.raises(errors.StateFileError, match=r"another program: its program differs"):
        twice.engine()[0].load_state(tmp_path / "s")
    wide = counting(tiles=5)
    with pytest.raises(errors.StateFileError, match=r"target and memory and program differ from"):
        wide.engine()[0].load_state(tmp_path / "s")
    buffered = counting()
    buffered.graph.add_remote_buffer("far", INT, 1, 1)
    with pytest.raises(errors.StateFileError, match=r"remote buffers"):
        buffered.engine()[0].load_state(tmp_path / "s")


@pytest.mark.parametrize(("option", "value"), [("prng.seed", 5), ("target.floatingPoint", "ieee")])
def test_options_that_decide_results_have_to_be_the_same(tmp_path, option, value):
    """
    Both values are named; the hint says which to give.
    """
    counting(**{option: value}).engine()[0].save_state(tmp_path / "s")
    with pytest.raises(errors.StateFileError, match=rf"{option}={value!r}, this engine has (1|'device')"):
        counting().engine()[0].load_state(tmp_path / "s")


@settings(max_examples=40)
@given(st.data())
def test_a_changed_byte_is_never_believed(tmp_path_factory, data):
    """
    Wherever it is: refused, or of no meaning (the zip's own fields), and then the state is what it was. The engine never changes halfway.
    """
    folder = tmp_path_factory.mktemp("changed")
    engine = counting().engine()[0]
    engine.run()
    engine.save_state(folder / "s")
    whole = bytearray((folder / "s").read_bytes())
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] ^= data.draw(st.integers(1, 255))
    (folder / "s").write_bytes(bytes(whole[: data.draw(st.sampled_from([len(whole), at]))]))
    other = counting().engine()[0]
    try:
        other.load_state(folder / "s")
    except errors.StateFileError:
        assert other.read_tensor("x").tolist() == [1, 2, 3]
    else:
        assert other.read_tensor("x").tolist() == [2, 3, 4]


def rewritten(path, change):
    """The state with its header changed, and a checksum that fits it."""
    import msgspec

    from popcore.archive import digest

    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    header = msgspec.msgpack.decode(entries["header.msgpack"])
    change(header, entries)
    entries["header.msgpack"] = msgspec.msgpack.encode(header)
    entries["digest"] = digest(entries["header.msgpack"]).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content)


def forged(name, content):
    """Another entry, with the checksum that it should have."""
    from popcore.archive import digest

    def change(header, entries):
        entries[name] = content
        header["digests"][name] = digest(content)

    return change


RANGES = np.array([[-8, 16]], "<i8"), np.array([[0, 1 << 50]], "<i8"), np.array([[64, 8], [0, 8]], "<i8"), np.array([[0, 8], [4, 8]], "<i8")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        *((forged("tiles/ranges", each.tobytes()), "leave the memory") for each in RANGES),
        (forged("tiles/ranges", b"123"), "no table"),
        (forged("tiles/bytes", b"123"), "not as many"),
        (forged("counts", b"12345678"), "counts"),
        (forged("counts", bytes(1 << 20)), "counts has more than"),
        (forged("tiles/ranges", bytes(1 << 20)), "ranges has more than"),
        (lambda h, e: e.pop("counts"), "counts"),
        (lambda h, e: h["digests"].pop("counts"), "counts"),
        (lambda h, e: h.update(behaviour=1 << 20), "absurd"),
        (lambda h, e: h.update(compute_sets=-1), "absurd"),
        (lambda h, e: h["areas"].update(tiles=1), "memory is not"),
        (lambda h, e: h.update(version=2), "version 2"),
        (lambda h, e: h.update(format="popcore executable"), "no state"),
        (lambda h, e: h.update(more=1), "damaged header"),
        (lambda h, e: h.update(streams=[{"handle": "q", "replicas": [0], "elements": 2, "cursor": 0}]), "streams"),
        (lambda h, e: h.update(statics=[{"unit": 0, "rules": [], "variables": [["a", 4]], "tiles": [0]}]), "the program has none"),
    ],
)
def test_numbers_are_checked_before_they_are_believed(tmp_path, change, message):
    """
    A header that fits its checksum, and says what cannot be.
    """
    engine = counting().engine()[0]
    engine.save_state(tmp_path / "s")
    rewritten(tmp_path / "s", change)
    engine.run()
    with pytest.raises(errors.StateFileError, match=message):
        engine.load_state(tmp_path / "s")
    assert engine.read_tensor("x").tolist() == [2, 3, 4]


def test_a_full_disk_leaves_what_was_there(tmp_path, monkeypatch):
    """
    The old state is whole, and nothing stands beside it.
    """
    engine = counting().engine()[0]
    engine.save_state(tmp_path / "s")
    before = (tmp_path / "s").read_bytes()
    engine.run()

    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        engine.save_state(tmp_path / "s")
    assert (tmp_path / "s").read_bytes() == before
    assert os.listdir(tmp_path) == ["s"]


def test_a_disk_that_fails_while_memory_is_filled(tmp_path, monkeypatch):
    """
    The file was fine and cannot be read again: the engine says that its data is lost, and load() starts over.
    """
    engine = counting().engine()[0]
    engine.save_state(tmp_path / "s")

    def fails(*arguments):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr("popcore.archive.Reader.pieces", fails)
    with pytest.raises(errors.StateFileError, match="has lost its data"):
        engine.load_state(tmp_path / "s")
    engine.load()
    assert engine.read_tensor("x").tolist() == [1, 2, 3]


def test_not_while_it_runs(tmp_path):
    """
    A callback cannot save: the run is in the middle of a step.
    """
    case = CASES["streams"]()
    engine, _ = case.engine()
    engine.connect_stream("ring", lambda buffer: engine.save_state(tmp_path / "s"))
    with pytest.raises(errors.EngineError, match=r"save_state\(\): this engine is running"):
        engine.run()
    assert not os.listdir(tmp_path)


def test_without_data_there_is_no_state(tmp_path):
    """
    ``debug.compute`` off.
    """
    with pytest.raises(errors.EngineError, match=r"save_state.*debug\.compute"):
        counting(**{"debug.compute": False}).engine()[0].save_state(tmp_path / "s")


@linux
def test_only_what_is_used_is_written(tmp_path):
    """
    A POD64 and a remote buffer of 64 GiB: a few pages; equal states are equal files.
    """
    graph = pc.Graph(pc.Device("POD64").target)
    graph.add_remote_buffer("far", FLOAT, 1 << 20, 1 << 14)
    x = graph.add_variable(FLOAT, (graph.target.num_tiles, 10_000), name="x")
    pc.poputil.map_tensor_linearly(graph, x)
    graph.create_host_write("x0", x[0])
    graph.create_host_read("x0", x[0])
    engine = pc.Engine(graph, program.Sequence(program.WriteUndef(x)))
    engine.write_tensor("x0", np.arange(10_000, dtype=np.float32))
    engine.copy_to_remote_buffer(np.full(1 << 20, 2, np.float32), "far", 7_700)
    engine.save_state(tmp_path / "s")
    assert (tmp_path / "s").stat().st_size < 6 << 20
    other = pc.Engine(engine.executable)
    other.load_state(tmp_path / "s")
    assert other.read_tensor("x0")[-1] == 9_999
    assert other.copy_from_remote_buffer("far", 7_700)[-1] == 2
    other.save_state(tmp_path / "t")
    assert (tmp_path / "s").read_bytes() == (tmp_path / "t").read_bytes()


def test_addresses_in_variables_of_codelets_are_refused(tmp_path):
    """
    They mean nothing in another process. The variable and the tile are named.
    """
    case = Case()
    case.graph.add_codelets("""
        #include <poplar/Vertex.hpp>
        static const float *last_seen = nullptr;
        class Looks : public poplar::Vertex {
        public:
          poplar::InOut<poplar::Vector<float>> x;
          bool compute() { x[0] += last_seen == &x[0]; last_seen = &x[0]; return true; }
        };
    """)
    x = case.variable("x", FLOAT, [1.0])
    case.programs = [case.step(("Looks", {"x": x}, 2))]
    engine, _ = case.engine()
    engine.save_state(tmp_path / "fine")
    engine.run()
    with pytest.raises(errors.EngineError, match=r"last_seen.*on tile 2"):
        engine.save_state(tmp_path / "s")
    assert os.listdir(tmp_path) == ["fine"]


def test_variables_of_libraries_made_by_hand_are_refused(tmp_path):
    """
    All tiles share them, and nobody can say what they mean.
    """
    (tmp_path / "counts.c").write_text("""
        #include <popcore/codelet_abi.h>
        static int32_t calls;
        static int64_t run(uint8_t *mem, const int64_t *base, const int32_t *tiles, int64_t t0, int64_t t1, const int32_t *rows, int64_t nrows, uint64_t *aux) {
          for (int64_t k = t0; k < t1; ++k) *(int32_t *)(mem + base[tiles[k]] + rows[0]) = ++calls;
          return 0;
        }
        static const popcore_field fields[] = {{"x", "int", POPCORE_INOUT, POPCORE_SCALAR, 0, 0}};
        const popcore_type popcore_types[] = {{"Counts", fields, run, 1, 1, 0, 0}};
        const int32_t popcore_type_count = 1;
        const int32_t popcore_abi_version = POPCORE_ABI_VERSION;
    """)
    case = Case()
    case.graph.add_codelets(tmp_path / "counts.c")
    case.programs = [case.step(("Counts", {"x": case.variable("x", INT, 0)}, 2))]
    with pytest.raises(errors.EngineError, match=r"counts\.c has variables.*calls"):
        case.engine()[0].save_state(tmp_path / "s")


def test_versions_are_told():
    """
    So that a file of a later version is refused by name.
    """
    assert (state.FORMAT, state.VERSION) == ("popcore state", 1)
