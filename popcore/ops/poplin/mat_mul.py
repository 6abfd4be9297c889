"""Products of matrices, one or many at once. After ``poplin/MatMul.hpp``, in snake_case.

Options of all of them: ``availableMemoryProportion`` (0.6: of a tile's memory that temporaries may take), ``partialsType`` ("float", or
"half": sums of HALF are rounded to HALF at every 16 of k, which is twice as fast where the product unit has twice as many units for it, and
moves half as much), ``fullyConnectedPass`` (one of PopLibs' names; layouts are the same for all). All take a ``cache`` of plans; without one
the process has its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from popcore import program
from popcore.graph import Graph, Tensor
from popcore.ops.poplin.params import Options, Sizes, check_tensors, factor, floating, settings_of, sizes_of
from popcore.ops.poplin.plan import PlanningCache
from popcore.ops.poplin.product import Product
from popcore.types import DTypeLike, ElementType

Shape = Sequence[int]
Cache = PlanningCache | None


def create_mat_mul_input_lhs(
    graph: Graph,
    dtype: DTypeLike,
    a_shape: Shape,
    b_shape: Shape,
    name: str = "",
    options: Options = None,
    cache: Cache = None,
    *,
    output_type: DTypeLike | None = None,
) -> Tensor:
    """A tensor of ``a_shape`` laid out, and spread over tiles, so that ``mat_mul`` with a ``b_shape`` moves as little as can be.

    Raises: ShapeError, ElementTypeError, OptionError
    """
    return _created(graph, dtype, a_shape, b_shape, name, options, cache, output_type, 2, "create_mat_mul_input_lhs")


def create_mat_mul_input_rhs(
    graph: Graph,
    dtype: DTypeLike,
    a_shape: Shape,
    b_shape: Shape,
    name: str = "",
    options: Options = None,
    cache: Cache = None,
    *,
    output_type: DTypeLike | None = None,
) -> Tensor:
    """The same for the right operand."""
    return _created(graph, dtype, a_shape, b_shape, name, options, cache, output_type, 2, "create_mat_mul_input_rhs")


def create_mat_mul_output(
    graph: Graph, dtype: DTypeLike, a_shape: Shape, b_shape: Shape, name: str = "", options: Options = None, cache: Cache = None
) -> Tensor:
    """The same for the result; ``dtype`` is that of the operands too."""
    return _created(graph, dtype, a_shape, b_shape, name, options, cache, None, 2, "create_mat_mul_output")


def create_mat_mul_grouped_input_lhs(
    graph: Graph,
    dtype: DTypeLike,
    a_shape: Shape,
    b_shape: Shape,
    name: str = "",
    options: Options = None,
    cache: Cache = None,
    *,
    output_type: DTypeLike | None = None,
) -> Tensor:
    """``create_mat_mul_input_lhs`` for ``[groups, m, k]`` and ``[groups, k, n]``."""
    return _created(graph, dtype, a_shape, b_shape, name, options, cache, output_type, 3, "create_mat_mul_grouped_input_lhs")


def create_mat_mul_grouped_input_rhs(
    graph: Graph,
    dtype: DTypeLike,
    a_shape: Shape,
    b_shape: Shape,
    name: str = "",
    options: Options = None,
    cache: Cache = None,
    *,
    output_type: DTypeLike | None = None,
) -> Tensor:
    """The same for the right operand."""
    return _created(graph, dtype, a_shape, b_shape, name, options, cache, output_type, 3, "create_mat_mul_grouped_input_rhs")


def create_mat_mul_grouped_output(
    graph: Graph, dtype: DTypeLike, a_shape: Shape, b_shape: Shape, name: str = "", options: Options = None, cache: Cache = None
) -> Tensor:
    """The same for the result."""
    return _created(graph, dtype, a_shape, b_shape, name, options, cache, None, 3, "create_mat_mul_grouped_output")


def mat_mul(
    graph: Graph,
    a: Tensor,
    b: Tensor,
    prog: program.Sequence,
    output_type: DTypeLike | None = None,
    name: str = "",
    options: Options = None,
    cache: Cache = None,
) -> Tensor:
    """``[m, k] @ [k, n]``, summed in FLOAT (or as ``partialsType`` says) and rounded to ``output_type`` (that of ``a``) once.

    Any views on any tiles; ones that ``create_mat_mul_input_...`` made are moved least.

    Raises:
        ShapeError, ElementTypeError: operands that do not fit each other.
        OptionError: an option that does not exist.
    Costs: build time linear in the tiles used; see ``mat_mul_report_plan`` for cycles.
    """
    return _mat_mul(graph, a, b, prog, output_type, name, options, cache, 2, "mat_mul")


def mat_mul_grouped(
    graph: Graph,
    a: Tensor,
    b: Tensor,
    prog: program.Sequence,
    output_type: DTypeLike | None = None,
    name: str = "",
    options: Options = None,
    cache: Cache = None,
) -> Tensor:
    """``[groups, m, k] @ [groups, k, n]``: a product for each group, all at once."""
    return _mat_mul(graph, a, b, prog, output_type, name, options, cache, 3, "mat_mul_grouped")


def mat_mul_with_output(
    graph: Graph, a: Tensor, b: Tensor, out: Tensor, prog: program.Sequence, name: str = "", options: Options = None, cache: Cache = None
) -> None:
    """``out = a @ b``, rounded to the type of ``out``. It stays where it is mapped, and may overlap the operands."""
    _with_output(graph, a, b, out, prog, name, options, cache, 2, "mat_mul_with_output")


def mat_mul_grouped_with_output(
    graph: Graph, a: Tensor, b: Tensor, out: Tensor, prog: program.Sequence, name: str = "", options: Options = None, cache: Cache = None
) -> None:
    """``mat_mul_with_output`` for each group."""
    _with_output(graph, a, b, out, prog, name, options, cache, 3, "mat_mul_grouped_with_output")


def mat_mul_acc(
    graph: Graph, c: Tensor, k: float | Tensor, a: Tensor, b: Tensor, prog: program.Sequence, name: str = "", options: Options = None, cache: Cache = None
) -> None:
    """``c += k * (a @ b)``, in FLOAT, rounded to the type of ``c`` once.

    Args:
        k: A number, or a scalar tensor of FLOAT or HALF.
    """
    _acc(graph, c, k, a, b, prog, name, options, cache, 2, "mat_mul_acc")


def mat_mul_grouped_acc(
    graph: Graph, c: Tensor, k: float | Tensor, a: Tensor, b: Tensor, prog: program.Sequence, name: str = "", options: Options = None, cache: Cache = None
) -> None:
    """``mat_mul_acc`` for each group."""
    _acc(graph, c, k, a, b, prog, name, options, cache, 3, "mat_mul_grouped_acc")


def mat_mul_report_plan(
    graph: Graph, input_type: DTypeLike, output_type: DTypeLike, a_shape: Shape, b_shape: Shape, options: Options = None, cache: Cache = None
) -> str:
    """What ``mat_mul`` of these would do, as text: splits, tiles, modelled cycles and memory."""
    return _report(graph, input_type, output_type, a_shape, b_shape, options, cache, 2, "mat_mul_report_plan")


def mat_mul_grouped_report_plan(
    graph: Graph, input_type: DTypeLike, output_type: DTypeLike, a_shape: Shape, b_shape: Shape, options: Options = None, cache: Cache = None
) -> str:
    """The same for ``mat_mul_grouped``."""
    return _report(graph, input_type, output_type, a_shape, b_shape, options, cache, 3, "mat_mul_grouped_report_plan")


def _product(graph: Graph, sizes: Sizes, dtype: ElementType, output: ElementType | None, options: Options, cache: Cache, call: str) -> Product:
    return Product(graph, sizes, dtype, output, settings_of(options, call), cache)


def _created(
    graph: Graph,
    dtype: DTypeLike,
    a_shape: Shape,
    b_shape: Shape,
    name: str,
    options: Options,
    cache: Cache,
    output_type: DTypeLike | None,
    rank: int,
    call: str,
) -> Tensor:
    element = floating(dtype, call)
    output = element if output_type is None else floating(output_type, call)
    sizes = sizes_of(a_shape, b_shape, call, rank)
    product = _product(graph, sizes, element, output, options, cache, call)
    if call.endswith("output"):
        made = product.new_output(element, name)
    elif call.endswith("lhs"):
        made = product.a.create(graph, element, product.a_tiles, name)[1]
    else:
        made = product.b.create(graph, element, product.b_tiles, name)[1]
    return made if rank == 3 else made[0]


def _mat_mul(
    graph: Graph, a: Tensor, b: Tensor, prog: program.Sequence, output_type: DTypeLike | None, name: str, options: Options, cache: Cache, rank: int, call: str
) -> Tensor:
    sizes = check_tensors(call, rank, a=a, b=b)
    output = a.dtype if output_type is None else floating(output_type, call)
    product = _product(graph, sizes, a.dtype, output, options, cache, call)
    out = product.new_output(output, name or call)
    product.put(_grouped(a), _grouped(b), out, prog, name or call)
    return out if rank == 3 else out[0]


def _with_output(
    graph: Graph, a: Tensor, b: Tensor, out: Tensor, prog: program.Sequence, name: str, options: Options, cache: Cache, rank: int, call: str
) -> None:
    sizes = check_tensors(call, rank, a=a, b=b, c=out)
    product = _product(graph, sizes, a.dtype, out.dtype, options, cache, call)
    product.put(_grouped(a), _grouped(b), _grouped(out), prog, name or call)


def _acc(
    graph: Graph, c: Tensor, k: float | Tensor, a: Tensor, b: Tensor, prog: program.Sequence, name: str, options: Options, cache: Cache, rank: int, call: str
) -> None:
    sizes = check_tensors(call, rank, a=a, b=b, c=c)
    product = _product(graph, sizes, a.dtype, None, options, cache, call)
    product.add(_grouped(a), _grouped(b), _grouped(c), factor(k, call), prog, name or call)


def _report(
    graph: Graph, input_type: DTypeLike, output_type: DTypeLike, a_shape: Shape, b_shape: Shape, options: Options, cache: Cache, rank: int, call: str
) -> str:
    sizes = sizes_of(a_shape, b_shape, call, rank)
    return str(_product(graph, sizes, floating(input_type, call), floating(output_type, call), options, cache, call).plan)


def _grouped(t: Tensor) -> Tensor:
    return t if t.rank == 3 else t.expand([0])
