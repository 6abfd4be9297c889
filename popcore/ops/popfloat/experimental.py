"""Bits of HALF on the host, and casts to floats of any few bits. After ``popfloat/experimental/CastToHalf.hpp`` and ``CastToGfloat.hpp``."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from popcore.codelets.gfloat import DOWN, FROM_ZERO, TO_EVEN, TO_ZERO, UP, CastToGfloat
from popcore.errors import ElementTypeError, ValueRangeError
from popcore.graph import ComputeSet, Graph, Tensor
from popcore.ops import popops
from popcore.ops.popops import common
from popcore.ops.popops.placing import output_like, spread
from popcore.program import Sequence
from popcore.types import ElementType, as_element_type

GREATEST_HALF = 0x7BFF  # 65504


def single_to_half(value: float, en_nanoo: bool = False) -> int:
    """The bits of the HALF nearest to a single precision ``value``, ties to even.

    A finite value beyond the greatest HALF gives infinity; with ``en_nanoo`` the greatest. Infinity stays, NaN is NaN.
    """
    with np.errstate(over="ignore", under="ignore"):
        single = np.float32(value)
        bits = int(single.astype(np.float16).view(np.uint16))
    if en_nanoo and np.isfinite(single) and bits & 0x7FFF == 0x7C00:
        return (bits & 0x8000) | GREATEST_HALF
    return bits


def half_to_single(ihalf: int) -> float:
    """What the bits of a HALF stand for.

    Raises: ValueRangeError: more than 16 bits.
    """
    if not 0 <= ihalf < 1 << 16:
        raise ValueRangeError(f"half_to_single({ihalf})", "16 bits: 0 to 65535")
    return float(np.uint16(ihalf).view(np.float16))


class RoundType(enum.Enum):
    """Where a number goes that a format does not have. Stochastic rounding is not available."""

    RZ = TO_ZERO  # toward zero
    RN = TO_EVEN  # to the nearest, ties to even
    RA = FROM_ZERO  # to the nearest, ties away from zero
    RU = UP  # toward infinity
    RD = DOWN  # toward minus infinity


class SpecType(enum.Enum):
    """What numbers of a format are kept in; AUTO is HALF where that has all of them, else FLOAT. Packed forms are not available."""

    FP32 = "float"
    FP16 = "half"
    AUTO = "auto"


@dataclass(frozen=True)
class FormatConfig:
    """A float of a sign, ``num_exponent_bits`` and ``num_mantissa_bits``.

    exponent_bias: What an exponent's field is more than the exponent.
    enable_denorms: Whether a field of 0 means a fraction without a leading one; otherwise only 0.
    enable_infs_and_nans: Whether the greatest field is kept for those.
    """

    num_mantissa_bits: int
    num_exponent_bits: int
    exponent_bias: int
    enable_denorms: bool = True
    enable_infs_and_nans: bool = True

    def __post_init__(self) -> None:
        least, greatest = self.exponents
        bits = 1 <= self.num_exponent_bits <= 8 and 0 <= self.num_mantissa_bits <= 23
        if not bits or greatest < least or least - self.num_mantissa_bits < -149 or greatest > 127:
            raise ValueRangeError(f"{self!r}", "numbers that FLOAT has: 1 to 8 exponent bits, up to 23 mantissa bits, nothing below 2**-149 or from 2**128 on")

    @property
    def exponents(self) -> tuple[int, int]:
        """Of the least number with a leading one, and of the greatest."""
        return 1 - self.exponent_bias, (1 << self.num_exponent_bits) - 1 - self.enable_infs_and_nans - self.exponent_bias

    @property
    def greatest(self) -> float:
        return math.ldexp(2 - 2.0**-self.num_mantissa_bits, self.exponents[1])

    @property
    def fits_half(self) -> bool:
        """Whether HALF has all of its numbers."""
        least, greatest = self.exponents
        return self.num_mantissa_bits <= 10 and greatest <= 15 and least - self.num_mantissa_bits * self.enable_denorms >= -24 and least >= -14


@dataclass(frozen=True)
class GfloatCast:
    """Casts to a format whose numbers are kept in FLOAT or HALF.

    enable_nanoo_mode: What is beyond the greatest number, infinity too, becomes NaN; otherwise the greatest. NaN stays.
    gf_type, native_type: What the two casts give.
    """

    format_config: FormatConfig
    round_mode: RoundType = RoundType.RN
    enable_nanoo_mode: bool = True
    gf_type: SpecType = SpecType.AUTO
    native_type: SpecType = SpecType.FP32

    def __post_init__(self) -> None:
        if self.gf_type is SpecType.FP16 and not self.format_config.fits_half:
            raise ValueRangeError(f"{self.format_config!r} in HALF", "SpecType.FP32: HALF does not have all of its numbers")

    @property
    def gf_storage_type(self) -> ElementType:
        kind = self.gf_type.value if self.gf_type is not SpecType.AUTO else "half" if self.format_config.fits_half else "float"
        return as_element_type(kind)

    def cast_native_to_gfloat(self, graph: Graph, input_: Tensor, prog: Sequence | ComputeSet, name: str = "") -> Tensor:
        """A new tensor of the numbers of ``input_``, FLOAT or HALF, as the format has them.

        Raises: ElementTypeError: another type.
        """
        step = common.joined(name, "cast_native_to_gfloat")
        common.require_tensors(step, input_)
        made = output_like(graph, [input_], input_.shape, self.gf_storage_type, f"{step}/out")
        self._cast(graph, input_, made, prog, step)
        return made

    def cast_native_to_gfloat_in_place(self, graph: Graph, input_: Tensor, prog: Sequence, name: str = "") -> None:
        """The same, written to ``input_``. Raises: also GraphError where it cannot be written; ElementTypeError where it does not have the numbers."""
        step = common.joined(name, "cast_native_to_gfloat_in_place")
        common.require_tensors(step, input_)
        common.require_writeable(step, input_)
        if input_.dtype is not self.gf_storage_type:
            raise ElementTypeError(f"{step} of {input_!r}", f"{self.gf_storage_type!r}, which numbers of the format are kept in")
        made = output_like(graph, [input_], input_.shape, input_.dtype, f"{step}/out")
        self._cast(graph, input_, made, prog, step)
        common.copy(prog, made, input_, step)

    def cast_gfloat_to_native(self, graph: Graph, input_: Tensor, prog: Sequence | ComputeSet, name: str = "") -> Tensor:
        """A new tensor of the same numbers in the native type, exactly if that is FLOAT."""
        wanted = "half" if self.native_type is SpecType.FP16 else "float"
        return popops.cast(graph, input_, wanted, prog, common.joined(name, "cast_gfloat_to_native"))

    def _cast(self, graph: Graph, t: Tensor, out: Tensor, prog: Sequence | ComputeSet, step: str) -> None:
        if t.dtype.kind not in ("float", "half"):
            raise ElementTypeError(f"{step} of {t!r}", "FLOAT or HALF")
        if not out.num_elements:
            return
        form = self.format_config
        fields = {
            "fraction": form.num_mantissa_bits, "least": form.exponents[0], "limit": form.greatest, "denormals": form.enable_denorms,
            "nanoo": self.enable_nanoo_mode, "mode": self.round_mode.value,
        }  # fmt: skip
        codelet: Any = CastToGfloat
        spread(graph, common.compute_set_of(graph, prog, step), codelet[t.dtype, out.dtype], out, {"x": t}, fields)
