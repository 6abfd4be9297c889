"""Collectives over replicas: ``native`` for reductions in place, ``reduce`` in NumPy for all that is not worth native code."""

BLOCK_BYTES = 16 << 10  # of one row: those of 64 replicas stay in the second level of caches until they are written
