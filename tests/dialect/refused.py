"""Codelets that must be refused. The line at fault ends in ``# refused: `` and words of the message."""

# ruff: noqa
# mypy: ignore-errors

import math

import numpy as np

from popcore.codelet import InOut, Input, Matrix, MultiVertex, Output, Vector, VectorList, Vertex
from popcore.types import FLOAT, HALF, INT

TEXT = "text"
OBJECT = object()


class Base(Vertex):
    x: InOut[Vector[FLOAT]]
    y: Input[Vector[FLOAT]]
    m: InOut[Matrix[FLOAT]]
    rows: InOut[VectorList[FLOAT]]
    h: InOut[Vector[HALF]]
    k: Input[FLOAT]
    n: InOut[INT]


def recursive(a):
    return recursive(a)  # refused: recursive calls itself


def with_import(a):
    import math  # refused: import is not supported

    return a


def many(*values):
    return values[0]


class Allocates(Base):
    def compute(self):
        a = np.zeros(4)  # refused: np.zeros allocates


class SliceStore(Base):
    def compute(self):
        self.x[0:2] = 1.0  # refused: assigning to a slice


class WritesInput(Base):
    def compute(self):
        self.y[0] = 1.0  # refused: field 'y' is an Input


class WritesInputScalar(Base):
    def compute(self):
        self.k += 1.0  # refused: field 'k' is an Input


class AssignsVector(Base):
    def compute(self):
        self.x = 1.0  # refused: field 'x' is a vector and cannot be assigned


class UnknownField(Base):
    def compute(self):
        self.n = self.nothing  # refused: no field 'nothing'


class UnknownTarget(Base):
    def compute(self):
        self.nothing = 1  # refused: 'nothing' is no field


class String(Base):
    def compute(self):
        a = "text"  # refused: the string 'text'


class GlobalString(Base):
    def compute(self):
        a = TEXT  # refused: TEXT is a str


class GlobalObject(Base):
    def compute(self):
        a = OBJECT  # refused: OBJECT is an object


class Undefined(Base):
    def compute(self):
        self.n = not_defined  # refused: the name 'not_defined' is not defined


class Dictionary(Base):
    def compute(self):
        a = {}  # refused: a dict is not supported


class ListLiteral(Base):
    def compute(self):
        a = [1, 2]  # refused: a list is not supported


class Comprehension(Base):
    def compute(self):
        a = sum(v for v in self.x)  # refused: sum is no function


class Tries(Base):
    def compute(self):
        try:  # refused: try is not supported
            self.n = 1
        except ValueError:
            pass


class WithStatement(Base):
    def compute(self):
        with open("file"):  # refused: with is not supported
            pass


class Yields(Base):
    def compute(self):
        yield 1  # refused: yield is not supported


class Nested(Base):
    def compute(self):
        def inner():  # refused: a function defined inside a function
            return 1


class Double(Base):
    def compute(self):
        self.n = np.float64(self.k)  # refused: no double


class MatMul(Base):
    def compute(self):
        a = self.m @ self.m  # refused: matrix multiplication


class StepView(Base):
    def compute(self):
        a = self.x[::2]  # refused: a view with a step


class Columns(Base):
    def compute(self):
        a = self.m[:, 0]  # refused: a slice of columns


class CallsMethod(Base):
    def compute(self):
        self.x.fill(0)  # refused: the call self.x.fill(0)


class NoMethod(Base):
    def compute(self):
        self.missing(0)  # refused: no method 'missing'


class Recurses(Base):
    def compute(self):
        recursive(1)


class HelperImports(Base):
    def compute(self):
        with_import(1)


class Star(Base):
    def compute(self):
        many(1, 2)  # refused: takes *arguments


class WrongCount(Base):
    def compute(self):
        self.n = int(math.sqrt(1, 2))  # refused: math.sqrt takes 1 argument


class TooManyValues(Base):
    def compute(self):
        print(1, 2, 3, 4, 5, 6, 7, 8, 9)  # refused: print shows 9 values


class PrintEnd(Base):
    def compute(self):
        print(1, end="")  # refused: print(end=...)


class PrintValue(Base):
    def compute(self):
        a = print(1)  # refused: print is a statement


class BareSelf(Base):
    def compute(self):
        a = self  # refused: 'self' by itself


class IsNone(Base):
    def compute(self):
        if self.n is None:  # refused: None is not supported
            pass


class MultiShape(Base):
    def compute(self):
        a = self.x.T  # refused: .T is not supported


class ZeroStep(Base):
    def compute(self):
        for i in range(0, 4, 0):  # refused: the step of range is 0
            pass


class TooLarge(Base):
    def compute(self):
        self.n = 1 << 70 and 0x1FFFFFFFFFFFFFFFFF  # refused: does not fit 64 bits


class PercentFormat(Base):
    def compute(self):
        raise ValueError("bad %d" % self.n)  # refused: formatting with %


class RaisesNothing(Base):
    def compute(self):
        raise  # refused: this form of raise


class GlobalStatement(Base):
    def compute(self):
        global TEXT  # refused: global is not supported


class NoWorker(MultiVertex):
    n: InOut[INT]

    def compute(self):  # refused: compute takes 1 parameters, 2 expected
        self.n = 1


class Deletes(Base):
    def compute(self):
        del self.n  # refused: del is not supported
