"""Which reads of FLOAT are cleaned: those that may be compared, chosen or kept, and no others."""

import pytest

from popcore import FLOAT, InOut, Input, Vector, Vertex
from popcore.codelet import codelet_of
from popcore.dialect import lower


class OnFloats(Vertex):
    x: Input[Vector[FLOAT]]
    y: InOut[Vector[FLOAT]]
    k: Input[FLOAT]


def joined(a, b):
    return a + b


def same(a):
    return a


def larger(a, b):
    return a if a > b else b


class Computes(OnFloats):
    def compute(self):
        for i in range(len(self.y)):
            x = self.x[i]
            self.y[i] += self.k * x + joined(same(FLOAT(self.x[i])), x)


class Copies(OnFloats):
    def compute(self):
        for i in range(len(self.y)):
            self.y[i] = self.x[i]


class Compares(OnFloats):
    def compute(self):
        for i in range(len(self.y)):
            if self.x[i] > 0.0:
                self.y[i] = 1.0


class Chooses(OnFloats):
    def compute(self):
        for i in range(len(self.y)):
            self.y[i] = min(self.x[i], 1.0)


class Keeps(OnFloats):
    def compute(self):
        x = self.x[0]
        for i in range(len(self.y)):
            self.y[i] = x


class HandsOn(OnFloats):
    def compute(self):
        for i in range(len(self.y)):
            self.y[i] = larger(self.x[i], 0.5)


class HasADenormal(OnFloats):
    def compute(self):
        for i in range(len(self.y)):
            self.y[i] = max(self.x[i] * 2.0, 1e-40)


@pytest.mark.parametrize(
    ("codelet", "cleaned"),
    [(Computes, 0), (Copies, 0), (Compares, 1), (Chooses, 1), (Keeps, 1), (HandsOn, 1), (HasADenormal, 1)],
    ids=lambda c: getattr(c, "__name__", ""),
)
def test_what_is_cleaned(codelet, cleaned):
    """
    A multiplication is added to each of these, and to nothing else.
    """
    made = lower(codelet_of(codelet, ()))
    assert sum(function.text.count("_pc_kept") for function in made.functions) == cleaned
