"""Where what the tests' C++ codelets are compiled to is kept; compiled side by side before the first of them is used."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from popcore.bindings import toolchain
from popcore.bindings.unit import open_unit
from popcore.errors import CodeletError
from tests.bindings.vertex import compile_file

PROBE = """
#include <poplar/Vertex.hpp>
class Probe : public poplar::Vertex {
public:
  poplar::InOut<half> x;
  bool compute() { *x += half(1.0f); return true; }
};
"""


@pytest.fixture(autouse=True, scope="session")
def cache(tmp_path_factory):
    """All tests of this folder share what they compile, and nothing of an earlier run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POPCORE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True, scope="session")
def compiler(cache):
    """Nothing here means anything without a compiler, or with one that has no half."""
    try:
        toolchain.find_compiler()
        open_unit(PROBE).find("Probe")
    except CodeletError as error:
        if "compiler" not in error.message:
            raise
        pytest.skip(str(error))


@pytest.fixture(autouse=True, scope="session")
def files(request, compiler):
    """Compile the FILES of all modules that are to run, as many at once as there are processors."""
    wanted = {file for item in request.session.items for file in getattr(item.module, "FILES", ())}
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(os.cpu_count()) as pool:
        patch.setenv("POPCORE_CALL_SECONDS", "0.5")  # a library is told when it is loaded
        for done in [pool.submit(compile_file, file) for file in sorted(wanted)]:
            done.result()
