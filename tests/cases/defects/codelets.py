"""Codelets that are right or wrong as ``k`` has it. The line that goes wrong says so."""

from popcore import FLOAT, HALF, INT, UNSIGNED_CHAR, InOut, Input, Matrix, MultiVertex, Output, Vector, VectorList, Vertex


class ReadAt(Vertex):
    x: Input[Vector[FLOAT]]
    y: Output[Vector[FLOAT]]
    k: Input[INT]

    def compute(self):
        self.y[0] = self.x[self.k]  # here


class WriteAt(Vertex):
    y: InOut[Vector[FLOAT]]
    k: Input[INT]

    def compute(self):
        self.y[self.k] = 1.0  # here


class AddAt(Vertex):
    y: InOut[Vector[FLOAT]]
    k: Input[INT]

    def compute(self):
        self.y[self.k] += 1.0  # here


class RowAt(Vertex):
    rows: Input[VectorList[FLOAT]]
    y: Output[FLOAT]
    k: Input[INT]

    def compute(self):
        self.y = self.rows[self.k][0]  # here


class InRowAt(Vertex):
    rows: Input[VectorList[FLOAT]]
    y: Output[FLOAT]
    k: Input[INT]

    def compute(self):
        self.y = self.rows[1][self.k]  # here


class WriteThenRead(Vertex):
    y: Output[Vector[FLOAT]]
    k: Input[INT]

    def compute(self):
        for i in range(self.k):
            self.y[i] = 1.0
        self.y[0] = self.y[2]  # here


class ScalarBeforeWrite(Vertex):
    y: Output[FLOAT]
    z: Output[FLOAT]
    k: Input[INT]

    def compute(self):
        if self.k != 0:
            self.y = 1.0
        self.z = self.y  # here


class Asserts(Vertex):
    k: Input[INT]
    y: Output[INT]

    def compute(self):
        assert self.k < 3  # here
        self.y = self.k


class HalvesApart(MultiVertex):
    y: Output[Vector[HALF]]
    k: Input[INT]

    def compute(self, worker):
        self.y[worker * self.k] = 1.0  # here


class BytesApart(MultiVertex):
    y: Output[Vector[UNSIGNED_CHAR]]
    k: Input[INT]

    def compute(self, worker):
        self.y[worker * self.k] = 1  # here


class FloatsApart(MultiVertex):
    y: Output[Vector[FLOAT]]
    k: Input[INT]

    def compute(self, worker):
        self.y[worker * self.k] = 1.0  # here


class ReadsNeighbour(MultiVertex):
    y: InOut[Vector[FLOAT]]
    k: Input[INT]

    def compute(self, worker):
        self.y[worker] = self.y[(worker + self.k) % 6]  # here


class OneForAll(MultiVertex):
    y: InOut[Vector[FLOAT]]
    k: Input[INT]

    def compute(self, worker):
        if worker == 5:
            self.y[self.k] = 1.0
        elif worker < 4:
            self.y[worker + 1] = self.y[0]  # here


class RowOfMatrix(Vertex):
    m: Input[Matrix[FLOAT]]
    y: Output[FLOAT]
    k: Input[INT]

    def compute(self):
        self.y = self.m[self.k, 1]  # here


class ColumnOfMatrix(Vertex):
    m: Input[Matrix[FLOAT]]
    y: Output[FLOAT]
    k: Input[INT]

    def compute(self):
        self.y = self.m[1, self.k]  # here


class PartAt(Vertex):
    x: Input[Vector[FLOAT]]
    y: Output[FLOAT]
    k: Input[INT]

    def compute(self):
        part = self.x[1:4]
        self.y = part[self.k]  # here


class Sums(Vertex):
    x: Input[Vector[FLOAT]]
    y: Output[FLOAT]
    k: Input[INT]

    def compute(self):
        total = 0.0
        for value in self.x[: self.k]:  # here
            total += value
        self.y = total
