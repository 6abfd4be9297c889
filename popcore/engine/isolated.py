"""The machine in a process of its own, so that a C++ codelet that crashes ends that and not the user's: ``debug.isolate``.

The process is forked with everything linked. It shares the tiles' memory and the tables that the machine writes; what it has to do comes
through a pipe, and how it went goes back through another, that nobody else has an end of. Streams, prints and whatever else is the host's stay with the host.
"""

from __future__ import annotations

import ctypes
import gc
import os
import select
import signal
import struct
import threading
import warnings
import weakref
from collections.abc import Callable
from typing import NoReturn

import msgspec

from popcore import errors
from popcore.engine.outcome import Told
from popcore.engine.statics import Kept
from popcore.errors import EngineError, PopcoreError

RUN, TELL_VARIABLES = 0, 1
_REQUEST = struct.Struct("<qqq")  # what to do, program counter, floating-point state
_SIZE = struct.Struct("<q")
_PARENT_FIRST = 3  # descriptors above are the user's


class Reply(msgspec.Struct):
    """What came of a request."""

    state: int = 0  # see ``kernels.status``
    told: Told | None = None  # of a vertex that raised
    kept: list[Kept] = []  # of TELL_VARIABLES
    error: tuple[str, str, str] | None = None  # class, message and hint


class Died(Exception):
    """The process ended. ``status``: as ``os.waitpid`` gives it."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.signal = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
        self.exit_code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None

    def __str__(self) -> str:
        if self.signal is None:
            return f"called exit({self.exit_code})"
        name = signal.Signals(self.signal).name if self.signal in set(signal.Signals) else f"signal {self.signal}"
        why = {"SIGSEGV": ": it wrote where it must not", "SIGKILL": ": somebody else did that, or the system had no memory left"}
        return f"died of {name}{why.get(name, '')}"


class Child:
    """A process that does what it is asked, one request after the other.

    Args:
        serve: Does a request in it: (what, program counter, floating-point state) -> Reply. What popcore raises there arrives here.
    """

    def __init__(self, serve: Callable[[int, int, int], Reply]) -> None:
        to_child, from_parent = os.pipe()
        to_parent, from_child = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forks where there are threads: this one calls nothing that waits for them
            self._process = os.fork()
        if self._process == 0:
            _live(serve, to_child, from_child)
        os.close(to_child)
        os.close(from_child)
        self._out, self._in = from_parent, to_parent
        self._ends = weakref.finalize(self, _end, self._process, from_parent, to_parent, os.getpid())

    def ask(self, what: int, pc: int = 0, bits: int = 0) -> Reply:
        """Raises: Died: the process did; it is gone. Whatever popcore raised in it. Ctrl-C ends the process, too."""
        try:
            os.write(self._out, _REQUEST.pack(what, pc, bits))
            reply = msgspec.msgpack.decode(_receive(self._in), type=Reply)
        except (BrokenPipeError, EOFError):
            raise self._died() from None
        except BaseException:
            self.stop()
            raise
        if reply.error is not None:
            name, message, hint = reply.error
            kind = getattr(errors, name, EngineError)
            raise kind(message, hint)
        return reply

    def stop(self) -> None:
        """End it."""
        self._ends()

    def _died(self) -> Died:
        self._ends.detach()
        os.close(self._out)
        os.close(self._in)
        return Died(os.waitpid(self._process, 0)[1])


def _end(process: int, out: int, into: int, owner: int) -> None:
    os.close(out)
    os.close(into)
    if os.getpid() == owner:  # not in a process that the user forked
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)


def _receive(file: int) -> bytes:
    return _exactly(file, _SIZE.unpack(_exactly(file, _SIZE.size))[0])


def _exactly(file: int, count: int) -> bytes:
    parts = []
    while count:
        part = os.read(file, count)
        if not part:
            raise EOFError
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def _live(serve: Callable[[int, int, int], Reply], requests: int, replies: int) -> NoReturn:
    """What the process does until its parent is gone. It never returns into the user's code, nor runs what that left to be done at exit."""
    status = 1
    try:
        gc.disable()
        gc.freeze()  # finalisers are the parent's
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # of Ctrl-C the parent tells
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        _close_all_but(requests, replies)
        _exit_at_once()
        threading.Thread(target=_end_with_parent, args=(requests,), daemon=True).start()
        while head := os.read(requests, _REQUEST.size):
            try:
                reply = serve(*_REQUEST.unpack(head))
            except PopcoreError as error:
                reply = Reply(error=(type(error).__name__, error.message, error.hint))
            content = msgspec.msgpack.encode(reply)
            _send(replies, _SIZE.pack(len(content)) + content)
        status = 0
    finally:
        os._exit(status)


def _close_all_but(*files: int) -> None:
    """Close what else the parent had open, but for the standard streams."""
    first = _PARENT_FIRST
    for file in sorted(files):
        os.closerange(first, file)
        first = file + 1
    os.closerange(first, os.sysconf("SC_OPEN_MAX"))


def _end_with_parent(requests: int) -> None:
    """End this process when nobody can ask it any more, whatever it is doing."""
    ears = select.poll()
    ears.register(requests, 0)  # hanging up is told of always
    ears.poll()
    os._exit(1)


def _exit_at_once() -> None:
    """Have exit() in a codelet end the process, before it does what libraries of the parent left to be done then."""
    library = ctypes.CDLL(None)
    if hasattr(library, "on_exit"):  # of glibc; the last one is called first, with the exit code
        library.on_exit(ctypes.cast(library._exit, ctypes.c_void_p), None)


def _send(file: int, content: bytes) -> None:
    while content:
        content = content[os.write(file, content) :]
