"""Convolutions of blocks: products of rows of the input with rows of the weights, as a work list says (``popcore.ops.poplin.conv_work``).

Each sum is in FLOAT, over the pieces of work in their order and over depth within a piece. What differs between FLOAT and HALF is which of
``mat_mul``'s loops is faster; a codelet cannot ask for its element type, so there are two of each. The third are sums in HALF, rounded after
every 16 elements of a piece and at its end.
"""

# mypy: disable-error-code="assignment"
# A store converts to the element type of its field, whatever a type variable stands for.

from __future__ import annotations

from typing import Any, Generic, TypeVar

from popcore.codelet import InOut, Input, Matrix, MultiVertex, Output, Vector
from popcore.codelets.mat_mul import eight_half_rows, four_float_rows, four_rows, one_row, zero
from popcore.codelets.rounded import four_rounded_rows, one_rounded_row
from popcore.types import FLOAT, HALF, INT

T = TypeVar("T", bound=float)

_FIELDS = 8


def _add_half_piece(data: Any, weights: Any, work: Any, out: Any, e: int, hop: int) -> None:
    """Add the products of the piece of work at ``e``; its elements are ``hop`` apart, a number that is known here where it is 1: that is faster."""
    to, at, first, rows, depth, out_step, data_step = work[e], work[e + 1], work[e + 2], work[e + 3], work[e + 4], work[e + 5], work[e + 6]
    while rows >= 8:
        a0, a1, a2, a3 = data[at:], data[at + data_step :], data[at + 2 * data_step :], data[at + 3 * data_step :]
        a4, a5, a6, a7 = data[at + 4 * data_step :], data[at + 5 * data_step :], data[at + 6 * data_step :], data[at + 7 * data_step :]
        o0, o1, o2, o3 = out[to], out[to + out_step], out[to + 2 * out_step], out[to + 3 * out_step]
        o4, o5, o6, o7 = out[to + 4 * out_step], out[to + 5 * out_step], out[to + 6 * out_step], out[to + 7 * out_step]
        eight_half_rows(a0, a1, a2, a3, a4, a5, a6, a7, hop, weights, first, depth, o0, o1, o2, o3, o4, o5, o6, o7)
        to += 8 * out_step
        at += 8 * data_step
        rows -= 8
    while rows >= 4:
        a0, a1, a2, a3 = data[at:], data[at + data_step :], data[at + 2 * data_step :], data[at + 3 * data_step :]
        o0, o1, o2, o3 = out[to], out[to + out_step], out[to + 2 * out_step], out[to + 3 * out_step]
        four_rows(a0, a1, a2, a3, hop, weights, first, depth, o0, o1, o2, o3)
        to += 4 * out_step
        at += 4 * data_step
        rows -= 4
    while rows > 0:
        one_row(data[at:], hop, weights, first, depth, out[to])
        to += out_step
        at += data_step
        rows -= 1


def _add_half_pieces(data: Any, weights: Any, work: Any, out: Any) -> None:
    """``_add_half_piece`` of all."""
    for e in range(0, len(work), _FIELDS):
        if work[e + 7] == 1:
            _add_half_piece(data, weights, work, out, e, 1)
        else:
            _add_half_piece(data, weights, work, out, e, work[e + 7])


def _add_float_piece(data: Any, weights: Any, work: Any, out: Any, e: int, hop: int) -> None:
    """``_add_half_piece`` of FLOAT."""
    to, at, first, rows, depth, out_step, data_step = work[e], work[e + 1], work[e + 2], work[e + 3], work[e + 4], work[e + 5], work[e + 6]
    while rows >= 4:
        a0, a1, a2, a3 = data[at:], data[at + data_step :], data[at + 2 * data_step :], data[at + 3 * data_step :]
        o0, o1, o2, o3 = out[to], out[to + out_step], out[to + 2 * out_step], out[to + 3 * out_step]
        four_float_rows(a0, a1, a2, a3, hop, weights, first, depth, o0, o1, o2, o3)
        to += 4 * out_step
        at += 4 * data_step
        rows -= 4
    while rows > 0:
        one_row(data[at:], hop, weights, first, depth, out[to])
        to += out_step
        at += data_step
        rows -= 1


def _add_float_pieces(data: Any, weights: Any, work: Any, out: Any) -> None:
    """``_add_float_piece`` of all."""
    for e in range(0, len(work), _FIELDS):
        if work[e + 7] == 1:
            _add_float_piece(data, weights, work, out, e, 1)
        else:
            _add_float_piece(data, weights, work, out, e, work[e + 7])


def _add_rounded_piece(data: Any, weights: Any, work: Any, out: Any, e: int, hop: int) -> None:
    """``_add_half_piece`` of sums in HALF."""
    to, at, first, rows, depth, out_step, data_step = work[e], work[e + 1], work[e + 2], work[e + 3], work[e + 4], work[e + 5], work[e + 6]
    while rows >= 4:
        a0, a1, a2, a3 = data[at:], data[at + data_step :], data[at + 2 * data_step :], data[at + 3 * data_step :]
        o0, o1, o2, o3 = out[to], out[to + out_step], out[to + 2 * out_step], out[to + 3 * out_step]
        four_rounded_rows(a0, a1, a2, a3, hop, weights, first, depth, o0, o1, o2, o3)
        to += 4 * out_step
        at += 4 * data_step
        rows -= 4
    while rows > 0:
        one_rounded_row(data[at:], hop, weights, first, depth, out[to])
        to += out_step
        at += data_step
        rows -= 1


def _add_rounded_pieces(data: Any, weights: Any, work: Any, out: Any) -> None:
    """``_add_rounded_piece`` of all."""
    for e in range(0, len(work), _FIELDS):
        if work[e + 7] == 1:
            _add_rounded_piece(data, weights, work, out, e, 1)
        else:
            _add_rounded_piece(data, weights, work, out, e, work[e + 7])


class ConvBlock(MultiVertex):
    """The rows of ``out``. The product unit of a tile is one for all its workers: worker 0 stands for it."""

    data: Input[Vector[FLOAT]]
    weights: Input[Matrix[FLOAT]]
    work: Input[Vector[INT]]
    out: Output[Matrix[FLOAT]]

    def compute(self, worker: int) -> None:
        if worker == 0:
            zero(self.out)
            _add_float_pieces(self.data, self.weights, self.work, self.out)


class ConvAddBlock(MultiVertex):
    """The same, added to what is in ``out``."""

    data: Input[Vector[FLOAT]]
    weights: Input[Matrix[FLOAT]]
    work: Input[Vector[INT]]
    out: InOut[Matrix[FLOAT]]

    def compute(self, worker: int) -> None:
        if worker == 0:
            _add_float_pieces(self.data, self.weights, self.work, self.out)


class ConvHalfBlock(MultiVertex):
    """``ConvBlock`` of HALF."""

    data: Input[Vector[HALF]]
    weights: Input[Matrix[HALF]]
    work: Input[Vector[INT]]
    out: Output[Matrix[FLOAT]]

    def compute(self, worker: int) -> None:
        if worker == 0:
            zero(self.out)
            _add_half_pieces(self.data, self.weights, self.work, self.out)


class ConvAddHalfBlock(MultiVertex):
    """``ConvAddBlock`` of HALF."""

    data: Input[Vector[HALF]]
    weights: Input[Matrix[HALF]]
    work: Input[Vector[INT]]
    out: InOut[Matrix[FLOAT]]

    def compute(self, worker: int) -> None:
        if worker == 0:
            _add_half_pieces(self.data, self.weights, self.work, self.out)


class ConvRoundedBlock(MultiVertex):
    """``ConvBlock`` of HALF, sums too."""

    data: Input[Vector[HALF]]
    weights: Input[Matrix[HALF]]
    work: Input[Vector[INT]]
    out: Output[Matrix[HALF]]

    def compute(self, worker: int) -> None:
        if worker == 0:
            zero(self.out)
            _add_rounded_pieces(self.data, self.weights, self.work, self.out)


class ConvAddRoundedBlock(MultiVertex):
    """``ConvAddBlock`` of HALF, sums too."""

    data: Input[Vector[HALF]]
    weights: Input[Matrix[HALF]]
    work: Input[Vector[INT]]
    out: InOut[Matrix[HALF]]

    def compute(self, worker: int) -> None:
        if worker == 0:
            _add_rounded_pieces(self.data, self.weights, self.work, self.out)


class ConvChannelwiseBlock(MultiVertex, Generic[T]):
    """The rows of ``out`` where each channel is by itself: products element by element, summed over depth, which goes along the kernel."""

    data: Input[Vector[T]]
    weights: Input[Matrix[T]]
    work: Input[Vector[INT]]
    out: Output[Matrix[FLOAT]]

    def compute(self, worker: int) -> None:
        if worker == 0:
            work, data = self.work, self.data
            zero(self.out)
            for e in range(0, len(work), _FIELDS):
                for r in range(work[e + 3]):
                    row = self.out[work[e] + r * work[e + 5]]
                    for d in range(work[e + 4]):
                        weight = self.weights[work[e + 2] + d]
                        there = data[work[e + 1] + r * work[e + 6] + d * work[e + 7] :]
                        for j in range(len(row)):
                            row[j] = row[j] + float(there[j]) * float(weight[j])
