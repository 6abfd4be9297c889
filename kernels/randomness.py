"""Random bits for stochastic rounding: a hash of a key and a counter, so that no state is kept and results depend on no order.

A call of ``compute`` has a key, made from the seed and from which call it is; its roundings are counted. Imports nothing heavy:
``stochastic`` has the same as code for the compiler.
"""

import hashlib

MULTIPLIERS = (0x9E3779B9, 0x85EBCA6B, 0xC2B2AE35)  # of MurmurHash3's finaliser and its step, public domain
STEP = 0x9E3779B97F4A7C15  # of SplitMix64, public domain
MIXERS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
_MASK, _MASK32 = (1 << 64) - 1, (1 << 32) - 1


def mix(key: int, part: int) -> int:
    """A key that depends on ``key`` and on one number more, 64 bits."""
    word = (key + (part + 1) * STEP) & _MASK
    word = (word ^ word >> 30) * MIXERS[0] & _MASK
    word = (word ^ word >> 27) * MIXERS[1] & _MASK
    return word ^ word >> 31


def number_of(fingerprint: str) -> int:
    """A codelet's fingerprint as a part of keys."""
    return int.from_bytes(hashlib.blake2b(fingerprint.encode(), digest_size=8).digest(), "little")


def key_of_call(seed: int, fingerprint: str, phase: int, replica: int, tile: int, vertex: int, worker: int) -> int:
    """The key of one call of ``compute``.

    fingerprint   of the codelet
    phase         compute sets run since loading, this one included
    vertex        among those of its codelet in the compute set, as they were added
    """
    key = seed & _MASK
    for part in (number_of(fingerprint), phase, replica, tile, vertex, worker):
        key = mix(key, part)
    return key


def random_bits(key: int, counter: int) -> int:
    """32 bits for rounding number ``counter`` of a call."""
    word = (counter * MULTIPLIERS[0] + key) & _MASK32
    word = (word ^ word >> 16) * MULTIPLIERS[1] & _MASK32
    word ^= key >> 32
    word = (word ^ word >> 13) * MULTIPLIERS[2] & _MASK32
    return word ^ word >> 16
