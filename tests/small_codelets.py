"""A few codelets that the tests of both engines share: every field shape, several element types, state, several workers."""

from typing import Generic, TypeVar

from popcore import BOOL, FLOAT, HALF, INT, LONGLONG, UNSIGNED_CHAR, UNSIGNED_INT, InOut, Input, Matrix, MultiVertex, Output, Vector, VectorList, Vertex

T = TypeVar("T")


class AddTo(Vertex, Generic[T]):
    """y += x, element by element; the shorter one decides."""

    x: Input[Vector[T]]
    y: InOut[Vector[T]]

    def compute(self):
        for i in range(min(len(self.x), len(self.y))):
            self.y[i] = self.y[i] + self.x[i]


class Scale(Vertex):
    """out = k * x + 0.1, in HALF."""

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
    """A matrix into another, the other way round, with some arithmetic."""

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


class IncrementBytes(Vertex):
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


class Convert(Vertex):
    """The same FLOAT stored in four types."""

    x: Input[Vector[FLOAT]]
    whole: Output[Vector[INT]]
    half: Output[Vector[HALF]]
    flag: Output[Vector[BOOL]]
    byte: Output[Vector[UNSIGNED_CHAR]]

    def compute(self):
        for i in range(len(self.x)):
            self.whole[i] = self.x[i]
            self.half[i] = self.x[i]
            self.flag[i] = self.x[i]
            self.byte[i] = int(self.x[i])


class Smooth(Vertex):
    """A vector of state: the mean of what was and what comes."""

    x: Input[Vector[FLOAT]]
    out: InOut[Vector[FLOAT]]
    kept: Vector[FLOAT]

    def compute(self):
        for i in range(min(len(self.x), len(self.out), len(self.kept))):
            self.kept[i] = (self.kept[i] + self.x[i]) / 2
            self.out[i] = self.kept[i]


class Pivot(Vertex):
    """A HALF matrix in place: each element less its row's first times its column's first."""

    m: InOut[Matrix[HALF]]
    k: Input[FLOAT]

    def compute(self):
        rows, columns = self.m.shape
        for r in range(1, rows):
            for c in range(1, columns):
                self.m[r, c] = self.m[r, c] - self.m[r, 0] * self.m[0, c] * self.k


class Integers(Vertex):
    """Floor division, remainder, shifts and a product that wraps."""

    a: Input[Vector[LONGLONG]]
    b: Input[Vector[INT]]
    out: Output[Vector[LONGLONG]]

    def compute(self):
        for i in range(min(len(self.a), len(self.b), len(self.out))):
            odd = self.b[i] | 1
            self.out[i] = self.a[i] // odd + self.a[i] % odd + self.a[i] * odd + ((self.a[i] >> 3) ^ (odd << 2)) - min(abs(odd), 5)


class Checked(Vertex):
    """Prints what it sees, and raises above a limit."""

    x: Input[INT]

    def compute(self):
        print("x is", self.x)
        if self.x > 9:
            raise ValueError("too much", self.x)
