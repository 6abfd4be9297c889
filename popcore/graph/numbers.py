"""Numbers: an int column that grows, one by one or by whole arrays."""

from __future__ import annotations

from array import array
from collections.abc import Callable

import numpy as np

from popcore.types import Array


class Numbers:
    """An int column that grows by ``append`` (one) and ``extend`` (an array)."""

    __slots__ = ("_chunks", "_done", "_tail", "append")

    append: Callable[[int], None]

    def __init__(self, code: str) -> None:
        self._tail = array(code)
        self.append = self._tail.append  # bound once: the hottest call of a graph's construction
        self._chunks: list[Array] = []
        self._done = 0

    def __len__(self) -> int:
        return self._done + len(self._tail)

    def extend(self, values: Array) -> None:
        self._flush()
        self._chunks.append(values)
        self._done += values.size

    def array(self) -> Array:
        """All of it. Later appends do not change what was returned; ``__setitem__`` does."""
        self._flush()
        return self._whole()

    def __getitem__(self, i: int) -> int:
        return int(self._tail[i - self._done]) if i >= self._done else int(self._whole()[i])

    def __setitem__(self, i: int, value: int) -> None:
        if i >= self._done:
            self._tail[i - self._done] = value
        else:
            self._whole()[i] = value

    def truncate(self, n: int) -> None:
        """Take back what was appended one by one after the first ``n``."""
        del self._tail[max(0, n - self._done) :]

    def _whole(self) -> Array:
        """All but the tail, which stays: reading old entries between appends must not cost a copy each time."""
        if len(self._chunks) != 1:
            self._chunks = [np.concatenate(self._chunks) if self._chunks else np.empty(0, self._tail.typecode)]
        return self._chunks[0]

    def _flush(self) -> None:
        if self._tail:
            self._chunks.append(np.array(self._tail, self._tail.typecode))
            self._done += len(self._tail)
            del self._tail[:]
