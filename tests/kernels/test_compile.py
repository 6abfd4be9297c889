"""Do drivers run all vertices of all tiles, stop where one raises, print, and check indices?"""

from typing import Any

import numpy as np
import pytest

from popcore.executable import opcodes
from popcore.kernels import abi
from popcore.kernels.compile import compile_driver
from popcore.types import FLOAT, HALF
from tests.dialect import samples
from tests.kernels.drivers import Driver


def _fields(**changed: Any) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    rows = [abs(rng.standard_normal(n)) for n in (3, 0, 7)]
    fields = {"x": rng.standard_normal(5), "rows": rows, "m": rng.standard_normal((3, 4)), "n": 7, "h": rng.standard_normal(3), "calls": 3}
    return fields | {"buffer": rng.standard_normal(6)} | changed


@pytest.mark.parametrize("dtype", [FLOAT, HALF], ids=lambda t: t.__name__)
@pytest.mark.parametrize("checks", [False, True])
def test_everything_agrees_with_the_interpreter(dtype: Any, checks: bool) -> None:
    driver = Driver(samples.Everything, (dtype,), checks)
    assert driver.agree(**_fields()).printed
    assert driver.agree(**_fields(n=60)).failure == "AssertionError:n is 60"
    assert driver.agree(**_fields(rows=[[1, -2]])).failure == "ValueError:negative -2.00 2.0"
    if checks:
        assert driver.agree(**_fields(h=[])).failure == "IndexError:index self.h[-1] is outside its 0 elements"


def test_division_by_zero_is_reported_with_the_vertex() -> None:
    driver = Driver(samples.Divides)
    fields = [{"a": [1, -(2**31)], "b": [b, -1], "out": [0, 0]} for b in (3, 2, 0, 0)]
    outcome = driver.native(*fields, tiles=3)
    assert (outcome.failure, outcome.position) == ("ZeroDivisionError:integer division by zero", 2)
    assert driver.agree(**fields[0]).fields["out"].tolist() == [0, -(2**31)]
    assert driver.agree(**fields[2]).failure == outcome.failure


def test_every_vertex_of_every_tile_runs() -> None:
    driver = Driver(samples.Prints)
    outcome = driver.native({"n": 1}, {"n": 10}, tiles=3, times=2)
    assert outcome.fields == {"0": {"n": 3}, "1": {"n": 12}}
    assert outcome.printed == [":n:2", ":n:11"] * 3 + [":n:3", ":n:12"] * 3


def test_six_workers_run_from_last_to_first() -> None:
    driver = Driver(samples.Workers)
    outcome = driver.agree(x=np.arange(15))
    assert outcome.fields["x"].tolist() == [10 * i + i % 6 for i in range(15)]
    assert outcome.printed == [":worker 2"]
    assert driver.agree(x=np.arange(20)).failure == "AssertionError:len(self.x) < 20"


def test_every_form_of_statement_agrees_with_python() -> None:
    fields = Driver(samples.Corners).agree(x=[1, 2, 3, 4], _hidden=7, out=np.zeros(11), count=3, q=[1, 2]).fields
    assert fields["out"].tolist() == [24, 14, 7, -2, 77, 6, 12, 1, 5, -6, 1]
    assert (fields["_hidden"], fields["count"], fields["q"].tolist()) == (12, 4, [3, 2])


def test_lengths_of_a_strict_zip_are_compared() -> None:
    driver = Driver(samples.StrictZip)
    assert driver.agree(a=[1, 2], b=[3, 4]).failure is None
    assert driver.agree(a=[1, 2], b=[3]).failure == "ValueError:zip() of 2 and 1 elements"


def test_equal_codelets_give_equal_objects() -> None:
    lowered = Driver(samples.Divides).lowered
    assert compile_driver(lowered, "driver") == compile_driver(lowered, "driver")


def test_kernels_and_executables_count_rows_alike():
    """
    Kernels do not import the Executable's description, so what both say of a row is compared here.
    """
    assert abi.ROW_WORDS == opcodes.ROW_WORDS
