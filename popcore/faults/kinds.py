"""What can fail, and when: descriptions, which an injection looks up in a program.

Where a fault has ``at`` and ``execution``: a number is that of a step since the faults were injected, whichever it is; a name is that of a
compute set, copy, stream or collective, and ``execution`` says how often it is to have happened before. Both from 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class BitFlip:
    """A bit of a tensor in tile memory changes before a step.

    Args:
        tensor: The handle of a host read or write of it.
        element: In its flat order.
        bit: Of the element, 0 the lowest.
        parity: Whether the tile's memory notices when the word is read next; else wrong values go on.
    """

    tensor: str
    element: int
    bit: int
    at: int | str = 0
    execution: int = 0
    replica: int = 0
    parity: bool = True


@dataclass(frozen=True)
class DeadTile:
    """A tile does not answer any more, from a step on. ``tile``: of the replica."""

    tile: int
    at: int | str = 0
    execution: int = 0
    replica: int = 0


@dataclass(frozen=True)
class IpuLost:
    """An IPU does not answer any more, from a step on; of a collective, after it has taken part in ``ring_steps`` steps of the ring.

    ``ipu``: counted over all replicas.
    """

    ipu: int
    at: int | str = 0
    execution: int = 0
    ring_steps: int = 0


@dataclass(frozen=True)
class LinkDown:
    """The IPU-Links between two IPUs that are neighbours, both directions, carry nothing any more, from a step on."""

    one: int
    other: int
    at: int | str = 0
    execution: int = 0


@dataclass(frozen=True)
class LinkSlow:
    """The IPU-Links between two neighbours carry ``factor`` times less, from a step on."""

    one: int
    other: int
    factor: float
    at: int | str = 0
    execution: int = 0


@dataclass(frozen=True)
class CallbackFails:
    """What a stream is connected to raises, at its n-th transfer from now. ``error``: what it raises; a RuntimeError if not given."""

    stream: str
    transfer: int = 0
    error: Exception | None = None


@dataclass(frozen=True)
class CallbackLate:
    """What a stream is connected to answers late, at its n-th transfer from now. ``seconds``: of the device; nobody sleeps."""

    stream: str
    seconds: float
    transfer: int = 0


@dataclass(frozen=True)
class TruncatedTransfer:
    """Of a transfer to or from a remote buffer, its n-th from now, only the first ``elements`` arrive, on every replica."""

    remote: str
    elements: int
    transfer: int = 0


Fault: TypeAlias = BitFlip | DeadTile | IpuLost | LinkDown | LinkSlow | CallbackFails | CallbackLate | TruncatedTransfer
