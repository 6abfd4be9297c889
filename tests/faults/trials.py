"""Each kind of fault in a small job, and what comes of it: ``python -m tests.faults.trials`` prints the table.

The job runs on four replicas and saves a state after each run. Whatever a fault does to a run, an engine of its own that loads the last
state and runs on has to end with the bits of a job to which nothing happened.
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from popcore import FLOAT, INT, errors, faults
from popcore.ops import gcl
from popcore.program import Copy, If, Repeat, Sequence
from tests.codelets import Axpy, Increment
from tests.engine.resumable import ADD, Case

RUNS = 4


def job():
    """w += 0.25 * the sum of batches; then a row goes to a remote buffer and comes back, and a flag is tested."""
    case = Case(replicas=4)
    w, g = case.variable("w", FLOAT, np.zeros(6, np.float32), tile=1), case.variable("g", FLOAT, np.zeros(6, np.float32), tile=2)
    back, spare = case.variable("back", FLOAT, np.zeros(6, np.float32), tile=3), case.variable("spare", FLOAT, np.zeros(6, np.float32), tile=3)
    flag, count = case.variable("flag", INT, 1, tile=2), case.variable("count", INT, [0])
    batch = case.graph.add_host_to_device_fifo("batch", FLOAT, 6)
    far = case.graph.add_remote_buffer("far", FLOAT, 6, 1)
    case.inputs["batch"] = np.random.default_rng(3).standard_normal((4 * 5, 6)).astype(np.float32)
    case.remotes = {"far": 1}
    round_ = Sequence(Copy(batch, g))
    gcl.all_reduce_in_place_cross_replica(case.graph, g, ADD, round_)
    round_.add(case.step((Axpy, {"x": w, "y": g, "k": 0.25}, 1), name="update"))
    round_.add(Sequence(Copy(w, far, 0), Copy(far, back, 0), Copy(back, spare)))
    round_.add(If(flag, case.step((Increment, {"x": count}, 0), name="count")))
    case.programs = [Repeat(3, round_)]
    return case


def wrong(*flips):
    return lambda before, after: [name for name in before if before[name].tobytes() != after[name].tobytes()] == list(flips)


def longer(before, after):
    return [name for name in before if before[name].tobytes() != after[name].tobytes()] == ["cycles"] and after["cycles"] > before["cycles"]


def same(before, after):
    return wrong()(before, after)


@dataclass(frozen=True)
class Trial:
    """Faults, and what has to come of them: an error that names its part, or a run that ends as ``then`` says."""

    kind: str
    faults: tuple
    error: type | None = None
    match: str = ""
    then: object = same
    outcome: str = ""
    reads: str = ""  # a tensor that the host reads when the run is over


FLIP = faults.BitFlip
TRIALS = [
    Trial("bit flip, read by a vertex", (FLIP("w", 2, 22, at="update", execution=1, replica=2),), errors.MemoryParityError, r"tile 1 of replica 2.*codelet Axpy in 'update'.*step \d+.*element 2 of 'w'"),
    Trial("bit flip, read by the exchange", (FLIP("back", 5, 0, at="copy", execution=1),), errors.MemoryParityError, r"tile 3.*exchange of 'copy'.*element 5 of 'back'"),
    Trial("bit flip, read by a collective", (FLIP("g", 0, 30, at="all_reduce", execution=2, replica=1),), errors.MemoryParityError, r"all-reduce of step.*'all_reduce', execution 2.*element 0 of 'g'"),
    Trial("bit flip, tested by a branch", (FLIP("flag", 0, 0, at="copy", execution=1),), errors.MemoryParityError, r"tests it.*'flag'"),
    Trial("bit flip, read by the host", (FLIP("spare", 1, 3, at="count", execution=2),), errors.MemoryParityError, r"host read 'spare'.*element 1 of 'spare'", reads="spare"),
    Trial("bit flip, written again before anything read it", (FLIP("spare", 1, 3, at="update", execution=1),), outcome="survived, the same bits"),
    Trial("bit flip without parity", (FLIP("count", 0, 4, at="update", execution=2, parity=False),), then=wrong("count"), outcome="not noticed: wrong values go on"),
    Trial("two bits of one word", (FLIP("count", 0, 4, at="update", execution=2), FLIP("count", 0, 5, at="update", execution=2)), outcome="not noticed: parity is right", then=wrong("count")),
    Trial("dead tile", (faults.DeadTile(3, at="update", execution=1, replica=1),), errors.TileLostError, r"tile 3 \(tile 3 of IPU 1\) of replica 1 did not come.*step \d+ \('update', execution 1\)"),
    Trial("lost IPU in an all-reduce", (faults.IpuLost(2, at="all_reduce", execution=1, ring_steps=3),), errors.IpuLostError, r"IPU 2 \(replica 2\) was lost in the all-reduce .*after 3 of \d+ steps of the ring"),
    Trial("lost IPU in a compute set", (faults.IpuLost(0, at=5),), errors.IpuLostError, r"IPU 0 \(replica 0\) did not come to the barrier before step 5"),
    Trial("IPU-Link down, on a route", (faults.LinkDown(0, 1, at="update"),), errors.LinkDownError, r"from IPU \d to IPU \d carry nothing, and step \d+ \('all_reduce', execution 1\) sends"),
    Trial("IPU-Link down, and nothing crosses it", (faults.LinkDown(0, 1, at="count", execution=2),), outcome="survived, the same bits"),
    Trial("IPU-Link slow", (faults.LinkSlow(0, 2, 50, at="update"),), then=longer, outcome="survived, the same bits, more cycles"),
    Trial("callback fails", (faults.CallbackFails("batch", transfer=2),), RuntimeError, r"stream 'batch' failed"),
    Trial("callback late", (faults.CallbackLate("batch", seconds=2.5, transfer=1),), then=longer, outcome="survived, the same bits, more cycles"),
    Trial("callback later than target.hostSyncTimeout", (faults.CallbackLate("batch", seconds=301, transfer=1),), errors.HostTimeoutError, r"within 300 s at transfer 1 of stream 'batch' in step"),
    Trial("truncated transfer to a remote buffer", (faults.TruncatedTransfer("far", 4, transfer=2),), errors.TransferError, r"transfer 2 to remote buffer 'far'.*4 of 6 elements"),
    Trial("truncated transfer from a remote buffer", (faults.TruncatedTransfer("far", 0, transfer=1),), errors.TransferError, r"transfer 1 from remote buffer 'far'.*0 of 6 elements"),
]  # fmt: skip


def expected():
    """What is found after each run of a job to which nothing happens."""
    case = job()
    engine, filled = case.engine()
    found = []
    for _ in range(RUNS):
        engine.run()
        found.append(case.found(engine, filled))
    return found


def try_one(trial, folder):
    """Run the job with the faults in its second run.

    Returns: the injection, the error (None if it survived), what was found after that run, and after the job was resumed to its end.
    """
    case = job()
    engine, filled = case.engine()
    engine.run()
    engine.save_state(folder / "state")
    error = None
    with faults.inject(engine, trial.faults) as injection:
        try:
            engine.run()
            if trial.reads:
                engine.read_tensor(trial.reads)
        except (errors.EngineError, RuntimeError) as caught:
            error = caught
    hurt = case.found(engine, filled)
    other = job()
    resumed, filled = other.engine()
    resumed.load_state(folder / "state")
    for _ in range(RUNS - 1):
        resumed.run()
    return injection, error, hurt, other.found(resumed, filled)


def table():
    """Rows: kind, outcome, and whether the job went on from its state bit for bit."""
    right = expected()
    with tempfile.TemporaryDirectory() as folder:
        for trial in TRIALS:
            _, error, hurt, end = try_one(trial, Path(folder))
            what = f"{type(error).__name__}: {error.args[0].splitlines()[0]}" if error else trial.outcome if trial.then(right[1], hurt) else "WRONG"
            yield trial.kind, what, "yes" if same(right[-1], end) else "NO"


if __name__ == "__main__":
    for row in table():
        print("| " + " | ".join(row) + " |")
