"""Files, texts, flags, C, libraries, saved Executables; and everything that can be wrong with them."""

import os

import numpy as np
import pytest

import popcore as pc
from popcore import FLOAT, Executable, Vertex, errors
from popcore.bindings import toolchain, unit
from tests.bindings.vertex import CODELETS, Built, run

ONES = np.ones(4, np.float32)
DOUBLE = """
#include <poplar/Vertex.hpp>
class Double : public poplar::Vertex {
public:
  poplar::InOut<poplar::Vector<float>> x;
  bool compute() { for (auto &v : x) v *= FACTOR; return true; }
};
"""


def text_of(body, fields="poplar::InOut<poplar::Vector<float>> x;"):
    return f"#include <poplar/Vertex.hpp>\nusing namespace poplar;\nclass Wrong : public Vertex {{\npublic:\n{fields}\nbool compute() {{\n{body}\nreturn true; }}\n}};\n"


def use(what, name, **options):
    """A graph with a vertex that nothing is connected to."""
    graph = pc.Graph(pc.Device("M2000", num_ipus=1, tiles_per_ipu=8).target)
    graph.add_codelets(what, **options)
    return graph.add_vertex(graph.add_compute_set("cs"), name, tile=0)


def refused(what, name="Wrong", **options):
    """The error that a file or text gives when a vertex uses it."""
    with pytest.raises(errors.PopcoreError) as caught:
        use(what, name, **options)
    assert "driver.hpp" not in str(caught.value)
    assert "popcore-generated" not in str(caught.value)
    return str(caught.value)


def test_source_text_and_flags():
    """
    A text of C++ is a file; flags reach the preprocessor, as one string or a list.
    """
    assert run(DOUBLE, "Double", {"x": ONES}, cxxflags="-DFACTOR=2")["x"].tolist() == [2] * 4
    assert run(DOUBLE, "Double", {"x": ONES}, cxxflags=["-DFACTOR=3", "-O1"])["x"].tolist() == [3] * 4


def test_several_files():
    """
    A list of files is linked together; each may say where its headers are.
    """
    parts = CODELETS / "parts"
    files = [parts / "weighted.cpp", parts / "helper.cpp"]
    assert run(files, "Weighted", {"x": ONES})["x"].tolist() == [0, 0.5, 1, 1.5]
    assert run(files, "Weighted", {"x": ONES}, cxxflags=f"-DOFFSET=1 -I{parts}")["x"].tolist() == [1, 1.5, 2, 2.5]
    said = refused(parts / "weighted.cpp", "Weighted")
    assert "weight(unsigned int)" in said
    assert "no given file defines" in said


def test_c():
    """
    A codelet in C that meets the interface by hand, and the library it was made into.
    """
    x, y = np.arange(5, dtype=np.float32), np.ones(5, np.float32)
    assert np.array_equal(run("plain.c", "ScaleAdd", {"x": x, "y": y}, {"factor": 2})["y"], 2 * x + 1)
    built = unit.open_unit(CODELETS / "plain.c")
    library = unit.cache.work_folder() / next(iter(built._record.drivers.values()))
    assert np.array_equal(run(library, "ScaleAdd", {"x": x, "y": y}, {"factor": 2})["y"], 2 * x + 1)
    with pytest.raises(errors.VertexError, match="the driver gave up"):
        Built("plain.c", "ScaleAdd", {"x": x, "y": y[:3]}).run(pc.Engine)


@pytest.mark.parametrize(("wrong", "right", "says"), [("POPCORE_IN,", "9,", "direction 9 and shape 1 for field x"), ('"x", "float"', "0, 0", "NULL")])
def test_tables_with_mistakes(tmp_path, wrong, right, says):
    """
    A table written by hand with a number that means nothing, or without a name, is refused.
    """
    text = (CODELETS / "plain.c").read_text(encoding="utf-8")
    assert wrong in text
    (tmp_path / "plain.c").write_text(text.replace(wrong, right, 1))
    assert says in refused(tmp_path / "plain.c", "ScaleAdd")


def test_saved_executables(tmp_path):
    """
    A saved Executable is loaded with the path of its codelets; another source is refused.
    """
    source = tmp_path / "double.cpp"
    source.write_text(DOUBLE.replace("FACTOR", "4"))
    built = Built(source, "Double", {"x": ONES})
    pc.Engine(built.graph, built.program).executable.save(tmp_path / "saved")
    loaded = Executable.load(tmp_path / "saved", codelets=[source])
    engine = pc.Engine(loaded)
    engine.run()
    assert engine.read_tensor("x").tolist() == [4] * 4
    with pytest.raises(errors.CodeletError, match="Double"):
        Executable.load(tmp_path / "saved")
    source.write_text(DOUBLE.replace("FACTOR", "5"))
    with pytest.raises(errors.CodeletError, match="another codelet"):
        Executable.load(tmp_path / "saved", codelets=[source])


@pytest.mark.parametrize("flags", ["", "-DUNUSED"])
def test_saved_executables_with_instances_of_templates(tmp_path, flags):
    """
    An instance of a template in a namespace is found again in its file; where there were flags, in what was opened with them.
    """
    built = Built("kinds.cpp", "Limit<float, true>", {"x": ONES}, {"low": -1, "high": 0.5}, cxxflags=flags)
    pc.Engine(built.graph, built.program).executable.save(tmp_path / "saved")
    file = CODELETS / "kinds.cpp"
    engine = pc.Engine(Executable.load(tmp_path / "saved", codelets=[unit.open_unit(file, flags) if flags else file]))
    engine.run()
    assert engine.read_tensor("x").tolist() == [0.5] * 4


def test_a_changed_file_or_header_is_compiled_again(tmp_path):
    """
    The cache goes by content: of the file and of what it includes.
    """
    (tmp_path / "factor.hpp").write_text("#define FACTOR 2\n")
    (tmp_path / "a.cpp").write_text('#include "factor.hpp"\n' + DOUBLE)
    assert run(tmp_path / "a.cpp", "Double", {"x": ONES})["x"].tolist() == [2] * 4
    (tmp_path / "factor.hpp").write_text("#define FACTOR 7\n")
    assert run(tmp_path / "a.cpp", "Double", {"x": ONES})["x"].tolist() == [7] * 4


def test_a_warm_start_runs_no_compiler(monkeypatch):
    """
    What was compiled is found again without a compiler's run, and damage is repaired by one.
    """
    runs = []
    monkeypatch.setattr(toolchain, "run", lambda *a, true=toolchain.run: runs.append(a) or true(*a))
    text = DOUBLE.replace("FACTOR", "9")
    for expected in (3, 3):
        assert run(text, "Double", {"x": ONES})["x"].tolist() == [9] * 4
        assert len(runs) == expected
    folder = unit.cache.work_folder()
    kept = unit.open_unit(text)._record.drivers["Double"]
    unit.cache.write(folder / kept, b"\x7fELF damaged")  # another file of that name: this process uses the old one
    assert unit.open_unit(text).find("Double").driver()
    assert len(runs) == 6


def test_a_long_compile_is_told_of_on_a_terminal(monkeypatch, capsys):
    """
    A line with the codelet's name, on a terminal only.
    """
    monkeypatch.setattr(toolchain, "PATIENCE_SECONDS", 0.0)
    use(DOUBLE, "Double", cxxflags="-DFACTOR=11")
    assert not capsys.readouterr().err
    monkeypatch.setattr(toolchain.sys.stderr, "isatty", lambda: True)
    use(DOUBLE, "Double", cxxflags="-DFACTOR=12")
    assert "compiling codelet Double (" in capsys.readouterr().err


def test_assembly_is_no_sign_of_waiting():
    """
    Workers get threads where something is volatile, not where only assembly is, which is never run.
    """
    helper = 'template <class T> void fast(T x) { asm volatile("nop"); }\n'
    assert not unit.open_unit(helper + text_of("x[0] = 1;"))._record.candidates[0].waits
    assert unit.open_unit("volatile int shared;\n" + text_of("x[0] = 1;"))._record.candidates[0].waits


def test_python_and_cpp_in_one_compute_set():
    """
    Codelets of both languages stand beside each other; two of one name cannot.
    """

    class Double(Vertex):
        x: pc.InOut[pc.Vector[FLOAT]]

        def compute(self):
            self.x[0] = 0.0

    graph = pc.Graph(pc.Device("M2000", num_ipus=1, tiles_per_ipu=8).target)
    graph.add_codelets(Double)
    with pytest.raises(errors.CodeletError, match="two codelets are called Double"):
        graph.add_codelets(DOUBLE, cxxflags="-DFACTOR=2")


def test_no_compiler(monkeypatch, tmp_path):
    """
    Where there is no compiler the package to install is named.
    """
    monkeypatch.setattr(toolchain.shutil, "which", lambda name: None)
    assert "apt install g++" in refused(DOUBLE, "Double")


def test_compile_errors(tmp_path):
    """
    A compile error names the user's line and has g++'s text.
    """
    file = tmp_path / "bad.cpp"
    file.write_text(text_of("int n = undeclared_name;\nx[0] = n;"))
    said = refused(file)
    assert said.startswith(f"{file}:7: ")
    assert "undeclared_name" in said
    file.write_text("#include <no/such/header.hpp>\n")
    assert f"{file}:1" in refused(file)
    file.write_text("#include <poplar/Vertex.hpp>\nint nothing;\n")
    assert "no vertex class" in refused(file)
    assert "is there" in refused(tmp_path / "bat.cpp")


def test_writing_an_input_is_an_error():
    """
    An Input's elements are const.
    """
    said = refused(text_of("x[0] = 1;", "Input<Vector<float>> x;"))
    assert "read-only" in said or "const" in said  # g++, clang++


def test_sources_older_than_const_inputs():
    """
    A cast that takes an Input's const away is accepted, as it was when Inputs were not const.
    """
    body = "float *p = reinterpret_cast<float *>(&in[0]);\nx[0] = p[0] + 1;"
    text = text_of(body, "Input<Vector<float>> in; InOut<Vector<float>> x;")
    assert run(text, "Wrong", {"in": ONES, "x": ONES})["x"].tolist() == [2, 1, 1, 1]


@pytest.mark.skipif("clang" in os.environ.get("CXX", ""), reason="clang++ has no -fpermissive, and refuses such sources")
def test_permissive_sources_are_warned_of():
    """
    What g++ takes only with -fpermissive is taken with a warning.
    """
    text = text_of("x[0] = (unsigned)&x[0] ? 5 : 6;")
    with pytest.warns(UserWarning, match="-fpermissive"):
        assert Built(text, "Wrong", {"x": ONES}).run(pc.Engine)["x"].tolist() == [5, 1, 1, 1]


@pytest.mark.parametrize(
    ("field", "type_"),
    [
        ("float *p;", r"float\s*\*"),
        ("float p[3];", r"float\s*\[3\]"),
        ("struct S { int a; }; S p;", "S"),
        ("Vector<Vector<Input<float>>> p;", "Vector"),
        ("double p;", "double"),
    ],
)
def test_fields_that_a_tile_cannot_hold(field, type_):
    """
    Pointers, arrays, structs, doubles and deeper nests are refused by field and type.
    """
    said = refused(text_of("", field))
    assert "field 'p' of codelet Wrong" in said
    assert "cannot hold" in said


def test_unknown_names():
    """
    Near matches, and what the file has.
    """
    said = refused(CODELETS / "kinds.cpp", "Worker")
    assert "'Workers'" in said
    assert "Limit" in refused(CODELETS / "kinds.cpp", "ops::Limit<double,true>")
    with pytest.raises(errors.UnknownNameError, match="'who'"):
        run("kinds.cpp", "Workers", {"wo": ONES})


def test_jagged_fields_with_gaps():
    """
    A list field that was not connected as a whole is named.
    """
    built = Built("fields.cpp", "JaggedSum", {"sums": np.zeros(2, np.float32)})
    built.graph.set_field_size(built.vertex["rows"], 2)
    built.graph.connect(built.vertex["rows"][0], built.shown["sums"])
    with pytest.raises(errors.PopcoreError, match="rows"):
        built.run(pc.Engine)


@pytest.mark.parametrize("regions", [1, 3])
def test_wrong_number_of_regions(regions):
    """
    A list field of a size that was set is given more or fewer vectors; as many are taken.
    """
    built = Built("fields.cpp", "JaggedSum", {"sums": np.zeros(2, np.float32)})
    graph, rows = built.graph, built.vertex["rows"]
    tensors = [graph.add_constant(FLOAT, (3,), i + 1, tile=0) for i in range(3)]
    graph.set_field_size(rows, 2)
    with pytest.raises(errors.GraphConnectionError, match=rf"JaggedSum.rows .* has 2 vectors, as set_field_size says, and is given {regions}"):
        graph.connect(rows, tensors[:regions])
    graph.connect(rows, tensors[:2])
    assert built.run(pc.Engine)["sums"].tolist() == [3, 6]
    with pytest.raises(errors.GraphConnectionError, match="connected already"):
        graph.connect(rows, tensors[:2])


def test_assembly_is_named(tmp_path):
    """
    Instructions of an IPU are refused where they would run, though some of them are the host's too.
    """
    for instruction in ("ret", "add $m0, $m1, $m2", "nop\\n cli"):
        said = refused(text_of(f'x[0] = 1;\nasm volatile("{instruction}");'))
        assert "assembly" in said
        assert ":8" in said
    idle = text_of('asm volatile("" ::: "memory");\nx[0] = 2;\nasm volatile(R"(\n  nop\n  nop )" : : : "memory");\n__asm__("nop\\n\\tnop;" "nop");')
    assert run(idle, "Wrong", {"x": ONES})["x"].tolist() == [2, 1, 1, 1]
    guarded = text_of('#ifdef __IPU__\nasm volatile("nop");\n#else\nx[0] = 3;\n#endif')
    assert run(guarded, "Wrong", {"x": ONES})["x"].tolist() == [3, 1, 1, 1]
    for suffix in (".S", ".gp"):
        file = tmp_path / f"codelet{suffix}"
        file.write_bytes(b"")
        assert "not emulated" in refused(file)


def test_nothing_is_left_behind():
    """
    Only whole results stay in the cache's folder.
    """
    left = [name for name in os.listdir(unit.cache.work_folder()) if not name.endswith((".so", ".record", ".cpp", ".code"))]
    assert not left
