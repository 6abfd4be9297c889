"""Codelets for tests of the dialect that do what a user may do: helpers, closures, methods, state, messages."""

import math
from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np

from popcore.codelet import InOut, Input, Matrix, MultiVertex, Output, Vector, VectorList, Vertex
from popcore.types import FLOAT, HALF, INT

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
        for a, b in zip(self.x, self.h):
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
