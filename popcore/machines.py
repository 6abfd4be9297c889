"""The machines as data: chips, and the systems they come in.

Every number stands beside the public text it comes from, by these keys:

=========== =====================================================================================
DS-M2000    IPU-M2000 IPU-Machine Datasheet; DS-M2000-1.0 is its first edition (September 2020)
DS-BOW      Bow-2000 datasheet
BP16        Bow Pod16 product brief
POD256      Bow Pod256 datasheet
ISA         Tile Vertex ISA 1.2.3 (IPU2)
JIA         Jia et al. 2019, Dissecting the Graphcore IPU Architecture via Microbenchmarking, arXiv 1912.03413
CAMB        Cambrian AI Research 2021, The Data Center Architecture for Graphcore Computing
HC33        Knowles 2021, Hot Chips 33, read in notes taken by others
PL          the public PopLibs sources
RE          the public reverse engineering of a Mk1 chip
calc        computed from the others
=========== =====================================================================================

``docs/model.md`` says which of these were measured and which only printed in a brochure.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace

from popcore.errors import UnknownNameError

KIB = 1024
GB = 10**9


@dataclass(frozen=True, slots=True)
class MemoryRegion:
    """A stretch of a tile's SRAM with rules of its own."""

    name: str
    address: int  # of its first byte, as the tile sees it
    nbytes: int
    interleaved: bool  # neighbouring 8-byte words lie in two memory elements, so 16 bytes load at once
    executable: bool


@dataclass(frozen=True, slots=True)
class Chip:
    """One IPU."""

    name: str
    architecture: str  # "ipu1" or "ipu2"
    tiles: int
    clock_hz: int
    memory_regions: tuple[MemoryRegion, ...]
    amp_units_f16_f16: int  # fused units that multiply halves and store half partials
    amp_units_f16_f32: int
    amp_units_f32_f32: int
    workers: int = 6  # JIA, ISA 2.3: six contexts beside the supervisor
    memory_element_bytes: int = 16 * KIB  # ISA 4.1.6.4, RE
    data_path_bits: int = 64  # ISA 2.8.6, PL
    float_vector_width: int = 2  # ISA: f32v2; JIA table 5.1
    half_vector_width: int = 4  # ISA: f16v4
    atomic_store_bytes: int = 4  # PL: a shorter store reads and writes the whole word
    rpt_count_max: int = 4095  # PL: the count of a ``rpt`` loop is 12 bits
    stride_bits: int = 10  # PL: three strides of 10 bits in a register
    memcpy_bytes_per_cycle: int = 8  # ISA: ``ldst64pace`` loads and stores 64 bits a cycle
    exchange_bytes_per_cycle: int = 4  # JIA, HC33: 32 bits out and 32 bits in, each cycle, each tile
    tiles_per_exchange_bus: int = 2  # JIA table 4.9, PL: the same data to an aligned pair arrives at twice the width
    sync_cycles: int = 150  # HC33: barrier on one chip
    sync_seconds_per_hop: float = 15e-9  # PL (global sync latency), HC33; twice for the way back
    amp_pipeline_depth: int = 4  # ISA 2.9: 4 inputs x 4 halves make the 16 channels of one output
    amp_weight_load_bytes: int = 16  # ISA: ``ld128putcs``, per cycle
    links: int = 10  # JIA: x8 IPU-Links of one chip
    link_bytes_per_second: int = 16 * GB  # calc from JIA: nominal, one x8 link, one direction
    link_efficiency: float = 0.86  # JIA: 13.8 GB/s measured; PL uses 0.85
    links_to_partner: int = 4  # PL (old IPUModel): to the other chip on the rung
    links_to_cross: int = 2  # PL: traffic that passes through the partner
    links_to_rail: int = 2  # PL: in each direction along the rail

    @property
    def bytes_per_tile(self) -> int:
        return sum(r.nbytes for r in self.memory_regions)

    @property
    def peak_half_flops(self) -> int:
        """Per second, half partials stored; a unit multiplies and adds a vector a cycle (calc; the datasheets agree)."""
        return 2 * self.amp_units_f16_f16 * self.half_vector_width * self.tiles * self.clock_hz

    @property
    def peak_float_flops(self) -> int:
        """Per second, float in and out."""
        return 2 * self.amp_units_f32_f32 * self.float_vector_width * self.tiles * self.clock_hz


# ISA 4.1.6: region 0 holds code and data; region 1 data only.
_MK2_MEMORY = (
    MemoryRegion("region 0", 0x4C000, 208 * KIB, interleaved=False, executable=True),
    MemoryRegion("region 1", 0x80000, 416 * KIB, interleaved=True, executable=False),
)  # fmt: skip

GC2 = Chip(
    name="GC2",
    architecture="ipu1",
    tiles=1216,  # JIA figure 2.2
    clock_hz=1_600_000_000,  # JIA
    memory_regions=(  # RE; JIA: 256 KiB a tile
        MemoryRegion("region 0", 0x40000, 128 * KIB, interleaved=False, executable=True),
        MemoryRegion("region 1", 0x60000, 128 * KIB, interleaved=True, executable=False),
    ),
    amp_units_f16_f16=8, amp_units_f16_f32=8, amp_units_f32_f32=4,  # RE, PL; JIA: 64 FLOP a cycle in half, 16 in float
    sync_cycles=105,  # calc from JIA: what is left of a transfer all over the chip, 60 to 105
)  # fmt: skip

GC200 = Chip(
    name="GC200",
    architecture="ipu2",
    tiles=1472,  # DS-M2000: 5,888 in a machine of 4
    clock_hz=1_325_000_000,  # DS-M2000-1.0; the SDK prints it as 1.33 GHz
    memory_regions=_MK2_MEMORY,  # 624 KiB a tile: ISA table 4.9
    amp_units_f16_f16=16, amp_units_f16_f32=8, amp_units_f32_f32=8,  # ISA 2.9.11, PL; 128, 64 and 32 FLOP a cycle
)  # fmt: skip

BOW = replace(GC200, name="BOW", clock_hz=1_850_000_000)  # DS-BOW: 5,888 tiles in a machine of 4, 1.85 GHz; the architecture is GC200's

CHIPS: tuple[Chip, ...] = (GC2, GC200, BOW)


@dataclass(frozen=True, slots=True)
class System:
    """What IPUs are sold in: how many there are, and what stands around them. Bandwidths are per direction."""

    name: str
    chip: Chip
    num_ipus: int
    ipus_per_machine: int
    topology: str  # of the IPU-Links: "pair", "ladder" (rungs of two IPUs) or "torus" (a ladder whose ends are joined)
    link_configuration: str  # of rings on the IPU-Links: "default" or "barley_twist" (two helices around a torus)
    link_domain: int  # IPUs that reach each other over IPU-Links; beyond it, GW-Links
    streaming_bytes: int  # Streaming Memory of one machine; 0: it has none
    streaming_bytes_per_second: int  # of one machine, shared by its IPUs
    gateway_bytes_per_second: int  # GW-Links of one machine; 0: it has none
    ipus_per_host_link: int  # IPUs that share one way to the host
    host_bytes_per_second: int  # of that way
    host_bytes_per_second_per_ipu: int
    callback_cycles: tuple[int, int]  # of the tile clock, for which a stream copy waits for a host callback: to prepare data, to answer


def _card(name: str) -> System:
    return System(
        name, GC2, num_ipus=2, ipus_per_machine=2, topology="pair", link_configuration="default", link_domain=16,  # JIA: two chips a card, 16 chips in the machine measured
        streaming_bytes=0, streaming_bytes_per_second=0, gateway_bytes_per_second=0,
        ipus_per_host_link=4,  # JIA table 4.20: up to 4 chips over 16 lanes of PCIe, 8 over 32
        host_bytes_per_second=13_800_000_000, host_bytes_per_second_per_ipu=5_860_000_000,  # JIA: measured, 16 lanes
        callback_cycles=(12_596, 0),  # J-HOSTL: 8.81 us in all at 1.6 GHz, less 1,500 of the device's own
    )  # fmt: skip


def _machines(name: str, chip: Chip, count: int) -> System:
    """``count`` IPU-Machines of four chips: one, a Pod16 or Pod64, or several Pod64."""
    return System(
        name, chip, num_ipus=4 * count, ipus_per_machine=4,  # DS-M2000, DS-BOW: four, whatever else is printed
        topology="ladder" if count <= 4 else "torus",  # Pod16 is a ladder; a Pod64 closes it: DS-M2000-1.0, CAMB, POD256
        link_configuration="default" if count <= 4 else "barley_twist",  # PL: what its collectives ask of a torus of 64, "tested on a POD64"
        link_domain=min(4 * count, 64),  # CAMB: up to 64 IPUs
        streaming_bytes=128 * GB,  # DS-M2000, DS-BOW: two DIMMs of 64 GB; 256 GB is an option
        streaming_bytes_per_second=20 * GB,  # CAMB; the DIMMs' peak is 38.4 GB/s (calc)
        gateway_bytes_per_second=25 * GB,  # DS-M2000: 2 x 100 GbE
        ipus_per_host_link=4,  # DS-M2000: one network card a machine
        host_bytes_per_second=12_500_000_000,  # calc: 100 GbE
        host_bytes_per_second_per_ipu=12_500_000_000,  # calc: one IPU may use all of it; its x8 PCIe Gen4 carries 16 GB/s (CAMB figure 2)
        callback_cycles=(78_000, 83_500),  # LP-5, LP-6
    )  # fmt: skip


SYSTEMS: tuple[System, ...] = (
    _card("C2"),
    _machines("M2000", GC200, 1),
    _machines("BOW-2000", BOW, 1),
    _machines("POD16", GC200, 4),
    _machines("POD64", GC200, 16),
    _machines("POD128", GC200, 32),  # two Pod64 joined by GW-Links
    _machines("POD256", GC200, 64),
    _machines("BOW-POD16", BOW, 4),  # BP16
    _machines("BOW-POD64", BOW, 16),
)
"""Every system, in the order ``popcore info`` shows."""

_CHIP_SYSTEM = {"GC2": "C2", "IPU1": "C2", "GC200": "M2000", "IPU2": "M2000", "BOW": "BOW-2000"}
"""Names of one chip, and the system it is then taken from."""


def systems() -> tuple[str, ...]:
    """The names that ``Device`` takes. Case, dashes, spaces and a leading ``IPU-`` do not matter."""
    return tuple(s.name for s in SYSTEMS)


def _plain(name: str) -> str:
    return "".join(c for c in name.upper() if c.isalnum())


def find_system(name: str) -> tuple[System, int]:
    """The system ``name`` means, and how many of its IPUs: all, or one if ``name`` is a chip's.

    Raises:
        UnknownNameError: no system or chip is called so; the nearest names are given.
    """
    known = {_plain(s.name): (s, s.num_ipus) for s in SYSTEMS}
    known |= {chip: (known[_plain(system)][0], 1) for chip, system in _CHIP_SYSTEM.items()}
    plain = _plain(name) if isinstance(name, str) else ""
    for form in (plain, plain.removeprefix("IPU")):
        if form in known:
            return known[form]
    near = difflib.get_close_matches(plain, known, n=3, cutoff=0.5)
    hint = " or ".join(repr(next((s for s in systems() if _plain(s) == n), n)) for n in near)
    raise UnknownNameError(f"no system is called {name!r}", hint or "one of " + ", ".join(systems()))
