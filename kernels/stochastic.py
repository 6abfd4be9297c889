"""Stochastic rounding to half as code: random bits are added below the last bit of the half, then what is below it is cut off.

The rule is hardware's (Graphcore's ISA release, section 2.13): 13 bits, for a half without leading one 14 to 24; what is below
2^-25 becomes zero. ``popcore.dialect.rounding`` has the same in Python; both change together.
"""

import llvmlite.ir as ir

from popcore.kernels import abi
from popcore.kernels.behaviour import IEEE, NAN, SATURATE
from popcore.kernels.memory import block_of, counter_scope, tag, word
from popcore.kernels.operation import F16, I32, I64
from popcore.kernels.randomness import MIXERS, MULTIPLIERS, STEP, number_of

I16 = ir.IntType(16)
LEAST_NORMAL = 113  # the exponent field of a float32 that is the least normal half, 2^-14
LEAST = 102  # of 2^-25
INFINITY, QUIET_NAN = 0x7C00, 0x7E00
TOO_LARGE = {SATURATE: 0x7BFF, NAN: QUIET_NAN, IEEE: INFINITY}


def emit_mix(builder, key, part):
    """``randomness.mix``."""
    found = builder.add(key, builder.mul(builder.add(part, I64(1)), I64(STEP)))
    for shift, factor in zip((30, 27), MIXERS, strict=True):
        found = builder.mul(builder.xor(found, builder.lshr(found, I64(shift))), I64(factor))
    return builder.xor(found, builder.lshr(found, I64(31)))


class Keys:
    """The keys of a driver's calls of ``compute``, see ``randomness.key_of_call``. Made at the driver's beginning."""

    def __init__(self, builder, fingerprint, memory, block):
        self.builder, self.block = builder, block
        streams = builder.inttoptr(self._word(abi.AUX_STREAMS), I64.as_pointer())
        seed, first, stride, firsts, vertices = (builder.load(builder.gep(streams, [I64(i)])) for i in range(abi.STREAM_WORDS))
        replica = builder.udiv(builder.sub(builder.ptrtoint(memory, I64), first), stride)
        self.base = emit_mix(builder, seed, I64(number_of(fingerprint)))
        for part in (self._word(abi.AUX_PHASE), replica):
            self.base = emit_mix(builder, self.base, part)
        self.first = builder.load(builder.gep(builder.inttoptr(firsts, I64.as_pointer()), [self._word(abi.AUX_BATCH)]))
        self.vertices = builder.inttoptr(vertices, I64.as_pointer())

    def _word(self, index):
        return self.builder.load(word(self.builder, self.block, index))

    def of_vertex(self, tile, position):
        """The key of the vertex at a position of the batch, without its worker."""
        vertex = self.builder.load(self.builder.gep(self.vertices, [self.builder.add(self.first, position)]))
        return emit_mix(self.builder, emit_mix(self.builder, self.base, tile), vertex)

    def begin(self, key, worker):
        """Before ``compute`` is called for a worker."""
        self.builder.store(emit_mix(self.builder, key, worker), word(self.builder, self.block, abi.AUX_KEY))
        self.builder.store(I64(0), word(self.builder, self.block, abi.AUX_COUNTER))


def _emit_random(builder):
    """Bits for the next rounding of this call of ``compute``."""
    block, scope = block_of(builder), counter_scope()
    key = tag(builder, builder.load(word(builder, block, abi.AUX_KEY)), scope)
    at = word(builder, block, abi.AUX_COUNTER)
    counter = tag(builder, builder.load(at), scope)
    tag(builder, builder.store(builder.add(counter, I64(1)), at), scope)
    low, high = builder.trunc(key, I32), builder.trunc(builder.lshr(key, I64(32)), I32)
    made = builder.add(builder.mul(builder.trunc(counter, I32), I32(MULTIPLIERS[0])), low)
    made = builder.mul(builder.xor(made, builder.lshr(made, I32(16))), I32(MULTIPLIERS[1]))
    made = builder.xor(made, high)
    made = builder.mul(builder.xor(made, builder.lshr(made, I32(13))), I32(MULTIPLIERS[2]))
    return builder.xor(made, builder.lshr(made, I32(16)))


def narrow(builder, value, rule):
    """The half of a float32, whose infinities count as numbers too large but for the rule of IEEE."""
    random = _emit_random(builder)
    pattern = builder.bitcast(value, I32)
    magnitude = builder.and_(pattern, I32(0x7FFFFFFF))
    exponent = builder.lshr(magnitude, I32(23))
    below = builder.sub(I32(LEAST_NORMAL), exponent)
    below = builder.select(builder.icmp_signed(">", below, I32(0)), below, I32(0))
    cut = builder.add(below, I32(13))  # bits of the float below the last one of the half
    lost = builder.icmp_unsigned("<", exponent, I32(LEAST))
    cut = builder.select(lost, I32(24), cut)
    mask = builder.sub(builder.shl(I32(1), cut), I32(1))
    mantissa = builder.or_(builder.and_(pattern, I32(0x7FFFFF)), I32(0x800000))
    found = builder.lshr(builder.add(mantissa, builder.and_(random, mask)), cut)
    found = builder.add(found, builder.shl(builder.sub(builder.add(exponent, below), I32(LEAST_NORMAL)), I32(10)))
    found = builder.select(lost, I32(0), found)
    found = builder.select(builder.icmp_unsigned(">=", found, I32(INFINITY)), I32(TOO_LARGE[rule]), found)
    found = builder.select(builder.icmp_unsigned(">", magnitude, I32(0x7F800000)), I32(QUIET_NAN), found)
    sign = builder.and_(builder.lshr(pattern, I32(16)), I32(0x8000))
    return builder.bitcast(builder.trunc(builder.or_(found, sign), I16), F16)
