"""Metadata of FP8 tensors: the format and the scale. After ``poplar/Quarter.hpp`` and ``poputil/Util.hpp``."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from popcore.codelets.quarter import FORMAT_BIT, GREATEST_SCALE, LEAST_SCALE
from popcore.errors import ElementTypeError, ValueRangeError
from popcore.graph import Graph, Tensor
from popcore.types import UNSIGNED_CHAR, DTypeLike, ElementType, as_element_type


class QuarterFormat(enum.Enum):
    """Sign, exponent and fraction bits: one, four, three; or one, five, two."""

    F143 = "quarter_f143"
    F152 = "quarter_f152"


@dataclass(frozen=True)
class QuarterMetadata:
    """A code stands for its number in ``format`` times 2**scale."""

    format: QuarterFormat
    scale: int = 0

    def __post_init__(self) -> None:
        if not LEAST_SCALE <= self.scale <= GREATEST_SCALE:
            raise ValueRangeError(f"an FP8 scale of {self.scale}", f"{LEAST_SCALE} to {GREATEST_SCALE}")

    @property
    def dtype(self) -> ElementType:
        return as_element_type(self.format.value)

    def get_binary(self) -> int:
        """As the one byte of a metadata tensor."""
        return (self.scale & 0x3F) | (FORMAT_BIT if self.format is QuarterFormat.F152 else 0)


def create_constant_metadata_tensor(graph: Graph, fp8_format: QuarterFormat | DTypeLike, fp8_scale: int, name: str = "") -> Tensor:
    """A constant of one byte for ``popops.cast``, on tile 0."""
    made = QuarterMetadata(quarter_format(fp8_format), fp8_scale)
    return graph.add_constant(UNSIGNED_CHAR, (), made.get_binary(), name=name, tile=0)


def create_variable_metadata_tensor(graph: Graph, fp8_format: QuarterFormat | DTypeLike, fp8_scale: int, name: str = "") -> Tensor:
    """A variable that holds the same when an engine loads, and may be written."""
    made = graph.add_variable(UNSIGNED_CHAR, (), name=name, tile=0)
    graph.set_initial_value(made, QuarterMetadata(quarter_format(fp8_format), fp8_scale).get_binary())
    return made


def quarter_format(what: QuarterFormat | DTypeLike) -> QuarterFormat:
    """Of a format, or of QUARTER_F143 or QUARTER_F152. Raises: ElementTypeError"""
    if isinstance(what, QuarterFormat):
        return what
    element = as_element_type(what)
    if element.kind != "quarter":
        raise ElementTypeError(f"{element!r} is no FP8 format", "QUARTER_F143 or QUARTER_F152")
    return QuarterFormat(element.__name__.lower())
