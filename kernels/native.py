"""From Python functions over 64-bit integers to native objects: the compiler behind the machine, and its raw memory access.

``compile_object`` is the only place where the machine meets Numba's internals; ``fallback`` does the same on public API.
The operations below take addresses as integers. They do not check anything: what calls them owns the memory.
"""

import os
from functools import lru_cache
from inspect import Parameter, Signature
from inspect import signature as signature_of
from typing import Any

import llvmlite.ir as ir
from numba import njit, types
from numba.core import cgutils, compiler, cpu
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import PassManager
from numba.core.typed_passes import IRLegalization, NativeLowering, NoPythonBackend, NopythonTypeInference, PreLowerStripPhis
from numba.core.typing.context import BaseContext
from numba.core.typing.templates import signature as typed
from numba.core.untyped_passes import FixupArgs, IRProcessing, ReconstructSSA, TranslateByteCode
from numba.extending import lower_builtin, type_callable

I8, I32, I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)

FALLBACK = os.environ.get("POPCORE_FALLBACK") == "1"
"""Use Numba's public API only: see ``fallback``."""

_called: dict[str, Any] = {}  # parts that the object being compiled calls, by symbol


def part(function):
    """Decorates a function over 64-bit integers that returns one, to be called from what ``compile_object`` compiles.

    Numba would compile, optimise and load each such function by itself before it looks at its caller; here a call is
    a call of a C symbol, and all parts are optimised once, together.
    """
    if FALLBACK:
        return njit(error_model="numpy")(function)
    symbol, kinds = f"part_{function.__name__}", [I64] * len(signature_of(function).parameters)

    def generate(context, builder, signature, arguments):
        _called[symbol] = function
        callee = builder.module.globals.get(symbol) or ir.Function(builder.module, ir.FunctionType(I64, kinds), symbol)
        return builder.call(callee, arguments)

    return _operation(len(kinds))(generate)


def _operation(count, result=types.int64):
    """Decorates the LLVM code of something that machine code can call: a function of ``count`` integers.

    Not ``@intrinsic``: typing one makes Numba load the implementations of all NumPy.
    """

    def decorate(generate):
        def call(*_):
            raise NotImplementedError(generate.__name__)

        def typer(*_):
            return typed(result, *[types.int64] * count)

        typer.__dict__["__signature__"] = Signature([Parameter(f"a{i}", Parameter.POSITIONAL_ONLY) for i in range(count)])
        type_callable(call)(lambda context: typer)
        lower_builtin(call, *[types.int64] * count)(generate)
        return call

    return decorate


class _Typing(BaseContext):
    """The types of plain Python: Numba's own context would load the implementations of all NumPy first."""

    def resolve_getattr(self, typ, attr):
        if isinstance(typ, types.Module):  # a constant; Numba would look for an overload, and load all NumPy for it
            return self.resolve_value_type(getattr(typ.pymod, attr))
        return super().resolve_getattr(typ, attr)


class _Target(cpu.CPUContext):
    """Integers, comparisons and loops over ranges."""

    def load_additional_registries(self):
        from numba.cpython import builtins, numbers, rangeobj  # noqa: F401  # they fill Numba's registry


class _Pipeline(compiler.CompilerBase):
    """The passes that integer code needs."""

    def define_pipelines(self):
        manager = PassManager("machine")
        passes: list[Any] = [TranslateByteCode, FixupArgs, IRProcessing, ReconstructSSA, NopythonTypeInference]
        passes += [PreLowerStripPhis, IRLegalization, NativeLowering, NoPythonBackend]
        for each in passes:
            manager.add_pass(each, each._name)
        manager.finalize()
        return [manager]


@lru_cache(maxsize=1)
def _contexts():
    typing_context = _Typing()
    return typing_context, _Target(typing_context)


def _flags():
    flags: Any = compiler.Flags()
    flags.no_cpython_wrapper = True
    flags.no_cfunc_wrapper = True
    flags.no_compile = True  # of the intermediate module: only the final object is wanted
    flags.nrt = False
    flags.enable_pyobject = False
    flags.error_model = "numpy"
    return flags


def _add_function(library, function, symbol):
    """Put ``int64 symbol(int64, ...)`` into a code library, not yet optimised."""
    typing_context, context = _contexts()
    arguments = (types.int64,) * len(signature_of(function).parameters)
    result = compiler.compile_extra(typing_context, context, function, arguments, types.int64, _flags(), {}, pipeline_class=_Pipeline)
    module = library.create_ir_module(symbol)
    entry = ir.Function(module, ir.FunctionType(I64, [I64] * len(arguments)), symbol)
    builder = ir.IRBuilder(entry.append_basic_block("entry"))
    callee = context.declare_function(module, result.fndesc)
    _, value = context.call_conv.call_function(builder, callee, types.int64, arguments, list(entry.args))
    builder.ret(value)
    library.add_ir_module(module)
    library._final_module.link_in(result.library._final_module, preserve=True)


@global_compiler_lock
def compile_object(functions):
    """A native object file with ``int64 symbol(int64, ...)`` for each symbol of ``functions``, a dict, which does what its function does.

    Needs: functions of 64-bit integers that raise nothing and allocate nothing; they call ``part`` functions and the operations below.
    Gives: the bytes of an object for this very processor; only the symbols asked for are visible.
    """
    typing_context, context = _contexts()
    typing_context.refresh()
    context.refresh()
    library = context.codegen().create_library("popcore")
    _called.clear()
    done = set()
    waiting = dict(functions)
    while waiting:
        for symbol, function in waiting.items():
            _add_function(library, function, symbol)
        done |= set(waiting)
        waiting = {symbol: function for symbol, function in _called.items() if symbol not in done}
    module = library._final_module
    for each in list(module.functions) + list(module.global_variables):
        if not each.is_declaration and each.name not in functions:
            each.linkage = "internal"
    library._optimize_final_module()
    missing = [f.name for f in module.functions if f.is_declaration and not f.name.startswith("llvm.")]
    if missing:
        raise RuntimeError(f"{', '.join(functions)}: machine code may not call {', '.join(missing)}")
    return context.codegen()._tm.emit_object(module)


def _pointer(builder, address, kind):
    return builder.inttoptr(address, kind.as_pointer())


def _loader(width, signed):
    @_operation(1)
    def load(context, builder, signature, arguments):
        value = builder.load(_pointer(builder, arguments[0], width), align=1)
        if width is I64:
            return value
        return builder.sext(value, I64) if signed else builder.zext(value, I64)

    return load


load64 = _loader(I64, True)
load32 = _loader(I32, True)
load16 = _loader(ir.IntType(16), True)
load8 = _loader(I8, True)
load32u = _loader(I32, False)
load16u = _loader(ir.IntType(16), False)
load8u = _loader(I8, False)


@_operation(2)
def smaller(context, builder, signature, arguments):
    """The smaller of two integers."""
    return builder.select(builder.icmp_signed("<", *arguments), *arguments)


@_operation(2)
def larger(context, builder, signature, arguments):
    """The larger of two integers."""
    return builder.select(builder.icmp_signed(">", *arguments), *arguments)


@_operation(2, types.void)
def store32(context, builder, signature, arguments):
    builder.store(builder.trunc(arguments[1], I32), _pointer(builder, arguments[0], I32), align=4)
    return context.get_dummy_value()


@_operation(2, types.void)
def store64(context, builder, signature, arguments):
    builder.store(arguments[1], _pointer(builder, arguments[0], I64), align=8)
    return context.get_dummy_value()


def _copier(words, streaming=False):
    """An operation that copies a constant number of 4-byte words: it becomes a few vector moves.

    Streaming ones store around the caches: to whole vectors that are aligned, from anywhere.
    """
    vector = min(words, 16)
    kind = I32 if words == 1 else ir.VectorType(I32, vector)

    @_operation(2, types.void)
    def copy(context, builder, signature, arguments):
        target, source = arguments
        steps = [ir.Constant(I64, 4 * vector * i) for i in range(words // vector)]
        values = [builder.load(_pointer(builder, builder.add(source, step), kind), align=1 if streaming else 4) for step in steps]
        for step, value in zip(steps, values, strict=True):
            store = builder.store(value, _pointer(builder, builder.add(target, step), kind), align=4 * vector if streaming else 4)
            if streaming:
                store.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(I32, 1)]))
        return context.get_dummy_value()

    return copy


copy1 = _copier(1)
copy2 = _copier(2)
copy4 = _copier(4)
copy8 = _copier(8)
copy16 = _copier(16)
copy32 = _copier(32)
copy64 = _copier(64)
stream16 = _copier(16, streaming=True)
stream64 = _copier(64, streaming=True)


@_operation(1, types.void)
def touch(context, builder, signature, arguments):
    """Read a byte for the caches' sake: atomic, so that a load whose value nobody wants is left in the code."""
    builder.load_atomic(_pointer(builder, arguments[0], I8), "monotonic", 1)
    return context.get_dummy_value()


def _prefetcher(level):
    """An operation that begins to fetch the cache line at an address that will be read soon, into a level of caches."""

    @_operation(1, types.void)
    def prefetch(context, builder, signature, arguments):
        name = "llvm.prefetch.p0"
        kind = ir.FunctionType(ir.VoidType(), [I8.as_pointer(), I32, I32, I32])
        function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
        builder.call(function, [_pointer(builder, arguments[0], I8), ir.Constant(I32, 0), ir.Constant(I32, 4 - level), ir.Constant(I32, 1)])
        return context.get_dummy_value()

    return prefetch


prefetch = _prefetcher(1)
prefetch_far = _prefetcher(2)


@_operation(3, types.void)
def copy_bytes(context, builder, signature, arguments):
    """libc's memcpy."""
    pointer = I8.as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [pointer, pointer, I64, ir.IntType(1)])
    memcpy = builder.module.globals.get("llvm.memcpy.p0.p0.i64") or ir.Function(builder.module, kind, "llvm.memcpy.p0.p0.i64")
    to, source = (_pointer(builder, a, I8) for a in arguments[:2])
    builder.call(memcpy, [to, source, arguments[2], ir.Constant(ir.IntType(1), 0)])
    return context.get_dummy_value()


@_operation(9)
def call_driver(context, builder, signature, arguments):
    """Call a driver by its address: see ``abi``."""
    function = _pointer(builder, arguments[0], ir.FunctionType(I64, [I64] * 8))
    return builder.call(function, arguments[1:])


@_operation(3)
def call_int(context, builder, signature, arguments):
    """Call ``int f(first, second)`` by its address; a function of fewer arguments ignores the others."""
    return builder.sext(builder.call(_pointer(builder, arguments[0], ir.FunctionType(I32, [I64, I64])), arguments[1:]), I64)


@_operation(1)
def load_acquire(context, builder, signature, arguments):
    return builder.load_atomic(_pointer(builder, arguments[0], I64), "acquire", 8)


@_operation(2, types.void)
def store_release(context, builder, signature, arguments):
    builder.store_atomic(arguments[1], _pointer(builder, arguments[0], I64), "release", 8)
    return context.get_dummy_value()


@_operation(2)
def exchange(context, builder, signature, arguments):
    """Store ``value``, return what was there; a full fence."""
    return builder.atomic_rmw("xchg", _pointer(builder, arguments[0], I64), arguments[1], "seq_cst")


@_operation(3)
def replace(context, builder, signature, arguments):
    """Store ``value`` at ``address`` if ``expected`` is there, atomically; returns whether it was. A full fence."""
    done = builder.cmpxchg(_pointer(builder, arguments[0], I64), arguments[1], arguments[2], "seq_cst", "seq_cst")
    return builder.zext(builder.extract_value(done, 1), I64)


@_operation(0, types.void)
def fence(context, builder, signature, arguments):
    """All stores so far, streaming ones too, are visible before what follows."""
    builder.fence("seq_cst")
    return context.get_dummy_value()


@_operation(0, types.void)
def pause(context, builder, signature, arguments):
    """Tell the processor that this is a wait loop."""
    triple = builder.module.triple
    name = "llvm.x86.sse2.pause" if triple.startswith(("x86_64", "i686")) else ""
    if triple.startswith(("aarch64", "arm64")):
        builder.asm(ir.FunctionType(ir.VoidType(), []), "isb", "", [], True)
    elif name:
        function = builder.module.globals.get(name) or ir.Function(builder.module, ir.FunctionType(ir.VoidType(), []), name)
        builder.call(function, [])
    return context.get_dummy_value()


@_operation(2)
def set_float_control(context, builder, signature, arguments):
    """Set the bits ``mask`` of this thread's MXCSR to those of ``value``; returns what it was. 0 on other processors, which have none."""
    if not builder.module.triple.startswith(("x86_64", "i686")):
        return ir.Constant(I64, 0)
    value, mask = (builder.trunc(each, I32) for each in arguments)
    place = cgutils.alloca_once(builder, I32)
    pointer = I8.as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [pointer])
    store, load = (builder.module.globals.get(n) or ir.Function(builder.module, kind, n) for n in ("llvm.x86.sse.stmxcsr", "llvm.x86.sse.ldmxcsr"))
    builder.call(store, [builder.bitcast(place, pointer)])
    before = builder.load(place)
    builder.store(builder.or_(builder.and_(before, builder.not_(mask)), builder.and_(value, mask)), place)
    builder.call(load, [builder.bitcast(place, pointer)])
    return builder.zext(before, I64)
