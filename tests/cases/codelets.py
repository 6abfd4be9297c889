"""Codelets of the known traps. Few and shared, since each is compiled once."""

from typing import Generic, TypeVar

from popcore import (
    BOOL,
    FLOAT,
    HALF,
    INT,
    SIGNED_CHAR,
    UNSIGNED_CHAR,
    UNSIGNED_INT,
    UNSIGNED_SHORT,
    InOut,
    Input,
    Matrix,
    MultiVertex,
    Output,
    Vector,
    VectorList,
    Vertex,
)

T = TypeVar("T")


class AddTo(Vertex, Generic[T]):
    """y += x, element by element."""

    x: Input[Vector[T]]
    y: InOut[Vector[T]]

    def compute(self):
        for i in range(len(self.y)):
            self.y[i] = self.y[i] + self.x[i]


class Multiply(Vertex):
    """x *= k, in place."""

    x: InOut[Vector[FLOAT]]
    k: Input[FLOAT]

    def compute(self):
        for i in range(len(self.x)):
            self.x[i] *= self.k


class Count(Vertex):
    """x += by; state counts the calls."""

    x: InOut[INT]
    by: Input[INT]
    calls: UNSIGNED_INT

    def compute(self):
        self.calls += 1
        self.x += self.by


class Sizes(Vertex):
    """How often it ran, and how many elements its vector has."""

    x: Input[Vector[FLOAT]]
    runs: InOut[INT]
    size: Output[INT]

    def compute(self):
        self.runs += 1
        self.size = len(self.x)


class Increment(MultiVertex):
    """x += 1, each of the six workers its own pair of every twelve halves: no two of them write into one word."""

    x: InOut[Vector[HALF]]

    def compute(self, worker):
        n = len(self.x)
        for first in range(2 * worker, n, 12):
            self.x[first] += HALF(1)
            if first + 1 < n:
                self.x[first + 1] += HALF(1)


class Rotate(Vertex):
    """A Jacobi rotation of two vectors, four elements at a time and then the rest."""

    a: InOut[Vector[FLOAT]]
    b: InOut[Vector[FLOAT]]
    c: Input[FLOAT]
    s: Input[FLOAT]

    def compute(self):
        n = len(self.a)
        whole = n - n % 4
        for i in range(0, whole, 4):
            for j in range(4):
                a, b = self.a[i + j], self.b[i + j]
                self.a[i + j] = self.c * a - self.s * b
                self.b[i + j] = self.s * a + self.c * b
        for i in range(whole, n):
            a, b = self.a[i], self.b[i]
            self.a[i] = self.c * a - self.s * b
            self.b[i] = self.s * a + self.c * b


class Total(Vertex, Generic[T]):
    """The sum of x, in x's own type."""

    x: Input[Vector[T]]
    out: Output[T]

    def compute(self):
        total = T(0)
        for i in range(len(self.x)):
            total = T(total + self.x[i])
        self.out = total


class TotalInFloat(Vertex):
    """The sum of halves, kept in FLOAT and rounded at the end."""

    x: Input[Vector[HALF]]
    out: Output[HALF]

    def compute(self):
        total = 0.0
        for i in range(len(self.x)):
            total += self.x[i]
        self.out = total


class Gather(Vertex):
    """out[i] = table[index[i]]"""

    table: Input[Vector[INT]]
    index: Input[Vector[UNSIGNED_INT]]
    out: Output[Vector[INT]]

    def compute(self):
        for i in range(len(self.out)):
            self.out[i] = self.table[self.index[i]]


class GatherTogether(MultiVertex):
    """The same by six workers."""

    table: Input[Vector[INT]]
    index: Input[Vector[UNSIGNED_INT]]
    out: Output[Vector[INT]]

    def compute(self, worker):
        for i in range(worker, len(self.out), 6):
            self.out[i] = self.table[self.index[i]]


class Lengths(Vertex):
    """The length of each vector of a list, and the sum of all."""

    rows: Input[VectorList[FLOAT]]
    lengths: Output[Vector[INT]]
    total: Output[FLOAT]

    def compute(self):
        total = 0.0
        for r in range(len(self.rows)):
            self.lengths[r] = len(self.rows[r])
            for v in self.rows[r]:
                total += v
        self.total = total


class Ring(Vertex):
    """A buffer of rows: the n-th call writes ``value`` to row n modulo their number; ``back`` calls ago is looked up."""

    rows: InOut[Vector[INT]]
    value: Input[Vector[INT]]
    found: Output[Vector[INT]]
    back: Input[UNSIGNED_INT]
    calls: InOut[UNSIGNED_INT]

    def compute(self):
        width = len(self.value)
        slots = len(self.rows) // width
        for i in range(width):
            self.rows[self.calls % slots * width + i] = self.value[i]
        row = (self.calls - self.back) % slots
        for i in range(width):
            self.found[i] = self.rows[row * width + i]
        self.calls += 1


class Below(Vertex):
    """flag = x < limit"""

    x: Input[INT]
    limit: Input[INT]
    flag: Output[BOOL]

    def compute(self):
        self.flag = self.x < self.limit


class First(Vertex):
    """Writes only the first element of a vector."""

    x: Input[FLOAT]
    out: InOut[Vector[FLOAT]]

    def compute(self):
        self.out[0] = self.x


class Stencil(Vertex):
    """out[i] = x[i] + x[i + 1] + x[i + 2]: x overlaps the neighbours'."""

    x: Input[Vector[FLOAT]]
    out: Output[Vector[FLOAT]]

    def compute(self):
        for i in range(len(self.out)):
            self.out[i] = self.x[i] + self.x[i + 1] + self.x[i + 2]


class Refuse(Vertex):
    """Raises above a limit."""

    x: InOut[INT]
    limit: Input[INT]

    def compute(self):
        if self.x > self.limit:
            raise ValueError("too large", self.x)
        self.x += 1


class Truncate(Vertex):
    """A float into integers of three kinds."""

    x: Input[Vector[FLOAT]]
    signed: Output[Vector[SIGNED_CHAR]]
    unsigned: Output[Vector[UNSIGNED_CHAR]]
    wide: Output[Vector[INT]]

    def compute(self):
        for i in range(len(self.x)):
            self.signed[i] = self.x[i]
            self.unsigned[i] = self.x[i]
            self.wide[i] = self.x[i]


class Absolute(Vertex):
    """out = abs(x)"""

    x: Input[Vector[INT]]
    out: Output[Vector[INT]]

    def compute(self):
        for i in range(len(self.x)):
            self.out[i] = abs(self.x[i])


class Operate(Vertex):
    """What a and b give: sum, C's quotient and remainder, Python's, shifts of a by b."""

    a: Input[INT]
    b: Input[INT]
    out: Output[Vector[INT]]

    def compute(self):
        quotient = abs(self.a) // abs(self.b)
        if (self.a < 0) != (self.b < 0):
            quotient = -quotient
        self.out[0] = self.a + self.b
        self.out[1] = quotient
        self.out[2] = self.a - quotient * self.b
        self.out[3] = self.a // self.b
        self.out[4] = self.a % self.b


class Shift(Vertex):
    """a shifted by n: to the left, to the right, and to the right as an unsigned number."""

    a: Input[INT]
    bits: Input[UNSIGNED_INT]
    n: Input[INT]
    out: Output[Vector[INT]]

    def compute(self):
        self.out[0] = self.a << self.n
        self.out[1] = self.a >> self.n
        self.out[2] = self.bits >> self.n


class Divide(Vertex):
    """out = a // b + a % b"""

    a: Input[INT]
    b: Input[INT]
    out: Output[INT]

    def compute(self):
        self.out = self.a // self.b + self.a % self.b


class Largest(Vertex):
    """out = the largest of out and x"""

    x: Input[Vector[INT]]
    out: InOut[INT]

    def compute(self):
        for v in self.x:
            self.out = max(self.out, v)


class Small(Vertex):
    """State of narrow types, and fields to connect literals to."""

    short: UNSIGNED_SHORT
    byte: UNSIGNED_CHAR
    signed: SIGNED_CHAR
    flag: BOOL
    literal: Input[SIGNED_CHAR]
    out: Output[INT]

    def compute(self):
        self.out = self.short + self.byte + self.signed + self.literal


class Long(Vertex):
    """x += 1, and takes as long as a test says."""

    x: InOut[INT]

    worker_cycles = 0.0

    def cycles(self):
        return type(self).worker_cycles

    def compute(self):
        self.x += 1


class PutAt(Vertex):
    """Writes one element of a vector, the next one each time it runs."""

    x: Input[FLOAT]
    at: UNSIGNED_INT
    out: InOut[Vector[FLOAT]]

    def compute(self):
        self.out[self.at] = self.x
        self.at += 1


class Talk(Vertex):
    """Prints what it has."""

    x: Input[INT]

    def compute(self):
        print("x is", self.x)


class Shapes(Vertex):
    """Rows and columns of a matrix, and the length of a list."""

    matrix: Input[Matrix[INT]]
    rows: Input[VectorList[INT]]
    out: Output[Vector[INT]]

    def compute(self):
        self.out[0], self.out[1] = self.matrix.shape
        self.out[2] = len(self.rows)
