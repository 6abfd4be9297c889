"""Is everything that a tile cannot do refused, with the user's line and what to do instead?"""

import inspect
import re
import types
from typing import Any

import pytest

from popcore.codelet import Vertex, codelet_of
from popcore.dialect import lower
from popcore.errors import CodeletError
from popcore.kernels.compile import compile_driver
from tests.dialect import mistyped, refused


def _codelets(module: types.ModuleType) -> list[Any]:
    return [c for c in vars(module).values() if isinstance(c, type) and issubclass(c, Vertex) and "compute" in vars(c) and c.__module__ == module.__name__]


def _expected(module: types.ModuleType, line: int) -> str:
    """The words expected in the message for a line of the module."""
    text = inspect.getsource(module).splitlines()[line - 1]
    found = re.search(r"# refused: (.*)", text)
    assert found, f"line {line} was refused and not expected to be: {text}"
    return found[1]


def _check(error: CodeletError, module: types.ModuleType, codelet: Any) -> None:
    file = module.__name__.rpartition(".")[2] + ".py"
    message = str(error)
    line = re.search(rf"{file}:(\d+)", message)
    assert line, message
    assert _expected(module, int(line[1])) in message
    assert codelet.__name__ in message
    assert "\ntry: " in message
    assert not message.endswith("try: ")


@pytest.mark.parametrize("codelet", _codelets(refused), ids=lambda c: c.__name__)
def test_lowering_refuses(codelet: Any) -> None:
    with pytest.raises(CodeletError) as caught:
        lower(codelet_of(codelet))
    _check(caught.value, refused, codelet)


@pytest.mark.parametrize("codelet", _codelets(mistyped), ids=lambda c: c.__name__)
def test_the_compiler_refuses(codelet: Any) -> None:
    lowered = lower(codelet_of(codelet))
    with pytest.raises(CodeletError) as caught:
        compile_driver(lowered, "driver")
    _check(caught.value, mistyped, codelet)


def test_a_codelet_without_source_is_refused() -> None:
    scope: dict[str, Any] = {"Vertex": Vertex}
    exec("class Made(Vertex):\n    def compute(self):\n        pass\n", scope)
    with pytest.raises(CodeletError, match=r"(?s)Made.*source.*try: define it in a file"):
        lower(codelet_of(scope["Made"]))
