"""Codelets for tests of the dialect that do what a user may do: helpers, closures, methods, state, messages."""

import enum
import math
from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np

from popcore.codelet import InOut, Input, Matrix, MultiVertex, Output, Vector, VectorList, Vertex
from popcore.dialect.elementary import gelu_erf, sigmoid
from popcore.types import FLOAT, HALF, INT, QUARTER_F143

T = TypeVar("T")
RATE = 0.1
TABLE = (0.25, 0.5, -1.5)
PRIMES = np.array([2, 3, 5, 7])


def root(x, scale=2.0):
    if x < 0:
        raise ValueError(f"negative {x:.2f}", scale)
    return math.sqrt(x) * scale


def times(factor: float) -> Callable[[float], float]:
    def apply(v):
        return v * factor

    return apply


triple = times(3.5)
minus = lambda a, b: a - b  # noqa: E731


class Everything(Vertex, Generic[T]):
    """One of each."""

    x: InOut[Vector[T]]
    rows: InOut[VectorList[FLOAT]]
    m: InOut[Matrix[FLOAT]]
    n: Input[INT]
    h: InOut[Vector[HALF]]
    calls: INT
    buffer: Vector[FLOAT]
    GAIN = 1.5

    @staticmethod
    def half_of(v):
        return v * 0.5

    def add_to(self, i, v):
        self.x[i] += v
        return self.x[i]

    def compute(self):
        total = 0.0
        for i, v in enumerate(self.x):
            total += v * RATE
            self.add_to(i, T(1))
        for row in self.rows:
            for j in range(len(row)):
                row[j] = root(row[j]) + TABLE[j % 3] + triple(row[j]) + minus(1, row[j]) * self.GAIN + self.half_of(PRIMES[-1])
        rows, columns = self.m.shape
        for i in range(rows):
            line = self.m[i]
            for j in reversed(range(columns)):
                line[j] = line[j] + self.m[i, j] * i - math.pi
        part = self.m[0:2]
        part[-1, -1] = 42
        for a, b in zip(self.x, self.h, strict=False):
            total += a + b
        for a, b in zip(self.h, self.h, strict=True):
            total += a + b
        self.h[0], self.h[-1] = self.h[-1], self.h[0]
        self.calls += self.n**2 + (self.n << 3) ^ 5
        inner = self.buffer[1:-1]
        for i in range(len(inner)):
            inner[i] = total if i % 2 == 0 else -total
        count = 0
        while True:
            count += 1
            if 5 < count <= self.n + 6:
                break
        assert self.n < 50, f"n is {self.n}"
        print("total", total, self.h[0], f"n={self.n:3d}", count, self.n > 3)
        return True


class Divides(Vertex):
    a: Input[Vector[INT]]
    b: Input[Vector[INT]]
    out: Output[Vector[INT]]

    def compute(self):
        for i in range(len(self.a)):
            self.out[i] = self.a[i] // self.b[i]


class Prints(Vertex):
    n: InOut[INT]

    def compute(self):
        self.n += 1
        print("n", self.n, sep=":")


class Workers(MultiVertex):
    x: InOut[Vector[INT]]

    def compute(self, worker):
        for i in range(worker, len(self.x), 6):
            self.x[i] = self.x[i] * 10 + worker
        if worker == 2 and len(self.x) > 5:
            print(f"worker {worker}")
        assert len(self.x) < 20


class Constant(Vertex):
    out: Output[FLOAT]

    def compute(self):
        self.out = RATE


class Mode(enum.IntEnum):
    FAST = 1
    SLOW = 5


class Settings:
    rate = 0.25


def sum_and_product(a, b=2):
    return a + b, a * b


def scale_first(vertex, i, *, gain=2.0):
    vertex.x[i] = vertex.x[i] * gain
    return vertex.count


def first_square_above_fifty(n):
    for i in range(n):
        if i * i > 50:
            return i
    return -1


class Corners(Vertex):
    """Forms of statements that are easily forgotten."""

    x: InOut[Vector[FLOAT]]
    _hidden: InOut[INT]
    out: Output[Vector[INT]]
    count: INT
    q: InOut[Vector[QUARTER_F143]]

    def helper(self, k):
        if k > 2:
            return
        self.count += k

    def compute(self):
        self._hidden += Mode.SLOW
        a, b = sum_and_product(self._hidden)
        self.out[0], self.out[1] = b, a
        c = d = self.count
        e: int = c + d
        scale_first(self, 0, gain=Settings.rate)
        scale_first(vertex=self, i=1)
        self.helper(1)
        self.helper(3)
        self.out[2] = first_square_above_fifty(20) + first_square_above_fifty(3)
        for i in range(self._hidden, -3, -2):
            last = i
        self.out[3] = last
        for i in range(3):
            if i == 5:
                break
        else:
            self.out[4] = 77
        n = 3
        while n:
            n -= 1
            if n == 1:
                continue
        else:
            self.out[5] = n + e
        self.x[2] = np.pi
        self.q[0] = self.q[1] + 1
        step = self.count if self.count > 0 else 1
        for i in range(0, 10, step):
            self.out[6] += i
        if self.x[3]:
            self.out[7] = 1
        pair = (1, 2.5)
        self.out[8] = pair[0] + self.x.shape[0]
        self.out[9] = len(self.out) if not self.x[3] else ~5
        if self.count < -100:
            pass
        elif self.count > 1:
            self.out[10] = True
        return False


class StrictZip(Vertex):
    a: Input[Vector[INT]]
    b: InOut[Vector[INT]]

    def compute(self):
        for i, (a, b) in enumerate(zip(self.a, self.b, strict=True)):
            self.b[i] = a * b


class Elementary(Vertex, Generic[T]):
    """All elementary functions, a row each, in the order of ``FORMULAS``."""

    a: Input[Vector[T]]
    b: Input[Vector[T]]
    f: Output[Matrix[FLOAT]]

    def compute(self):
        for i in range(len(self.a)):
            a, b = self.a[i], self.b[i]
            self.f[0, i] = math.exp(a)
            self.f[1, i] = math.exp2(a)
            self.f[2, i] = math.expm1(a)
            self.f[3, i] = math.sinh(a)
            self.f[4, i] = math.cosh(a)
            self.f[5, i] = math.tanh(a)
            self.f[6, i] = sigmoid(a)
            self.f[7, i] = math.log(a)
            self.f[8, i] = math.log2(a)
            self.f[9, i] = math.log10(a)
            self.f[10, i] = math.log1p(a)
            self.f[11, i] = math.asinh(a)
            self.f[12, i] = math.acosh(a)
            self.f[13, i] = math.atanh(a)
            self.f[14, i] = math.cbrt(a)
            self.f[15, i] = math.pow(a, b)
            self.f[16, i] = math.sin(a)
            self.f[17, i] = math.cos(a)
            self.f[18, i] = math.tan(a)
            self.f[19, i] = math.asin(a)
            self.f[20, i] = math.acos(a)
            self.f[21, i] = math.atan(a)
            self.f[22, i] = math.atan2(a, b)
            self.f[23, i] = math.hypot(a, b)
            self.f[24, i] = math.erf(a)
            self.f[25, i] = math.erfc(a)
            self.f[26, i] = gelu_erf(a)
