"""Codelets as Python under the machine: the same memory, faults and prints as compiled ones, and the original exception."""

import numpy as np
import pytest

from popcore.codelet import InOut, Input, Matrix, MultiVertex, Output, Vector, VectorList, Vertex, codelet_of
from popcore.engine.device import Arena
from popcore.engine.linker import Image
from popcore.executable.opcodes import Op
from popcore.types import BOOL, FLOAT, HALF, INT, UNSIGNED_CHAR
from tests.engine.machine import HALT, TILE_BYTES, executable, finish


class Everything(Vertex):
    x: InOut[Vector[HALF]]
    m: Input[Matrix[FLOAT]]
    parts: InOut[VectorList[UNSIGNED_CHAR]]
    flag: Output[BOOL]
    calls: INT

    def compute(self):
        self.calls += 1
        for i in range(len(self.x)):
            self.x[i] += self.m[i % 2, i] / 3
        for part in self.parts:
            part[0] += len(part)
        self.flag = self.m[1, 2] > 1


class Share(MultiVertex):
    x: InOut[Vector[FLOAT]]

    def compute(self, worker):
        for i in range(worker, len(self.x), 6):
            self.x[i] += worker
        print("worker", worker, self.x[worker], True)


class Picky(Vertex):
    x: InOut[Vector[INT]]

    def compute(self):
        for i in range(len(self.x)):
            if self.x[i] < 0:
                raise ValueError("negative", self.x[i], "at", i)
            self.x[i] += 1


class Absent(Vertex):
    x: Input[Vector[INT]]
    y: Output[INT]

    def compute(self):
        self.y = self.x[100]


def both(cls, rows, prepare, tiles=3):
    """Outcome and memory, compiled and interpreted."""
    made = executable([(Op.RUN, 0), HALT], phases=[(0, 0, 0, 1)], batches=[(0, 0, tiles, 0, 1)], tiles=range(tiles), rows=rows, codelets=(codelet_of(cls),))
    seen = []
    for interpret in (False, True):
        arena = Arena(made.memory.arena_bytes)
        prepare(arena.memory.reshape(-1, TILE_BYTES)[:tiles])
        seen.append((finish(Image(made, arena, 1, interpret)), arena.memory.copy()))
    (_, compiled), (_, interpreted) = seen
    np.testing.assert_array_equal(compiled, interpreted)
    return seen[0][0], seen[1][0], compiled


def test_every_kind_of_field():
    rows = [64, 5, 128, 2, 5, 9, 2, 301, 404, 500, 3, 601, 2]  # x, m, parts (its pieces begin at word 9), flag, calls; then the pieces

    def prepare(tiles):
        tiles.view(np.float16)[:, 32:37] = [1, 2, 3, 4, 5]
        tiles.view(np.float32)[:, 32:42] = np.linspace(0, 2, 10)
        tiles[:, 500] = 254

    compiled, interpreted, memory = both(Everything, rows, prepare)
    assert compiled.kind == interpreted.kind == "halt"
    tile = memory[TILE_BYTES : 2 * TILE_BYTES]
    assert (tile[500], tile[601], tile[301], tile[404]) == (1, 2, 1, 1)


def test_workers_run_from_the_last_to_the_first_and_print_alike():
    compiled, interpreted, _ = both(Share, [16, 13], lambda tiles: None)
    assert compiled.kind == interpreted.kind == "prints"
    assert compiled.prints == interpreted.prints
    assert [(p.tile, p.worker) for p in compiled.prints] == [(t, w) for t in range(3) for w in (5, 4, 3, 2, 1, 0)]
    assert compiled.prints[0].values == (5, np.float32(5), True)


def test_a_raise_keeps_its_values_and_the_original_exception():
    def prepare(tiles):
        tiles.view(np.int32)[1, 4 + 2] = -7

    compiled, interpreted, _ = both(Picky, [16, 4], prepare, 2)
    for outcome in (compiled, interpreted):
        fault = outcome.fault
        assert (outcome.kind, fault.tile, fault.vertex, fault.site, fault.values) == ("fault", 1, 1, 0, (-7, 2))
    assert compiled.fault.exception is None
    assert isinstance(interpreted.fault.exception, ValueError)
    assert interpreted.fault.exception.__traceback__ is not None


@pytest.mark.parametrize("error", [KeyboardInterrupt, IndexError])
def test_any_exception_ends_the_phase(error, monkeypatch):
    made = executable([(Op.RUN, 0), HALT], phases=[(0, 0, 0, 1)], batches=[(0, 0, 4, 0, 1)], tiles=range(4), rows=[0, 4, 64], codelets=(codelet_of(Absent),))
    linked = Image(made, Arena(made.memory.arena_bytes), 2, interpret=True)
    if error is KeyboardInterrupt:

        def interrupt(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr("popcore.engine.interpret._Driver._views", interrupt)
    outcome = finish(linked)
    assert (outcome.kind, outcome.fault.tile, outcome.fault.site) == ("fault", 0, -1)
    assert isinstance(outcome.fault.exception, error)
