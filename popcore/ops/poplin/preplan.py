"""Plans made ahead, into a cache, of products and convolutions that a program will have. After ``poplin/ConvPreplan.hpp`` and ``MatMul.hpp``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from popcore.ops.poplin.conv_params import ConvParams
from popcore.ops.poplin.convolve import problem_of
from popcore.ops.poplin.params import CONV_PASSES, Options, floating, settings_of, sizes_of
from popcore.ops.poplin.plan import PlanningCache
from popcore.ops.poplin.problem import Problem
from popcore.target import Target
from popcore.types import DTypeLike


@dataclass(frozen=True)
class MatMulParams:
    """``mat_mul_grouped`` of ``[groups, m, k]`` and ``[groups, k, n]``."""

    input_type: DTypeLike
    output_type: DTypeLike
    a_shape: tuple[int, int, int]
    b_shape: tuple[int, int, int]


def preplan(convolutions: Iterable[tuple[Target, ConvParams, Options]], mat_muls: Iterable[tuple[Target, MatMulParams, Options]], cache: PlanningCache) -> None:
    """Make the plans of all of them, which the calls that are given ``cache`` then find there.

    Raises: ShapeError, ElementTypeError, OptionError
    """
    for target, conv, options in convolutions:
        settings = settings_of(options, "preplan", "pass", CONV_PASSES)
        problem = problem_of(conv, settings)
        cache.plan(target, problem, conv.types[1] is not problem.partials, settings.proportion)
    for target, params, options in mat_muls:
        sizes, dtype, settings = sizes_of(params.a_shape, params.b_shape, "preplan", 3), floating(params.input_type, "preplan"), settings_of(options, "preplan")
        problem = Problem(sizes.groups, sizes.m, sizes.k, sizes.n, dtype, partials=settings.partials_of(dtype))
        cache.plan(target, problem, floating(params.output_type, "preplan") is not problem.partials, settings.proportion)
