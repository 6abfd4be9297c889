"""Fixtures shared by all tests."""

import pytest

import popcore as pc


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
