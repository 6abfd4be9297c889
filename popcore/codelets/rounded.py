"""Products of HALF whose sums are HALF too: what the product unit makes of 16 elements of k is summed in FLOAT, added to the sum and rounded.

The sum ``c[i, j]`` is rounded after k = 16, 32, ... and at the end, whatever the blocking; in between it is FLOAT, over k in order. Four rows at a
time keep a converted element of ``b`` for four uses, and the loop over j becomes vector instructions.
"""

# mypy: disable-error-code="assignment"
# A store converts to the element type of its field, whatever a type variable stands for.

from __future__ import annotations

from typing import Any

from popcore.codelet import InOut, Input, Matrix, MultiVertex, Output
from popcore.codelets.mat_mul import zero
from popcore.types import HALF


def _rest(a: Any, hop: int, b: Any, first: int, depth: int, out: Any) -> None:
    """out += a[0], a[hop], ... @ b[first : first + depth], rounded at the end."""
    for j in range(len(out)):
        total = float(out[j])
        for k in range(depth):
            total += float(a[k * hop]) * float(b[first + k][j])
        out[j] = total


def one_rounded_row(a: Any, hop: int, b: Any, first: int, depth: int, out: Any) -> None:
    """out += a[0], a[hop], ... @ b[first : first + depth], rounded after each 16 of them."""
    k = 0
    while k + 16 <= depth:
        x0, x1, x2, x3 = float(a[k * hop]), float(a[(k + 1) * hop]), float(a[(k + 2) * hop]), float(a[(k + 3) * hop])
        x4, x5, x6, x7 = float(a[(k + 4) * hop]), float(a[(k + 5) * hop]), float(a[(k + 6) * hop]), float(a[(k + 7) * hop])
        x8, x9, xa, xb = float(a[(k + 8) * hop]), float(a[(k + 9) * hop]), float(a[(k + 10) * hop]), float(a[(k + 11) * hop])
        xc, xd, xe, xf = float(a[(k + 12) * hop]), float(a[(k + 13) * hop]), float(a[(k + 14) * hop]), float(a[(k + 15) * hop])
        row = first + k
        b0, b1, b2, b3, b4, b5, b6, b7 = b[row], b[row + 1], b[row + 2], b[row + 3], b[row + 4], b[row + 5], b[row + 6], b[row + 7]
        b8, b9, ba, bb, bc, bd, be, bf = b[row + 8], b[row + 9], b[row + 10], b[row + 11], b[row + 12], b[row + 13], b[row + 14], b[row + 15]
        for j in range(len(out)):
            total = float(out[j])
            total = total + x0 * float(b0[j]) + x1 * float(b1[j]) + x2 * float(b2[j]) + x3 * float(b3[j])
            total = total + x4 * float(b4[j]) + x5 * float(b5[j]) + x6 * float(b6[j]) + x7 * float(b7[j])
            total = total + x8 * float(b8[j]) + x9 * float(b9[j]) + xa * float(ba[j]) + xb * float(bb[j])
            total = total + xc * float(bc[j]) + xd * float(bd[j]) + xe * float(be[j]) + xf * float(bf[j])
            out[j] = total
        k += 16
    if k < depth:
        _rest(a[k * hop :], hop, b, first + k, depth - k, out)


def four_rounded_rows(a0: Any, a1: Any, a2: Any, a3: Any, hop: int, b: Any, first: int, depth: int, o0: Any, o1: Any, o2: Any, o3: Any) -> None:
    """``one_rounded_row`` for four of them."""
    k = 0
    while k + 16 <= depth:
        x0_0, x0_1, x0_2, x0_3 = float(a0[k * hop]), float(a0[(k + 1) * hop]), float(a0[(k + 2) * hop]), float(a0[(k + 3) * hop])
        x0_4, x0_5, x0_6, x0_7 = float(a0[(k + 4) * hop]), float(a0[(k + 5) * hop]), float(a0[(k + 6) * hop]), float(a0[(k + 7) * hop])
        x0_8, x0_9, x0_a, x0_b = float(a0[(k + 8) * hop]), float(a0[(k + 9) * hop]), float(a0[(k + 10) * hop]), float(a0[(k + 11) * hop])
        x0_c, x0_d, x0_e, x0_f = float(a0[(k + 12) * hop]), float(a0[(k + 13) * hop]), float(a0[(k + 14) * hop]), float(a0[(k + 15) * hop])
        x1_0, x1_1, x1_2, x1_3 = float(a1[k * hop]), float(a1[(k + 1) * hop]), float(a1[(k + 2) * hop]), float(a1[(k + 3) * hop])
        x1_4, x1_5, x1_6, x1_7 = float(a1[(k + 4) * hop]), float(a1[(k + 5) * hop]), float(a1[(k + 6) * hop]), float(a1[(k + 7) * hop])
        x1_8, x1_9, x1_a, x1_b = float(a1[(k + 8) * hop]), float(a1[(k + 9) * hop]), float(a1[(k + 10) * hop]), float(a1[(k + 11) * hop])
        x1_c, x1_d, x1_e, x1_f = float(a1[(k + 12) * hop]), float(a1[(k + 13) * hop]), float(a1[(k + 14) * hop]), float(a1[(k + 15) * hop])
        x2_0, x2_1, x2_2, x2_3 = float(a2[k * hop]), float(a2[(k + 1) * hop]), float(a2[(k + 2) * hop]), float(a2[(k + 3) * hop])
        x2_4, x2_5, x2_6, x2_7 = float(a2[(k + 4) * hop]), float(a2[(k + 5) * hop]), float(a2[(k + 6) * hop]), float(a2[(k + 7) * hop])
        x2_8, x2_9, x2_a, x2_b = float(a2[(k + 8) * hop]), float(a2[(k + 9) * hop]), float(a2[(k + 10) * hop]), float(a2[(k + 11) * hop])
        x2_c, x2_d, x2_e, x2_f = float(a2[(k + 12) * hop]), float(a2[(k + 13) * hop]), float(a2[(k + 14) * hop]), float(a2[(k + 15) * hop])
        x3_0, x3_1, x3_2, x3_3 = float(a3[k * hop]), float(a3[(k + 1) * hop]), float(a3[(k + 2) * hop]), float(a3[(k + 3) * hop])
        x3_4, x3_5, x3_6, x3_7 = float(a3[(k + 4) * hop]), float(a3[(k + 5) * hop]), float(a3[(k + 6) * hop]), float(a3[(k + 7) * hop])
        x3_8, x3_9, x3_a, x3_b = float(a3[(k + 8) * hop]), float(a3[(k + 9) * hop]), float(a3[(k + 10) * hop]), float(a3[(k + 11) * hop])
        x3_c, x3_d, x3_e, x3_f = float(a3[(k + 12) * hop]), float(a3[(k + 13) * hop]), float(a3[(k + 14) * hop]), float(a3[(k + 15) * hop])
        row = first + k
        b0, b1, b2, b3, b4, b5, b6, b7 = b[row], b[row + 1], b[row + 2], b[row + 3], b[row + 4], b[row + 5], b[row + 6], b[row + 7]
        b8, b9, ba, bb, bc, bd, be, bf = b[row + 8], b[row + 9], b[row + 10], b[row + 11], b[row + 12], b[row + 13], b[row + 14], b[row + 15]
        for j in range(len(o0)):
            t0, t1, t2, t3 = float(o0[j]), float(o1[j]), float(o2[j]), float(o3[j])
            y0, y1, y2, y3 = float(b0[j]), float(b1[j]), float(b2[j]), float(b3[j])
            t0, t1, t2, t3 = t0 + x0_0 * y0, t1 + x1_0 * y0, t2 + x2_0 * y0, t3 + x3_0 * y0
            t0, t1, t2, t3 = t0 + x0_1 * y1, t1 + x1_1 * y1, t2 + x2_1 * y1, t3 + x3_1 * y1
            t0, t1, t2, t3 = t0 + x0_2 * y2, t1 + x1_2 * y2, t2 + x2_2 * y2, t3 + x3_2 * y2
            t0, t1, t2, t3 = t0 + x0_3 * y3, t1 + x1_3 * y3, t2 + x2_3 * y3, t3 + x3_3 * y3
            y4, y5, y6, y7 = float(b4[j]), float(b5[j]), float(b6[j]), float(b7[j])
            t0, t1, t2, t3 = t0 + x0_4 * y4, t1 + x1_4 * y4, t2 + x2_4 * y4, t3 + x3_4 * y4
            t0, t1, t2, t3 = t0 + x0_5 * y5, t1 + x1_5 * y5, t2 + x2_5 * y5, t3 + x3_5 * y5
            t0, t1, t2, t3 = t0 + x0_6 * y6, t1 + x1_6 * y6, t2 + x2_6 * y6, t3 + x3_6 * y6
            t0, t1, t2, t3 = t0 + x0_7 * y7, t1 + x1_7 * y7, t2 + x2_7 * y7, t3 + x3_7 * y7
            y8, y9, ya, yb = float(b8[j]), float(b9[j]), float(ba[j]), float(bb[j])
            t0, t1, t2, t3 = t0 + x0_8 * y8, t1 + x1_8 * y8, t2 + x2_8 * y8, t3 + x3_8 * y8
            t0, t1, t2, t3 = t0 + x0_9 * y9, t1 + x1_9 * y9, t2 + x2_9 * y9, t3 + x3_9 * y9
            t0, t1, t2, t3 = t0 + x0_a * ya, t1 + x1_a * ya, t2 + x2_a * ya, t3 + x3_a * ya
            t0, t1, t2, t3 = t0 + x0_b * yb, t1 + x1_b * yb, t2 + x2_b * yb, t3 + x3_b * yb
            yc, yd, ye, yf = float(bc[j]), float(bd[j]), float(be[j]), float(bf[j])
            t0, t1, t2, t3 = t0 + x0_c * yc, t1 + x1_c * yc, t2 + x2_c * yc, t3 + x3_c * yc
            t0, t1, t2, t3 = t0 + x0_d * yd, t1 + x1_d * yd, t2 + x2_d * yd, t3 + x3_d * yd
            t0, t1, t2, t3 = t0 + x0_e * ye, t1 + x1_e * ye, t2 + x2_e * ye, t3 + x3_e * ye
            t0, t1, t2, t3 = t0 + x0_f * yf, t1 + x1_f * yf, t2 + x2_f * yf, t3 + x3_f * yf
            o0[j], o1[j], o2[j], o3[j] = t0, t1, t2, t3
        k += 16
    if k < depth:
        _rest(a0[k * hop :], hop, b, first + k, depth - k, o0)
        _rest(a1[k * hop :], hop, b, first + k, depth - k, o1)
        _rest(a2[k * hop :], hop, b, first + k, depth - k, o2)
        _rest(a3[k * hop :], hop, b, first + k, depth - k, o3)


def _add_product(a: Any, b: Any, c: Any) -> None:
    """c += a @ b"""
    i = 0
    while i + 4 <= len(c):
        four_rounded_rows(a[i], a[i + 1], a[i + 2], a[i + 3], 1, b, 0, len(b), c[i], c[i + 1], c[i + 2], c[i + 3])
        i += 4
    while i < len(c):
        one_rounded_row(a[i], 1, b, 0, len(b), c[i])
        i += 1


class MatMulRoundedBlock(MultiVertex):
    """c = a @ b. The product unit of a tile is one for all its workers: worker 0 stands for it."""

    a: Input[Matrix[HALF]]
    b: Input[Matrix[HALF]]
    c: Output[Matrix[HALF]]

    def compute(self, worker: int) -> None:
        if worker == 0:
            zero(self.c)
            _add_product(self.a, self.b, self.c)


class MatMulAddRoundedBlock(MultiVertex):
    """c += a @ b"""

    a: Input[Matrix[HALF]]
    b: Input[Matrix[HALF]]
    c: InOut[Matrix[HALF]]

    def compute(self, worker: int) -> None:
        if worker == 0:
            _add_product(self.a, self.b, self.c)
