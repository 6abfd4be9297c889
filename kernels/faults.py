"""raise, assert, print and counters in compiled codelets: what they write to the block of words that ``abi`` describes."""

import llvmlite.ir as ir
from numba.core import types
from numba.core.datamodel import models, register_default

from popcore.kernels import abi
from popcore.kernels.memory import counter_scope, leave, tag, tell, word
from popcore.kernels.operation import I32, I64, POINTER, operation, state
from popcore.kernels.values import BOOL, FLOAT, HALF, INT, UNSIGNED, convert, scalar

FINDING = "finding"  # the kind of a value that names one of ``abi``'s findings
_TAGS = {INT: abi.TAG_INT, FLOAT: abi.TAG_FLOAT, HALF: abi.TAG_HALF, BOOL: abi.TAG_BOOL, UNSIGNED: abi.TAG_UNSIGNED, FINDING: abi.TAG_FINDING}


class ContextType(types.Type):
    """What each function of a codelet gets first: the address of the block of words."""

    def __init__(self) -> None:
        super().__init__("popcore.context")


context_type = ContextType()


@register_default(ContextType)
class ContextModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, POINTER)


class Fault(Exception):
    """Stands after every ``fail`` so that Numba sees that control ends there."""


def bits(builder, value, ty):
    """A value as 64 bits."""
    if ty == FINDING:
        return value
    if ty in (FLOAT, HALF):
        return builder.zext(builder.bitcast(convert(builder, value, ty, FLOAT), I32), I64)
    return convert(builder, value, ty, INT)


def tags(kinds):
    return sum(_TAGS[kind] << 4 * i for i, kind in enumerate(kinds))


def fail(builder, block, site, values, kinds):
    """Write the fault and leave the function; its callers leave in turn."""
    leave(builder, block, site, [bits(builder, value, kind) for value, kind in zip(values, kinds, strict=True)], tags(kinds))


def find(builder, block, site, values, kinds, keys):
    """A check found something: leave the function, or have it noted and go on, as the codelet is compiled for. ``keys``: see ``findings``."""
    if not state.collects:
        fail(builder, block, site, values, kinds)
        return
    tell(builder, block, site, [bits(builder, value, kind) for value, kind in zip(values, kinds, strict=True)], tags(kinds))
    note = builder.inttoptr(builder.load(word(builder, block, abi.AUX_NOTE)), ir.FunctionType(I64, [I64, I64]).as_pointer())
    builder.call(note, [builder.ptrtoint(block, I64), I64(keys)])


def fail_if(builder, condition, block, site, values, kinds):
    with builder.if_then(condition, likely=False):
        fail(builder, block, site, values, kinds)


def _shown(context, site, *values):
    for value in values:
        scalar(value)
    return types.none


@operation("fail", _shown)
def _fail(context, builder, sig, args):
    fail(builder, args[0], args[1], args[2:], sig.args[2:])
    builder.position_at_end(builder.append_basic_block("after_fail"))
    return context.get_dummy_value()


@operation("print", _shown)
def _print(context, builder, sig, args):
    block, site, *values = args
    size = I64(abi.RECORD_VALUES + len(values))
    used_at = word(builder, block, abi.AUX_PRINT_USED)
    address, used = builder.load(word(builder, block, abi.AUX_PRINT_BUFFER)), builder.load(used_at)
    after = builder.add(used, size)
    room = builder.icmp_unsigned("<=", after, builder.load(word(builder, block, abi.AUX_PRINT_CAPACITY)))
    wanted = builder.and_(room, builder.icmp_unsigned("!=", address, I64(0)))
    with builder.if_else(wanted) as (kept, lost):
        with kept:
            record = word(builder, builder.inttoptr(address, POINTER), used)
            heads = [builder.load(word(builder, block, i)) for i in (abi.AUX_POSITION, abi.AUX_TILE, abi.AUX_WORKER)]
            shown = [bits(builder, value, kind) for value, kind in zip(values, sig.args[2:], strict=True)]
            for i, each in enumerate([size, *heads, site, I64(tags(sig.args[2:])), *shown]):
                builder.store(each, builder.gep(record, [I64(i)], inbounds=True))
            builder.store(after, used_at)
        with lost:
            lost_at = word(builder, block, abi.AUX_PRINT_LOST)
            builder.store(builder.add(builder.load(lost_at), I64(1)), lost_at)
    return context.get_dummy_value()


@operation("spend", lambda context, amount: types.none)
def _spend(context, builder, sig, args):
    """Add to what the call of compute has taken."""
    spent = word(builder, args[0], abi.AUX_SPENT)
    scope = counter_scope()
    amount = convert(builder, args[1], sig.args[1], INT)
    tag(builder, builder.store(builder.add(tag(builder, builder.load(spent), scope), amount), spent), scope)
    return context.get_dummy_value()
