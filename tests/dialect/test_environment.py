"""Denormals are flushed inside, and kept outside."""

import threading

import numpy as np
import pytest

from popcore.dialect.environment import denormals

TINY = np.float32(1e-40)


def is_flushed():
    return TINY * np.float32(1) == 0 and np.float32(1e-30) * np.float32(1e-10) == 0


def test_only_inside_and_only_this_thread():
    """
    It nests, and an exception does not leave it behind.
    """
    seen = []
    with denormals(flush=True):
        assert is_flushed()
        thread = threading.Thread(target=lambda: seen.append(is_flushed()))
        thread.start()
        thread.join()
        with denormals(flush=False):
            assert not is_flushed()
        assert is_flushed()
    with pytest.raises(KeyError), denormals(flush=True):
        raise KeyError
    assert not is_flushed()
