"""``range`` in codelets: a counter that LLVM knows not to overflow, so that it can see where an index is not negative.

Numba's own range counts what is left down to zero beside the value, and LLVM then cannot tell that ``i - 1`` is not
negative in ``for i in range(1, n)``: the index of ``x[i - 1]`` would be wrapped by a select, which hinders vectors.
"""

from numba.core import cgutils, types
from numba.core.datamodel import models, register_default
from numba.core.imputils import RefType, iternext_impl
from numba.core.typing.templates import AbstractTemplate, signature

from popcore.kernels.operation import I64, lowering_registry, operation, typing_registry
from popcore.kernels.selftype import made, opened
from popcore.kernels.values import INT


class RangeType(types.SimpleIterableType):
    """What ``range(...)`` gives. ``step`` is the step if it is known, which it nearly always is; else None."""

    def __init__(self, step):
        self.step = step
        self._iterator = RangeIterator(step)
        super().__init__(f"popcore.range({step})", self._iterator)


class RangeIterator(types.SimpleIteratorType):
    """The counter of a loop."""

    def __init__(self, step):
        self.step = step
        super().__init__(f"popcore.range_iterator({step})", INT)


@register_default(RangeType)
class RangeModel(models.StructModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, [("start", INT), ("stop", INT), ("step", INT)])


@register_default(RangeIterator)
class RangeIteratorModel(models.StructModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, [("counter", types.CPointer(INT)), ("stop", INT), ("step", INT)])


def _range_type(*arguments):
    if len(arguments) < 3:
        return RangeType(1)
    step = arguments[2]
    return RangeType(step.literal_value if isinstance(step, types.IntegerLiteral) else None)


@operation("range", _range_type, literal=True)
def _range(context, builder, sig, args):
    start, stop = (I64(0), args[0]) if len(args) == 1 else args[:2]
    return made(context, builder, sig.return_type, start=start, stop=stop, step=args[2] if len(args) == 3 else I64(1))


@typing_registry.register
class _GetIterator(AbstractTemplate):
    key = "getiter"

    def generic(self, args, kws):
        return signature(args[0].iterator_type, *args) if isinstance(args[0], RangeType) else None


@lowering_registry.lower("getiter", RangeType)
def _get_iterator(context, builder, sig, args):
    span = opened(context, builder, sig.args[0], args[0])
    counter = cgutils.alloca_once_value(builder, span.start)
    return made(context, builder, sig.return_type, counter=counter, stop=span.stop, step=span.step)


@lowering_registry.lower("iternext", RangeIterator)
@iternext_impl(RefType.UNTRACKED)
def _next(context, builder, sig, args, result):
    kind = sig.args[0]
    iterator = opened(context, builder, kind, args[0])
    value = builder.load(iterator.counter)
    if kind.step is None:
        rising = builder.icmp_signed(">", iterator.step, I64(0))
        before = builder.select(rising, value, iterator.stop)
        after = builder.select(rising, iterator.stop, value)
        valid, step = builder.icmp_signed("<", before, after), iterator.step
    else:
        valid, step = builder.icmp_signed("<" if kind.step > 0 else ">", value, iterator.stop), I64(kind.step)
    result.set_valid(valid)
    with builder.if_then(valid):
        result.yield_(value)
        # It does not overflow unless ``stop`` is within a step of 2**63, where no view ends.
        builder.store(builder.add(value, step, flags=("nsw",)), iterator.counter)
