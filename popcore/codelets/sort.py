"""Sorting: runs that one worker sorts, merges that all workers of a tile share, and the way between elements and their codes.

What is sorted are codes: signed integers that are in order where the elements are. A code of 64 bits has a number in its lower 32
that goes with the key, and decides between equal keys. NaN is the greatest key and -0 is below +0.
"""

# mypy: disable-error-code="assignment"
# A store converts to the element type of its field, whatever a type variable stands for.

from __future__ import annotations

from math import ceil, log2
from typing import Any, Generic, TypeVar

from popcore.codelet import Input, MultiVertex, Output, Vector, Vertex
from popcore.types import INT, UNSIGNED_INT

R = TypeVar("R", bound=int)  # of an element's bits, signed
T = TypeVar("T", bound=int)  # of a code
U = TypeVar("U", bound=int)  # of what goes with a key, unsigned

SHORT_RUN = 8  # sorted by a network
LOW = 0xFFFFFFFF
_WORKERS = MultiVertex.NUM_WORKERS


class SortRun(Vertex, Generic[R, T]):
    """``out`` becomes the codes of ``x`` in ascending order; places that ``x`` does not fill get the greatest code.

    Bits above ``nan_above``, their sign aside, are those of a NaN: 0 of ``largest`` where the type has none. ``flip`` and
    ``flip_negative`` are xored to bits that are not and that are negative; ``descending`` is 0 or -1.
    """

    x: Input[Vector[R]]
    largest: Input[INT]
    nan_above: Input[INT]
    flip: Input[INT]
    flip_negative: Input[INT]
    descending: Input[INT]
    out: Output[Vector[T]]
    scratch: Output[Vector[T]]

    def compute(self) -> None:
        out = self.out
        scratch = self.scratch
        filled = len(self.x)
        for i in range(filled):
            out[i] = self.with_low(self.code(self.x[i]), i)
        for i in range(filled, len(out)):
            out[i] = self.with_all(self.largest)
        _sort_short_runs(out)
        width = SHORT_RUN
        while width < len(out):
            _merge_pairs(out, scratch, width)
            _merge_pairs(scratch, out, 2 * width)
            width *= 4

    def code(self, bits: int) -> int:
        largest = self.largest
        if (bits & largest) > self.nan_above:
            return largest ^ self.descending
        if bits < 0:
            return bits ^ self.flip_negative ^ self.descending
        return bits ^ self.flip ^ self.descending

    def with_low(self, code: int, _i: int) -> int:
        return code

    def with_all(self, code: int) -> int:
        return code

    def cycles(self) -> float:
        n = len(self.out)  # a pass costs what PopLibs' compare and swap does; its sort by heap takes more
        return 40 + n * (8 + 12 * ceil(log2(max(2, n))))


class SortRunWithIndex(SortRun[R, T]):
    """What goes with element i is ``start + i``."""

    start: Input[UNSIGNED_INT]

    def with_low(self, code: int, i: int) -> int:
        return (code << 32) | (self.start + i)

    def with_all(self, code: int) -> int:
        return (code << 32) | LOW


class SortRunWithValue(SortRun[R, T], Generic[R, T, U]):
    """What goes with element i is ``low[i]``."""

    low: Input[Vector[U]]

    def with_low(self, code: int, i: int) -> int:
        return (code << 32) | self.low[i]

    def with_all(self, code: int) -> int:
        return (code << 32) | LOW


def _sort_short_runs(codes: Any) -> None:
    whole = len(codes) // SHORT_RUN * SHORT_RUN
    for begin in range(0, whole, SHORT_RUN):
        _sort_eight(codes, begin)
    for begin in range(whole, len(codes), SHORT_RUN):
        for i in range(begin + 1, len(codes)):
            x = codes[i]
            k = i
            while k > begin and codes[k - 1] > x:
                codes[k] = codes[k - 1]
                k -= 1
            codes[k] = x


def _sort_eight(codes: Any, begin: int) -> None:
    """A network of 19 comparisons (Knuth, The Art of Computer Programming 3, 5.3.4): no branch to mispredict."""
    a = codes[begin]
    b = codes[begin + 1]
    c = codes[begin + 2]
    d = codes[begin + 3]
    e = codes[begin + 4]
    f = codes[begin + 5]
    g = codes[begin + 6]
    h = codes[begin + 7]
    a, c = min(a, c), max(a, c)
    b, d = min(b, d), max(b, d)
    e, g = min(e, g), max(e, g)
    f, h = min(f, h), max(f, h)
    a, e = min(a, e), max(a, e)
    b, f = min(b, f), max(b, f)
    c, g = min(c, g), max(c, g)
    d, h = min(d, h), max(d, h)
    a, b = min(a, b), max(a, b)
    c, d = min(c, d), max(c, d)
    e, f = min(e, f), max(e, f)
    g, h = min(g, h), max(g, h)
    c, e = min(c, e), max(c, e)
    d, f = min(d, f), max(d, f)
    b, e = min(b, e), max(b, e)
    d, g = min(d, g), max(d, g)
    b, c = min(b, c), max(b, c)
    d, e = min(d, e), max(d, e)
    f, g = min(f, g), max(f, g)
    codes[begin] = a
    codes[begin + 1] = b
    codes[begin + 2] = c
    codes[begin + 3] = d
    codes[begin + 4] = e
    codes[begin + 5] = f
    codes[begin + 6] = g
    codes[begin + 7] = h


def _merge_pairs(source: Any, target: Any, width: int) -> None:
    """Neighbouring runs of ``width`` codes of ``source`` merged into ``target``; a run without a neighbour is copied."""
    n = len(source)
    for begin in range(0, n, 2 * width):
        middle = min(begin + width, n)
        end = min(begin + 2 * width, n)
        _merge(source, begin, middle, source, middle, end, target, begin, end)


def _merge(a: Any, i: int, a_end: int, b: Any, j: int, b_end: int, out: Any, o: int, end: int) -> None:
    """``out[o:end]`` becomes the first so many of ``a[i:a_end]`` and ``b[j:b_end]`` merged; of equal codes those of ``a`` first."""
    while o < end and i < a_end and j < b_end:
        x = a[i]
        y = b[j]
        later = 1 if y < x else 0
        out[o] = min(x, y)
        j += later
        i += 1 - later
        o += 1
    while o < end and i < a_end:
        out[o] = a[i]
        i += 1
        o += 1
    while o < end:
        out[o] = b[j]
        j += 1
        o += 1


class MergeRuns(MultiVertex, Generic[T]):
    """Codes ``first``, ``first + 1``, ... of what ``a`` and ``b``, both ascending, merge to. Each worker finds where its share begins."""

    a: Input[Vector[T]]
    b: Input[Vector[T]]
    first: Input[UNSIGNED_INT]
    out: Output[Vector[T]]

    def compute(self, worker: int) -> None:
        a = self.a
        b = self.b
        out = self.out
        share = _share(len(out))
        o = worker * share
        end = min(o + share, len(out))
        if o < end:
            i = _split(a, b, self.first + o)
            _merge(a, i, len(a), b, self.first + o - i, len(b), out, o, end)

    def cycles(self) -> float:
        """12 an element, of PopLibs' compare and swap; and the search."""
        return 40 + 12 * _share(len(self.out)) + 9 * ceil(log2(2 + len(self.a)))


def _share(n: int) -> int:
    """Elements of each worker: whole eights, so that no two of them write one word."""
    return (n + _WORKERS * 8 - 1) // (_WORKERS * 8) * 8


def _split(a: Any, b: Any, count: int) -> int:
    """How many of the first ``count`` codes of the merge are of ``a``; of equal codes those of ``a`` come first."""
    low = max(0, count - len(b))
    high = min(count, len(a))
    while low < high:
        middle = (low + high) // 2
        if a[middle] <= b[count - 1 - middle]:
            low = middle + 1
        else:
            high = middle
    return low


class DecodeKey(Vertex, Generic[T, R]):
    """The bits of the keys of ``codes``; those are above a low part of ``shift`` bits."""

    codes: Input[Vector[T]]
    shift: Input[UNSIGNED_INT]
    flip: Input[INT]
    flip_negative: Input[INT]
    descending: Input[INT]
    out: Output[Vector[R]]

    def compute(self) -> None:
        shift = self.shift
        descending = self.descending
        for i in range(len(self.out)):
            code = (self.codes[i] >> shift) ^ descending
            self.out[i] = code ^ (self.flip_negative if code < 0 else self.flip)

    def cycles(self) -> int:
        return 20 + 6 * len(self.out)


class DecodeLow(Vertex, Generic[T, U]):
    """What goes with the keys."""

    codes: Input[Vector[T]]
    out: Output[Vector[U]]

    def compute(self) -> None:
        for i in range(len(self.out)):
            self.out[i] = self.codes[i] & LOW

    def cycles(self) -> int:
        return 14 + 3 * len(self.out)


for _each in (SortRun, SortRunWithIndex, SortRunWithValue, MergeRuns, DecodeKey, DecodeLow):
    _each.__name__ = f"popops::{_each.__name__}"  # a name that no class of the user has
