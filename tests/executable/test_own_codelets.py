"""Executables that use popcore's own codelets, written and generated, are loaded with the user's classes alone."""

import importlib
import inspect
import pkgutil
import zipfile

import msgspec
import numpy as np
import pytest

import popcore as pc
from popcore import FLOAT, HALF, INT, UNSIGNED_INT, codelets, errors, poputil, program
from popcore.archive import digest
from popcore.codelets.built_in import BUILT_IN
from popcore.ops import poplin, popnn, popops
from popcore.ops.popops.expr import Cast, Const, ConstHalf, Select, Tanh, _1, _2, _3
from tests.codelets import CopyVector

SHAPES = {"x": (FLOAT, (6, 4)), "y": (FLOAT, (6, 4)), "h": (HALF, (24,)), "k": (INT, (4,))}


def variables(graph):
    """x, y, h and k, over all tiles."""
    made = [graph.add_variable(dtype, shape, name=name) for name, (dtype, shape) in SHAPES.items()]
    for t in made:
        poputil.map_tensor_linearly(graph, t)
        graph.create_host_write(t.variable.name, t)
    return made


@pytest.fixture
def executable(graph):
    """Maps of every form, a reduction, a slice, a product, extremes, and a codelet of the user's."""
    run = program.Sequence()
    x, y, h, k = variables(graph)
    popops.scaled_add_to(graph, x, y, 0.25, run)
    popops.map_in_place(graph, _1 + 3, [k], run)
    found = [
        popops.map(graph, Select(Tanh(_1) * Const(float("inf"), FLOAT), _2 * 2.5, _1 > _3), [x, y, x[0, 0]], run),
        popops.map(graph, Cast(_1, INT) + Const(-7, INT), [h], run),
        popops.map(graph, _1 + _1 * ConstHalf(0.1), [h], run),
        popops.reduce(graph, x, [1], popops.Operation.ADD, run),
        popops.dynamic_slice(graph, x, graph.add_constant(UNSIGNED_INT, (1,), 2, tile=0), [0], [2], run),
        poplin.mat_mul(graph, x, y.transpose(), run),
        popnn.arg_max(graph, x, run),
        k,
    ]
    copy = graph.add_variable(FLOAT, (4,), name="copy", tile=1)
    cs = graph.add_compute_set("own")
    graph.add_vertex(cs, CopyVector, {"src": y[0], "dst": copy}, tile=1)
    run.add(program.Execute(cs))
    for i, t in enumerate([*found, copy]):
        graph.create_host_read(f"found {i}", t)
    return pc.compile_graph(graph, run)


def results(executable):
    """What all of it finds."""
    engine = pc.Engine(executable)
    rng = np.random.default_rng(1)
    for name, (dtype, shape) in SHAPES.items():
        engine.write_tensor(name, (rng.standard_normal(shape) * 9).astype(dtype.numpy))
    engine.run()
    return [engine.read_tensor(handle.name).tobytes() for handle in executable.reads]


def test_nothing_but_the_users_own_classes_is_asked_for(executable, tmp_path):
    """
    Built-in codelets are found and generated ones are generated again; what is loaded does and saves the same.
    """
    executable.save(tmp_path / "one")
    loaded = pc.Executable.load(tmp_path / "one", codelets=[CopyVector])
    assert results(loaded) == results(executable)
    loaded.save(tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert {c.name.split("<")[0].split("_")[0] for c in loaded.codelets} >= {"popops::Map", "popops::ReduceRowsAdd", "ArgMaxRow", "CopyVector"}
    with pytest.raises(errors.CodeletError, match="CopyVector"):
        pc.Executable.load(tmp_path / "one")


def rewritten(path, change):
    """The file with its header changed, and checksums that fit it."""
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    header = msgspec.msgpack.decode(entries["header.msgpack"])
    change(next(record for record in header["codelets"] if "_select_" in record["name"]))
    entries["header.msgpack"] = msgspec.msgpack.encode(header)
    entries["digest"] = digest(entries["header.msgpack"]).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content)


def within(record, operation):
    """The part of a description that is an operation."""
    todo = [record["generated"]["expression"]]
    while todo:
        part = todo.pop()
        if part.get("operation") == operation:
            return part
        todo += part.get("operands", [])
    raise LookupError(operation)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda r: within(r, "tanh").update(operation="exec"), "damaged description"),
        (lambda r: within(r, "tanh").update(dtype="floot"), "damaged description"),
        (lambda r: within(r, "tanh").update(operands=[]), "damaged description"),
        (lambda r: within(r, "gt")["operands"].pop(), "damaged description"),
        (lambda r: within(r, "tanh").update(operands=[{"dtype": "float", "placeholder": 9}]), "damaged description"),
        (lambda r: within(r, "tanh").update(operands=[{"dtype": "int", "constant": 1.5}]), "damaged description"),
        (lambda r: within(r, "tanh").update(operands=[{"dtype": "bool", "constant": True}]), "damaged description"),
        (lambda r: within(r, "tanh").update(operands=[{"dtype": "float", "constant": "__import__('os')"}]), "damaged header"),
        (lambda r: r["generated"].update(scalars=[]), "damaged description"),
        (lambda r: r["generated"].update(in_place=4), "damaged description"),
        (lambda r: r["generated"].update(source="class Map: ..."), "damaged header"),
        (lambda r: r.update(generated=None), "no class of that name"),
        (lambda r: within(r, "tanh").update(operation="sin"), "another codelet"),
        (lambda r: r.update(fingerprint="0" * 40), "another codelet"),
    ],
)
def test_a_description_that_was_changed_is_refused(executable, tmp_path, change, says):
    """
    Checksums can be forged: a description is still only an expression, and has to give the code that was compiled.
    """
    executable.save(tmp_path / "file")
    rewritten(tmp_path / "file", lambda record: None)
    pc.Executable.load(tmp_path / "file", codelets=[CopyVector])
    rewritten(tmp_path / "file", change)
    with pytest.raises(errors.PopcoreError, match=says):
        pc.Executable.load(tmp_path / "file", codelets=[CopyVector])


def test_every_built_in_codelet_is_listed():
    """
    Each class in popcore/codelets is in BUILT_IN, or is a base of one that is.
    """
    bases = {base for cls in BUILT_IN.values() for base in cls.__mro__}
    for module in pkgutil.iter_modules(codelets.__path__):
        found = importlib.import_module(f"{codelets.__name__}.{module.name}")
        for cls in vars(found).values():
            if inspect.isclass(cls) and issubclass(cls, pc.Vertex) and cls.__module__ == found.__name__:
                assert cls in bases, f"add {cls.__name__} to popcore/codelets/built_in.py"
