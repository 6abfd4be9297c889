"""Files of named entries: one zip, written whole or not at all. Every entry has a checksum, and what has no right one is not believed.

The entry ``header`` is the one to begin with: its checksum stands beside it, and it is for whoever writes it to keep those of the others.
"""

from __future__ import annotations

import hashlib
import os
import stat
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from popcore.errors import PopcoreError
from popcore.files import replacing

HEADER, DIGEST = "header.msgpack", "digest"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # entries carry no date, so that equal contents are equal files
_CHUNK_BYTES = 1 << 20
_DEFECTS = (OSError, zipfile.BadZipFile, KeyError, NotImplementedError, RuntimeError, EOFError, zlib.error, UnicodeDecodeError)


def digest(content: bytes) -> str:
    """blake2b of 20 bytes, in hexadecimal."""
    return hashlib.blake2b(content, digest_size=20).hexdigest()


class Writer:
    """The entries of a file that is being written.

    Attributes:
        digests: Of each entry so far, but for the header.
    """

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self.digests: dict[str, str] = {}

    def put(self, name: str, content: bytes) -> None:
        """An entry, compressed."""
        self._archive.writestr(zipfile.ZipInfo(name, _EPOCH), content, zipfile.ZIP_DEFLATED)
        self.digests[name] = digest(content)

    @contextmanager
    def stream(self, name: str) -> Iterator[Callable[[memoryview | bytes], None]]:
        """An entry of any size, as it is: the block is given a function that appends to it. Its data goes from memory to the file and nowhere else."""
        sums = hashlib.blake2b(digest_size=20)
        with self._archive.open(zipfile.ZipInfo(name, _EPOCH), "w", force_zip64=True) as out:

            def append(data: memoryview | bytes) -> None:
                sums.update(data)
                out.write(data)

            yield append
        self.digests[name] = sums.hexdigest()

    def finish(self, header: bytes) -> None:
        """The header, and its checksum."""
        self._archive.writestr(zipfile.ZipInfo(HEADER, _EPOCH), header, zipfile.ZIP_DEFLATED)
        self._archive.writestr(zipfile.ZipInfo(DIGEST, _EPOCH), digest(header).encode(), zipfile.ZIP_DEFLATED)


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[Writer]:
    """A file that takes the place of ``path`` once the block ends; see ``files.replacing``. Equal contents give equal bytes."""
    with replacing(path) as out, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        yield Writer(archive)


class Reader:
    """The entries of a file.

    Args:
        error: What is raised for a damaged one.
    """

    def __init__(self, path: str, archive: zipfile.ZipFile, error: type[PopcoreError]) -> None:
        self._path, self._archive, self._error = path, archive, error

    def expect(self, names: Iterable[str]) -> None:
        """Raise ``error`` unless these are the entries, beside the header and its checksum."""
        if odd := set(self._archive.namelist()) ^ {HEADER, DIGEST, *names}:
            raise self._error(f"{self._path!r} is damaged: its header and its entries do not agree on {min(odd)!r}")

    def header(self) -> bytes:
        """The header. Raises ``error`` if it does not have the checksum beside it."""
        content = self._archive.read(HEADER)
        if self._archive.read(DIGEST).decode("ascii") != digest(content):
            raise self._error(f"{self._path!r} is damaged: its header does not have the checksum it was written with")
        return content

    def read(self, name: str, checksum: str, most: int | None = None) -> bytes:
        """An entry, as ``Writer.put`` wrote it. Raises ``error`` if it does not have this checksum, or more than so many bytes."""
        if most is not None and self._archive.getinfo(name).file_size > most:
            raise self._error(f"{self._path!r} is damaged: {name} has more than {most:,} B")
        content = self._archive.read(name)
        if digest(content) != checksum:
            raise self._changed(name)
        return content

    def length(self, name: str) -> int:
        """Bytes of an entry that ``Writer.stream`` wrote; no more than the file has. Raises ``error`` for one that is compressed."""
        info = self._archive.getinfo(name)
        if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
            raise self._error(f"{self._path!r} is damaged: {name} is not stored as it is")
        return info.file_size

    def verify(self, name: str, checksum: str) -> None:
        """Read a streamed entry through, a piece at a time. Raises ``error`` if it does not have this checksum."""
        sums = hashlib.blake2b(digest_size=20)
        with self._archive.open(name) as entry:
            while piece := entry.read(_CHUNK_BYTES):
                sums.update(piece)
        if sums.hexdigest() != checksum:
            raise self._changed(name)

    def pieces(self, name: str, targets: Iterator[memoryview]) -> None:
        """Fill ``targets``, one after the other, with a streamed entry."""
        with self._archive.open(name) as entry:
            for target in targets:
                for at in range(0, len(target), _CHUNK_BYTES):
                    part = target[at : at + _CHUNK_BYTES]
                    content = entry.read(len(part))
                    if len(content) != len(part):
                        raise EOFError(f"{name} ends early")
                    part[:] = content

    def _changed(self, name: str) -> PopcoreError:
        return self._error(f"{self._path!r} is damaged: {name} does not have the checksum it was written with")


@contextmanager
def reading(path: str | os.PathLike[str], what: str, error: type[PopcoreError]) -> Iterator[Reader]:
    """The entries of a file that ``writing`` wrote. ``what`` it should be, for messages: "Executable".

    Raises: ``error`` where the file cannot be opened or read, is no such file, or is damaged.
    """
    shown = os.fspath(path)
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # opening a pipe would wait for somebody who writes
            raise error(f"{shown!r} is no {what}: it is no plain file")
        with zipfile.ZipFile(path) as archive:
            _check_entries(shown, archive, error)
            yield Reader(shown, archive, error)
    except _DEFECTS as defect:
        if isinstance(defect, PopcoreError):
            raise
        raise error(f"{shown!r} is no {what}, or a damaged one: {defect}") from defect


def _check_entries(shown: str, archive: zipfile.ZipFile, error: type[PopcoreError]) -> None:
    """Raise ``error`` for entries that no ``Writer`` made, before any of them is unpacked."""
    entries = archive.infolist()
    twice = next((name for name, count in Counter(each.filename for each in entries).items() if count > 1), None)
    if twice is not None:
        raise error(f"{shown!r} is damaged: it has the entry {twice!r} twice")
    if any(each.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for each in entries):
        raise error(f"{shown!r} is damaged: an entry is compressed as none is")
    unpacked, most = sum(each.file_size for each in entries if each.compress_type == zipfile.ZIP_DEFLATED), _most_bytes()
    if unpacked > most:
        raise error(f"{shown!r} would unpack to {unpacked:,} bytes of memory, which is more than half of what this machine has", "a machine with more memory")


def _most_bytes() -> int:
    """Of compressed entries together: half the memory of this machine. A small file can say that it unpacks to a thousand times as much."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
