"""What a graph is compiled for: the Target, and the Device that stands for an emulated machine.

The numbers behind the queries are in ``popcore/machines.py``, each with its source.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, SupportsIndex

import numpy as np

from popcore.errors import TileMappingError, ValueRangeError
from popcore.machines import BOW, GC2, GC200, Chip, MemoryRegion, System, find_system, systems
from popcore.types import DTypeLike, as_element_type

__all__ = ["BOW", "GC2", "GC200", "Chip", "Device", "MemoryRegion", "System", "Target", "systems"]


@dataclass(frozen=True, slots=True)
class Target:
    """What a graph is compiled for: some IPUs of a system, each with some of its tiles.

    Hashable and comparable by value. ``Target(system, num_ipus, tiles_per_ipu)`` takes any counts, odd ones
    too; everything that belongs to one tile stays as the chip has it. The names are Poplar's in snake_case.
    """

    system: System
    num_ipus: int
    tiles_per_ipu: int

    def __post_init__(self) -> None:
        for what, n in (("num_ipus", self.num_ipus), ("tiles_per_ipu", self.tiles_per_ipu)):
            if not isinstance(n, int) or isinstance(n, bool) or n < 1:
                raise ValueRangeError(f"{what} of a {self.system.name} is {n!r}", f"a whole number of 1 or more, as in {what}=1")

    # Counts

    @property
    def chip(self) -> Chip:
        return self.system.chip

    @property
    def name(self) -> str:
        """The system's name."""
        return self.system.name

    @property
    def num_tiles(self) -> int:
        """Tiles of all IPUs together; tile t belongs to IPU ``t // tiles_per_ipu``."""
        return self.num_ipus * self.tiles_per_ipu

    @property
    def num_worker_contexts(self) -> int:
        return self.chip.workers

    @property
    def target_arch_string(self) -> str:
        """ "ipu1" (Mk1) or "ipu2" (Mk2 and Bow)."""
        return self.chip.architecture

    # Clock

    @property
    def clock_hz(self) -> int:
        return self.chip.clock_hz

    @property
    def tile_clock_frequency(self) -> float:
        """Hz. The same number as ``clock_hz``."""
        return float(self.chip.clock_hz)

    # Memory of a tile

    @property
    def bytes_per_tile(self) -> int:
        return self.chip.bytes_per_tile

    @property
    def memory_regions(self) -> tuple[MemoryRegion, ...]:
        return self.chip.memory_regions

    @property
    def memory_element_offsets(self) -> tuple[int, ...]:
        """Offset of each memory element from the tile's first byte; one access a cycle each."""
        return tuple(range(0, self.bytes_per_tile, self.chip.memory_element_bytes))

    @property
    def interleaved_memory_element_index(self) -> int:
        """The first memory element that lies in the interleaved region."""
        return sum(r.nbytes for r in self.memory_regions if not r.interleaved) // self.chip.memory_element_bytes

    # Instructions

    @property
    def data_path_width(self) -> int:
        """Bits that one load or store moves."""
        return self.chip.data_path_bits

    @property
    def atomic_store_granularity(self) -> int:
        """Bytes. Two workers may not write within one such unit."""
        return self.chip.atomic_store_bytes

    @property
    def rpt_count_max(self) -> int:
        """Most iterations of one ``rpt`` loop."""
        return self.chip.rpt_count_max

    @property
    def num_stride_bits(self) -> int:
        return self.chip.stride_bits

    @property
    def memcpy_bytes_per_cycle(self) -> int:
        return self.chip.memcpy_bytes_per_cycle

    @property
    def float_vector_width(self) -> int:
        return self.chip.float_vector_width

    @property
    def half_vector_width(self) -> int:
        return self.chip.half_vector_width

    def get_type_size(self, dtype: DTypeLike) -> int:
        """Bytes of one element in tile memory."""
        return as_element_type(dtype).nbytes

    def get_vector_width(self, dtype: DTypeLike) -> int:
        """Elements that one instruction computes on: as many as the data path is wide, for floating types; else 1."""
        element = as_element_type(dtype)
        return {"float": self.float_vector_width, "half": self.half_vector_width}.get(element.kind, 1)

    def get_type_limits(self, dtype: DTypeLike) -> tuple[float, float]:
        """The lowest and the highest finite value of an element type."""
        element = as_element_type(dtype)
        if element.kind == "bool":
            return 0, 1
        if element.is_integral:
            return int(np.iinfo(element.numpy).min), int(np.iinfo(element.numpy).max)
        if element.kind == "quarter":
            import ml_dtypes  # only FP8 needs it

            described: Any = ml_dtypes.finfo
        else:
            described = np.finfo
        limits = described(element.numpy)
        return float(limits.min), float(limits.max)

    # The accumulating matrix product unit (AMP)

    @property
    def fp16_in_fp16_out_conv_units_per_tile(self) -> int:
        return self.chip.amp_units_f16_f16

    @property
    def fp16_in_fp32_out_conv_units_per_tile(self) -> int:
        return self.chip.amp_units_f16_f32

    @property
    def fp32_in_fp32_out_conv_units_per_tile(self) -> int:
        return self.chip.amp_units_f32_f32

    @property
    def conv_unit_max_pipeline_depth(self) -> int:
        return self.chip.amp_pipeline_depth

    @property
    def conv_unit_coeff_load_bytes_per_cycle(self) -> int:
        return self.chip.amp_weight_load_bytes

    def get_conv_unit_input_load_elems_per_cycle(self, dtype: DTypeLike) -> int:
        """Elements of the moving operand that one unit takes in a cycle."""
        return self.get_vector_width(dtype)

    def get_weights_per_conv_unit(self, dtype: DTypeLike) -> int:
        """Weights that one unit holds: channels summed in one pass."""
        return self.chip.amp_pipeline_depth * self.get_vector_width(dtype)

    # Exchange and barriers

    @property
    def exchange_bytes_per_cycle(self) -> int:
        """Bytes a tile sends, and at once receives, in a cycle."""
        return self.chip.exchange_bytes_per_cycle

    @property
    def tiles_per_shared_exchange_bus(self) -> int:
        return self.chip.tiles_per_exchange_bus

    @property
    def supports_exchange_bus_sharing(self) -> bool:
        return self.chip.tiles_per_exchange_bus > 1

    @property
    def max_ipu_sync_delay(self) -> int:
        """Cycles of a barrier on one chip."""
        return self.chip.sync_cycles

    @property
    def ipu_link_topology(self) -> str:
        return self.system.topology

    @property
    def ipu_link_configuration(self) -> str:
        """How rings lie on the IPU-Links: "default" or "barley_twist"."""
        return self.system.link_configuration

    @property
    def ipu_link_domain_size(self) -> int:
        """IPUs that reach each other over IPU-Links."""
        return self.system.link_domain

    # Other targets like this one

    def with_ipus(self, num_ipus: int) -> Target:
        """The same tiles on another number of IPUs, as for one replica of a graph."""
        return replace(self, num_ipus=num_ipus)

    def virtual(self, tiles: SupportsIndex | Iterable[int]) -> Target:
        """What a virtual graph on ``tiles`` sees: the first so many, or those listed.

        IPUs that give equally many tiles stay apart; else all count as one IPU with that many tiles.

        Raises:
            TileMappingError: a tile that this target does not have, one listed twice, or none at all.
        """
        listed = [int(t) for t in tiles] if isinstance(tiles, Iterable) else list(range(operator.index(tiles)))
        if not listed or min(listed) < 0 or max(listed) >= self.num_tiles or len(set(listed)) != len(listed):
            shown = f"{listed[:6]}{' ...' if len(listed) > 6 else ''}" if isinstance(tiles, Iterable) else tiles
            raise TileMappingError(f"no virtual target of tiles {shown}: {self} has tiles 0 to {self.num_tiles - 1}", "list each tile once")
        shares = np.bincount([t // self.tiles_per_ipu for t in listed])
        shares = shares[shares > 0]
        ipus = len(shares) if np.all(shares == shares[0]) else 1
        return replace(self, num_ipus=ipus, tiles_per_ipu=len(listed) // ipus)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings, every constant of chip and system among them; ``from_dict`` reads it."""
        import msgspec  # only what reads or writes files needs it

        made: dict[str, Any] = msgspec.to_builtins(self)
        return made

    @staticmethod
    def from_dict(plain: Mapping[str, Any]) -> Target:
        """The target that ``to_dict`` wrote.

        Raises:
            ValueRangeError: something is missing, or of the wrong type; the place is named.
        """
        import msgspec

        try:
            return msgspec.convert(plain, Target)
        except msgspec.ValidationError as error:
            raise ValueRangeError(f"this describes no target: {error}", "pass what Target.to_dict() gave") from None

    def __str__(self) -> str:
        return f"{self.name} ({self.num_ipus} x {self.chip.name}, {self.tiles_per_ipu} tiles each)"


class Device:
    """An emulated machine: a system by name, with as many IPUs and tiles as wanted.

    Args:
        name: One of ``systems()``, or a chip ("GC200": one IPU). The environment variable ``POPCORE_DEVICE``
            puts another in its place, so that a program runs on another machine unchanged.
        num_ipus: Any number; the system's own if not given.
        tiles_per_ipu: Any number; the chip's own if not given. Fewer tiles compile and run faster.

    Raises:
        UnknownNameError: no system is called so.
        ValueRangeError: a count below 1.
    """

    def __init__(self, name: str, num_ipus: int | None = None, tiles_per_ipu: int | None = None) -> None:
        system, ipus = find_system(os.environ.get("POPCORE_DEVICE") or name)
        self.target = Target(system, _count(num_ipus, ipus), _count(tiles_per_ipu, system.chip.tiles))

    @property
    def name(self) -> str:
        return self.target.name

    def __repr__(self) -> str:
        return f"Device({self.name!r}, num_ipus={self.target.num_ipus}, tiles_per_ipu={self.target.tiles_per_ipu})"


def _count(given: SupportsIndex | None, otherwise: int) -> Any:
    """``given`` as an int where it is a whole number of any kind; Target refuses the rest."""
    if given is None:
        return otherwise
    return operator.index(given) if hasattr(given, "__index__") and not isinstance(given, bool) else given
