"""docs/ops.md says what is there."""

import importlib.util
from pathlib import Path

import pytest

from popcore.ops import popops

DOCS = Path(__file__).parents[3] / "docs"


def test_the_page_lists_popops_as_it_is():
    """
    Names of other libraries may be ahead of the page; those of popops may not.
    """
    if not (DOCS / "make_ops.py").exists():
        pytest.skip("an installed popcore has no docs folder beside it")
    spec = importlib.util.spec_from_file_location("make_ops", DOCS / "make_ops.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = (DOCS / "ops.md").read_text(encoding="utf-8").splitlines()
    wanted = [line for line in module.render().splitlines() if line.startswith("| `") and ("::" not in line or "popops::" in line)]
    assert not [line for line in wanted if line not in page], "run: python docs/make_ops.py"


def test_every_name_of_popops_is_described():
    """
    Also those made from the table of operations.
    """
    assert len(set(popops.__all__)) == len(popops.__all__)
    assert not [n for n in popops.__all__ if callable(getattr(popops, n)) and not getattr(popops, n).__doc__]
    assert {n for n in vars(popops) if not n.startswith("_")} - set(popops.__all__) <= {p.stem for p in Path(popops.__file__).parent.glob("*.py")}
