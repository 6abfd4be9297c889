"""Floating-point behaviour by program: which results stop a run, NaN or 65504 for a half too large, stochastic rounding.

It is state of the machine, not of the program's text: a change holds for all that runs after it, in loops and functions and in later runs,
until it is changed again or the engine is loaded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from popcore.debug import Site, user_site
from popcore.errors import ElementTypeError, GraphError, TileMappingError
from popcore.graph import Graph, Tensor
from popcore.graph.virtual import VirtualGraph
from popcore.kernels.behaviour import DIV0, ESR, INV, NANOO, OFLO
from popcore.program import checks
from popcore.program.nodes import Program, Sequence, node
from popcore.types import UNSIGNED_INT

_BITS = {"inv": INV, "div0": DIV0, "oflo": OFLO, "esr": ESR, "nanoo": NANOO}


@dataclass(frozen=True)
class FloatingPointBehaviour:
    """What a machine does with floating-point results. A new one has everything on, as in Poplar; a machine begins with everything off.

    inv      stop at an invalid operation: NaN as an operand or a result, a comparison by size with NaN
    div0     stop at a division by zero
    oflo     stop at a result too large for FLOAT or HALF
    esr      round to HALF stochastically
    nanoo    NaN where a HALF is too large, instead of 65504 with its sign
    """

    inv: bool = True
    div0: bool = True
    oflo: bool = True
    esr: bool = True
    nanoo: bool = True

    def __invert__(self) -> FloatingPointBehaviour:
        """Everything the other way, as ``!behaviour`` in Poplar."""
        return FloatingPointBehaviour(**{name: not getattr(self, name) for name in _BITS})

    @property
    def bits(self) -> int:
        """As a word of the machine's state."""
        return sum(bit for name, bit in _BITS.items() if getattr(self, name))


@node
class ModifyFloatingPointBehaviour(Program):
    """Clear the bits ``clear`` of the machine's state, then set ``set_``; ``before``, if given, receives what the state was, for each tile."""

    clear: int
    set_: int
    before: Tensor | None
    name: str
    site: Site

    def __init__(self, clear: FloatingPointBehaviour, set_: FloatingPointBehaviour, before: Tensor | None = None, name: str = "") -> None:
        self.name, self.site, self.before = name, user_site(), before
        self.clear, self.set_ = _bits_of(clear, self.site), _bits_of(set_, self.site)


@node
class RestoreFloatingPointBehaviour(Program):
    """Set the machine's state to what ``state`` holds, the same word for every tile."""

    state: Tensor
    name: str
    site: Site

    def __init__(self, state: Tensor, name: str = "") -> None:
        self.name, self.site = name, user_site()
        self.state = checks.require_tensor("the state of the floating-point behaviour", state, self.site)
        if state.dtype is not UNSIGNED_INT or not state.num_elements:
            raise ElementTypeError(f"the floating-point behaviour ({self.site}) is given {checks.describe(state)}", "the tensor of get_and_modify_...")


def set_floating_point_behaviour(graph: Graph, prog: Sequence, behaviour: FloatingPointBehaviour | Tensor, name: str = "") -> None:
    """From here on in the run of ``prog`` the machine behaves like ``behaviour``; a tensor is what ``get_and_modify_...`` gave before.

    Raises: TileMappingError for a virtual graph of some tiles: there is one behaviour for the whole machine.
    """
    _require_whole(graph)
    if isinstance(behaviour, Tensor):
        prog.add(RestoreFloatingPointBehaviour(behaviour, name))
    else:
        prog.add(ModifyFloatingPointBehaviour(FloatingPointBehaviour(), behaviour, None, name))


def get_and_modify_floating_point_behaviour(
    graph: Graph, prog: Sequence, clear: FloatingPointBehaviour, set_: FloatingPointBehaviour, name: str = ""
) -> Tensor:
    """Clear what is on in ``clear``, then turn on what is on in ``set_``.

    Returns: UNSIGNED_INT[tiles], the state before, for ``set_floating_point_behaviour``.
    Raises: TileMappingError for a virtual graph of some tiles.
    """
    _require_whole(graph)
    tiles = graph.target.num_tiles
    before = graph.add_variable(UNSIGNED_INT, (tiles,), name=name or "floating_point_behaviour")
    for tile in range(tiles):
        graph.set_tile_mapping(before[tile], tile)
    prog.add(ModifyFloatingPointBehaviour(clear, set_, before, name))
    return before


def set_stochastic_rounding(graph: Graph, prog: Sequence, enable: bool, name: str = "") -> None:
    """From here on in the run of ``prog`` results are rounded to HALF stochastically, or to the nearest; all else stays."""
    _require_whole(graph)
    esr, nothing = FloatingPointBehaviour(False, False, False, True, False), FloatingPointBehaviour(False, False, False, False, False)
    prog.add(ModifyFloatingPointBehaviour(esr, esr if enable else nothing, None, name))


def _bits_of(behaviour: Any, site: Site) -> int:
    if not isinstance(behaviour, FloatingPointBehaviour):
        raise GraphError(f"a floating-point behaviour ({site}) is {behaviour!r}", "FloatingPointBehaviour(inv=..., div0=..., oflo=..., esr=..., nanoo=...)")
    return behaviour.bits


def _require_whole(graph: Graph) -> None:
    whole = graph.variables.graph
    if isinstance(graph, VirtualGraph) and graph.target.num_tiles != whole.target.num_tiles:
        raise TileMappingError(
            f"a floating-point behaviour for {graph.target.num_tiles:,} of {whole.target.num_tiles:,} tiles ({user_site()}):"
            " the emulated machine has one for all tiles",
            "set it on the whole graph, around the steps that need it",
        )
