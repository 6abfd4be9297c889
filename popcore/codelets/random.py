"""Random numbers: the generator of a tile's workers, and what is drawn from it.

xoroshiro128aox, as in the Mk2 ISA: each worker has 128 bits of state, two words of 64. A use advances it two steps and gives 128 bits: four
elements of 32 bits, or two of 64. A worker draws the elements of a share of ``out``, one after the other.

A state whose first word is 0 has not been seeded: the first use makes a seed of its second word, which says whose state it is.
"""

# mypy: disable-error-code="assignment"
# A store converts to the element type of its field.

from __future__ import annotations

from typing import Any, Generic, TypeVar

from popcore.codelet import InOut, Input, MultiVertex, Output, Vector
from popcore.types import FLOAT, UNSIGNED_INT, UNSIGNED_LONGLONG

T = TypeVar("T", bound=float)

WORKERS = MultiVertex.NUM_WORKERS
WORDS = 4  # of 32 bits, of a worker's state
_GRAIN = 4  # elements: a worker's share is so many times a whole number
_LOW = 0xFFFFFFFF
_UNSEEDED = 0x706F7072616E6421  # stands for a master seed where no program gives one: any number would do
_SUMMANDS = 0x7C1F07C1F07C1F  # every other one of twelve fields of five bits
_ONES = 0x4010040100401  # six fields of ten bits, 1 each
IRWIN_HALL_STEP = 32.0  # twelve numbers of 5 bits in units of 1/32: the sum's deviation is sqrt(12 * (32**2 - 1) / 12) / 32 = 0.9995
IRWIN_HALL_MEAN = 186.0  # 12 * 31 / 2


def _mixed(x: Any) -> Any:
    """A permutation of 64-bit words in which each bit depends on all (the finaliser of SplitMix64, Steele et al. 2014)."""
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB
    return x ^ (x >> 31)


def _seeded(seed: Any, stream: Any) -> Any:
    """The state of a stream: a permutation of (seed, stream), so that no two are alike; its first word is not 0."""
    second = _mixed(stream + 0x9E3779B97F4A7C15)
    first = _mixed(seed + second)
    return (first, second) if first != 0 else (UNSIGNED_LONGLONG(1), second)


def _word(words: Any, at: Any) -> Any:
    return UNSIGNED_LONGLONG(words[at]) | (UNSIGNED_LONGLONG(words[at + 1]) << 32)


def _loaded(state: Any, worker: int) -> Any:
    """Both words of a worker's state, seeded."""
    s0 = _word(state, WORDS * worker)
    s1 = _word(state, WORDS * worker + 2)
    return (s0, s1) if s0 != 0 else _seeded(UNSIGNED_LONGLONG(_UNSEEDED), s1)


def _store(state: Any, worker: int, s0: Any, s1: Any) -> None:
    at = WORDS * worker
    state[at] = s0 & _LOW
    state[at + 1] = s0 >> 32
    state[at + 2] = s1 & _LOW
    state[at + 3] = s1 >> 32


def _bits(s0: Any, s1: Any) -> Any:
    """64 random bits of a state: sum and carries of its words."""
    carry = s0 & s1
    return (s0 ^ s1) ^ (((carry << 1) | (carry >> 63)) | ((carry << 2) | (carry >> 62)))


def _step(s0: Any, s1: Any) -> Any:
    """The state after a state."""
    t = s0 ^ s1
    return ((s0 << 55) | (s0 >> 9)) ^ t ^ (t << 14), (t << 36) | (t >> 28)


def _normal(bits: Any) -> float:
    """About normal, mean 0, deviation 1: twelve uniform numbers of 5 bits added up, as the hardware's Gaussian is made."""
    pairs = (bits & _SUMMANDS) + ((bits >> 5) & _SUMMANDS)
    return (float(int(((pairs * _ONES) >> 50) & 0x3FF)) - IRWIN_HALL_MEAN) / IRWIN_HALL_STEP


def share(n: int) -> int:
    """Elements of each worker."""
    return (n + WORKERS * _GRAIN - 1) // (WORKERS * _GRAIN) * _GRAIN


class _Narrow(MultiVertex, Generic[T]):
    """Base: an element is made of 32 bits, by ``put``."""

    state: InOut[Vector[UNSIGNED_INT]]
    out: Output[Vector[T]]

    def compute(self, worker: int) -> None:
        s0, s1 = _loaded(self.state, worker)
        i = worker * share(len(self.out))
        end = min(len(self.out), i + share(len(self.out)))
        while i + 4 <= end:
            bits = _bits(s0, s1)
            s0, s1 = _step(s0, s1)
            self.put(i, int(bits & _LOW))
            self.put(i + 1, int(bits >> 32))
            bits = _bits(s0, s1)
            s0, s1 = _step(s0, s1)
            self.put(i + 2, int(bits & _LOW))
            self.put(i + 3, int(bits >> 32))
            i += 4
        if i < end:
            low = _bits(s0, s1)
            s0, s1 = _step(s0, s1)
            high = _bits(s0, s1)
            s0, s1 = _step(s0, s1)
            self.put(i, int(low & _LOW))
            if i + 1 < end:
                self.put(i + 1, int(low >> 32))
            if i + 2 < end:
                self.put(i + 2, int(high & _LOW))
        _store(self.state, worker, s0, s1)

    def put(self, i: int, bits: Any) -> None:
        """Make element ``i`` of 32 bits, an integer."""
        raise NotImplementedError


class _Wide(MultiVertex, Generic[T]):
    """Base: an element is made of 64 bits, by ``put``."""

    state: InOut[Vector[UNSIGNED_INT]]
    out: Output[Vector[T]]

    def compute(self, worker: int) -> None:
        s0, s1 = _loaded(self.state, worker)
        i = worker * share(len(self.out))
        end = min(len(self.out), i + share(len(self.out)))
        while i < end:
            self.put(i, _bits(s0, s1))
            s0, s1 = _step(s0, s1)
            if i + 1 < end:
                self.put(i + 1, _bits(s0, s1))
            s0, s1 = _step(s0, s1)
            i += 2
        _store(self.state, worker, s0, s1)

    def put(self, i: int, bits: Any) -> None:
        """Make element ``i`` of 64 bits, unsigned."""
        raise NotImplementedError


class Uniform(_Narrow[T]):
    """``low + k * scale`` with k a whole number below 2**24, cut off at ``high``."""

    low: Input[FLOAT]
    scale: Input[FLOAT]
    high: Input[FLOAT]

    def put(self, i: int, bits: Any) -> None:
        self.out[i] = min(self.low + self.scale * float(bits >> 8), self.high)

    def cycles(self) -> int:
        """Four issues for two elements, as in PopLibs' vertex: convert, multiply, add, store and draw the next; HALF is taken to need as many."""
        return 16 + 4 * -(-share(len(self.out)) // 2)


class UniformInteger(_Wide[T]):
    """``low`` plus a whole number below ``count``, each as likely as the others to one part in 2**32; ``count`` is 1 to 2**32."""

    low: Input[T]
    count: Input[UNSIGNED_LONGLONG]

    def put(self, i: int, bits: Any) -> None:
        upper = (bits >> 32) * self.count
        lower = ((bits & _LOW) * self.count) >> 32
        self.out[i] = int((upper + lower) >> 32) + self.low


class Normal(_Wide[T]):
    """``mean + deviation * z``"""

    mean: Input[FLOAT]
    deviation: Input[FLOAT]

    def put(self, i: int, bits: Any) -> None:
        self.out[i] = self.mean + self.deviation * _normal(bits)


class TruncatedNormal(MultiVertex, Generic[T]):
    """``mean + deviation * z`` where z is drawn until it is between -alpha and alpha."""

    state: InOut[Vector[UNSIGNED_INT]]
    mean: Input[FLOAT]
    deviation: Input[FLOAT]
    alpha: Input[FLOAT]
    out: Output[Vector[T]]

    def compute(self, worker: int) -> None:
        s0, s1 = _loaded(self.state, worker)
        i = worker * share(len(self.out))
        end = min(len(self.out), i + share(len(self.out)))
        while i < end:
            z = _normal(_bits(s0, s1))
            s0, s1 = _step(s0, s1)
            if -self.alpha <= z and z <= self.alpha:
                self.out[i] = self.mean + self.deviation * z
                i += 1
        _store(self.state, worker, s0, s1)


class Bernoulli(_Narrow[T]):
    """1 where 32 bits are below ``threshold``, else 0."""

    threshold: Input[UNSIGNED_LONGLONG]

    def put(self, i: int, bits: Any) -> None:
        self.out[i] = float(bits < self.threshold)


class Dropout(_Narrow[T]):
    """``x * scale`` where 32 bits are below ``threshold``, else 0."""

    threshold: Input[UNSIGNED_LONGLONG]
    scale: Input[FLOAT]
    x: Input[Vector[T]]

    def put(self, i: int, bits: Any) -> None:
        kept = float(self.x[i]) * self.scale
        self.out[i] = kept if bits < self.threshold else 0.0


class SetSeed(MultiVertex):
    """The states of the streams (modifier, tile, worker) of a master seed."""

    seed: Input[Vector[UNSIGNED_INT]]
    modifier: Input[UNSIGNED_INT]
    tile: Input[UNSIGNED_INT]
    state: Output[Vector[UNSIGNED_INT]]

    def compute(self, worker: int) -> None:
        stream = (UNSIGNED_LONGLONG(self.modifier) << 32) | UNSIGNED_LONGLONG(self.tile * WORKERS + worker)
        s0, s1 = _seeded(_word(self.seed, 0), stream)
        _store(self.state, worker, s0, s1)

    def cycles(self) -> float:
        return 27


class SeedFirst(MultiVertex):
    """Gives a state that has not been seeded its seed, as the first use would."""

    state: InOut[Vector[UNSIGNED_INT]]

    def compute(self, worker: int) -> None:
        s0, s1 = _loaded(self.state, worker)
        _store(self.state, worker, s0, s1)

    def cycles(self) -> float:
        return 27


for _each in (Uniform, UniformInteger, Normal, TruncatedNormal, Bernoulli, Dropout, SetSeed, SeedFirst):
    _each.__name__ = f"poprand::{_each.__name__}"  # a name that no class of the user has
