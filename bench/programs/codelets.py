"""Codelets that benchmarks run: the usual one, and fifty different ones of the kinds that programs have."""

from popcore import FLOAT, INT, InOut, Input, MultiVertex, Output, Vector, Vertex


class Axpy(Vertex):
    """x += k * y"""

    x: InOut[Vector[FLOAT]]
    y: Input[Vector[FLOAT]]
    k: Input[FLOAT]

    def compute(self):
        for i in range(len(self.x)):
            self.x[i] += self.k * self.y[i]


class First(Vertex):
    """Looks at one element, however many it is connected to."""

    x: InOut[Vector[FLOAT]]

    def compute(self):
        self.x[0] += 1.0


CONSTANTS = (1.5, 2.5, 3.5, 4.5, 5.5)


def make_codelets(c):
    """Ten codelets that hold the constant ``c``: each of CONSTANTS makes ten that have to be compiled. All have vectors x and y, and write y alone."""
    made = [*_simple_codelets(c), *_other_codelets(c)]
    for codelet in made:
        codelet.__name__ += f"_{CONSTANTS.index(c)}"  # names are unique in a graph
    return made


def _simple_codelets(c):

    class Scale(Vertex):
        x: Input[Vector[FLOAT]]
        y: Output[Vector[FLOAT]]

        def compute(self):
            for i in range(len(self.x)):
                self.y[i] = self.x[i] * c

    class Clamp(Vertex):
        x: Input[Vector[FLOAT]]
        y: Output[Vector[FLOAT]]

        def compute(self):
            for i in range(len(self.x)):
                self.y[i] = min(max(self.x[i], -c), c)

    class Sum(Vertex):
        x: Input[Vector[FLOAT]]
        y: Output[Vector[FLOAT]]

        def compute(self):
            total = c
            for value in self.x:
                total += value
            for i in range(len(self.y)):
                self.y[i] = total

    class Polynomial(Vertex):
        x: Input[Vector[FLOAT]]
        y: Output[Vector[FLOAT]]

        def compute(self):
            for i in range(len(self.x)):
                v = self.x[i]
                self.y[i] = ((v + c) * v - 2.0) * v + 3.0

    class Largest(Vertex):
        x: Input[Vector[FLOAT]]
        y: Output[Vector[FLOAT]]

        def compute(self):
            best = 0
            for i in range(1, len(self.x)):
                if self.x[i] > self.x[best]:
                    best = i
            for i in range(len(self.y)):
                self.y[i] = c * best

    return [Scale, Clamp, Sum, Polynomial, Largest]


def _other_codelets(c):
    class Prefix(Vertex):
        x: Input[Vector[FLOAT]]
        y: Output[Vector[FLOAT]]

        def compute(self):
            total = 0.0
            for i in range(len(self.x)):
                total += self.x[i]
                self.y[i] = total - c

    class Stencil(Vertex):
        x: Input[Vector[FLOAT]]
        y: Output[Vector[FLOAT]]

        def compute(self):
            n = len(self.x)
            for i in range(n):
                self.y[i] = c * (self.x[(i + 1) % n] - self.x[i - 1])

    class Root(Vertex):
        x: Input[Vector[FLOAT]]
        y: Output[Vector[FLOAT]]

        def compute(self):
            for i in range(len(self.x)):
                assert self.x[i] >= 0.0, "a negative number has no root"
                self.y[i] = (self.x[i] + c) / (1.0 + self.x[i])

    class Strips(MultiVertex):
        x: Input[Vector[FLOAT]]
        y: Output[Vector[FLOAT]]

        def compute(self, worker):
            for i in range(worker, len(self.x), 6):
                self.y[i] = self.x[i] - c

    class Steps(Vertex):
        x: Input[Vector[FLOAT]]
        y: Output[Vector[FLOAT]]
        seen: INT

        def compute(self):
            self.seen += 1
            for i in range(len(self.x)):
                self.y[i] = c if self.x[i] > c else self.x[i]

    return [Prefix, Stencil, Root, Strips, Steps]
