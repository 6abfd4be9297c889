"""Threads that help the machine: parked in Python between runs, in native code with the GIL released during one."""

from __future__ import annotations

import functools
import os
import queue
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

from popcore.kernels import status
from popcore.types import Array

_pools: weakref.WeakSet[Pool] = weakref.WeakSet()


class Pool:
    """Workers 1 to ``threads`` - 1 of one image; 0 is whoever runs it. They start when they are first wanted.

    Args:
        work: ``vm.work``: (context address, thread) -> PARKED or QUIT.
        context: Address of the context block.
        sync: The lines between threads, see ``status``.
        keep: What the workers need and must not be freed under them.
    """

    def __init__(self, work: Callable[[int, int], int], context: int, sync: Array, threads: int, keep: Any) -> None:
        self._work, self._context, self._sync, self._keep = work, context, sync, keep
        self._numbers = range(1, threads)
        self._bells: list[queue.SimpleQueue[None]] = [queue.SimpleQueue() for _ in range(threads)]
        self._threads: list[threading.Thread] = []
        _pools.add(self)

    def wake(self) -> None:
        """Return when every worker listens."""
        if not self._threads:
            self._start()
        for thread in self._numbers:
            if not self._awake(thread):
                self._bells[thread].put(None)
        while not all(self._awake(thread) for thread in self._numbers):
            time.sleep(5e-6)  # not 0: a worker needs the GIL to get going

    def release(self) -> None:
        """Tell the workers that no run is going on, after one that did not end by itself."""
        self._sync[status.SYNC_WANTED] = 0

    def close(self) -> None:
        """End the workers. Needs: no run going on."""
        self._sync[status.SYNC_WANTED] = 0
        self._sync[status.SYNC_QUIT] = 1
        for bell in self._bells:
            bell.put(None)
        threads, self._threads = self._threads, []
        for thread in threads:
            if thread is not threading.current_thread():
                thread.join()

    def _awake(self, thread: int) -> bool:
        return bool(self._sync[status.SYNC_THREADS + thread * status.LINE_WORDS + status.THREAD_AWAKE])

    def _start(self) -> None:
        _watch_forks()
        self._sync[status.SYNC_QUIT] = 0
        for number in self._numbers:
            arguments = (self._work, self._context, number, self._bells[number], self._keep)
            thread = threading.Thread(target=_serve, args=arguments, name=f"popcore-{number}", daemon=True)
            thread.start()
            self._threads.append(thread)

    def forget(self) -> None:
        """In a child process: the workers stayed behind in the parent."""
        self._threads = []
        for thread in self._numbers:
            self._bells[thread] = queue.SimpleQueue()
            self._sync[status.SYNC_THREADS + thread * status.LINE_WORDS + status.THREAD_AWAKE] = 0


def _serve(work: Callable[[int, int], int], context: int, number: int, bell: queue.SimpleQueue[None], keep: Any) -> None:
    # A function, not a method: a worker must not keep its pool alive.
    while True:
        bell.get()
        if work(context, number) == status.QUIT:
            return


@functools.cache
def _watch_forks() -> None:
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_forget_all)


def _forget_all() -> None:
    for pool in _pools:
        pool.forget()
