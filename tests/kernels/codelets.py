"""Codelets for tests of the arithmetic: every operation on two operands of any element types."""

import math
from typing import Generic, TypeVar

from popcore.codelet import InOut, Input, Matrix, Output, Vector, VectorList, Vertex
from popcore.types import (
    BOOL,
    CHAR,
    FLOAT,
    HALF,
    INT,
    LONGLONG,
    SHORT,
    UNSIGNED_CHAR,
    UNSIGNED_INT,
    UNSIGNED_LONGLONG,
    UNSIGNED_SHORT,
)

A = TypeVar("A")
B = TypeVar("B")


class Arithmetic(Vertex, Generic[A, B]):
    """Each operation's result three times over: rows of ``f``, ``h`` and ``n``."""

    a: Input[Vector[A]]
    b: Input[Vector[B]]
    f: Output[Matrix[FLOAT]]
    h: Output[Matrix[HALF]]
    n: Output[Matrix[LONGLONG]]

    def keep(self, row, i, value):
        self.f[row, i] = value
        self.h[row, i] = value
        self.n[row, i] = value

    def compute(self):
        for i in range(len(self.a)):
            a, b = self.a[i], self.b[i]
            self.keep(0, i, a + b)
            self.keep(1, i, a - b)
            self.keep(2, i, a * b)
            self.keep(3, i, a / b)
            if b != 0:
                self.keep(4, i, a // b)
                self.keep(5, i, a % b)
            self.keep(6, i, a < b)
            self.keep(7, i, a <= b)
            self.keep(8, i, a > b)
            self.keep(9, i, a >= b)
            self.keep(10, i, a == b)
            self.keep(11, i, a != b)
            self.keep(12, i, min(a, b))
            self.keep(13, i, max(a, b))
            self.keep(14, i, math.copysign(a, b))
            self.keep(15, i, a**2 + b**3)
            self.keep(16, i, -a)
            self.keep(17, i, abs(a) + +b)
            self.keep(18, i, not a)
            self.keep(19, i, a - b if a and b else b + a)
            self.keep(20, i, math.fmod(a, b))


class Bits(Vertex, Generic[A, B]):
    """Operations of integers."""

    a: Input[Vector[A]]
    b: Input[Vector[B]]
    n: Output[Matrix[LONGLONG]]

    def compute(self):
        for i in range(len(self.a)):
            a, b = self.a[i], self.b[i]
            self.n[0, i] = a & b
            self.n[1, i] = a | b
            self.n[2, i] = a ^ b
            self.n[3, i] = a << b
            self.n[4, i] = a >> b
            self.n[5, i] = ~a
            self.n[6, i] = a ** abs(b % 23)


class Convert(Vertex, Generic[A]):
    """One value stored in every element type, and converted to every one."""

    a: Input[A]
    into_f: Output[FLOAT]
    into_h: Output[HALF]
    into_c: Output[CHAR]
    into_uc: Output[UNSIGNED_CHAR]
    into_s: Output[SHORT]
    into_us: Output[UNSIGNED_SHORT]
    into_i: Output[INT]
    into_ui: Output[UNSIGNED_INT]
    into_l: Output[LONGLONG]
    into_ul: Output[UNSIGNED_LONGLONG]
    into_b: Output[BOOL]
    made: Output[Vector[FLOAT]]
    whole: Output[Vector[LONGLONG]]

    def compute(self):
        self.into_f = self.a
        self.into_h = self.a
        self.into_c = self.a
        self.into_uc = self.a
        self.into_s = self.a
        self.into_us = self.a
        self.into_i = self.a
        self.into_ui = self.a
        self.into_l = self.a
        self.into_ul = self.a
        self.into_b = self.a
        self.made[0] = FLOAT(self.a)
        self.made[1] = HALF(self.a)
        self.made[2] = float(self.a)
        self.whole[0] = CHAR(self.a)
        self.whole[1] = UNSIGNED_CHAR(self.a)
        self.whole[2] = SHORT(self.a)
        self.whole[3] = UNSIGNED_SHORT(self.a)
        self.whole[4] = INT(self.a)
        self.whole[5] = UNSIGNED_INT(self.a)
        self.whole[6] = LONGLONG(self.a)
        self.whole[7] = UNSIGNED_LONGLONG(self.a)
        self.whole[8] = BOOL(self.a)
        self.whole[9] = int(self.a)
        self.whole[10] = bool(self.a)


class Mathematics(Vertex, Generic[A]):
    """Functions of one number."""

    a: Input[Vector[A]]
    f: Output[Matrix[FLOAT]]

    def compute(self):
        for i in range(len(self.a)):
            a = self.a[i]
            self.f[0, i] = math.sqrt(a)
            self.f[1, i] = math.floor(a)
            self.f[2, i] = math.ceil(a)
            self.f[3, i] = math.trunc(a)
            self.f[4, i] = round(a)
            self.f[5, i] = math.fabs(a)
            self.f[6, i] = math.isnan(a)
            self.f[7, i] = math.isinf(a)
            self.f[8, i] = math.isfinite(a)
            self.f[9, i] = math.exp(a)
            self.f[10, i] = math.log(a)
            self.f[11, i] = math.sin(a)
            self.f[12, i] = math.cos(a)
            self.f[13, i] = math.tan(a)
            self.f[14, i] = math.tanh(a)
            self.f[15, i] = math.erf(a)
            self.f[16, i] = math.log1p(a)
            self.f[17, i] = math.expm1(a)
            self.f[18, i] = math.pow(a, 0.5)
            self.f[19, i] = math.atan2(a, 2.0)
            self.f[20, i] = 2.0**a
            self.f[21, i] = math.log2(a) + math.log10(a) + math.exp2(a)
            self.f[22, i] = math.asin(a) + math.acos(a) + math.atan(a)
            self.f[23, i] = math.sinh(a) + math.cosh(a) + math.hypot(a, 3)
            self.f[24, i] = math.exp(1.0) + math.cos(2.5) + math.log(3.0)


class Sliced(Vertex):
    """Views of views, with any bounds."""

    x: InOut[Vector[FLOAT]]
    m: InOut[Matrix[INT]]
    rows: InOut[VectorList[HALF]]
    low: Input[INT]
    high: Input[INT]
    sizes: Output[Vector[INT]]

    def compute(self):
        part = self.x[self.low : self.high]
        for i in range(len(part)):
            part[i] += 1
        tail = self.x[self.low :]
        rows = self.m[self.low : self.high]
        for r in range(len(rows)):
            for c, v in enumerate(rows[r][1:]):
                rows[r, c] = v + r
        for row in self.rows:
            for i in range(0, len(row), 2):
                row[i] = row[-1] * 2
        self.sizes[0], self.sizes[1], self.sizes[2] = len(part), tail.size, rows.size
        self.sizes[3], self.sizes[4], self.sizes[5] = part.shape[0], rows.shape[0], rows.shape[1]
