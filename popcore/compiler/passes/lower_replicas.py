"""Lower what several replicas do together: it goes over the staging areas, and the host does it for all replicas at once."""

from __future__ import annotations

from popcore.compiler.code_builder import CodeBuilder
from popcore.compiler.ir import DEVICE_TO_HOST, HOST_TO_DEVICE, CopyStep
from popcore.executable import Yield
from popcore.executable.opcodes import Op
from popcore.graph import Tensor
from popcore.program import checks, nodes
from popcore.program.collectives import Collective

RESULT_ALIGNMENT = 64  # bytes


def result_offset(node: Collective) -> int:
    """Where the result of a collective begins in the staging area."""
    if node.kind == "all_reduce":
        return 0  # it is not there
    return -(-node.src.num_elements * node.src.dtype.nbytes // RESULT_ALIGNMENT) * RESULT_ALIGNMENT


def collective(lowering: CodeBuilder, node: Collective) -> None:
    """An all-reduce works in place. Others: gather into the staging area, the host, scatter from it."""
    if node not in lowering.collectives:
        lowering.collectives.append(node)
    request = Yield("collective", index=lowering.collectives.index(node), title=node.name)
    if node.kind == "all_reduce":
        if node.src is not node.dst:
            step = lowering.step(node, lambda: CopyStep(node.src.regions(), node.dst.regions(), f"{node.name}/copy"))
            lowering.add(Op.RUN, step, name=f"{node.name}/copy")
        lowering.add(Op.YIELD, lowering.yield_row(request), name=node.name)
        return
    lowering.add(Op.RUN, lowering.host_step(node.src, DEVICE_TO_HOST, f"{node.name}/gather"), name=f"{node.name}/gather")
    lowering.add(Op.YIELD, lowering.yield_row(request), name=node.name)
    lowering.add(Op.RUN, lowering.host_step(node.dst, HOST_TO_DEVICE, f"{node.name}/result", result_offset(node)), name=f"{node.name}/result")


def cross_copy(lowering: CodeBuilder, node: nodes.CrossReplicaCopy) -> None:
    """Replica i gets the staging area of its sender."""
    name = node.name or "cross_replica_copy"
    request = Yield("cross_copy", title=name, dtype=node.src.dtype, shape=(node.src.num_elements,), rows=node.senders)
    lowering.add(Op.RUN, lowering.host_step(node.src, DEVICE_TO_HOST, name), name=name)
    lowering.add(Op.YIELD, lowering.yield_row(request), name=name)
    lowering.add(Op.RUN, lowering.host_step(node.dst, HOST_TO_DEVICE, name), name=name)


def compare(lowering: CodeBuilder, kind: str, tensor: Tensor, title: str, site: str, name: str) -> None:
    """The host looks at a tensor on all replicas: "equal" or "error_if"."""
    request = Yield(kind, title=title, dtype=tensor.dtype, shape=tensor.shape, site=site)
    lowering.add(Op.RUN, lowering.host_step(tensor, DEVICE_TO_HOST, name), name=name)
    lowering.add(Op.YIELD, lowering.yield_row(request), name=name)


def assume_equal(lowering: CodeBuilder, node: nodes.AssumeEqualAcrossReplicas) -> None:
    compare(lowering, "equal", node.tensor, f"{node!r}: in {checks.describe(node.tensor)} differ", str(node.site), "assume_equal")
