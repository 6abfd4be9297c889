"""Codelets as users write them, in Python and in C++, with the worker cycles that the instruction set or a published row gives for their loops.

Cycles are bundles of one worker: the main pipeline loads, stores and computes with integers, the other one with floats, both at once; a
load or store walks its address along; ``rpt`` makes a loop of plain bundles cost nothing by itself. ``hand`` counts what repeats and leaves
out starting and ending, 15 to 25 cycles a vertex, and 5 to 10 a loop.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from popcore import FLOAT, HALF, INT, InOut, Input, Matrix, Output, Vector, Vertex


class Dot(Vertex):
    """Two loads of 64 bits for two elements; product and sum beside them: 1 an element."""

    a: Input[Vector[FLOAT]]
    b: Input[Vector[FLOAT]]
    out: Output[FLOAT]

    def compute(self):
        total = 0.0
        for i in range(len(self.a)):
            total += self.a[i] * self.b[i]
        self.out = total


class Axpy(Vertex):
    """Two loads and a store for two elements, 3 as row PT-add_fp32_vector_out_of_place says: 1.5 an element."""

    x: Input[Vector[FLOAT]]
    y: InOut[Vector[FLOAT]]
    k: Input[FLOAT]

    def compute(self):
        for i in range(len(self.y)):
            self.y[i] += self.k * self.x[i]


class Stencil(Vertex):
    """Neighbours are not aligned to 64 bits, so one at a time: 3 loads and a store, beside 3 products and 2 sums: 5 an element."""

    x: Input[Vector[FLOAT]]
    y: Output[Vector[FLOAT]]

    def compute(self):
        for i in range(1, len(self.x) - 1):
            self.y[i] = 0.25 * self.x[i - 1] + 0.5 * self.x[i] + 0.25 * self.x[i + 1]


class Blur(Vertex):
    """Row LB-PH-float-16-compute: 13,152 cycles for 126.9 pixels of four channels a tile, 103.6 a worker's pixel. Run there on 16 C2."""

    x: Input[Matrix[FLOAT]]
    y: Output[Matrix[FLOAT]]

    def compute(self):
        rows, columns = self.x.shape
        for r in range(1, rows - 1):
            for p in range(1, columns // 4 - 1):
                for c in range(4):
                    at = 4 * p + c
                    corners = self.x[r - 1, at - 4] + self.x[r - 1, at + 4] + self.x[r + 1, at - 4] + self.x[r + 1, at + 4]
                    edges = self.x[r, at + 4] + self.x[r, at - 4] + self.x[r + 1, at] + self.x[r - 1, at]
                    self.y[r, at] = 0.0625 * corners + 0.25 * self.x[r, at] + 0.125 * edges


class Sum(Vertex):
    """A load of 64 bits, a sum of two beside it, as PopLibs' estimators of reductions: 0.5 an element."""

    x: Input[Vector[FLOAT]]
    out: Output[FLOAT]

    def compute(self):
        total = 0.0
        for value in self.x:
            total += value
        self.out = total


class MatVec(Vertex):
    """A dot product for each row, and about 10 for its loop, its addresses and its store."""

    m: Input[Matrix[FLOAT]]
    x: Input[Vector[FLOAT]]
    y: Output[Vector[FLOAT]]

    def compute(self):
        for r in range(len(self.y)):
            total = 0.0
            for c in range(len(self.x)):
                total += self.m[r, c] * self.x[c]
            self.y[r] = total


class ScaleHalf(Vertex):
    """A load and a store of 64 bits for four halves: 0.5 an element."""

    x: InOut[Vector[HALF]]
    k: Input[HALF]

    def compute(self):
        for i in range(len(self.x)):
            self.x[i] = self.x[i] * self.k


class Largest(Vertex):
    """A load of 64 bits, f32v2max beside it: 0.5 an element."""

    x: Input[Vector[FLOAT]]
    out: Output[FLOAT]

    def compute(self):
        best = self.x[0]
        for i in range(len(self.x)):
            best = max(best, self.x[i])
        self.out = best


class ArgMax(Vertex):
    """A load, the condition's way to the main pipeline, a choice of the index there; comparison and maximum beside them: 3 an element."""

    x: Input[Vector[FLOAT]]
    out: Output[INT]

    def compute(self):
        best, where = self.x[0], 0
        for i in range(len(self.x)):
            if self.x[i] > best:
                best = self.x[i]
                where = i
        self.out = where


class Histogram(Vertex):
    """Two loads, an addition and a store of integers, and 3 for the round, as in row PT-int32_add: 7 an element."""

    x: Input[Vector[INT]]
    bins: InOut[Vector[INT]]

    def compute(self):
        for value in self.x:
            self.bins[value] += 1


class AddIntegers(Vertex):
    """Row PT-int32_add: 7 an element."""

    a: Input[Vector[INT]]
    b: Input[Vector[INT]]
    y: Output[Vector[INT]]

    def compute(self):
        for i in range(len(self.y)):
            self.y[i] = self.a[i] + self.b[i]


class Divide(Vertex):
    """Row PT-divide_fp32: 10 for two elements."""

    a: Input[Vector[FLOAT]]
    b: Input[Vector[FLOAT]]
    y: Output[Vector[FLOAT]]

    def compute(self):
        for i in range(len(self.y)):
            self.y[i] = self.a[i] / self.b[i]


class Exponential(Vertex):
    """Row PT-exp_fp32: 6 for two elements."""

    x: Input[Vector[FLOAT]]
    y: Output[Vector[FLOAT]]

    def compute(self):
        for i in range(len(self.y)):
            self.y[i] = math.exp(self.x[i])


class ComplexProduct(Vertex):
    """Real and imaginary parts in turn, so one at a time: 4 loads and 2 stores, beside 4 products and 2 sums: 6 a number, 3 an element."""

    a: Input[Vector[FLOAT]]
    b: Input[Vector[FLOAT]]
    y: Output[Vector[FLOAT]]

    def compute(self):
        for i in range(len(self.y) // 2):
            self.y[2 * i] = self.a[2 * i] * self.b[2 * i] - self.a[2 * i + 1] * self.b[2 * i + 1]
            self.y[2 * i + 1] = self.a[2 * i] * self.b[2 * i + 1] + self.a[2 * i + 1] * self.b[2 * i]


class Escape(Vertex):
    """A round of the inner loop is a product, a sum, two comparisons, an addition of what is counted, 3 for the round: about 7, as often as data says."""

    x: Input[Vector[FLOAT]]
    rounds: Output[Vector[INT]]

    def compute(self):
        for i in range(len(self.x)):
            z, k = 0.0, 0
            while z < 4.0 and k < 50:
                z = z * z + self.x[i]
                k += 1
            self.rounds[i] = k


CPP = r"""
#include <cmath>
#include <poplar/HalfFloat.hpp>
#include <poplar/Vertex.hpp>
using namespace poplar;

struct Dot : public Vertex {
  Input<Vector<float>> a, b;
  Output<float> out;
  bool compute() {
    float total = 0;
    for (unsigned i = 0; i < a.size(); ++i)
      total += a[i] * b[i];
    *out = total;
    return true;
  }
};

struct Axpy : public Vertex {
  Input<Vector<float>> x;
  InOut<Vector<float>> y;
  Input<float> k;
  bool compute() {
    for (unsigned i = 0; i < y.size(); ++i)
      y[i] += *k * x[i];
    return true;
  }
};

struct Stencil : public Vertex {
  Input<Vector<float>> x;
  Output<Vector<float>> y;
  bool compute() {
    for (unsigned i = 1; i < x.size() - 1; ++i)
      y[i] = 0.25f * x[i - 1] + 0.5f * x[i] + 0.25f * x[i + 1];
    return true;
  }
};

struct Blur : public Vertex {
  Input<Vector<float>> x;
  Output<Vector<float>> y;
  unsigned rows, columns;
  bool compute() {
    for (unsigned r = 1; r < rows - 1; ++r)
      for (unsigned p = 1; p < columns / 4 - 1; ++p)
        for (unsigned c = 0; c < 4; ++c) {
          const unsigned at = r * columns + 4 * p + c;
          const float corners = x[at - columns - 4] + x[at - columns + 4] + x[at + columns - 4] + x[at + columns + 4];
          const float edges = x[at + 4] + x[at - 4] + x[at + columns] + x[at - columns];
          y[at] = 0.0625f * corners + 0.25f * x[at] + 0.125f * edges;
        }
    return true;
  }
};

struct Sum : public Vertex {
  Input<Vector<float>> x;
  Output<float> out;
  bool compute() {
    float total = 0;
    for (auto value : x)
      total += value;
    *out = total;
    return true;
  }
};

struct MatVec : public Vertex {
  Input<Vector<float>> m, x;
  Output<Vector<float>> y;
  bool compute() {
    const unsigned columns = x.size();
    for (unsigned r = 0; r < y.size(); ++r) {
      float total = 0;
      for (unsigned c = 0; c < columns; ++c)
        total += m[r * columns + c] * x[c];
      y[r] = total;
    }
    return true;
  }
};

struct ScaleHalf : public Vertex {
  InOut<Vector<half>> x;
  Input<half> k;
  bool compute() {
    for (unsigned i = 0; i < x.size(); ++i)
      x[i] = x[i] * *k;
    return true;
  }
};

struct Largest : public Vertex {
  Input<Vector<float>> x;
  Output<float> out;
  bool compute() {
    float best = x[0];
    for (unsigned i = 0; i < x.size(); ++i)
      best = x[i] > best ? x[i] : best;
    *out = best;
    return true;
  }
};

struct ArgMax : public Vertex {
  Input<Vector<float>> x;
  Output<int> out;
  bool compute() {
    float best = x[0];
    int where = 0;
    for (unsigned i = 0; i < x.size(); ++i)
      if (x[i] > best) {
        best = x[i];
        where = i;
      }
    *out = where;
    return true;
  }
};

struct Histogram : public Vertex {
  Input<Vector<int>> x;
  InOut<Vector<int>> bins;
  bool compute() {
    for (unsigned i = 0; i < x.size(); ++i)
      bins[x[i]] += 1;
    return true;
  }
};

struct AddIntegers : public Vertex {
  Input<Vector<int>> a, b;
  Output<Vector<int>> y;
  bool compute() {
    for (unsigned i = 0; i < y.size(); ++i)
      y[i] = a[i] + b[i];
    return true;
  }
};

struct Divide : public Vertex {
  Input<Vector<float>> a, b;
  Output<Vector<float>> y;
  bool compute() {
    for (unsigned i = 0; i < y.size(); ++i)
      y[i] = a[i] / b[i];
    return true;
  }
};

struct Exponential : public Vertex {
  Input<Vector<float>> x;
  Output<Vector<float>> y;
  bool compute() {
    for (unsigned i = 0; i < y.size(); ++i)
      y[i] = std::exp(x[i]);
    return true;
  }
};

struct ComplexProduct : public Vertex {
  Input<Vector<float>> a, b;
  Output<Vector<float>> y;
  bool compute() {
    for (unsigned i = 0; i < y.size() / 2; ++i) {
      const float re = a[2 * i], im = a[2 * i + 1], other_re = b[2 * i], other_im = b[2 * i + 1];
      y[2 * i] = re * other_re - im * other_im;
      y[2 * i + 1] = re * other_im + im * other_re;
    }
    return true;
  }
};

struct Escape : public Vertex {
  Input<Vector<float>> x;
  Output<Vector<int>> rounds;
  bool compute() {
    for (unsigned i = 0; i < x.size(); ++i) {
      float z = 0;
      int k = 0;
      while (z < 4 && k < 50) {
        z = z * z + x[i];
        ++k;
      }
      rounds[i] = k;
    }
    return true;
  }
};
"""

N, ROWS, PIXELS = 960, 12, 18
ESCAPES = np.linspace(-0.5, 2, N, dtype=np.float32)


def rounds() -> int:
    """Rounds of the inner loop of ``Escape`` on ESCAPES."""
    total = 0
    for x in ESCAPES:
        z, k = np.float32(0), 0
        while z < 4 and k < 50:
            z, k = z * z + x, k + 1
        total += k
    return total


@dataclass(frozen=True)
class Case:
    """A codelet, its fields, and what its loops take; ``state``: of the one in C++, which has no matrices."""

    codelet: type[Vertex]
    fields: dict[str, tuple[object, tuple[int, ...]]]
    hand: float
    state: dict[str, int] = field(default_factory=dict)


_V, _S = (FLOAT, (N,)), (FLOAT, ())
_I = (INT, (N,))
_IMAGE = (FLOAT, (ROWS, 4 * PIXELS))
CASES = [
    Case(Dot, {"a": _V, "b": _V, "out": _S}, N),
    Case(Axpy, {"x": _V, "y": _V, "k": _S}, 1.5 * N),
    Case(Stencil, {"x": _V, "y": _V}, 5 * N),
    Case(Blur, {"x": _IMAGE, "y": _IMAGE}, 103.6 * (ROWS - 2) * (PIXELS - 2), {"rows": ROWS, "columns": 4 * PIXELS}),
    Case(Sum, {"x": _V, "out": _S}, N / 2),
    Case(MatVec, {"m": (FLOAT, (ROWS, 80)), "x": (FLOAT, (80,)), "y": (FLOAT, (ROWS,))}, ROWS * (80 + 10)),
    Case(ScaleHalf, {"x": (HALF, (N,)), "k": (HALF, ())}, N / 2),
    Case(Largest, {"x": _V, "out": _S}, N / 2),
    Case(ArgMax, {"x": _V, "out": (INT, ())}, 3 * N),
    Case(Histogram, {"x": _I, "bins": (INT, (32,))}, 7 * N),
    Case(AddIntegers, {"a": _I, "b": _I, "y": _I}, 7 * N),
    Case(Divide, {"a": _V, "b": _V, "y": _V}, 5 * N),
    Case(Exponential, {"x": _V, "y": _V}, 3 * N),
    Case(ComplexProduct, {"a": _V, "b": _V, "y": _V}, 3 * N),
    Case(Escape, {"x": _V, "rounds": _I}, 7 * rounds() + 5 * N),
]
