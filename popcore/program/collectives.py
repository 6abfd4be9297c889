"""``Collective``: one program that moves or combines a tensor over all replicas. What ``popcore.ops.gcl`` adds to programs."""

from __future__ import annotations

from dataclasses import dataclass

from popcore.debug import Site, user_site
from popcore.errors import ElementTypeError, ShapeError, ValueRangeError
from popcore.executable import schedules
from popcore.executable.schedules import REDUCING, CollectiveOperator, CommGroupType, result_elements
from popcore.graph import Tensor
from popcore.program import checks
from popcore.program.nodes import Program, node
from popcore.target import Target
from popcore.topology import wiring_of
from popcore.types import HALF, ElementType


@dataclass(frozen=True)
class CommGroup:
    """Groups of replicas that a collective runs in: ``CommGroup(CommGroupType.CONSECUTIVE, 2)``. By default all are one.

    size    replicas of a group; of ALL and NONE it may be left out
    """

    type: CommGroupType = CommGroupType.ALL
    size: int = 0

    def size_of(self, replicas: int, site: Site) -> int:
        """Replicas of one group of a graph of so many. Raises: ValueRangeError: groups of that size do not divide them."""
        fixed = {CommGroupType.ALL: replicas, CommGroupType.NONE: 1}.get(self.type)
        size = checks.require_index("the size of a CommGroup", self.size, site) or fixed or 0
        if fixed is not None and size != fixed:
            raise ValueRangeError(f"CommGroup {self.type.name} ({site}) of size {size}: of {replicas} replicas it has {fixed}", "leave the size out")
        if size < 1 or replicas % size:
            raise ValueRangeError(f"groups of {size} ({self.type.name}, {site}) do not divide {replicas} replicas", f"a divisor of {replicas}")
        return size


_LOGICAL = (CollectiveOperator.LOGICAL_AND, CollectiveOperator.LOGICAL_OR)


@node
class Collective(Program):
    """Combine or exchange ``src`` over the replicas of each group into ``dst``, which may be ``src``.

    ============== =====================================================================================
    kind           what replica of rank i gets in ``dst``; n elements in ``src``, p replicas in the group
    ============== =====================================================================================
    all_reduce     all of them combined, n elements
    reduce_scatter chunk i of that, ``ceil(n / p)`` elements; zeros where the tensor has ended
    all_gather     the tensors of ranks 0, 1, ..., p x n elements
    all_to_all     part i of each one's p equal parts, in rank order
    broadcast      the tensor of rank ``root``
    ============== =====================================================================================

    Sums follow the order of the ``method``'s schedule, see ``popcore.executable.schedules``. They are rounded to ``partials`` wherever two
    values are combined, and to the element type at the end: of HALF, FLOAT partials are rounded once, and twice as long on their way.

    Raises:
        ElementTypeError: the operator has no meaning for the element type, or the partials are not for it.
        ValueRangeError: groups that do not divide the replicas, or a root outside of the group.
        ShapeError: the two tensors do not fit.
        OptionError: an unknown method.
    """

    kind: str
    src: Tensor
    dst: Tensor
    operator: CollectiveOperator
    group: CommGroup
    method: str
    root: int
    partials: ElementType
    group_size: int
    name: str
    site: Site

    def __init__(
        self, kind: str, src: Tensor, dst: Tensor, operator: CollectiveOperator, group: CommGroup, method: str, root: int = 0,
        partials: ElementType | None = None, name: str = "",
    ) -> None:  # fmt: skip
        self.name, self.site, self.kind = name or kind, user_site(), kind
        self.src, self.dst = checks.require_tensor(kind, src, self.site), checks.require_tensor(kind, dst, self.site)
        self.operator, self.group = CollectiveOperator(operator), group
        checks.require_one_graph(kind, (src, dst), self.site)
        checks.require_same_type(kind, (checks.describe(src), src.dtype), (checks.describe(dst), dst.dtype), self.site)
        checks.require_writeable(kind, dst, self.site)
        self.group_size = group.size_of(src.graph.replication_factor, self.site)
        if kind in REDUCING:
            require_operator(self.operator, src, self.site)
        self.partials = partials or src.dtype
        if self.partials is not src.dtype and src.dtype is not HALF:
            raise ElementTypeError(
                f"{kind} ({self.site}) of {checks.describe(src)} with partials of {self.partials!r}", "leave partialsType out: it is for HALF"
            )
        self.root = checks.require_index("the root of a broadcast", root, self.site)
        if self.root not in range(self.group_size):
            raise ValueRangeError(f"the root of a broadcast ({self.site}) is {root} in groups of {self.group_size}", f"0 to {self.group_size - 1}")
        wiring = wiring_of(self._system(), self._first_ipus(), src.graph.target.num_ipus)
        self.method = schedules.choose(method, kind, self.group_size, src.num_elements * src.dtype.nbytes, wiring).name
        wanted = result_elements(kind, src.num_elements, self.group_size)
        if dst.num_elements != wanted:
            raise ShapeError(f"{kind} ({self.site}) of {checks.describe(src)} gives {wanted:,} elements, the destination is {checks.describe(dst)}")
        if kind == "all_to_all" and src.num_elements % self.group_size:
            raise ShapeError(f"{kind} ({self.site}) of {checks.describe(src)} in groups of {self.group_size}", "a first dimension of that many")

    def members(self) -> tuple[tuple[int, ...], ...]:
        """The replicas of each group, in rank order."""
        return schedules.members_of(self.group.type.value, self.group_size, self.src.graph.replication_factor)

    def rings(self) -> tuple[tuple[tuple[int, ...], ...], int]:
        """``schedules.rings_of`` the first group; they are the same in every group."""
        return schedules.rings_of(schedules.ALGORITHMS[self.method], self._system(), self._first_ipus(), self.src.graph.target.num_ipus)

    def _system(self) -> Target:
        one: Target = self.src.graph.target
        return one.with_ipus(one.num_ipus * self.src.graph.replication_factor)

    def _first_ipus(self) -> list[int]:
        """The first IPU of each replica of the first group."""
        return [self.src.graph.target.num_ipus * replica for replica in self.members()[0]]


def require_operator(operator: CollectiveOperator, tensor: Tensor, site: Site) -> None:
    """Raises: ElementTypeError: an operator that has no meaning for the element type."""
    kind: ElementType = tensor.dtype
    fits = kind.kind == "bool" if operator in _LOGICAL else kind.kind in ("float", "half", "int", "uint")
    if operator is CollectiveOperator.MEAN:
        fits = kind.kind in ("float", "half")
    if operator is not CollectiveOperator.LOCAL and not fits:
        wanted = "BOOL" if operator in _LOGICAL else "FLOAT or HALF" if operator is CollectiveOperator.MEAN else "numbers"
        raise ElementTypeError(f"{operator.name} of {checks.describe(tensor)} over replicas ({site})", f"{operator.name} takes {wanted}; cast first")
