"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary file that takes the place of ``path`` once the block ends; if the block raises, or the disk is full, ``path`` is as it was.

    Only its owner may read it.

    Raises:
        OSError: what the system says: no such folder, no space, not allowed.
    """
    target = Path(path)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)  # a signal may come when it has its name already
        raise


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """A text in UTF-8, whole or not at all. Raises: as ``replacing``."""
    with replacing(path) as out:
        out.write(text.encode())
