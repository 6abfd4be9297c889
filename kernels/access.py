"""Reading, writing and slicing views in compiled codelets. A negative index counts from the end."""

import llvmlite.ir as ir
from numba.core import types

from popcore.kernels import faults
from popcore.kernels.arith import index_type
from popcore.kernels.operation import I64, Refused, operation, state
from popcore.kernels.selftype import (
    ListType,
    MatrixType,
    PlaceType,
    VectorType,
    ViewType,
    element,
    load_element,
    load_word,
    made,
    opened,
    store_element,
)
from popcore.kernels.values import INT, convert, name_of, scalar, value_type


@operation("load", lambda place: value_type(place.code))
def _load(context, builder, sig, args):
    place = sig.args[0]
    return load_element(builder, place, opened(context, builder, place, args[0]).data, I64(0))


@operation("store", lambda place, value: scalar(value) and _writable(place))
def _store(context, builder, sig, args):
    place, source = sig.args
    store_element(builder, place, opened(context, builder, place, args[0]).data, I64(0), args[1], source)
    return context.get_dummy_value()


def _writable(view):
    if not view.writable:
        raise Refused("an Input cannot be written", "declare the field as InOut or Output")
    return types.none


def _indexable(view, dimensions):
    if isinstance(view, types.BaseTuple):
        raise Refused("a tuple can be indexed by a constant only", "give its members names: rows, columns = m.shape")
    if not isinstance(view, ViewType) or isinstance(view, PlaceType):
        raise Refused(f"{name_of(types.unliteral(view))} cannot be indexed", "index a field or a view of one")
    if dimensions == 2 and not isinstance(view, MatrixType):
        raise Refused(f"a {view.kind} takes one index", "use v[i]")
    return view


# -- get --


def _get_type(view, index):
    if isinstance(view, types.BaseTuple) and isinstance(index, types.IntegerLiteral):
        if -len(view) <= index.literal_value < len(view):
            return view[index.literal_value], (view, index)
        raise Refused(f"index {index.literal_value} of a tuple of {len(view)}")
    _indexable(view, 1)
    index_type(index)
    return value_type(view.code) if isinstance(view, VectorType) else view.like(VectorType)


@operation("get", _get_type)
def _get(context, builder, sig, args):
    view, index = sig.args
    if isinstance(view, types.BaseTuple):
        return builder.extract_value(args[0], index.literal_value % len(view))
    proxy = opened(context, builder, view, args[0])
    return _part(context, builder, view, proxy, _wrapped(builder, convert(builder, args[1], index, INT), _count(proxy)))


def _count(proxy):
    return proxy.count  # of a matrix: its rows


def _wrapped(builder, index, count):
    return builder.select(builder.icmp_signed("<", index, I64(0)), builder.add(index, count), index)


def _part(context, builder, view, proxy, index):
    """Element ``index``, row ``index`` or piece ``index``; not negative."""
    if isinstance(view, VectorType):
        return load_element(builder, view, proxy.data, index)
    vector = view.like(VectorType)
    if isinstance(view, MatrixType):
        data = _advance(builder, view, proxy.data, builder.mul(index, proxy.columns, flags=("nsw",)))
        return made(context, builder, vector, data=data, count=proxy.columns)
    at = builder.add(proxy.first, builder.shl(index, I64(1)))
    others = () if view.scope is None else (view.scope.name, *(n for n in view.scope.others if n != "tables"))
    offset = load_word(builder, proxy.table, at, others)
    count = load_word(builder, proxy.table, builder.add(at, I64(1)), others)
    return made(context, builder, vector, data=builder.gep(proxy.data, [offset], inbounds=True), count=count)


def _advance(builder, view, data, elements):
    from popcore.kernels.values import STORED

    return builder.bitcast(element(builder, data, elements, STORED[view.code]), data.type)


def _get2_type(view, row, column):
    _indexable(view, 2)
    index_type(row)
    index_type(column)
    return value_type(view.code)


@operation("get2", _get2_type)
def _get2(context, builder, sig, args):
    view, proxy, at = _cell(context, builder, sig.args, args)
    return load_element(builder, view, proxy.data, at)


def _cell(context, builder, kinds, args):
    """The view, its members, and the index of element [row, column]."""
    view, row, column = kinds[:3]
    proxy = opened(context, builder, view, args[0])
    row = _wrapped(builder, convert(builder, args[1], row, INT), proxy.count)
    column = _wrapped(builder, convert(builder, args[2], column, INT), proxy.columns)
    return view, proxy, builder.add(builder.mul(row, proxy.columns, flags=("nsw",)), column, flags=("nsw",))


# -- set --


def _set_type(view, index, value):
    _indexable(view, 1)
    index_type(index)
    if not isinstance(view, VectorType):
        raise Refused(f"a part of a {view.kind} cannot be assigned as a whole", "assign its elements: m[r, c] = ..., f[i][j] = ...")
    scalar(value)
    return _writable(view)


@operation("set", _set_type)
def _set(context, builder, sig, args):
    view, index, source = sig.args
    proxy = opened(context, builder, view, args[0])
    at = _wrapped(builder, convert(builder, args[1], index, INT), proxy.count)
    store_element(builder, view, proxy.data, at, args[2], source)
    return context.get_dummy_value()


def _set2_type(view, row, column, value):
    _get2_type(view, row, column)
    scalar(value)
    return _writable(view)


@operation("set2", _set2_type)
def _set2(context, builder, sig, args):
    view, proxy, at = _cell(context, builder, sig.args, args)
    store_element(builder, view, proxy.data, at, args[3], sig.args[3])
    return context.get_dummy_value()


# -- the same with checks: of the index, and against the shadow of memory; context and site come first --


def _outside(builder, index, count):
    """True where ``index`` is outside [-count, count)."""
    return builder.icmp_unsigned(">=", builder.add(index, count), builder.shl(count, I64(1)))


def _guarded(emit, context, builder, sig, args, access):
    """``emit``, its access checked against the shadow if the codelet is compiled so."""
    state.access = access if state.shadowed else None
    try:
        return emit(context, builder, sig, args)
    finally:
        state.access = None


@operation("load_checked", lambda context, site, place: value_type(place.code))
def _load_checked(context, builder, sig, args):
    return _guarded(_load, context, builder, sig.return_type(*sig.args[2:]), args[2:], args[:2])


@operation("store_checked", lambda context, site, place, value: scalar(value) and _writable(place))
def _store_checked(context, builder, sig, args):
    return _guarded(_store, context, builder, sig.return_type(*sig.args[2:]), args[2:], args[:2])


def _checked(name, typing, emit, dimensions):
    def with_site(context, site, *rest):
        found = typing(*rest)
        return (found[0], (context, site, *found[1])) if isinstance(found, tuple) else found  # a tuple is indexed by a literal

    @operation(f"{name}_checked", with_site)
    def checked(context, builder, sig, args):
        block, site, *rest = args
        kinds = sig.args[2:]
        if isinstance(kinds[0], ViewType):
            proxy = opened(context, builder, kinds[0], rest[0])
            counts = [_count(proxy)] if dimensions == 1 else [proxy.count, proxy.columns]
            indices = [convert(builder, rest[1 + d], kinds[1 + d], INT) for d in range(dimensions)]
            wrong = [_outside(builder, i, n) for i, n in zip(indices, counts, strict=True)]
            failed = wrong[0] if dimensions == 1 else builder.or_(*wrong)
            if state.collects:
                return _around(context, builder, sig, (block, site), failed, [*indices, *counts], lambda: _emit(context, builder, sig, rest, block, site))
            faults.fail_if(builder, failed, block, site, [*indices, *counts], [INT] * (2 * dimensions))
        return _emit(context, builder, sig, rest, block, site)

    def _emit(context, builder, sig, rest, block, site):
        return _guarded(emit, context, builder, sig.return_type(*sig.args[2:]), rest, (block, site))


def _around(context, builder, sig, where, wrong, values, emit):
    """``emit`` where an index is right; else what was found is noted, a read gives zero or a view of nothing, and a write does not happen."""
    with builder.if_else(wrong, likely=False) as (outside, inside):
        with outside:
            faults.find(builder, *where, values, [INT] * len(values), 0)
            from_outside = builder.block
        with inside:
            read = emit()
            from_inside = builder.block
    if sig.return_type == types.none:
        return context.get_dummy_value()
    value = builder.phi(read.type)
    value.add_incoming(ir.Constant(read.type, None), from_outside)
    value.add_incoming(read, from_inside)
    return value


_checked("get", _get_type, _get, 1)
_checked("get2", _get2_type, _get2, 2)
_checked("set", _set_type, _set, 1)
_checked("set2", _set2_type, _set2, 2)


# -- sizes and slices --


def _sized(view):
    if isinstance(view, types.BaseTuple):
        return INT
    _indexable(view, 1)
    return INT


@operation("len", _sized)
def _len(context, builder, sig, args):
    if isinstance(sig.args[0], types.BaseTuple):
        return I64(len(sig.args[0]))
    return _count(opened(context, builder, sig.args[0], args[0]))


def _array(view):
    if isinstance(_indexable(view, 1), ListType):
        raise Refused("a list has no shape", "use len(f) and len(f[i])")
    return view


@operation("size", lambda view: _array(view) and INT)
def _size(context, builder, sig, args):
    proxy = opened(context, builder, sig.args[0], args[0])
    return builder.mul(proxy.count, proxy.columns) if isinstance(sig.args[0], MatrixType) else proxy.count


@operation("shape", lambda view: types.UniTuple(INT, 2 if isinstance(_array(view), MatrixType) else 1))
def _shape(context, builder, sig, args):
    proxy = opened(context, builder, sig.args[0], args[0])
    members = [proxy.count, proxy.columns] if isinstance(sig.args[0], MatrixType) else [proxy.count]
    return context.make_tuple(builder, sig.return_type, members)


def _slice_type(view, *bounds):
    if isinstance(_indexable(view, 1), ListType):
        raise Refused("a slice of a list is not supported", "use f[i] in a loop")
    for bound in bounds:
        index_type(bound)
    return view


@operation("slice", _slice_type)
def _slice(context, builder, sig, args):
    view = sig.args[0]
    proxy = opened(context, builder, view, args[0])
    return _between(context, builder, view, proxy, *(convert(builder, v, t, INT) for v, t in zip(args[1:], sig.args[1:], strict=True)))


@operation("slice_from", _slice_type)
def _slice_from(context, builder, sig, args):
    view = sig.args[0]
    proxy = opened(context, builder, view, args[0])
    return _between(context, builder, view, proxy, convert(builder, args[1], sig.args[1], INT), _count(proxy))


def _between(context, builder, view, proxy, low, high):
    """Elements or rows [low, high), clamped as Python does."""
    count = _count(proxy)
    low, high = _clamped(builder, low, count), _clamped(builder, high, count)
    size = builder.sub(high, low)
    size = builder.select(builder.icmp_signed("<", size, I64(0)), I64(0), size)
    if isinstance(view, MatrixType):
        data = _advance(builder, view, proxy.data, builder.mul(low, proxy.columns, flags=("nsw",)))
        return made(context, builder, view, data=data, count=size, columns=proxy.columns)
    return made(context, builder, view, data=_advance(builder, view, proxy.data, low), count=size)


def _clamped(builder, bound, count):
    bound = _wrapped(builder, bound, count)
    bound = builder.select(builder.icmp_signed("<", bound, I64(0)), I64(0), bound)
    return builder.select(builder.icmp_signed(">", bound, count), count, bound)
