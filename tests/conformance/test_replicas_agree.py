"""Do both engines do the same with several replicas, bit for bit? The graphs are those of ``test_engines_agree``."""

import io

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import popcore as pc
from popcore import errors
from tests.conformance.test_engines_agree import bits, differences
from tests.strategies import Case, cases

REPEATABLE = settings(deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))


def observed(engine, case: Case, replicas: int) -> dict[str, bytes | str]:
    """Everything the host sees. Each replica gets other transfers of the streams, so that they may come to disagree: that is seen too."""
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
            return seen | {"error": str(error), "prints": prints.getvalue()}
        seen |= {f"{name} after run {number}": bits(engine.read_tensor(name)) for name in case.graph.host_reads}
        seen |= {f"{name} after run {number}": bits(values) for name, values in results.items()}
    for name, remote in case.graph.remotes.items():
        for replica in range(replicas):
            seen |= {f"row {r} of {name}, replica {replica}": bits(engine.copy_from_remote_buffer(name, r, replica=replica)) for r in range(remote.repeats)}
    seen["prints"] = prints.getvalue()
    return seen


@pytest.mark.parametrize("threads", [1, 2])
@REPEATABLE
@given(case=cases(), replicas=st.integers(2, 3))
def test_engines_agree_on_replicas(threads, case, replicas):
    """
    Threads share replicas, or tiles where there are too few of them.
    """
    case.graph.replication_factor = replicas
    expected = observed(pc.ReferenceEngine(case.graph, case.programs), case, replicas)
    found = observed(pc.Engine(case.graph, case.programs, options={"engine.threads": threads}), case, replicas)
    assert not differences(expected, found), case
