"""Is what is said to be read by nobody read by nobody?"""

import numpy as np
import pytest

from popcore.executable.opcodes import Phase
from popcore.faults.accesses import access, place_of, tile_of
from tests.engine.resumable import CASES

COPIES, VERTICES = slice(Phase.COPY_BEGIN, Phase.COPY_END + 1), slice(Phase.BATCH_BEGIN, Phase.BATCH_END + 1)


def outcome(engine, start, phase, at=None):
    """Memory after a phase that ran on ``start``, with the byte at ``at`` changed."""
    parts = engine.parts("a test")
    memory = parts.arena.by_replica()
    memory[...] = start
    if at is not None:
        memory[0, at] ^= 0x5A
    parts.image.sequence = 0
    parts.image.run_phase(phase)
    return memory.copy()


@pytest.mark.parametrize("name", ["training", "control", "streams", "remote"])
def test_a_byte_that_nobody_reads_changes_nothing(name):
    """
    Every phase with every byte of memory changed before: one that is read by nobody changes no other; one that is only written is as
    without; one that is neither stays changed. And there are bytes of each sort.
    """
    case = CASES[name]()
    engine, _ = case.engine()
    engine.run(case.before[0])
    executable = engine.executable
    parts = engine.parts("a test")
    start = parts.arena.by_replica().copy()
    seen = set()
    for phase in range(len(executable.phases)):
        expected = outcome(engine, start, phase)
        for at in range(executable.memory.staging):
            found = access(executable, phase, at)
            seen.add((bool(found.reader), found.written))
            if found.reader:
                continue
            changed = outcome(engine, start, phase, at)
            different = np.flatnonzero((changed != expected).any(axis=0)).tolist()
            assert different == ([] if found.written else [at]), (executable.phase_names[phase], at)
    assert seen >= {(False, False), (True, False), (False, True)}


@pytest.mark.parametrize("name", ["training", "control"])
def test_an_element_is_where_the_host_reads_it(name):
    """
    Changed at its place it is another one for the host, and no other is.
    """
    case = CASES[name]()
    engine, _ = case.engine()
    memory = engine.parts("a test").arena.by_replica()
    for handle in engine.executable.reads:
        before = np.atleast_1d(engine.read_tensor(handle.name)).reshape(len(memory), -1).copy()
        for element in range(before.shape[1]):
            at = place_of(engine.executable, handle, element)
            assert engine.executable.memory.tile_base[tile_of(engine.executable, at)[0]] + tile_of(engine.executable, at)[1] == at
            memory[0, at] ^= 1
            after = np.atleast_1d(engine.read_tensor(handle.name)).reshape(len(memory), -1)
            memory[0, at] ^= 1
            assert np.argwhere(before.view(np.uint8) != after.view(np.uint8)).tolist() == [[0, element * handle.dtype.nbytes]]
