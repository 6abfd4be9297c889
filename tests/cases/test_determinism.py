"""Known trap F9, and what must not change a result: hash seeds, threads, processes, the cache of compiled code."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from popcore import FLOAT, INT, Engine, program
from tests.cases.codelets import AddTo, Multiply, Stencil

ROOT = Path(__file__).parents[2]

SCRIPT = """
import hashlib, json, sys
import popcore as pc
from tests.cases.test_determinism import busy_graph, results

graph, prog = busy_graph()
executable = pc.compile_graph(graph, prog)
executable.save(sys.argv[1])
engine = pc.Engine(executable)
found = hashlib.sha256(b"".join(results(engine))).hexdigest()
profile = engine.profile()
steps = [[s.name, s.executions, s.cycles] for s in profile.steps]
text = hashlib.sha256((pc.program.text(prog) + graph.dump()).encode()).hexdigest()
print(json.dumps({"results": found, "cycles": profile.total_cycles, "steps": steps, "text": text, "numba": "numba" in sys.modules}))
"""


def busy_graph():
    """Variables over 64 tiles, strided views, three codelets, loops and branches: a megabyte that every round goes through."""
    import popcore as pc

    graph = pc.Graph(pc.Device("M2000", num_ipus=1, tiles_per_ipu=64).target)
    n, tiles = 1 << 16, 64
    random = np.random.default_rng(5)
    variables = {}
    for name in ("x", "y", "sums"):
        t = variables[name] = graph.add_variable(FLOAT, (n + 2 if name == "x" else n,), "linear", name=name)
        graph.set_initial_value(t, random.standard_normal(t.num_elements).astype(np.float32))
        graph.create_host_read(name, t)
    x, y, sums = variables.values()
    stencil, update, scale = (graph.add_compute_set(name) for name in ("stencil", "update", "scale"))
    part = n // tiles
    columns = y.reshape(part, tiles)
    for tile in range(tiles):
        begin = tile * part
        graph.add_vertex(stencil, Stencil, {"x": x[begin : begin + part + 2], "out": sums[begin : begin + part]}, tile=tile)
        graph.add_vertex(update, AddTo[FLOAT], {"x": sums[begin : begin + part], "y": columns[:, tile]}, tile=(tile * 7) % tiles)
        graph.add_vertex(scale, Multiply, {"x": y[begin : begin + part], "k": 0.37 + tile / 100}, tile=tile)
    flag = graph.add_constant(INT, (), 1, tile=3)
    step = program.Sequence(program.Execute(stencil), program.Execute(update), program.Execute(scale), program.Copy(y, x[1:-1]))
    return graph, program.Repeat(4, program.If(flag, step, program.Sequence(step, step)))


def results(engine):
    """The bytes of everything after two runs."""
    engine.run()
    engine.run()
    return [engine.read_tensor(name).tobytes() for name in ("x", "y", "sums")]


def in_a_process(folder, name, seed):
    """What a new process finds, its Executable's bytes among it."""
    environment = {**os.environ, "PYTHONHASHSEED": seed, "POPCORE_CACHE_DIR": str(folder / "cache")}
    command = [sys.executable, "-c", SCRIPT, str(folder / name)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return {**json.loads(done.stdout), "file": (folder / name).read_bytes()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the processes keep their files and their cache of compiled code."""
    return tmp_path_factory.mktemp("processes")


@pytest.fixture(scope="module")
def processes(folder):
    """Two processes that differ in their hash seed; the first fills a new cache, the second finds it full."""
    return [in_a_process(folder, "first", "1"), in_a_process(folder, "second", "2")]


def test_f9_executables_are_equal_to_the_byte_whatever_the_hash_seed(processes):
    """Case F9: compiled in two fresh processes."""
    assert processes[0]["file"] == processes[1]["file"]


@pytest.mark.parametrize("what", ["text", "cycles", "steps"])
def test_f9_dump_and_profile_are_equal_whatever_the_hash_seed(processes, what):
    """Case F9: the program and the graph as text, and the modelled cycles."""
    assert processes[0][what] == processes[1][what]


def test_results_are_equal_in_a_second_process_from_the_cache(processes):
    """The second process loads what the first compiled, without a compiler, and computes the same bits."""
    assert [p["numba"] for p in processes] == [True, False]
    assert processes[0]["results"] == processes[1]["results"]


def test_a_damaged_cache_is_ignored_and_rebuilt(folder, processes):
    """Every file of it changed in another way: the results are the same, and the files are whole again."""
    cache = {path: path.read_bytes() for path in (folder / "cache").rglob("*") if path.is_file()}
    assert len(cache) >= 4
    ways = [lambda data: b"", lambda data: data[: len(data) // 2], lambda data: data[:200] + b"?" + data[201:], lambda data: bytes(len(data))]
    for number, (path, data) in enumerate(sorted(cache.items())):
        path.write_bytes(ways[number % len(ways)](data))
    again = in_a_process(folder, "third", "3")
    assert again["numba"]
    assert again["results"] == processes[0]["results"]
    assert all(path.stat().st_size == len(data) for path, data in cache.items())


def test_results_are_equal_on_one_thread_and_on_two():
    """Every phase of the graph is large enough for both threads."""
    graph, prog = busy_graph()
    found = [results(Engine(graph, prog, options={"engine.threads": threads})) for threads in (1, 2)]
    assert found[0] == found[1]


def test_results_do_not_depend_on_tile_fusion():
    """A tile's copies and vertices may run together or apart."""
    graph, prog = busy_graph()
    found = [results(Engine(graph, prog, options={"engine.fuseTiles": fuse})) for fuse in (False, True)]
    assert found[0] == found[1]


def test_compiling_twice_in_one_process_gives_equal_files(tmp_path):
    """The first compile leaves nothing behind that the second sees."""
    from popcore import compile_graph

    files = []
    for name in ("a", "b"):
        graph, prog = busy_graph()
        compile_graph(graph, prog).save(tmp_path / name)
        files.append((tmp_path / name).read_bytes())
    assert files[0] == files[1]
