"""A few codelets that tests share: every field shape, several element types, state, several workers."""

from typing import Generic, TypeVar

from popcore import BOOL, FLOAT, HALF, INT, UNSIGNED_CHAR, UNSIGNED_INT, InOut, Input, Matrix, MultiVertex, Output, Vector, VectorList, Vertex

T = TypeVar("T")


class AddTo(Vertex, Generic[T]):
    """y += x, element by element; the shorter one decides."""

    x: Input[Vector[T]]
    y: InOut[Vector[T]]

    def compute(self):
        for i in range(min(len(self.x), len(self.y))):
            self.y[i] = self.y[i] + self.x[i]


class Scale(Vertex):
    """out = k * x, in HALF."""

    x: Input[Vector[HALF]]
    k: Input[HALF]
    out: Output[Vector[HALF]]

    def compute(self):
        for i in range(len(self.out)):
            self.out[i] = self.k * self.x[i] + HALF(0.1)


class Dot(Vertex):
    """A FLOAT accumulator over HALF and FLOAT."""

    a: Input[Vector[FLOAT]]
    b: Input[Vector[HALF]]
    out: Output[FLOAT]

    def compute(self):
        total = 0.0
        for i in range(min(len(self.a), len(self.b))):
            total += self.a[i] * self.b[i]
        self.out = total


class Transpose(Vertex):
    """A matrix into another, the other way round."""

    m: Input[Matrix[INT]]
    out: Output[Matrix[INT]]

    def compute(self):
        rows, columns = self.m.shape
        for r in range(rows):
            for c in range(columns):
                self.out[c, r] = self.m[r, c] * 3 - r


class RowSums(Vertex):
    """Sums of vectors of different lengths."""

    rows: Input[VectorList[INT]]
    sums: Output[Vector[INT]]

    def compute(self):
        for r in range(len(self.rows)):
            total = 0
            for i in range(len(self.rows[r])):
                total += self.rows[r][i]
            self.sums[r] = total


class Counter(Vertex):
    """Counts its own calls in state, and adds them to what it is connected to."""

    x: InOut[UNSIGNED_INT]
    calls: INT

    def compute(self):
        self.calls += 1
        self.x += self.calls


class Increment(Vertex):
    """x += 1, wrapping in 8 bits."""

    x: InOut[Vector[UNSIGNED_CHAR]]

    def compute(self):
        for i in range(len(self.x)):
            self.x[i] += 1


class Below(Vertex):
    """flag = x < limit"""

    x: Input[INT]
    limit: Input[INT]
    flag: Output[BOOL]

    def compute(self):
        self.flag = self.x < self.limit


class Strided(MultiVertex):
    """Six workers, each every sixth element."""

    x: Input[Vector[FLOAT]]
    out: Output[Vector[FLOAT]]

    def compute(self, worker):
        for i in range(worker, len(self.out), 6):
            self.out[i] = self.x[i] * 0.1 + 1.0 / (i + 1)


class Checked(Vertex):
    """Prints what it sees, and raises above a limit."""

    x: Input[INT]

    def compute(self):
        print("x is", self.x)
        if self.x > 9:
            raise ValueError("too much", self.x)
