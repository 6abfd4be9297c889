"""Do random codelets give the same bits compiled and interpreted?"""

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.drivers import Driver
from tests.kernels.programs import Writer


def _driver(seed: int, folder: Path) -> Driver:
    path = folder / f"program_{seed}.py"
    path.write_text(Writer(seed).text())
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return Driver(module.Program, checks=bool(seed % 2))


def _values(elements: Any) -> Any:
    return st.lists(elements, min_size=2, max_size=4)


@pytest.mark.parametrize("seed", range(20))
def test_random_programs_agree(seed: int, tmp_path: Path) -> None:
    driver = _driver(seed, tmp_path)
    small = st.integers(-9, 9) | st.integers(-(2**31), 2**31 - 1)

    @settings(max_examples=12, deadline=None)
    @given(_values(st.floats(width=32)), _values(st.floats(width=16)), _values(small), st.integers(-(2**15), 2**15 - 1), st.floats(-2, 2, width=32))
    def agree(x: list[float], h: list[float], n: list[int], s: int, k: float) -> None:
        with np.errstate(all="ignore"):
            driver.agree(x=x, h=h, n=n, s=s, k=k)

    agree()
