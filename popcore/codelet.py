"""What a codelet is: a ``Vertex`` class whose annotations are its fields and whose ``compute`` is its body.

::

    class ScaledAdd(Vertex):
        x: InOut[Vector[FLOAT]]        # an edge: a view of a tensor, gathered into tile memory
        k: Input[FLOAT]                # a scalar edge
        calls: INT                     # state: lives in the vertex, keeps its value between runs

        def compute(self):
            for i in range(len(self.x)):
                self.x[i] += self.k
            self.calls += 1

A codelet is generic when its fields name a ``TypeVar``: ``class Scale(Vertex, Generic[T])`` is used
as ``Scale[HALF]`` or ``"Scale<half>"``. Declaring one compiles nothing.
"""

from __future__ import annotations

import inspect
import re
import sys
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, TypeVar, overload

from popcore.debug import Site
from popcore.errors import CodeletError
from popcore.types import ElementType, as_element_type

if TYPE_CHECKING:
    from popcore.bindings.unit import NativeType

T = TypeVar("T")


class Vector(Generic[T]):
    """A field of one dimension: ``self.f[i]``, ``len(self.f)``, ``self.f[a:b]`` is a view."""

    shape: tuple[int]
    size: int

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[T]: ...
    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Vector[T]: ...
    def __getitem__(self, index: Any) -> Any: ...
    def __setitem__(self, index: int, value: T) -> None: ...


class Matrix(Generic[T]):
    """A field of two dimensions, row-major and contiguous: ``self.f[r, c]``, ``self.f.shape``."""

    shape: tuple[int, int]
    size: int

    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, index: tuple[int, int]) -> T: ...
    @overload
    def __getitem__(self, index: int) -> Vector[T]: ...
    def __getitem__(self, index: Any) -> Any: ...
    def __setitem__(self, index: tuple[int, int], value: T) -> None: ...


class VectorList(Generic[T]):
    """A list of vectors, jagged, each placed apart: ``self.f[i]`` is a vector, ``len(self.f)`` their number."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int) -> Vector[T]: ...


Input = Annotated[T, "in"]
"""An edge that is read; writing to it is an error when the codelet is added."""
Output = Annotated[T, "out"]
"""An edge that is written; read before, it holds whatever was in the tensor."""
InOut = Annotated[T, "inout"]
"""An edge that is read and written."""

_SHAPES: Mapping[Any, str] = {Vector: "vector", Matrix: "matrix", VectorList: "list"}


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a codelet."""

    name: str
    direction: str  # "in", "out", "inout", or "state" for a plain field
    shape: str  # "scalar", "vector", "matrix" or "list"
    dtype: ElementType
    align: int = 0  # bytes that its address, or that of each vector of a list, is a multiple of; 0: the element's own
    scalars: bool = False  # a list whose vectors have one element each: an edge for every element
    interleaved: bool = False  # has to lie in the interleaved part of a tile's memory

    @property
    def rank(self) -> int:
        """Dimensions of the tensor this field connects to."""
        return {"scalar": 0, "vector": 1, "matrix": 2, "list": 2}[self.shape]

    @property
    def writes(self) -> bool:
        return self.direction != "in"

    def __str__(self) -> str:
        kind = self.dtype.__name__ if self.shape == "scalar" else f"{self.shape}[{self.dtype.__name__}]"
        return f"{self.name}: {self.direction} {kind}"


class Vertex:
    """Base of codelets that one worker runs.

    ``compute(self)`` is the body. ``cycles(self)``, where given, is called on the host when the graph
    is compiled with the sizes of the fields in place of the fields, and returns the cycles of one
    call; ``graph.set_perf_estimate`` wins over it.
    ``fastmath = True`` lets the compiler reassociate float arithmetic: the results may then differ
    between this machine and another, and from the reference.
    """

    fastmath: ClassVar[bool] = False
    __pc_scope__: ClassVar[Mapping[str, Any]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # Annotations may be strings that name things local to where the class is defined; nothing else of there is kept alive.
        local = sys._getframe(1).f_locals
        texts = [text for text in inspect.get_annotations(cls).values() if isinstance(text, str)]
        cls.__pc_scope__ = {name: local[name] for text in texts for name in re.findall(r"\w+", text) if name in local}


class MultiVertex(Vertex):
    """Base of codelets that all six workers of a tile run together, on the same fields.

    ``compute(self, worker)`` is called with worker 5, 4, ... 0; a correct one gives the same result in any order.
    """

    NUM_WORKERS: ClassVar[int] = 6


@dataclass(frozen=True)
class Codelet:
    """A codelet ready to be compiled: a class with its element types decided."""

    name: str  # "Dot", or "Scale<half>"
    cls: type[Vertex]
    fields: tuple[Field, ...]
    types: tuple[tuple[TypeVar, ElementType], ...]  # what each TypeVar stands for
    site: Site  # where ``compute`` begins

    @property
    def workers(self) -> int:
        """Calls of ``compute`` per vertex: 6 for a MultiVertex, else 1."""
        return MultiVertex.NUM_WORKERS if issubclass(self.cls, MultiVertex) else 1

    def field(self, name: str) -> Field | None:
        return next((f for f in self.fields if f.name == name), None)

    def __hash__(self) -> int:
        return hash((self.name, self.cls))


@dataclass(frozen=True)
class NativeCodelet(Codelet):
    """A codelet in C++, or in another language with a C interface. ``cls`` says only which kind of vertex it is."""

    native: NativeType

    def __hash__(self) -> int:
        return hash((self.name, self.native.fingerprint))


def native_codelet(native: NativeType) -> NativeCodelet:
    """The codelet of a compiled vertex class."""
    fields = tuple(Field(f.name, f.direction, f.shape, f.dtype, f.align, f.scalars, f.interleaved) for f in native.fields)
    return NativeCodelet(native.name, MultiVertex if native.workers > 1 else Vertex, fields, (), Site(native.file, native.line), native)


def type_variables(cls: type[Vertex]) -> tuple[TypeVar, ...]:
    """The TypeVars that a codelet class is generic in, in order."""
    return tuple(getattr(cls, "__parameters__", ()))


def codelet_of(cls: Any, dtypes: tuple[ElementType, ...] = ()) -> Codelet:
    """Read the fields of a ``Vertex`` class; ``dtypes`` decides its TypeVars, in order.

    Raises:
        CodeletError: a field's type is not one a tile can hold; the field and the allowed types are named.
    """
    if (origin := typing.get_origin(cls)) is not None:
        dtypes = tuple(as_element_type(a) for a in typing.get_args(cls))
        cls = origin
    if not (isinstance(cls, type) and issubclass(cls, Vertex)):
        raise CodeletError(f"{cls!r} is no codelet", "pass a class derived from popcore.Vertex or popcore.MultiVertex")
    site = _site_of(cls)
    if not callable(getattr(cls, "compute", None)):
        raise CodeletError(f"codelet {cls.__name__} ({site}) has no compute method", "def compute(self): ...")
    variables = type_variables(cls)
    if len(dtypes) != len(variables):
        wanted = ", ".join(v.__name__ for v in variables)
        raise CodeletError(
            f"codelet {cls.__name__} ({site}) is generic in {len(variables)} element types ({wanted}), {len(dtypes)} given",
            f"{cls.__name__}[{', '.join(['FLOAT'] * len(variables))}]" if variables else f"use plain {cls.__name__}",
        )
    chosen = dict(zip(variables, dtypes, strict=True))
    fields = tuple(_field(cls, site, n, a, chosen) for n, a in _annotations(cls, site).items() if typing.get_origin(a) is not ClassVar)
    name = cls.__name__ + (f"<{','.join(t.poplar_name for t in dtypes)}>" if dtypes else "")
    return Codelet(name, cls, fields, tuple(chosen.items()), site)


def _annotations(cls: type[Vertex], site: Site) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        if base in (Vertex, MultiVertex) or not issubclass(base, Vertex):
            continue
        scope = {**vars(sys.modules.get(base.__module__, sys)), **base.__pc_scope__}
        for name, annotation in inspect.get_annotations(base).items():
            try:
                found[name] = eval(annotation, scope) if isinstance(annotation, str) else annotation  # the user's own source
            except Exception as error:
                raise CodeletError(f"field {name!r} of codelet {cls.__name__} ({site}): cannot read the annotation {annotation!r}: {error}") from error
    return found


def _field(cls: type[Vertex], site: Site, name: str, annotation: Any, chosen: Mapping[TypeVar, ElementType]) -> Field:
    direction, inner = "state", annotation
    if typing.get_origin(annotation) is Annotated:
        inner, direction = typing.get_args(annotation)[:2]
    shape, element = "scalar", inner
    if (origin := typing.get_origin(inner)) in _SHAPES:
        shape, element = _SHAPES[origin], typing.get_args(inner)[0]
    if isinstance(element, TypeVar):
        element = chosen.get(element, element)
    if not isinstance(element, ElementType) or (direction == "state" and shape not in ("scalar", "vector")):
        raise CodeletError(
            f"field {name!r} of codelet {cls.__name__} ({site}) has type {annotation!r}, which a tile cannot hold",
            "Input/Output/InOut of FLOAT, HALF, INT, ... or of Vector, Matrix, VectorList of those; or a plain FLOAT, INT, ... or Vector of those as state",
        )
    return Field(name, direction, shape, element)


def _site_of(cls: type) -> Site:
    code = getattr(getattr(cls, "compute", None), "__code__", None)
    if code is None:
        return Site(getattr(sys.modules.get(cls.__module__), "__file__", None) or "<unknown>", 0)
    return Site(code.co_filename, code.co_firstlineno)
