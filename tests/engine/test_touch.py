"""Reading ahead of vertices: where their fields lie, which batches are worth it, and that nothing but speed depends on it."""

import numpy as np
import pytest

from popcore.codelet import InOut, Input, Output, Vector, VectorList, Vertex, codelet_of
from popcore.codelet import Matrix as MatrixField
from popcore.engine import jobs, touch
from popcore.executable.opcodes import Op
from popcore.types import FLOAT, HALF, INT
from tests.engine.machine import HALT, TILE_BYTES, executable, finish, image, use_drivers


class Everything(Vertex):
    scalar: Input[FLOAT]
    vector: InOut[Vector[HALF]]
    matrix: Output[MatrixField[INT]]
    pieces: Input[VectorList[FLOAT]]

    def compute(self):
        self.matrix[0, 0] = 1


@pytest.fixture
def always(monkeypatch):
    monkeypatch.setattr(touch, "PHASE_BYTES", 0)
    monkeypatch.setattr(touch, "TILE_BYTES", (0, 1 << 20))


def spans(rows, work=1000, count=1):
    made = executable([HALT], phases=[(0, 0, 0, 1)], batches=[(0, 0, 4, 0, count, 0, work)], tiles=range(4), rows=rows, codelets=(codelet_of(Everything),))
    return touch.touched(made).tolist()[0]


def test_the_range_holds_every_kind_of_field(always):
    assert spans([400, 404, 10, 424, 2, 3, 8, 0]) == [400, 48]  # no pieces
    assert spans([400, 404, 10, 424, 2, 3, 8, 2, 300, 5, 800, 2]) == [300, 508]
    assert spans([400, 404, 300, 424, 0, 3, 8, 0]) == [400, 604]
    assert spans([400, 404, 0, 0, 0, 0, 8, 1, 2000, 0]) == [400, 4]  # what has no elements lies nowhere
    two = [400, 404, 1, 408, 1, 1, 16, 1, 40, 404, 1, 408, 1, 1, 18, 1, 500, 1, 600, 3]
    assert spans(two, count=2) == [40, 572]


def test_only_large_phases_with_near_fields_are_read_ahead(monkeypatch):
    rows = [0, 4, 400, 804, 20, 20, 8, 0]  # 2404 bytes
    monkeypatch.setattr(touch, "PHASE_BYTES", 4 * 2404)
    assert spans(rows, 2404) == [0, 2404]
    assert spans(rows, 2403) == [0, 0]
    rows[4] = 40  # 4004 bytes for the work of fewer: they lie far apart
    assert spans(rows, 2600)[1] == 0
    assert spans(rows, 2700)[1] == 4004
    rows[4] = 4
    assert spans(rows, 2404)[1] == 1124
    monkeypatch.setattr(touch, "TILE_BYTES", (1200, 1 << 20))
    assert spans(rows, 2404)[1] == 0


@pytest.mark.parametrize("threads", [1, 3])
def test_vertices_and_their_faults_are_the_same(always, threads, monkeypatch):
    use_drivers(monkeypatch)
    monkeypatch.setattr(jobs, "THREAD_COST", 0)
    made = executable([(Op.RUN, 0), HALT], phases=[(0, 0, 0, 2, 1)], batches=[(0, 0, 4, 0, 2, 0, 40), (0, 4, 3, 4, 1, 8, 8)],
                      tiles=[0, 1, 2, 3, 0, 2, 3], rows=[8, 5, 28, 5, 60, 2])  # fmt: skip
    assert touch.touched(made).tolist() == [[8, 40], [60, 8]]
    linked, memory = image(made, threads)
    assert finish(linked).kind == "halt"
    tile = np.zeros(TILE_BYTES // 4, np.int32)
    tile[2:12], other = 1, tile.copy()
    tile[15:17] = 1
    other[2:12] = 1
    np.testing.assert_array_equal(memory.reshape(-1, TILE_BYTES // 4)[:4], [tile, other, tile, tile])
    memory[1024 * 2 + 7] = 99
    memory[1024 * 3 + 2] = 99
    fault = finish(linked).fault
    assert (fault.batch, fault.position, fault.vertex, fault.tile) == (0, 5, 5, 2)
    linked.close()
