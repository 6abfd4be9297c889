"""Compiled code on disk and in memory: the object cache, and the loader that makes addresses of symbols.

A warm start goes through this file alone: it needs LLVM's loader, not Numba. A cached file is trusted only if it is a
plain file of this user that nobody else can write, and its checksum over key and content holds; any other is as good as absent,
and the log ``popcore.cache`` says so. A folder in which others may write is not used at all.
"""

import ctypes
import functools
import hashlib
import importlib.metadata
import logging
import os
import stat
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm

MAGIC = b"popcore object 1\n"
DIGEST_BYTES = 32
_LOG = logging.getLogger("popcore.cache")
_NATIVE = {"linux": b"\x7fELF", "darwin": b"\xcf\xfa\xed\xfe"}


class LoadError(Exception):
    """Object code that the loader refuses: damaged, or for another processor."""


class Cache:
    """Object files in one folder, by key. A folder that cannot be used is as good as an empty one.

    Args:
        folder: Made, for this user only, when the first file is stored. None: keep nothing.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder

    def get(self, key: str) -> bytes | None:
        """The object stored under ``key``; None if there is none, or one that cannot be trusted."""
        if self.folder is None or not self._trusted():
            return None
        try:
            data = _read_own(self.folder / key)
        except FileNotFoundError:
            return None
        except OSError as error:
            _LOG.warning("%s is not used, its code is compiled again: %s", self.folder / key, error)
            return None
        head, body = data[: len(MAGIC) + DIGEST_BYTES], data[len(MAGIC) + DIGEST_BYTES :]
        if head == MAGIC + _checksum(key, body):
            return body
        _LOG.warning("%s is damaged: its code is compiled again", self.folder / key)
        return None

    def put(self, key: str, body: bytes) -> bool:
        """Store an object; whoever reads at the same time sees all of it or nothing. Returns False where the folder cannot be written."""
        if self.folder is None:
            return False
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not self._trusted():
                return False
            handle, name = tempfile.mkstemp(prefix=".", dir=self.folder)  # mode 0600
        except OSError as error:
            _say_once(f"compiled code is not kept in {self.folder}: {error.strerror}")
            return False
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(MAGIC + _checksum(key, body) + body)
            os.replace(name, self.folder / key)
        except BaseException as error:
            Path(name).unlink(missing_ok=True)
            if not isinstance(error, OSError):
                raise
            _say_once(f"compiled code is not kept in {self.folder}: {error.strerror}")  # a full disk
            return False
        return True

    def _trusted(self) -> bool:
        """Whether nobody else can write to the folder: who can may put a file of this user's, renamed, in the place of another."""
        assert self.folder is not None
        try:
            about = self.folder.stat()
        except OSError:  # there is none yet
            return True
        if hasattr(os, "getuid") and (about.st_uid != os.getuid() or about.st_mode & 0o022):
            _say_once(f"compiled code is not kept in {self.folder}: others could write there; it has to be this user's own, of mode 0700")
            return False
        return True


@functools.cache
def _say_once(text: str) -> None:
    _LOG.warning(text)


def _checksum(key: str, body: bytes) -> bytes:
    digest = hashlib.blake2b(key.encode(), digest_size=DIGEST_BYTES)
    digest.update(b"\0")
    digest.update(body)
    return digest.digest()


def _read_own(path: Path) -> bytes:
    """The content of a plain file that this user owns and nobody else can write. Raises OSError for any other."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode):
            raise OSError(f"{path} is no plain file")
        if hasattr(os, "getuid") and (about.st_uid != os.getuid() or about.st_mode & 0o022):
            raise OSError(f"{path} could have been written by somebody else")
        return file.read()


@functools.cache
def environment() -> str:
    """What compiled code depends on besides its source: this processor, the versions, popcore's own compiler."""
    sources = hashlib.blake2b(digest_size=16)
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        sources.update(path.read_bytes())
    processor = f"{llvm.get_default_triple()} {llvm.get_host_cpu_name()} {_features()}"
    numba = importlib.metadata.version("numba")
    return f"{sources.hexdigest()} {processor} numba {numba} llvmlite {llvmlite.__version__} python {sys.version_info[:2]}"


def _features():
    try:
        return llvm.get_host_cpu_features().flatten()
    except RuntimeError:  # LLVM does not know this processor
        return ""


def key_of(*parts: str) -> str:
    """The name under which code that depends on ``parts`` and on the environment is stored."""
    digest = hashlib.blake2b(digest_size=24)
    for part in (environment(), *parts):
        digest.update(str(len(part)).encode() + b" " + part.encode())
    return digest.hexdigest()


class _Loader:
    """Every object of this process, in one LLVM engine. Code is never unloaded."""

    def __init__(self) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        machine = llvm.Target.from_default_triple().create_target_machine(jit=True)  # the engine owns it from here on
        self.engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
        self.lock = threading.Lock()
        self.addresses: dict[tuple[str, str], int] = {}

    def load(self, body: bytes, symbols: Iterable[str]) -> list[int]:
        if not body.startswith(_NATIVE.get(sys.platform, b"")):  # LLVM would crash
            raise LoadError(f"{len(body):,} bytes that are no object file of this system")
        try:
            self.engine.add_object_file(llvm.ObjectFileRef.from_data(body))
            self.engine.finalize_object()
        except Exception as error:
            raise LoadError(str(error)) from error
        addresses = [self.engine.get_function_address(symbol) for symbol in symbols]
        if not all(addresses):
            raise LoadError(f"the object does not define {list(symbols)}")
        return addresses


@functools.cache
def _loader() -> _Loader:
    return _Loader()


def load(cache: Cache, key: str, symbols: tuple[str, ...], build: Callable[[], bytes]) -> list[int]:
    """Addresses of ``symbols``, from memory, from the cache, or built.

    Needs: ``symbols`` that no object with another key defines.
    Raises: what ``build`` raises; LoadError if even freshly built code cannot be loaded.
    """
    loader = _loader()
    with loader.lock:
        if all((key, symbol) in loader.addresses for symbol in symbols):
            return [loader.addresses[key, symbol] for symbol in symbols]
        addresses = None
        if (body := cache.get(key)) is not None:
            try:
                addresses = loader.load(body, symbols)
            except LoadError:
                addresses = None  # of an LLVM that writes other objects than this one reads
        if addresses is None:
            body = build()
            addresses = loader.load(body, symbols)
            cache.put(key, body)
        loader.addresses.update({(key, symbol): address for symbol, address in zip(symbols, addresses, strict=True)})
        return addresses


def c_function(name: str) -> int:
    """The address of a function of libc; 0 where there is none."""
    try:
        return ctypes.cast(getattr(ctypes.CDLL(None), name), ctypes.c_void_p).value or 0
    except (AttributeError, OSError, TypeError):
        return 0
