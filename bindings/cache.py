"""The part of the cache folder that compiled codelets use: files that are whole, this user's own, and found by content."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from pathlib import Path

from popcore.files import replacing


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
    except OSError:  # for example a home that is read-only
        return _private_folder()
    mine = about.st_uid == os.getuid() and not about.st_mode & 0o022 and os.access(folder, os.W_OK | os.X_OK)
    return folder if mine else _private_folder()


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
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.getuid() or about.st_mode & 0o022:
            return None
        return file.read()


def keep_library(built: Path, folder: Path) -> str:
    """Move a freshly built library to the name of its content. Returns the name: loading a path twice would give the first content again."""
    name = digest(built.read_bytes()) + ".so"
    os.chmod(built, 0o600)
    os.replace(built, folder / name)
    return name


def is_whole(folder: Path, name: str) -> bool:
    """Whether a library is there and has the content that its name says."""
    content = read(folder / name)
    return content is not None and digest(content) + ".so" == name
