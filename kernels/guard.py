"""The shadow of tile memory, in codelets that are compiled with the full check: what was written, and by which worker.

Beside a tile's memory lie four planes of equal size, each AUX_SHADOW bytes behind the one before, so that a byte of memory has one byte in each:

=========  =====================================================================================================
written    0xFF where something was written, 0 where nothing was
workers    of the first byte of each element, for a vertex that six workers share: who wrote it, who read it
words      of the first byte of each 4-byte word, likewise: who wrote a part of it. Stores are of whole words, so
           two workers that write into one word overwrite each other
sites      with ``workers``: the number of the site that wrote or, if nobody has written, first read, plus one; 0: none
=========  =====================================================================================================

``workers``: bits 0-2 are the worker that wrote plus one, bits 3-5 the one that read, bit 6 is set where several did.
"""

from contextlib import contextmanager

import llvmlite.ir as ir

from popcore.kernels import abi, faults
from popcore.kernels.operation import I8, I64, POINTER
from popcore.kernels.values import INT

WORD = 4  # bytes that a tile stores at once
NOBODY = I8(0)


def _fixed(builder, block, index):
    """A word of the block that is the same throughout a run."""
    loaded = builder.load(faults.word(builder, block, index))
    loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
    return loaded


def _plane(builder, block, address, number):
    return builder.gep(address, [builder.mul(_fixed(builder, block, abi.AUX_SHADOW), I64(number))])


@contextmanager
def where_shadowed(builder, block, address, surely):
    """Code for addresses in tile memory: a view whose field is not known may be of constants, which have no shadow."""
    if surely:
        yield
        return
    distance = builder.sub(builder.ptrtoint(address, I64), _fixed(builder, block, abi.AUX_ARENA))
    with builder.if_then(builder.icmp_unsigned("<", distance, _fixed(builder, block, abi.AUX_ARENA_BYTES))):
        yield


def _note_site(builder, block, address, site, condition=None):
    """Remember whose access it is, under a condition if one is given."""
    at = _plane(builder, block, address, 4)
    known = builder.icmp_unsigned("<", site, I64(abi.NO_SITE - 1))
    number = builder.select(known, builder.trunc(builder.add(site, I64(1)), I8), I8(abi.NO_SITE))
    builder.store(number if condition is None else builder.select(condition, number, builder.load(at)), at)


def _worker(builder, block):
    return builder.trunc(builder.load(faults.word(builder, block, abi.AUX_WORKER)), I8)


def read(builder, block, site, address, nbytes, shared):
    """Fail where one of ``nbytes`` at ``address`` was never written, or by another worker. ``shared``: six workers run the vertex."""
    bits = ir.IntType(8 * nbytes)
    seen = builder.load(builder.bitcast(_plane(builder, block, address, 1), bits.as_pointer()), align=1)
    _fail_if(builder, builder.icmp_unsigned("!=", seen, bits(-1)), abi.UNDEFINED, block, site, address, nbytes)
    if not shared:
        return
    mine = builder.add(_worker(builder, block), I8(1))
    at = _plane(builder, block, address, 2)
    tag = builder.load(at)
    writer, reader = builder.and_(tag, I8(7)), builder.and_(builder.lshr(tag, I8(3)), I8(7))
    _fail_if(builder, _another(builder, writer, mine), abi.OVERWRITTEN, block, site, address, nbytes, writer, lambda: _site_at(builder, block, address))
    several = builder.select(_another(builder, reader, mine), I8(64), I8(0))
    _note_site(builder, block, address, site, builder.icmp_unsigned("==", builder.or_(reader, writer), I8(0)))
    kept = builder.select(builder.icmp_unsigned("==", reader, I8(0)), builder.shl(mine, I8(3)), I8(0))
    builder.store(builder.or_(tag, builder.or_(several, kept)), at)


def written(builder, block, site, address, nbytes, shared):
    """Note that ``nbytes`` at ``address`` are written; fail where another worker has been."""
    bits = ir.IntType(8 * nbytes)
    builder.store(bits(-1), builder.bitcast(_plane(builder, block, address, 1), bits.as_pointer()), align=1)
    if not shared:
        return
    mine = builder.add(_worker(builder, block), I8(1))
    at = _plane(builder, block, address, 2)
    tag = builder.load(at)
    writer, reader = builder.and_(tag, I8(7)), builder.and_(builder.lshr(tag, I8(3)), I8(7))
    several = builder.icmp_unsigned("!=", builder.and_(tag, I8(64)), I8(0))
    other = builder.select(_another(builder, writer, mine), writer, reader)
    raced = builder.or_(_another(builder, writer, mine), builder.or_(_another(builder, reader, mine), several))
    _fail_if(builder, raced, abi.OVERWRITTEN, block, site, address, nbytes, other, lambda: _site_at(builder, block, address))
    _note_site(builder, block, address, site)
    builder.store(builder.or_(builder.and_(tag, I8(~7)), mine), at)
    if nbytes < WORD:
        number = builder.ptrtoint(address, I64)
        start = builder.inttoptr(builder.and_(number, I64(-WORD)), POINTER)
        at = _plane(builder, block, start, 3)
        writer = builder.load(at)
        raced = _another(builder, writer, mine)
        _fail_if(builder, raced, abi.SHARED_WORD, block, site, address, nbytes, writer, lambda: _site_in_word(builder, block, start, writer))
        builder.store(mine, at)


def _another(builder, who, mine):
    """Whether ``who`` is a worker, and not this one."""
    return builder.and_(builder.icmp_unsigned("!=", who, I8(0)), builder.icmp_unsigned("!=", who, mine))


def _site_at(builder, block, address):
    """Where another worker accessed the element at ``address``."""
    return builder.load(_plane(builder, block, address, 4))


def _site_in_word(builder, block, start, writer):
    """Where a worker wrote a part of the word at ``start``."""
    found = I8(0)
    for byte in range(WORD):
        at = builder.gep(start, [I64(byte)])
        here = builder.icmp_unsigned("==", builder.and_(builder.load(_plane(builder, block, at, 2)), I8(7)), writer)
        found = builder.select(here, _site_at(builder, block, at), found)
    return found


def _fail_if(builder, condition, finding, block, site, address, nbytes, other=NOBODY, other_site=lambda: NOBODY):
    """The values of the fault are as ``abi`` says of a finding."""
    with builder.if_then(condition, likely=False):
        values = [I64(finding), I64(0), builder.zext(other, I64), builder.zext(other_site(), I64), builder.ptrtoint(address, I64), I64(nbytes)]
        faults.find(builder, block, site, values, [faults.FINDING, *[INT] * 5], abi.FINDING_KEYS)


def begin(builder, block, address, nbytes, output, shared):
    """Start a vertex: what is in an Output is undefined, and no worker has been anywhere."""
    for number, wanted in ((1, output), (2, shared), (3, shared), (4, shared)):
        if wanted:
            start = builder.bitcast(_plane(builder, block, address, number), POINTER)
            # The mark of the first word is where the word begins, which may be before the field.
            before = builder.and_(builder.ptrtoint(address, I64), I64(WORD - 1)) if number == 3 else I64(0)
            _clear(builder, builder.gep(start, [builder.neg(before)]), builder.add(nbytes, before))


def _clear(builder, start, nbytes):
    kind = ir.FunctionType(ir.VoidType(), [POINTER, I8, I64, ir.IntType(1)])
    name = "llvm.memset.p0i8.i64"
    function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
    builder.call(function, [start, I8(0), nbytes, ir.IntType(1)(0)])
