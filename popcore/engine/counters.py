"""What codelets count as they run, beside the machine's tables: a word for each vertex, and where the sums go."""

from __future__ import annotations

import numpy as np

from popcore.executable import COUNTED_UNIT
from popcore.executable.executable import Executable
from popcore.executable.opcodes import Batch
from popcore.kernels import status
from popcore.pages import zeros
from popcore.types import Array


def counted_codelets(executable: Executable) -> list[int]:
    """Numbers of the codelets that have counters."""
    found: list[int] = np.unique(executable.counting.vertices[:, 2]).tolist()
    return found


class Counters:
    """The words.

    Args:
        shared: With a process that is forked later.

    Attributes:
        taken: int64[instructions], tile cycles that were counted beyond what the costs have.
        totals: int64[codelets], what was counted, in units of all vertices' workers.
        stride: Bytes from one replica's words to the next one's.
        kept: What the machine's tables point to.
    """

    def __init__(self, executable: Executable, shared: bool = False) -> None:
        self._executable = executable
        self.taken = zeros((len(executable.code),), np.int64, shared)
        self.totals = zeros((max(len(executable.codelets), 1),), np.int64, shared)
        words = len(executable.vertex_ids) if len(executable.counting.steps) else 0
        self._words = zeros((executable.replicas, words), np.int64, shared)
        self.stride = 8 * words
        self.kept: list[Array] = [self._words]

    def connect(self, batches: Array, phases: Array) -> None:
        """Tell the machine's batches and phases where their counters are."""
        counting, given = self._executable.counting, self._executable.batches
        if not len(counting.steps):
            return
        counted = np.isin(given[:, Batch.CODELET], counted_codelets(self._executable))
        first = given[:, Batch.FIRST_VERTEX] - given[:, Batch.TILES_BEGIN] * given[:, Batch.ROWS_COUNT]
        batches[:, status.BATCH_COUNTED] = np.where(counted, self._words.ctypes.data + 8 * first, 0)
        for phase, first_vertex, end_vertex, first_worker, end_worker in counting.steps.tolist():
            vertices = counting.vertices[first_vertex:end_vertex] - [0, first_worker, 0]
            phases[phase, status.PHASE_COUNTS] = self._block(vertices, counting.workers[first_worker:end_worker])

    def _block(self, vertices: Array, known: Array) -> int:
        """The address of what a phase's vertices and workers are to the machine, see ``status.COUNTS_VERTICES``.

        Args:
            vertices: int64[n, 3]: index of ``vertex_ids``, index of ``known``, codelet.
            known: int64[m]: see ``executable.Counting.workers``.
        """
        width = status.WORKERS + 1
        loads = known.reshape(-1, width)
        order = np.argsort(vertices[:, 1], kind="stable")
        index, worker, codelet = vertices[order].T
        tile, new = worker // width, np.ones(len(order), bool)
        new[1:] = worker[1:] != worker[:-1]
        rows = np.zeros((len(order), status.COUNTED_WORDS), np.int64)
        rows[:, status.COUNTED_COUNTER] = self._words.ctypes.data + 8 * index
        rows[:, status.COUNTED_START] = np.where(worker % width == status.WORKERS, -2, np.where(new, known[worker], -1))
        rows[:, status.COUNTED_LAST] = np.append(tile[1:] != tile[:-1], True)
        rows[:, status.COUNTED_CODELET] = codelet
        others = loads[:, : status.WORKERS].copy()
        alone = worker % width < status.WORKERS
        others[tile[alone], worker[alone] % width] = 0
        tiles = np.stack([others.max(axis=1), loads[:, status.WORKERS]], 1)[np.unique(tile)]
        slowest = int((loads[:, : status.WORKERS].max(axis=1) + loads[:, status.WORKERS]).max())
        end = rows.ctypes.data + rows.nbytes
        block = np.array([rows.ctypes.data, end, tiles.ctypes.data, -(-slowest // COUNTED_UNIT)], np.int64)
        self.kept += [rows, tiles, block]
        return int(block.ctypes.data)

    def forget(self) -> None:
        """Begin to count again."""
        self.taken[:] = 0
        self.totals[:] = 0
