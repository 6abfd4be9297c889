"""Is each fault noticed by its name, or survived as documented; and does a job go on from its last state bit for bit?"""

import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

import popcore as pc
from popcore import errors, faults
from tests.faults.trials import RUNS, TRIALS, Trial, expected, job, same, try_one
from tests.processes import python


@pytest.fixture(scope="module")
def right():
    return expected()


@pytest.mark.parametrize("trial", TRIALS, ids=lambda trial: trial.kind)
def test_a_fault_has_its_outcome_and_the_job_goes_on(right, tmp_path, trial):
    """
    An error that names part, place and step; or a run that ends as the table says. Then the last state, bit for bit to the end.
    """
    injection, error, hurt, end = try_one(trial, tmp_path)
    if trial.error is not None:
        assert type(error) is trial.error
        with pytest.raises(trial.error, match=f"(?s){trial.match}"):
            raise error
    else:
        assert error is None
        assert trial.then(right[1], hurt), {name: (right[1][name], hurt[name]) for name in hurt if hurt[name].tobytes() != right[1][name].tobytes()}
    assert injection.happened
    assert not injection.pending
    assert same(right[-1], end)


def test_the_same_faults_happen_at_the_same_place(tmp_path):
    """
    Twice the same lines.
    """
    trial = Trial("", (*TRIALS[6].faults, *TRIALS[5].faults, *TRIALS[0].faults))
    told = []
    for _ in range(2):
        injection, error, *_ = try_one(trial, tmp_path)
        told.append((injection.happened, str(error)))
    assert told[0] == told[1]
    assert len(told[0][0]) == 2, "the third flip would have come after the error"


def test_an_engine_is_whole_again_afterwards(right):
    """
    After the block: parity's flips are undone, the tile answers, nothing is looked at, and the engine can be used.
    """
    case = job()
    engine, filled = case.engine()
    with faults.inject(engine, [faults.DeadTile(1, at=3), faults.BitFlip("count", 0, 7)]), pytest.raises(errors.TileLostError):
        engine.run()
    assert engine.read_tensor("count").tolist() == [[0]] * 4
    engine.load()
    engine.connect_stream("batch", case.inputs["batch"])
    engine.reset_profile()
    engine.run()
    assert same(right[0], case.found(engine, filled))


def test_the_error_of_a_callback_comes_unchanged():
    """
    The very object, with a note where it was.
    """
    engine, _ = job().engine()
    mine = OSError("the data server is gone")
    with faults.inject(engine, [faults.CallbackFails("batch", 1, mine)]), pytest.raises(OSError, match="data server") as caught:
        engine.run()
    assert caught.value is mine
    assert "transfer 1 of stream 'batch' in step" in mine.__notes__[0]


def test_steps_are_counted_over_all_runs_inside():
    """
    ``execution`` 4 of a step that a run does three times is in the second one; a number counts every step.
    """
    engine, _ = job().engine()
    with faults.inject(engine, [faults.DeadTile(0, at="update", execution=4)]) as injection:
        engine.run()
        assert injection.pending
        with pytest.raises(errors.TileLostError, match="'update', execution 4"):
            engine.run()
    with faults.inject(engine, [faults.DeadTile(0, at=1)]), pytest.raises(errors.TileLostError, match=r"step 1 \('all_reduce', execution 0\)"):
        engine.run()


def test_a_link_that_is_slow_costs_what_it_carries():
    """
    Ten times slower than another factor: the extra cycles grow with it, in the kind "exchange".
    """
    extra = []
    for factor in (1, 101, 201):
        engine, _ = job().engine()
        with faults.inject(engine, [faults.LinkSlow(0, 1, factor)]):
            engine.run()
        extra.append(engine.profile().cycles_by_kind["exchange"])
    assert extra[2] - extra[1] == pytest.approx(extra[1] - extra[0], rel=0.2)
    assert extra[1] > extra[0]


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (faults.BitFlip("nothing", 0, 0), "host read or write 'nothing'"),
        (faults.BitFlip("w", 6, 0), "element is 6"),
        (faults.BitFlip("w", 0, 32), "bit is 32"),
        (faults.BitFlip("w", 0, 0, replica=4), "replica is 4"),
        (faults.BitFlip("w", 0, 0, at="upate"), "step 'upate'"),
        (faults.BitFlip("w", 0, 0, at=-1), "at is -1"),
        (faults.DeadTile(4), "tile is 4"),
        (faults.IpuLost(4), "ipu is 4"),
        (faults.IpuLost(0, ring_steps=-1), "ring_steps is -1"),
        (faults.LinkDown(0, 3), r"no IPU-Link joins IPU 0 and IPU 3(?s:.*)neighbours of 0: 1, 2"),
        (faults.LinkDown(0, 9), "other is 9"),
        (faults.LinkSlow(0, 1, 0.5), "factor is 0.5"),
        (faults.LinkSlow(0, 1, float("nan")), "factor is nan"),
        (faults.CallbackFails("batches"), "stream 'batches'"),
        (faults.CallbackLate("batch", -1), "seconds is -1"),
        (faults.TruncatedTransfer("near", 0), "remote buffer 'near'"),
        (faults.TruncatedTransfer("far", 6), "elements is 6"),
    ],
    ids=str,
)
def test_what_cannot_fail_is_refused(fault, message):
    """
    Before anything runs, and the engine has no faults then.
    """
    engine, _ = job().engine()
    with pytest.raises((errors.EngineError, errors.UnknownNameError), match=message), faults.inject(engine, [fault]):
        pass
    with faults.inject(engine, []):
        engine.run()


def test_one_injection_at_a_time():
    """
    A second one inside is refused, and the first stays.
    """
    engine, _ = job().engine()
    with faults.inject(engine, [faults.DeadTile(1)]):
        with pytest.raises(errors.EngineError, match="already"), faults.inject(engine, []):
            pass
        with pytest.raises(errors.TileLostError):
            engine.run()


def test_without_data_nothing_can_fail():
    """
    ``debug.compute`` off.
    """
    case = job()
    engine = pc.Engine(case.graph, case.programs[0].body.programs[2], options={"debug.compute": False})
    with pytest.raises(errors.EngineError, match=r"debug\.compute"), faults.inject(engine, []):
        pass


KILLED = """
import sys
from pathlib import Path
from tests.faults.trials import job
engine, _ = job().engine()
for run in range(10**6):
    engine.run()
    engine.save_state(Path(sys.argv[1]) / "state")
    if run == 3:
        print("going on", flush=True)
"""


@pytest.mark.parametrize("patience", [0.0, 0.007])
def test_a_killed_process_leaves_a_whole_state(tmp_path, patience):
    """
    SIGKILL somewhere in a run or while a state is written: what is under its name is whole, and the job goes on from there bit for bit.
    """
    with subprocess.Popen(**python("-c", KILLED, tmp_path, stdout=subprocess.PIPE)) as child:
        assert child.stdout.readline() == b"going on\n"
        time.sleep(patience)
        child.send_signal(signal.SIGKILL)
    case = job()
    engine, filled = case.engine()
    engine.load_state(tmp_path / "state")
    done = engine.profile().runs
    assert done >= 4
    straight = job()
    other, others = straight.engine()
    for _ in range(done + 1):
        other.run()
    engine.run()
    assert same(straight.found(other, others), case.found(engine, filled))


def test_trials_cover_every_kind():
    """
    A new kind of fault gets a row.
    """
    kinds = {type(fault) for trial in TRIALS for fault in trial.faults}
    assert {kind.__name__ for kind in kinds} == set(faults.__all__) - {"Fault", "Injection", "inject"}
    assert RUNS > 2


def test_nothing_is_intercepted_without_faults():
    """
    The machine's code is the Executable's before and after: off costs nothing.
    """
    engine, _ = job().engine()
    code = engine.parts("a test").image._tables[0]
    assert np.array_equal(code, engine.executable.code)
    with faults.inject(engine, []):
        assert not np.array_equal(code, engine.executable.code)
    assert np.array_equal(code, engine.executable.code)


def test_the_page_has_every_row():
    """
    docs/faults.md says of each kind what it does.
    """
    page = (Path(__file__).parents[2] / "docs" / "faults.md").read_text(encoding="utf-8")
    assert not [trial.kind for trial in TRIALS if f"| {trial.kind} |" not in page]
