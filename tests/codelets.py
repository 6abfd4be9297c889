"""Codelets that several tests use, so that each is compiled once."""

from popcore import FLOAT, HALF, INT, InOut, Input, Matrix, MultiVertex, Output, Vector, VectorList, Vertex


class Axpy(Vertex):
    """x += k * y"""

    x: InOut[Vector[FLOAT]]
    y: Input[Vector[FLOAT]]
    k: Input[FLOAT]

    def compute(self):
        for i in range(len(self.x)):
            self.x[i] += self.k * self.y[i]


class CopyVector(Vertex):
    """dst = src"""

    src: Input[Vector[FLOAT]]
    dst: Output[Vector[FLOAT]]

    def compute(self):
        for i in range(len(self.dst)):
            self.dst[i] = self.src[i]


class Increment(Vertex):
    """x += 1"""

    x: InOut[Vector[INT]]

    def compute(self):
        for i in range(len(self.x)):
            self.x[i] += 1


class SumRows(Vertex):
    """out = the sum of all rows, and how often this vertex ran"""

    rows: Input[VectorList[FLOAT]]
    out: Output[FLOAT]
    calls: INT

    def compute(self):
        total = 0.0
        for row in self.rows:
            for value in row:
                total += value
        self.calls += 1
        self.out = total + self.calls


class ScaleMatrix(Vertex):
    """m *= k, in half"""

    m: InOut[Matrix[HALF]]
    k: Input[FLOAT]

    def compute(self):
        rows, columns = self.m.shape
        for r in range(rows):
            for c in range(columns):
                self.m[r, c] = HALF(self.k) * self.m[r, c]


class Spread(MultiVertex):
    """All workers share one vector: x[i] += i"""

    x: InOut[Vector[FLOAT]]

    def compute(self, worker):
        for i in range(worker, len(self.x), 6):
            self.x[i] += i


class Check(Vertex):
    """Raises where x is negative; prints where it is large."""

    x: Input[Vector[FLOAT]]

    def compute(self):
        for i in range(len(self.x)):
            if self.x[i] < 0.0:
                raise ValueError("negative", i, self.x[i])
            if self.x[i] > 100.0:
                print("large", i, self.x[i])


class Timed(Vertex):
    """Says itself what it costs."""

    x: InOut[Vector[FLOAT]]

    def compute(self):
        self.x[0] = 1.0

    def cycles(self):
        return 10 + 2 * len(self.x)
