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
    stride: int = 1
    kernel_dilation: int = 1
    input_dilation: int = 1

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
        return math.prod(w.input_dilation // math.gcd(w.input_dilation, w.stride) for w in self.windows)

    @property
    def empty(self) -> bool:
        """Whether nothing is to be multiplied."""
        return not math.prod(self.lengths)

    @property
    def fused(self) -> bool:
        """Whether neighbours along the last dimension of the kernel take neighbours of the input, so that the two are one dimension to sum over."""
        return bool(self.windows) and not self.channelwise and self.windows[-1].kernel_dilation == self.windows[-1].input_dilation

    def __str__(self) -> str:
        groups = f" x {self.groups} groups" if self.groups > 1 else ""
        if not self.windows:
            return f"product [{self.batch}, {self.k}] @ [{self.k}, {self.n}]{groups} of {self.dtype!r}"
        field, kernel, out = (" x ".join(str(getattr(w, name)) for w in self.windows) for name in ("input", "kernel", "out"))
        channels = f"{self.n} channels, each by itself" if self.channelwise else f"{self.k} to {self.n} channels"
        return f"convolution of {self.batch} x [{field}] with [{kernel}], to [{out}], {channels}{groups}, of {self.dtype!r}"
