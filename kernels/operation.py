"""How an operation of the dialect is given to Numba: a name, what it takes, and the LLVM code it becomes.

Plain templates and lowerings, not ``@overload``: an overload compiles a function for each use.
"""

from collections.abc import Callable, Mapping
from typing import Any

import llvmlite.ir as ir
from numba.core import imputils, types
from numba.core.typing.templates import AbstractTemplate, Registry, signature

from popcore.kernels.behaviour import Arithmetic

I1, I8, I32, I64 = (ir.IntType(n) for n in (1, 8, 32, 64))
F64, F32, F16 = ir.DoubleType(), ir.FloatType(), ir.HalfType()
POINTER = I8.as_pointer()

typing_registry = Registry()
lowering_registry = imputils.Registry("popcore")

STUBS: dict[str, Callable[..., Any]] = {}
"""Operations by name; what a lowered codelet's ``_pc_name`` is bound to while it is compiled."""


class Refused(Exception):
    """A codelet does something that has no meaning on a tile: what, and what to write instead."""

    def __init__(self, what: str, hint: str | None = None) -> None:
        super().__init__(what, hint)
        self.what, self.hint = what, hint


class _State:
    """Of the compilation under way; the compiler lock guards it."""

    def __init__(self) -> None:
        self.refusals: list[Refused] = []
        self.flags: tuple[str, ...] = ()  # fast-math flags of float operations
        self.shadowed = False  # whether accesses are checked against the shadow, see ``guard``,
        self.shared = False  # of a vertex that several workers run,
        self.collects = False  # whether it goes on after what a check finds
        self.ordered = False  # whether its workers run in the order of AUX_ORDER
        self.access: Any = None  # and for which block and site the one under way is reported
        self.formulas: Mapping[str, Callable[..., Any]] = {}  # what functions of ``math`` compute
        self.arithmetic = Arithmetic()
        self.fields: tuple[str, ...] = ()  # their names


state = _State()


def operation(name: str, typing: Callable[..., Any], literal: bool = False) -> Callable[[Any], Any]:
    """Declare an operation; decorates its lowering ``emit(context, builder, signature, arguments)``.

    ``typing(*types)`` gives the type of the result, or (result, argument types); it raises Refused where there is none.
    With ``literal`` it gets the types of constants with their values.
    """

    def decorate(emit: Any) -> Any:
        stub = _stub(name)

        class Template(AbstractTemplate):
            key = stub
            prefer_literal = literal

            def generic(self, args, kws):
                try:
                    found = typing(*args)
                except Refused as refused:
                    state.refusals.append(refused)
                    return None
                if isinstance(found, tuple):
                    return signature(found[0], *found[1])
                return signature(found, *(types.unliteral(a) for a in args))

        typing_registry.register_global(stub, types.Function(Template))
        lowering_registry.lower(stub, types.VarArg(types.Any))(emit)
        STUBS[name] = stub
        return emit

    return decorate


def _stub(name: str) -> Callable[..., Any]:
    def stub(*_: Any) -> None:
        raise NotImplementedError

    stub.__name__ = stub.__qualname__ = f"_pc_{name}"
    return stub
