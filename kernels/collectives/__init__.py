"""Collectives over replicas: ``native`` for reductions in place, ``reduce`` in NumPy for all that is not worth native code."""

BLOCK_BYTES = 32 << 10  # a total that stays in the first or second level of caches
