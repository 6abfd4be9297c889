"""Files that are written whole or not at all."""

import errno
import os

import pytest

from popcore.files import replacing


def test_file_takes_the_place_of_the_old_one(tmp_path):
    """
    Once the block has ended, and not before.
    """
    path = tmp_path / "kept"
    path.write_bytes(b"old")
    with replacing(path) as out:
        out.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"


def test_nothing_is_left_of_a_write_that_fails(tmp_path, monkeypatch):
    """
    The old file is as it was and no other stands beside it, be the error in the block or of the system.
    """
    path = tmp_path / "kept"
    path.write_bytes(b"old")
    with pytest.raises(TypeError), replacing(path) as out:
        out.write("half")

    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"), replacing(path) as out:
        out.write(b"half")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["kept"]
