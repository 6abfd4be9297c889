"""From a lowered codelet to a native object: the loop over its vertices with the user's body inside.

The only place, with ``frontend``, where codelets meet Numba's internals. ``lowered`` is a ``popcore.dialect.Lowered``;
only its data is used, so that this file needs nothing of popcore but its kernels.
"""

import types as python_types
from functools import lru_cache

import llvmlite.binding as llvm
import llvmlite.ir as ir
import numpy as np
from numba.core import cgutils, compiler, errors, types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.typing.templates import AbstractTemplate, signature

from popcore.kernels import abi, guard, stochastic
from popcore.kernels.behaviour import DEFAULT, Arithmetic
from popcore.kernels.faults import Fault, context_type
from popcore.kernels.frontend import MixedTypes, Pipeline, contexts, flags
from popcore.kernels.memory import word
from popcore.kernels.operation import I8, I32, I64, STUBS, state
from popcore.kernels.selftype import ListType, MatrixType, PlaceType, SelfType, VectorType, load_word, made, opened
from popcore.kernels.table import Table
from popcore.kernels.values import BYTES

_CODES = {"float": "float", "half": "half", "bool": "bool", "quarter": "u8"}
_FASTMATH = ("reassoc", "nsz", "arcp", "contract", "afn")


@global_compiler_lock
def compile_driver(lowered, symbol: str, arithmetic: Arithmetic = DEFAULT, shadowed: bool = False, collects: bool = False, ordered: bool = False) -> bytes:
    """A native object file with the C function ``symbol``, a driver as ``abi`` describes it, that computes by ``arithmetic``.

    ``shadowed``: accesses are checked against the shadow of memory, see ``guard``; ``lowered`` must be with checks then. ``collects``: it goes
    on after what a check finds. ``ordered``: workers run in the order that the block says.

    Raises:
        CodeletError: (made by ``lowered.refuse``) the types do not fit, with the user's line.
    """
    state.refusals, state.flags = [], _FASTMATH if lowered.codelet.cls.fastmath else ()
    state.shadowed, state.shared = shadowed, lowered.codelet.workers > 1
    state.collects, state.ordered = collects, ordered
    state.formulas = lowered.formulas
    state.arithmetic, state.fields = arithmetic, tuple(f.name for f in lowered.codelet.fields)
    typing_context, target_context = contexts()
    unit = _Unit(lowered, typing_context, target_context)
    try:
        result = unit.compile(0, (context_type, unit.self_type, *((types.int64,) if lowered.codelet.workers > 1 else ())))
    except errors.NumbaError as error:
        raise _user_error(lowered, error) from error
    finally:
        unit.close()
    _add_driver(unit, result, symbol)
    return emit_object(_linked(unit.library, symbol))


def _user_error(lowered, error):
    """What Numba found, in the user's terms."""
    loc = getattr(error, "loc", None)
    file, line = (loc.filename, loc.line) if loc is not None else (lowered.codelet.site.file, lowered.codelet.site.line)
    if isinstance(error, MixedTypes):
        hint = "give it one type from the start: total = 0.0, or convert with FLOAT(x) or int(x)"
        return lowered.refuse(file, line, str(error.msg), hint)
    if state.refusals:
        refused = state.refusals[-1]
        return lowered.refuse(file, line, refused.what, refused.hint)
    first = next((text.strip() for text in str(error).splitlines() if text.strip() and "Failed in" not in text), "?")
    return lowered.refuse(file, line, f"the types do not fit: {first}", None)


class _Unit:
    """The compilation of one codelet: its functions, each compiled for the types it is called with."""

    def __init__(self, lowered, typing_context, target_context):
        self.lowered, self.typing, self.target = lowered, typing_context, target_context
        self.typing.refresh()
        self.target.refresh()
        codelet = lowered.codelet
        fields = [(f.name, _code(f.dtype), f.shape, f.direction != "in") for f in codelet.fields]
        self.self_type = SelfType(codelet.name, fields)
        # One library for all: a library that links another one would have that one optimised and loaded first.
        self.library = target_context.codegen().create_library(codelet.name)
        self.compiled = {}
        self.tokens = []
        self.stubs = [self._stub(i) for i in range(len(lowered.functions))]

    def compile(self, index, arguments):
        """Function ``index`` for ``arguments``."""
        key = (index, arguments)
        if key not in self.compiled:
            python = self._python(self.lowered.functions[index])
            self.compiled[key] = compiler.compile_extra(
                self.typing, self.target, python, arguments, None, flags(), {}, library=self.library, pipeline_class=Pipeline
            )
        return self.compiled[key]

    def _python(self, function):
        names = {name: STUBS[name.removeprefix("_pc_")] for name in function.operations}
        names.update({name: self.stubs[index] for name, index in function.calls.items()})
        names.update({name: Table(v) if isinstance(v, np.ndarray) else v for name, v in function.constants.items()})
        return python_types.FunctionType(function.code, {"_pc_Fault": Fault, "__name__": "codelet", **names}, function.name)

    def _stub(self, index):
        """What calls of function ``index`` are bound to: compiles it when its argument types are known."""
        unit = self

        def stub(*_):
            raise NotImplementedError

        class Template(AbstractTemplate):
            key = stub

            def generic(self, args, kws):
                plain = tuple(types.unliteral(a) for a in args)
                try:
                    result = unit.compile(index, plain)
                except errors.NumbaError as error:  # left to Numba it would be reported at the call
                    raise _user_error(unit.lowered, error) from error
                if (index, plain) not in tokens:
                    tokens[index, plain] = token = (stub, plain)
                    unit.target.insert_user_function(token, result.fndesc)
                    unit.tokens.append(token)
                return signature(result.signature.return_type, *plain)

            def get_impl_key(self, sig):
                return tokens[index, sig.args]

        tokens = {}
        self.typing.insert_global(stub, types.Function(Template))
        return stub

    def close(self):
        for token in self.tokens:
            self.target.remove_user_function(token)


def _code(dtype):
    return _CODES.get(dtype.kind) or f"{dtype.kind[0]}{8 * dtype.nbytes}"


# -- the driver --


def _add_driver(unit, result, symbol):
    """Add the driver to the library of the user's functions."""
    module = unit.library.create_ir_module(f"driver_{symbol}")
    pointers = [I8.as_pointer(), I64.as_pointer(), I32.as_pointer(), I64, I64, I8.as_pointer(), I64, I8.as_pointer()]
    function = ir.Function(module, ir.FunctionType(I64, pointers), symbol)
    memory, bases, tiles, first, last, rows, count, block = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    stride = sum(abi.ROW_WORDS[f.shape] for f in unit.lowered.codelet.fields)
    keys = stochastic.Keys(builder, unit.lowered.identity, memory, block) if state.arithmetic.stochastic else None
    with cgutils.for_range_slice(builder, first, last, I64(1), I64) as (k, _):
        tile = builder.load(builder.gep(tiles, [k]))
        base = builder.gep(memory, [builder.load(builder.gep(bases, [builder.sext(tile, I64)]))])
        with cgutils.for_range_slice(builder, I64(0), count, I64(1), I64) as (r, _):
            position = builder.add(builder.mul(k, count), r)
            if unit.lowered.prints or state.collects:
                builder.store(position, word(builder, block, abi.AUX_POSITION))
                builder.store(builder.sext(tile, I64), word(builder, block, abi.AUX_TILE))
            counter = _counter(builder, block, position) if unit.lowered.counted else None
            vertex = _vertex(unit, builder, base, rows, builder.mul(r, I64(stride)))
            if state.shadowed:
                _begin(unit, builder, block, vertex)
            key = keys.of_vertex(builder.sext(tile, I64), position) if keys else None
            _call_body(unit, builder, result, block, vertex, position, keys, key, counter)
    builder.ret(I64(0))
    unit.library.add_ir_module(module)


def _vertex(unit, builder, base, rows, at):
    """``self``, read from the row at word ``at``."""
    names = [f.name for f in unit.lowered.codelet.fields]
    proxy = cgutils.create_struct_proxy(unit.self_type)(unit.target, builder)
    position = 0

    def following():
        nonlocal position
        found = load_word(builder, rows, builder.add(at, I64(position)), names)
        position += 1
        return found

    for name, view in unit.self_type.views.items():
        if not isinstance(view, PlaceType | VectorType | MatrixType):
            members = {"data": base, "table": rows, "first": following(), "count": following()}
        else:
            members = {"data": builder.gep(base, [following()], inbounds=True)}
            if isinstance(view, VectorType):
                members["count"] = following()
            elif isinstance(view, MatrixType):
                members["count"], members["columns"] = following(), following()
        setattr(proxy, f"field_{name}", made(unit.target, builder, view, **members))
    return proxy._getvalue()


def _counter(builder, block, position):
    """The address of what the vertex at ``position`` counts, which is 0 now."""
    first = builder.load(word(builder, block, abi.AUX_COUNTED))
    wanted = builder.icmp_unsigned("!=", first, I64(0))
    scratch = builder.ptrtoint(word(builder, block, abi.AUX_UNWANTED), I64)
    address = builder.select(wanted, builder.add(first, builder.shl(position, I64(3))), scratch)
    counter = builder.inttoptr(address, I64.as_pointer())
    builder.store(I64(0), counter)
    return counter


def _begin(unit, builder, block, vertex):
    """Before a vertex runs, in the shadow: what its Outputs hold is undefined, and no worker was there."""
    members = cgutils.create_struct_proxy(unit.self_type)(unit.target, builder, value=vertex)
    for field in unit.lowered.codelet.fields:
        view = unit.self_type.views[field.name]
        proxy = opened(unit.target, builder, view, getattr(members, f"field_{field.name}"))

        def clear(data, count, view=view, field=field):
            nbytes = builder.mul(count, I64(BYTES[view.code]))
            guard.begin(builder, block, data, nbytes, field.direction == "out", state.shared)

        if isinstance(view, ListType):
            with cgutils.for_range_slice(builder, I64(0), proxy.count, I64(1), I64) as (piece, _):
                at = builder.add(proxy.first, builder.shl(piece, I64(1)))
                offset, count = load_word(builder, proxy.table, at), load_word(builder, proxy.table, builder.add(at, I64(1)))
                clear(builder.gep(proxy.data, [offset], inbounds=True), count)
        elif isinstance(view, MatrixType):
            clear(proxy.data, builder.mul(proxy.count, proxy.columns))
        else:
            clear(proxy.data, proxy.count if isinstance(view, VectorType) else I64(1))


def _call_body(unit, builder, result, block, vertex, position, keys, key, counter):
    """Call ``compute``, once or for workers 5 to 0; return from the driver if it raised."""
    workers = unit.lowered.codelet.workers
    callee = unit.target.declare_function(builder.module, result.fndesc)

    def call(arguments):
        returned = result.signature.return_type
        if counter is not None:
            builder.store(I64(0), word(builder, block, abi.AUX_SPENT))
        status, _ = unit.target.call_conv.call_function(builder, callee, returned, result.signature.args, [block, vertex, *arguments])
        with builder.if_then(status.is_error, likely=False):
            builder.ret(builder.add(position, I64(1)))
        if counter is not None:
            spent, most = builder.load(word(builder, block, abi.AUX_SPENT)), builder.load(counter)
            builder.store(builder.select(builder.icmp_signed(">", spent, most), spent, most), counter)

    if workers == 1:
        if state.collects:
            builder.store(I64(0), word(builder, block, abi.AUX_WORKER))
        if keys:
            keys.begin(key, I64(0))
        call([])
        return
    with cgutils.for_range_slice(builder, I64(0), I64(workers), I64(1), I64) as (i, _):
        worker = builder.sub(I64(workers - 1), i)
        if state.ordered:
            order = builder.load(word(builder, block, abi.AUX_ORDER))
            worker = builder.and_(builder.lshr(order, builder.shl(i, I64(2))), I64(15))
        if unit.lowered.sites or state.arithmetic.traps:
            builder.store(worker, word(builder, block, abi.AUX_WORKER))
        if keys:
            keys.begin(key, worker)
        call([worker])


def _linked(library, symbol):
    """One module in which only ``symbol`` is visible."""
    module = library._final_module
    for linked in library._linking_libraries:  # what Numba itself compiled for an operation
        module.link_in(linked._get_module_for_linking(), preserve=True)
    for function in module.functions:
        if not function.is_declaration and function.name != symbol:
            function.linkage = "internal"
    for variable in module.global_variables:
        if not variable.is_declaration:
            variable.linkage = "internal"
    return module


# -- native code --


@lru_cache(maxsize=1)
def target_machine():
    """The processor that this process runs on."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    triple = llvm.Target.from_default_triple()
    features = llvm.get_host_cpu_features().flatten()
    return triple.create_target_machine(cpu=llvm.get_host_cpu_name(), features=features, opt=3, reloc="pic", codemodel="default")


def optimise(module) -> None:
    """LLVM's passes at level 3, for this processor. Changes no result: nothing is contracted or reordered."""
    tuning = llvm.create_pipeline_tuning_options(speed_level=3)
    tuning.loop_vectorization = True
    tuning.slp_vectorization = True
    builder = llvm.create_pass_builder(target_machine(), tuning)
    builder.getModulePassManager().run(module, builder)


def emit_object(module) -> bytes:
    """Optimise ``module`` and make a native object file of it."""
    optimise(module)
    made_bytes: bytes = target_machine().emit_object(module)
    return made_bytes
