"""What a planner has to share out to tiles: a product of matrices, or a convolution, which is one with windows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from popcore.codelets.operations import FLOAT_TYPE
from popcore.types import Array, ElementType


@dataclass(frozen=True)
class Window:
    """One dimension of a convolution's field: output o and kernel element k take input (o * ``stride`` + k * ``kernel_dilation`` + ...) / ``input_dilation``."""

    out: int
    kernel: int
    input: int
    pairs: int  # of an output and a kernel element that have an input; the rest meet padding, or zeros between inputs
    stride: int = 1
    kernel_dilation: int = 1
    input_dilation: int = 1

    @property
    def apart(self) -> int:
        """Of so many neighbouring outputs one meets a given kernel element, where the input is dilated."""
        return self.input_dilation // math.gcd(self.input_dilation, self.stride)

    def met(self, out: Array, kernel: Array) -> Array:
        """Pairs of ``out`` neighbouring outputs and ``kernel`` neighbouring kernel elements, at most."""
        made: Array = np.minimum(-(-out // self.apart) * kernel, self.pairs)
        return made

    def reach(self, out: Array, kernel: Array) -> Array:
        """How many input elements ``out`` neighbouring outputs take of ``kernel`` neighbouring kernel elements, at most."""
        span = (out - 1) * self.stride + (kernel - 1) * self.kernel_dilation
        made: Array = np.minimum(span // self.input_dilation + 1, self.input)
        return made


@dataclass(frozen=True)
class Problem:
    """``out[group, row, n] = sum over k and kernel of data[group, row moved by kernel, k] * weights[group, kernel, k, n]``.

    A row is a batch element and a place of the field; a product of matrices has ``batch`` rows and no ``windows``.
    With ``channelwise`` there is no k: ``data`` has the dimension n, and each n is by itself (a depthwise convolution).
    """

    groups: int
    batch: int
    k: int
    n: int
    dtype: ElementType
    windows: tuple[Window, ...] = ()
    channelwise: bool = False
    whole_kernel: bool = False  # the kernel is not to be split: partial results cannot be summed
    partials: ElementType = FLOAT_TYPE  # what sums are until the last

    @property
    def rank(self) -> int:
        return len(self.windows)

    @property
    def lengths(self) -> tuple[int, ...]:
        """Of the dimensions in the order in which a plan's parts are: groups, batch, fields, n, kernels, k."""
        return (self.groups, self.batch, *(w.out for w in self.windows), self.n, *(w.kernel for w in self.windows), self.k)

    @property
    def apart(self) -> int:
        """Of so many results one meets a given kernel element, where the input is dilated."""
        return math.prod(w.apart for w in self.windows)

    @property
    def empty(self) -> bool:
        """Whether nothing is to be multiplied."""
        return not math.prod(self.lengths)

    @property
    def fused(self) -> int:
        """How many of the last dimensions of the kernel are one with k: what a part of the kernel takes of the input lies there without gaps.

        Where there is one output it takes all; and once more where neighbours along the kernel take neighbours of the input.
        """
        if self.channelwise:
            return 0
        count = next((d for d, w in enumerate(reversed(self.windows)) if w.out > 1), self.rank)
        return count + int(count < self.rank and self.windows[-1 - count].kernel_dilation == self.windows[-1 - count].input_dilation)

    @property
    def single(self) -> bool:
        """Whether the field of the result is one place, so that a convolution is a product of matrices."""
        return all(w.out == 1 for w in self.windows)

    def __str__(self) -> str:
        groups = f" x {self.groups} groups" if self.groups > 1 else ""
        if not self.windows:
            return f"product [{self.batch}, {self.k}] @ [{self.k}, {self.n}]{groups} of {self.dtype!r}"
        field, kernel, out = (" x ".join(str(getattr(w, name)) for w in self.windows) for name in ("input", "kernel", "out"))
        channels = f"{self.n} channels, each by itself" if self.channelwise else f"{self.k} to {self.n} channels"
        return f"convolution of {self.batch} x [{field}] with [{kernel}], to [{out}], {channels}{groups}, of {self.dtype!r}"
