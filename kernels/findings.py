"""What checks find in a run that goes on: each thread has a table, and a driver calls ``note`` instead of giving up.

A driver writes the finding to its block of words as it would a fault, see ``abi``, then calls the function at AUX_NOTE with the address
of the block and how many of the values say what it is; the value after those says where, and the next one, of a FINDING, how
many bytes. The same finding of the same vertex and worker again, elsewhere or in a later run of its compute set, is counted.
"""

from popcore.kernels import abi
from popcore.kernels import status as s
from popcore.kernels.found import BATCH, CAPACITY, COPY, HEAD, HIGH, LOST, LOW, PHASE, REPLICA, TIMES, USED, WORDS
from popcore.kernels.native import larger, load64, part, smaller, store64


@part
def word_of(address, index):
    return load64(address + index * 8)


@part
def is_same(record, aux, keys):
    """Whether a record is of the finding that the block describes."""
    if word_of(record, BATCH) != word_of(aux, abi.AUX_BATCH) or word_of(record, REPLICA) != word_of(aux, s.AUX_REPLICA):
        return False
    if word_of(record, COPY + abi.AUX_POSITION) != word_of(aux, abi.AUX_POSITION) or word_of(record, COPY + abi.AUX_WORKER) != word_of(aux, abi.AUX_WORKER):
        return False
    if word_of(record, COPY + abi.AUX_SITE) != word_of(aux, abi.AUX_SITE) or word_of(record, COPY + abi.AUX_TAGS) != word_of(aux, abi.AUX_TAGS):
        return False
    different = 0
    for index in range(abi.AUX_VALUES, abi.AUX_VALUES + keys):
        different |= word_of(record, COPY + index) ^ word_of(aux, index)
    return different == 0


def note(aux, keys):
    """The function at AUX_NOTE."""
    table = word_of(aux, abi.AUX_TABLE)
    used = word_of(table, USED)
    low = word_of(aux, abi.AUX_VALUES + keys)
    high = low + word_of(aux, abi.AUX_VALUES + keys + 1) - 1 if word_of(aux, abi.AUX_TAGS) & 15 == abi.TAG_FINDING else low
    record = table + HEAD * 8 + used * (WORDS * 8)
    for _ in range(used):  # the last one first: it is most likely
        record -= WORDS * 8
        if is_same(record, aux, keys):
            store64(record + TIMES * 8, word_of(record, TIMES) + 1)
            store64(record + LOW * 8, smaller(word_of(record, LOW), low))
            store64(record + HIGH * 8, larger(word_of(record, HIGH), high))
            return 0
    if used == word_of(table, CAPACITY):
        store64(table + LOST * 8, word_of(table, LOST) + 1)
        return 0
    record = table + HEAD * 8 + used * (WORDS * 8)
    store64(record + TIMES * 8, 1)
    store64(record + LOW * 8, low)
    store64(record + HIGH * 8, high)
    store64(record + PHASE * 8, word_of(aux, abi.AUX_PHASE))
    store64(record + BATCH * 8, word_of(aux, abi.AUX_BATCH))
    store64(record + REPLICA * 8, word_of(aux, s.AUX_REPLICA))
    for index in range(abi.AUX_POSITION + 1):
        store64(record + (COPY + index) * 8, word_of(aux, index))
    store64(table + USED * 8, used + 1)
    return 0
