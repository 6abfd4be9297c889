"""Does the source keep what docs/security.md says of it?"""

import ast

import pytest

import popcore as pc
from popcore import FLOAT, program
from popcore.debug import plain
from tests.codelets import CopyVector
from tests.contract.test_layers import ROOT, source_files

FORBIDDEN_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "shelve", "marshal", "yaml", "socket", "socketserver", "http", "multiprocessing"}
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__", "system", "popen", "mktemp"}
KNOWN = {
    ("popcore/codelet.py", "eval"),  # annotations of the user's own class
    ("popcore/codelets/expressions.py", "exec"),  # text made of a table of operations, element types and numbers
    ("popcore/codelets/expressions.py", "compile"),
    ("popcore/dialect/lower.py", "compile"),  # compute of the user's own class, rewritten
}
SOURCES = [path for path, _ in source_files()]


def name_of(function):
    """``eval`` of ``eval(...)``, ``system`` of ``os.system(...)``; not ``compile`` of ``re.compile(...)``."""
    if isinstance(function, ast.Name):
        return function.id
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id in ("os", "builtins", "tempfile"):
        return function.attr
    return ""


def test_nothing_of_a_file_becomes_code():
    """
    No pickle and its like, no eval, no shell, no socket: the exceptions are named here and in the page.
    """
    found, loaded, shells, pickled = set(), set(), set(), set()
    for path in SOURCES:
        where = str(path.relative_to(ROOT))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                loaded |= {(where, alias.name.split(".")[0]) for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                loaded.add((where, (node.module or "").split(".")[0]))
            elif isinstance(node, ast.Call):
                if (name := name_of(node.func)) in FORBIDDEN_CALLS:
                    found.add((where, name))
                keywords = {each.arg: each.value for each in node.keywords}
                if "shell" in keywords:
                    shells.add(where)
                if isinstance(allowed := keywords.get("allow_pickle"), ast.Constant) and allowed.value:
                    pickled.add(where)
    assert found == KNOWN
    assert not {each for each in loaded if each[1] in FORBIDDEN_MODULES}
    assert not shells
    assert not pickled


def named(name):
    """An engine that ran one step, everything of which is called ``name``."""
    graph = pc.Graph(pc.Device("M2000", num_ipus=1, tiles_per_ipu=2).target)
    x, y = (graph.add_variable(FLOAT, (4,), name=name, tile=0) for _ in range(2))
    step = graph.add_compute_set(name)
    graph.add_vertex(step, CopyVector, {"src": x, "dst": y}, tile=1)
    engine = pc.Engine(graph, program.Execute(step, name=name))
    engine.run()
    return graph, engine


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "\"'><b>"])
def test_pages_escape_names(name):
    """
    A graph in a notebook is HTML; a variable's name is not.
    """
    graph, _ = named(name)
    page = graph._repr_html_()
    assert "<script" not in page
    assert "<img" not in page
    assert "<b>" not in page
    assert "&lt;" in page


def test_the_report_escapes_names(tmp_path):
    """
    What a row of figures is called cannot become part of the page.
    """
    report = pytest.importorskip("bench.fidelity.report")
    pytest.importorskip("plotly")
    from bench.fidelity.figures import Figure, Result

    evil = "</script><script>alert(1)</script><img src=x onerror=alert(1)>"
    figure = Figure(evil, evil, evil, evil, 1.0, evil, "test", evil)
    report.write(tmp_path / "page.html", [Result(figure, evil, 2.0)], [figure])
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<script>alert(1)" not in page
    assert "<img src=x" not in page
    assert "alert(1)" in page
    assert (tmp_path / "page.html").stat().st_mode & 0o777 == 0o600


def test_names_do_not_move_the_cursor():
    """
    A summary of a profile shows control characters, and has the lines that it should.
    """
    _, engine = named("a\x1b[2J\x1b]0;title\x07\r\nb")
    text = engine.profile().summary()
    assert "a\\x1b[2J\\x1b]0;title\\x07\\r\\nb" in text
    assert text.replace("\n", "").isprintable()
    assert plain("größe 2") == "größe 2"
