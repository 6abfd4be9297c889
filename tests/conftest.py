"""Fixtures shared by all tests."""

import importlib.util
import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

import popcore as pc


def _find_bench():
    """Make the package ``bench`` importable: it is not installed, and its folder's neighbour popcore/ is not what is tested."""
    folder = Path(__file__).parents[1] / "bench"
    specification = importlib.util.spec_from_file_location("bench", folder / "__init__.py", submodule_search_locations=[str(folder)])
    sys.modules["bench"] = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(sys.modules["bench"])


_find_bench()

# A loaded machine is no failure; and CI draws the same cases each time, so that a change is judged by what it changed.
settings.register_profile("popcore", deadline=None, derandomize=bool(os.environ.get("CI")), print_blob=True)
settings.load_profile("popcore")


@pytest.fixture(params=["ReferenceEngine", "Engine"])
def engine_class(request):
    """Each engine in turn: whatever a program means, both must mean it."""
    try:
        return getattr(pc, request.param)
    except ImportError as error:
        return pytest.skip(f"{request.param} is not there yet: {error}")


@pytest.fixture
def device():
    """One IPU with 8 tiles: enough for anything that is not about size."""
    return pc.Device("M2000", num_ipus=1, tiles_per_ipu=8)


@pytest.fixture
def graph(device):
    """An empty graph on ``device``."""
    return pc.Graph(device.target)
