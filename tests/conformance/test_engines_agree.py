"""Do both engines do the same with any graph and program, bit for bit?"""

import io
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import popcore as pc
from popcore import errors
from tests.strategies import Case, cases

REPEATABLE = settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))


def bits(array: np.ndarray) -> bytes:
    """An array's bytes, all NaNs made one: which NaN an operation gives is not defined."""
    made = np.array(array)
    if made.dtype.kind == "f":
        made[np.isnan(made)] = np.nan
    return made.tobytes()


def observed(engine, case: Case, replicas: int = 1) -> dict[str, bytes | str]:
    """Everything the host sees of an engine that does the runs of a case.

    Each of several replicas gets other transfers of the streams, so that they may come to disagree: that is seen too.
    """
    seen: dict[str, bytes | str] = {}
    prints = io.StringIO()
    engine.set_print_tensor_stream(prints)
    for name, values in case.writes.items():
        engine.write_tensor(name, values)
    for name, values in case.inputs.items():
        engine.connect_stream(name, values.copy())
    results = {name: values.copy() for name, values in case.outputs.items()}
    for name, values in results.items():
        engine.connect_stream(name, values)
    for number, run in enumerate(case.runs):
        try:
            engine.run(run)
        except errors.ProgramError as error:
            if replicas == 1:
                raise
            return seen | {"error": str(error), "prints": prints.getvalue()}
        seen |= {f"{name} after run {number}": bits(engine.read_tensor(name)) for name in case.graph.host_reads}
        seen |= {f"{name} after run {number}": bits(values) for name, values in results.items()}
    for name, remote in case.graph.remotes.items():
        for replica in range(replicas):
            seen |= {f"row {r} of {name}, replica {replica}": bits(engine.copy_from_remote_buffer(name, r, replica=replica)) for r in range(remote.repeats)}
    seen["prints"] = prints.getvalue()
    return seen


def differences(a: dict[str, bytes | str], b: dict[str, bytes | str]) -> dict[str, tuple[bytes | str, bytes | str]]:
    """What is not the same in both."""
    return {name: (a[name], b[name]) for name in a if a[name] != b[name]}


@REPEATABLE
@given(cases())
def test_engines_agree(case):
    """
    Drawn graphs: views, maps, copies, vertices, streams, remote buffers, control flow.
    """
    expected = observed(pc.ReferenceEngine(case.graph, case.programs), case)
    found = observed(pc.Engine(case.graph, case.programs), case)
    assert not differences(expected, found), case


@pytest.mark.parametrize("threads", [1, 2])
@settings(REPEATABLE, max_examples=15)
@given(cases(depth=1))
def test_engines_agree_on_any_number_of_threads(threads, case):
    """
    Who computes what changes nothing.
    """
    expected = observed(pc.ReferenceEngine(case.graph, case.programs), case)
    found = observed(pc.Engine(case.graph, case.programs, options={"engine.threads": threads}), case)
    assert not differences(expected, found), case


@settings(REPEATABLE, max_examples=15)
@given(cases(depth=1))
def test_an_engine_agrees_with_itself_after_load(case):
    """
    Loading starts over: the same runs, the same results.
    """
    engine = pc.Engine(case.graph, case.programs)
    first = observed(engine, case)
    engine.load()
    assert not differences(first, observed(engine, case)), case


@pytest.mark.parametrize("threads", [1, 2])
@settings(REPEATABLE, max_examples=40)
@given(case=cases(), replicas=st.integers(2, 3))
def test_engines_agree_on_replicas(threads, case, replicas):
    """
    Threads share replicas, or tiles where there are too few of them.
    """
    case.graph.replication_factor = replicas
    expected = observed(pc.ReferenceEngine(case.graph, case.programs), case, replicas)
    found = observed(pc.Engine(case.graph, case.programs, options={"engine.threads": threads}), case, replicas)
    assert not differences(expected, found), case


@settings(REPEATABLE, max_examples=10)
@given(cases(depth=1))
def test_interpreted_codelets_agree(case):
    """
    POPCORE_INTERPRET=1, with which a debugger stops in codelets.
    """
    expected = observed(pc.ReferenceEngine(case.graph, case.programs), case)
    with mock.patch.dict("os.environ", POPCORE_INTERPRET="1"):
        found = observed(pc.Engine(case.graph, case.programs), case)
    assert not differences(expected, found), case
