"""Where the tests' C++ codelets are, and a place for what is made of them."""

import shutil

import pytest


@pytest.fixture(autouse=True, scope="session")
def compiler():
    """Nothing here means anything without a compiler."""
    if shutil.which("g++") is None and shutil.which("clang++") is None:
        pytest.skip("no C++ compiler: neither g++ nor clang++ is on the PATH")


@pytest.fixture(autouse=True, scope="session")
def cache(tmp_path_factory):
    """All tests of this folder share what they compile, and nothing of an earlier run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POPCORE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield
