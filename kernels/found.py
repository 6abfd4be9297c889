"""How a table of findings is laid out; apart from ``findings``, which loads Numba."""

from popcore.kernels import abi

WORDS = 2 + abi.AUX_POSITION + 1 + 5  # of a record: see below
USED, LOST, CAPACITY, HEAD = 0, 1, 2, 4  # words of a table before its records

TIMES = 0  # words of a record: how often,
LOW = 1  # from where
HIGH = 2  # to where,
PHASE = 3  # compute sets run since loading when it was first,
BATCH = 4
REPLICA = 5
COPY = 6  # then the first words of the block
