"""The exchange: moves entries ``begin..end`` of one group of copies, on one thread.

A group's entries have one width, so the loop over them is chosen once and each copy is a few vector moves.
Offsets are 32-bit words: half the table to read. See ``popcore.executable.opcodes`` for the tables.
"""

from popcore.kernels import status as s
from popcore.kernels.native import (
    copy1,
    copy2,
    copy4,
    copy8,
    copy16,
    copy32,
    copy64,
    copy_bytes,
    fence,
    larger,
    load32u,
    load64,
    part,
    prefetch,
    prefetch_far,
    smaller,
    stream16,
    stream64,
)  # fmt: skip

WORDS, SPANS = 0, 1  # kinds of groups; the third is strided
LINE = 63
AHEAD = 8192  # bytes that are being fetched while others are stored around the caches
CHUNK = 512


@part
def source_of(memory, words, entry):
    return memory + (load32u(words + (entry << 3)) << 2)


@part
def target_of(memory, words, entry):
    return memory + (load32u(words + (entry << 3) + 4) << 2)


@part
def copy_any(target, source, words):
    """Any number of words: big steps first."""
    while words >= 64:
        copy64(target, source)
        target += 256
        source += 256
        words -= 64
    if words >= 32:
        copy32(target, source)
        target += 128
        source += 128
        words -= 32
    if words >= 16:
        copy16(target, source)
        target += 64
        source += 64
        words -= 16
    if words >= 8:
        copy8(target, source)
        target += 32
        source += 32
        words -= 8
    if words >= 4:
        copy4(target, source)
        target += 16
        source += 16
        words -= 4
    if words >= 2:
        copy2(target, source)
        target += 8
        source += 8
        words -= 2
    if words:
        copy1(target, source)
    return 0


@part
def fetch(address, nbytes):
    """Begin to fetch the lines of some bytes into the second level of caches: stores around the caches would outrun the first."""
    for line in range(address & ~LINE, address + nbytes, LINE + 1):
        prefetch_far(line)
    return 0


@part
def stream_any(target, source, nbytes):
    """Copy ``nbytes`` from and to anywhere; whole lines are stored around the caches."""
    first = smaller(-target & LINE, nbytes)
    if first:
        copy_bytes(target, source, first)
        target += first
        source += first
        nbytes -= first
    while nbytes >= 256:
        stream64(target, source)
        target += 256
        source += 256
        nbytes -= 256
    while nbytes >= 64:
        stream16(target, source)
        target += 64
        source += 64
        nbytes -= 64
    if nbytes:
        copy_bytes(target, source, nbytes)
    return 0


@part
def stream_long(target, source, nbytes, following):
    """``stream_any`` of much; meanwhile what comes AHEAD of it is fetched: of itself, then of ``following``, which is read next."""
    while nbytes >= CHUNK:
        fetch(source + AHEAD if nbytes >= AHEAD + CHUNK else following + AHEAD - nbytes, CHUNK)
        step = CHUNK - (target & LINE)  # from the second on chunks begin with a line
        stream_any(target, source, step)
        target += step
        source += step
        nbytes -= step
    return stream_any(target, source, nbytes)


@part
def stream_entry(target, source, nbytes, following):
    """One entry of a group that streams; ``following`` is read about AHEAD bytes later."""
    if nbytes >= AHEAD:
        return stream_long(target, source, nbytes, following)
    fetch(following, nbytes)
    if target & LINE == 0:
        if nbytes == 64:
            stream16(target, source)
            return 0
        if nbytes == 256:
            stream64(target, source)
            return 0
    elif nbytes < 256:
        copy_bytes(target, source, nbytes)  # half-written lines are slow around the caches
        return 0
    return stream_any(target, source, nbytes)


@part
def stream_pairs(memory, words, begin, end, width):
    """Pairs of a group that is larger than the caches."""
    distance = larger(AHEAD // (4 * width), 1)
    for i in range(begin, end):
        following = source_of(memory, words, smaller(i + distance, end - 1))
        stream_entry(target_of(memory, words, i), source_of(memory, words, i), width << 2, following)
    fence()
    return 0


@part
def copy_pairs(memory, words, begin, end, width, streaming):
    if streaming:
        stream_pairs(memory, words, begin, end, width)
    elif width == 1:
        for i in range(begin, end):
            copy1(target_of(memory, words, i), source_of(memory, words, i))
    elif width == 2:
        for i in range(begin, end):
            copy2(target_of(memory, words, i), source_of(memory, words, i))
    elif width == 4:
        for i in range(begin, end):
            copy4(target_of(memory, words, i), source_of(memory, words, i))
    elif width == 8:
        for i in range(begin, end):
            ahead = source_of(memory, words, smaller(i + 16, end - 1))
            prefetch(ahead)
            copy8(target_of(memory, words, i), source_of(memory, words, i))
    elif width == 16:
        for i in range(begin, end):
            ahead = source_of(memory, words, smaller(i + 16, end - 1))
            prefetch(ahead)
            copy16(target_of(memory, words, i), source_of(memory, words, i))
    elif width == 32:
        for i in range(begin, end):
            ahead = source_of(memory, words, smaller(i + 8, end - 1))
            prefetch(ahead)
            prefetch(ahead + 64)
            copy32(target_of(memory, words, i), source_of(memory, words, i))
    elif width == 64:
        for i in range(begin, end):
            ahead = source_of(memory, words, smaller(i + 4, end - 1))
            prefetch(ahead)
            prefetch(ahead + 64)
            prefetch(ahead + 128)
            prefetch(ahead + 192)
            copy64(target_of(memory, words, i), source_of(memory, words, i))
    elif width < 512:
        for i in range(begin, end):
            copy_any(target_of(memory, words, i), source_of(memory, words, i), width)
    else:
        for i in range(begin, end):
            copy_bytes(target_of(memory, words, i), source_of(memory, words, i), width << 2)
    return 0


@part
def copy_spans(memory, spans, begin, end, streaming):
    if streaming:
        for i in range(begin, end):
            row = spans + i * 24
            nbytes = load64(row + 16)
            distance = larger(AHEAD // larger(nbytes, 1), 1)
            stream_entry(memory + load64(row + 8), memory + load64(row), nbytes, memory + load64(spans + smaller(i + distance, end - 1) * 24))
        fence()
        return 0
    for i in range(begin, end):
        row = spans + i * 24
        copy_bytes(memory + load64(row + 8), memory + load64(row), load64(row + 16))
    return 0


@part
def copy_strided(memory, group, begin, end):
    """Rounds ``begin..end`` of the outer loop."""
    width = load64(group + 3 * 8)
    inner = load64(group + 6 * 8)
    source_step, target_step = load64(group + 7 * 8) << 2, load64(group + 8 * 8) << 2
    outer_source, outer_target = load64(group + 9 * 8) << 2, load64(group + 10 * 8) << 2
    source = memory + (load64(group + 4 * 8) << 2) + begin * outer_source
    target = memory + (load64(group + 5 * 8) << 2) + begin * outer_target
    streaming = load64(group + s.GROUP_STREAMING * 8)
    distance = source_step * larger(AHEAD // (4 * width), 1)
    for _ in range(begin, end):
        from_, to = source, target
        if width == 1:
            for _ in range(inner):
                copy1(to, from_)
                from_ += source_step
                to += target_step
        elif width == 2:
            for _ in range(inner):
                copy2(to, from_)
                from_ += source_step
                to += target_step
        elif width == 4:
            for _ in range(inner):
                copy4(to, from_)
                from_ += source_step
                to += target_step
        elif streaming:
            for _ in range(inner):
                stream_entry(to, from_, width << 2, from_ + distance)
                from_ += source_step
                to += target_step
        elif width < 512:
            for _ in range(inner):
                copy_any(to, from_, width)
                from_ += source_step
                to += target_step
        else:
            for _ in range(inner):
                copy_bytes(to, from_, width << 2)
                from_ += source_step
                to += target_step
        source += outer_source
        target += outer_target
    if streaming:
        fence()
    return 0


@part
def copy_group(memory, words, spans, group, begin, end):
    """Entries ``begin..end`` of the group whose row is at address ``group``; for WORDS and SPANS they count from the table's start."""
    kind = load64(group)
    if kind == WORDS:
        copy_pairs(memory, words, begin, end, load64(group + 3 * 8), load64(group + s.GROUP_STREAMING * 8))
    elif kind == SPANS:
        copy_spans(memory, spans, begin, end, load64(group + s.GROUP_STREAMING * 8))
    else:
        copy_strided(memory, group, begin, end)
    return 0
