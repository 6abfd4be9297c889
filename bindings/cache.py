"""The part of the cache folder that compiled codelets use: files that are whole, this user's own, and found by content.

What is damaged, or could be somebody else's, is as good as absent: it is made again, and the log ``popcore.cache`` says so.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import stat
import tempfile
from pathlib import Path

from popcore.files import replacing

_LOG = logging.getLogger("popcore.cache")
_RECORD = b"popcore record 1\n"


def cache_folder() -> Path:
    """Where compiled code is kept: $POPCORE_CACHE_DIR, or the user's cache folder."""
    if given := os.environ.get("POPCORE_CACHE_DIR"):
        return Path(given)
    import platformdirs

    return Path(platformdirs.user_cache_dir("popcore"))


def work_folder() -> Path:
    """The folder that all files of C++ codelets are made in, this user's only. A private one for this process if that cannot be."""
    folder = cache_folder() / "cpp"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        about = folder.stat()
    except OSError as error:  # for example a home that is read-only
        _refuse(folder, error.strerror or str(error))
        return _private_folder()
    if about.st_uid != os.getuid() or about.st_mode & 0o022:
        _refuse(folder, "others could write there; it has to be this user's own, of mode 0700")
        return _private_folder()
    return folder if os.access(folder, os.W_OK | os.X_OK) else _private_folder()


@functools.cache
def _refuse(folder: Path, reason: str) -> None:
    """Say once that a folder is not used."""
    _LOG.warning("compiled codelets are not kept in %s: %s", folder, reason)


_private: list[tempfile.TemporaryDirectory[str]] = []


def _private_folder() -> Path:
    if not _private:
        _private.append(tempfile.TemporaryDirectory(prefix="popcore-"))
    return Path(_private[0].name)


def digest(*parts: bytes | str) -> str:
    """A name for content: equal parts, equal names."""
    made = hashlib.blake2b(digest_size=20)
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        made.update(str(len(data)).encode() + b" ")
        made.update(data)
    return made.hexdigest()


def write(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    with replacing(path) as out:
        out.write(content)


def read(path: Path) -> bytes | None:
    """The content of a plain file of this user that nobody else can write; None for any other."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)  # of a pipe: at once
    except OSError:
        return None
    try:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.getuid() or about.st_mode & 0o022:
            return None
        with os.fdopen(handle, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(handle)


def keep(path: Path, content: bytes) -> None:
    """Write a record for ``kept``. Where that cannot be, as on a full disk, what it is about is made again another time."""
    try:
        write(path, _sealed(path, content))
    except OSError as error:
        _LOG.warning("cannot keep %s: %s", path, error.strerror)


def kept(path: Path) -> bytes | None:
    """What ``keep`` wrote; None if there is nothing, or not the whole of it and only that."""
    whole = read(path)
    if whole is None:
        return None
    content = whole[len(_sealed(path, b"")) :]
    if whole == _sealed(path, content):
        return content
    _LOG.warning("%s is damaged: its codelets are compiled again", path)
    return None


def _sealed(path: Path, content: bytes) -> bytes:
    return _RECORD + digest(path.name, content).encode() + b"\n" + content


def keep_library(built: Path, folder: Path) -> str:
    """Move a freshly built library to the name of its content. Returns the name: loading a path twice would give the first content again."""
    name = digest(built.read_bytes()) + ".so"
    os.chmod(built, 0o600)
    os.replace(built, folder / name)
    return name


def is_whole(folder: Path, name: str) -> bool:
    """Whether a library is there and has the content that its name says."""
    content = read(folder / name)
    if content is None:
        return False
    if digest(content) + ".so" == name:
        return True
    _LOG.warning("%s is damaged: its codelets are compiled again", folder / name)
    return False


def code_of(library: str) -> str:
    """The name of what the compiler wrote of a library's functions, before it made instructions of them."""
    return library.removesuffix(".so") + ".code"
