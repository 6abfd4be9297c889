"""Codelets whose types do not fit, which the compiler finds. Lines are marked as in ``refused``."""

# ruff: noqa
# mypy: ignore-errors

from popcore.codelet import InOut, Input, Matrix, Output, Vector, VectorList, Vertex
from popcore.types import FLOAT, HALF, INT

from tests.dialect.refused import Base


def float_or_int(a):
    if a > 0:
        return 1.0
    return 2  # refused: the function returns FLOAT and INT


class MixedVariable(Base):
    def compute(self):
        total = 0
        for i in range(len(self.x)):
            total = total + self.x[i]  # refused: variable 'total' is INT (line 20) and FLOAT (line 22)
        self.n = total


class MixedHalf(Base):
    def compute(self):
        total = HALF(0)
        for i in range(len(self.x)):
            total += self.x[i]  # refused: variable 'total' is HALF
        self.n = total


class MixedBranches(Base):
    def compute(self):
        a = 1 if self.k > 0 else 2.0  # refused: the value of this expression is INT
        self.n = a


class MixedReturns(Base):
    def compute(self):
        self.n = float_or_int(self.k)


class FloatIndex(Base):
    def compute(self):
        self.x[self.k] = 1  # refused: an index must be an integer, not FLOAT


class FloatRange(Base):
    def compute(self):
        for i in range(self.k):  # refused: an index must be an integer, not FLOAT
            pass


class WritesAlias(Base):
    def compute(self):
        a = self.y
        a[0] = 1.0  # refused: an Input cannot be written


class AssignsRow(Base):
    def compute(self):
        self.m[0] = 1.0  # refused: a part of a matrix cannot be assigned


class IndexesNumber(Base):
    def compute(self):
        a = self.k
        self.n = a[0]  # refused: FLOAT cannot be indexed


class AddsViews(Base):
    def compute(self):
        a = self.x + self.y  # refused: a number is needed here, not a vector


class FloatBits(Base):
    def compute(self):
        self.n = self.n & self.k  # refused: bit operations take integers


class PrintsView(Base):
    def compute(self):
        print(self.x)  # refused: a number is needed here, not a vector


class TwoIndices(Base):
    def compute(self):
        self.n = self.x[0, 1]  # refused: a vector takes one index


class SlicesList(Base):
    def compute(self):
        a = self.rows[0:1]  # refused: a slice of a list


class ListShape(Base):
    def compute(self):
        self.n = self.rows.size  # refused: a list has no shape


class UnpacksWrongly(Base):
    def compute(self):
        a, b = self.x.shape  # refused: the types do not fit
        self.n = a + b


class Unassigned(Base):
    def compute(self):
        if self.k > 0:
            a = self.x
        else:
            a = self.k
        self.n = int(a)  # refused: a number is needed here, not a vector


class TableWritten(Base):
    def compute(self):
        t = (1.0, 2.0)
        t[0] = 1.0  # refused: a tuple can be indexed
