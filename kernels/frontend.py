"""Numba as far as a codelet needs it: contexts that know the dialect only, and a short list of passes.

Numba's own CPU target loads the implementations of all NumPy before its first compilation, which takes longer than
compiling a hundred codelets. The contexts here know numbers, ranges, tuples and the operations of the dialect.
"""

from functools import lru_cache

import numpy as np
from numba.core import compiler, cpu, errors, ir, types, typing
from numba.core.compiler_machinery import AnalysisPass, PassManager, register_pass
from numba.core.typed_passes import IRLegalization, NativeLowering, NoPythonBackend, NopythonTypeInference, PreLowerStripPhis
from numba.core.typing.templates import builtin_registry
from numba.core.untyped_passes import FixupArgs, GenericRewrites, IRProcessing, ReconstructSSA, TranslateByteCode

from popcore.kernels import access, arith, exact, faults, mathlib, ranges  # noqa: F401  # they declare the operations
from popcore.kernels.half import half
from popcore.kernels.operation import lowering_registry, typing_registry
from popcore.kernels.selftype import ViewType
from popcore.kernels.values import name_of

_CONTROL = ("getiter", "iternext", "pair_first", "pair_second", "exhaust_iter", "static_getitem")


class TileTyping(typing.BaseContext):
    """Types of the dialect, and of Numba's own only what loops, tuples and branches need."""

    def load_additional_registries(self):
        self.install_registry(typing_registry)

    def _load_builtins(self):
        if "pair_first" in self._functions:
            return
        for template in builtin_registry.functions:
            if template.key in _CONTROL:
                self.insert_function(template(self))
        truth, *more = [ty for value, ty in builtin_registry.globals if value is bool]  # what branches call
        for ty in more:
            truth = truth.augment(ty) or truth
        self.insert_global(bool, truth)

    def resolve_value_type(self, val):
        # Numba asks libraries whether ``val`` is theirs before it looks it up, and imports them for that.
        if val is faults.Fault:
            return types.ExceptionClass(val)
        if isinstance(val, np.float16):
            return half
        known = self._lookup_global(val) if callable(val) else None
        return super().resolve_value_type(val) if known is None else known

    def unify_pairs(self, first, second):
        """Types are never mixed: the first stays, and ``OneTypeEach`` finds the variable and its lines afterwards."""
        if first in (types.undefined, types.unknown):
            return second
        if second in (types.undefined, types.unknown) or first == second:
            return first
        first, second = types.unliteral(first), types.unliteral(second)
        if isinstance(first, ViewType):
            return first.unify(self, second) or first
        return first


class TileTarget(cpu.CPUContext):
    """Lowerings of the dialect. Allocates nothing, so it has no run-time system."""

    def post_lowering(self, mod, library):
        """Numba's links its run-time system here."""

    def get_constant_generic(self, builder, ty, val):
        if ty == types.float32 and builder is not None:
            return exact.constant(builder, val)
        return super().get_constant_generic(builder, ty, val)

    def load_additional_registries(self):
        from numba.cpython import builtins, numbers, rangeobj, tupleobj  # noqa: F401  # they fill Numba's registry

        self.install_registry(lowering_registry)


@lru_cache(maxsize=1)
def contexts():
    """The typing and the target context; making them is the fixed cost of the first codelet."""
    typing_context = TileTyping()
    return typing_context, TileTarget(typing_context)


def flags():
    made = compiler.Flags()
    made.no_cpython_wrapper = True
    made.no_cfunc_wrapper = True
    made.no_compile = True  # of the intermediate module: only the final object is wanted
    made.nrt = False
    made.enable_pyobject = False
    made.boundscheck = False
    made.error_model = "numpy"
    made.forceinline = True
    return made


class MixedTypes(errors.TypingError):
    """A variable that has one type here and another there."""


@register_pass(mutates_CFG=False, analysis_only=True)
class OneTypeEach(AnalysisPass):
    """Refuse variables whose type depends on the way control took: Numba would make INT and FLOAT a double."""

    _name = "popcore_one_type_each"

    def __init__(self):
        AnalysisPass.__init__(self)

    def run_pass(self, state):
        for block in state.func_ir.blocks.values():
            for node in block.find_insts(ir.Assign):
                if isinstance(node.value, ir.Expr) and node.value.op == "phi":
                    self._check_phi(state, node)
        self._check_returns(state)
        for name, ty in state.typemap.items():
            if types.unliteral(ty) in (types.float64, types.complex128):
                raise MixedTypes(f"{_user_name(name)} would be a double, which the machine does not have", loc=state.func_ir.loc)
        return False

    def _check_phi(self, state, node):
        target = types.unliteral(state.typemap[node.target.name])
        found = {}
        for value in node.value.incoming_values:
            if value is not ir.UNDEFINED:
                found.setdefault(types.unliteral(state.typemap[value.name]), value)
        if len(found) > 1 and not all(_same_views(ty, target) for ty in found):
            (one, at), (other, at2), *_ = sorted(found.items(), key=lambda item: item[1].loc.line)
            variable = _user_name(node.target.name)
            raise MixedTypes(f"{variable} is {name_of(one)} (line {at.loc.line}) and {name_of(other)} (line {at2.loc.line})", loc=at2.loc)

    def _check_returns(self, state):
        found = {}
        for block in state.func_ir.blocks.values():
            for node in block.find_insts(ir.Assign):  # Numba casts what is returned just before it returns it
                if isinstance(node.value, ir.Expr) and node.value.op == "cast":
                    found.setdefault(types.unliteral(state.typemap[node.value.value.name]), node)
        kinds = list(found)
        if len(kinds) > 1 and not all(_same_views(k, kinds[0]) for k in kinds):
            names = " and ".join(name_of(k) if k != types.none else "nothing" for k in kinds)
            raise MixedTypes(f"the function returns {names}", loc=found[kinds[-1]].loc)


def _same_views(one, other):
    """Whether both are views of the same kind, so that a variable may be either."""
    return isinstance(one, ViewType) and type(one) is type(other) and one.code == other.code


def _user_name(name):
    """A variable of Numba's as the user named it."""
    plain = name.split(".")[0]
    return "the value of this expression" if plain.startswith(("$", "_pc_")) else f"variable {plain!r}"


class Pipeline(compiler.CompilerBase):
    """The passes that a lowered function needs."""

    def define_pipelines(self):
        manager = PassManager("codelet")
        for each in (TranslateByteCode, FixupArgs, IRProcessing, GenericRewrites, ReconstructSSA, NopythonTypeInference):
            manager.add_pass(each, each._name)
        for each in (OneTypeEach, PreLowerStripPhis, IRLegalization, NativeLowering, NoPythonBackend):
            manager.add_pass(each, each._name)
        manager.finalize()
        return [manager]
